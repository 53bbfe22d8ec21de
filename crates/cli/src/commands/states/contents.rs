//! `taco state ls` and `show`

use serde_json::{Value, json};

use super::States;
use crate::commands::workspaces::lock_holder;
use crate::failure::{Failure, Kind};
use crate::output;
use crate::resource::in_words;

pub(super) async fn list(states: &States<'_>, version: &str) -> Result<(), Failure> {
    let version = states.version(version).await?;
    let file = states.file(&version).await?;
    let instances = file.instances();
    if states.session.json {
        let object = |(address, instance): (&String, &crate::state_file::Instance<'_>)| json!({ "address": address, "provider": instance.provider });
        return output::json(&instances.iter().map(object).collect());
    }
    let rows = instances.iter().map(|(address, instance)| [address.clone(), provider(instance.provider).to_owned()]);
    output::table(["ADDRESS", "PROVIDER"], rows)
}

/// `hashicorp/aws` out of `provider["registry.terraform.io/hashicorp/aws"]`
fn provider(full: &str) -> &str {
    let source = full.split('"').nth(1).unwrap_or(full);
    source.split_once('/').map_or(source, |(_, short)| short)
}

pub(super) async fn show(states: &States<'_>, version: &str) -> Result<(), Failure> {
    let version = states.version(version).await?;
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
    output::fields(&[
        ("workspace", states.name.to_string()),
        ("id", version.id().to_owned()),
        ("serial", version.text("serial")),
        ("lineage", version.text("lineage")),
        ("status", version.text("status")),
        ("bytes", version.text("size")),
        ("md5", version.text("md5")),
        ("terraform", version.text("terraform-version")),
        ("resources", resources),
        ("outputs", outputs),
        ("created", version.text("created-at")),
        ("created by", version.related_id("created-by").unwrap_or_default().to_owned()),
        ("locked by", lock_holder(&states.workspace, &states.beside)),
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
    output::table(["ATTRIBUTE", "VALUE"], attributes.iter().map(row))
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
