//! `taco state ls` and `show`

use serde_json::{Value, json};
use url::Url;

use super::States;
use crate::browser;
use crate::commands::workspaces::lock_holder;
use crate::failure::{Failure, Kind};
use crate::output;
use crate::print::Cell;
use crate::resource::{Resource, in_words};

pub(super) async fn list(states: &States<'_>, version: &str) -> Result<(), Failure> {
    let version = states.version(version).await?;
    let file = states.file(&version).await?;
    let instances = file.instances();
    if states.session.json {
        let object = |(address, instance): (&String, &crate::state_file::Instance<'_>)| json!({ "address": address, "provider": instance.provider });
        return output::json(&instances.iter().map(object).collect());
    }
    let rows = instances.iter().map(|(address, instance)| [address.clone(), provider(instance.provider).to_owned()]);
    states.session.table(["ADDRESS", "PROVIDER"], rows, "This state manages no resources.")
}

/// `hashicorp/aws` out of `provider["registry.terraform.io/hashicorp/aws"]`
fn provider(full: &str) -> &str {
    let source = full.split('"').nth(1).unwrap_or(full);
    source.split_once('/').map_or(source, |(_, short)| short)
}

pub(super) async fn show(states: &States<'_>, version: &str, web: bool) -> Result<(), Failure> {
    let version = states.version(version).await?;
    if web {
        return browser::show(&page(states, &version));
    }
    if states.session.json {
        return output::json(&version.plain());
    }
    let (resources, outputs) = match version.get("encrypted") {
        Value::Bool(true) => ("encrypted".to_owned(), "encrypted".to_owned()),
        _ => {
            let file = states.file(&version).await?;
            (file.instances().len().to_string(), file.outputs().collect::<Vec<_>>().join(", "))
        }
    };
    states.session.fields([
        ("workspace", Cell::from(states.name.to_string())),
        ("id", version.id().into()),
        ("serial", output::text(&version, "serial")),
        ("lineage", output::text(&version, "lineage")),
        ("status", output::status(&version, "status")),
        ("bytes", output::text(&version, "size")),
        ("md5", output::text(&version, "md5")),
        ("terraform", output::text(&version, "terraform-version")),
        ("resources", resources.into()),
        ("outputs", outputs.into()),
        ("created", output::time(&version, "created-at")),
        ("created by", version.related_id("created-by").unwrap_or_default().into()),
        ("locked by", Cell::Marked(lock_holder(&states.workspace, &states.beside))),
        ("url", page(states, &version).as_str().into()),
    ])
}

pub(super) async fn show_resource(
    states: &States<'_>,
    version: &str,
    address: &str,
    with_sensitive: bool,
) -> Result<(), Failure> {
    let version = states.version(version).await?;
    let file = states.file(&version).await?;
    let instances = file.instances();
    let instance = instances.get(address).ok_or_else(|| {
        Failure::new(Kind::NotFound, format!("{address}: not found"))
            .because(format!("{} does not have it", states.subject(&version)))
            .hint("`taco state ls` lists all addresses")
    })?;
    let attributes = instance.shown(with_sensitive);
    if states.session.json {
        return output::json(&json!({ "address": address, "provider": instance.provider, "attributes": attributes }));
    }
    let row = |(name, value): (&String, &Value)| {
        let value = if value.is_string() { in_words(value) } else { value.to_string() };
        [name.clone(), value]
    };
    let rows: Vec<_> = attributes.iter().map(row).collect();
    states.session.table(["ATTRIBUTE", "VALUE"], rows.into_iter(), "It has no attributes.")
}

/// Address of a version's page.
pub(super) fn page(states: &States<'_>, version: &Resource) -> Url {
    browser::workspace_page(&states.session.target.host, &states.name, &["states", version.id()])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_provider_is_shown_without_its_registry() {
        for (full, short) in [
            (r#"provider["registry.terraform.io/hashicorp/aws"]"#, "hashicorp/aws"),
            (r#"module.a.provider["registry.opentofu.org/hashicorp/null"].west"#, "hashicorp/null"),
            ("odd", "odd"),
        ] {
            assert_eq!(provider(full), short);
        }
    }
}
