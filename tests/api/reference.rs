//! `docs/api.md`: the API reference, made from the table of routes. `cargo xtask docs` writes it again.

use std::fmt::Write as _;

use taco_tfc_api::routes::{self, Access, InTerraformCloud, Route, Subject};

const FILE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../docs/api.md");
const TERRAFORM_CLOUD: &str = "https://developer.hashicorp.com/terraform/cloud-docs/api-docs";
const INTRODUCTION: &str = "# The API

What a server answers, as clients of Terraform Cloud know it: JSON:API documents below `/api/v2`. Each row is a route of the
table in `crates/tfc-api/src/routes/table.rs`, from which this file is made; `cargo xtask docs` writes it again. Unless a
row says otherwise, a request needs `Authorization: Bearer TOKEN`, and what the caller may not see is answered with 404,
like what is not there.
";

fn who(route: &Route) -> &'static str {
    match route.access {
        Access::Public => " Without a token.",
        Access::User => " For users.",
        Access::OrganizationToken => " For an organization's own token.",
        Access::TaskToken => " For the token that comes with a request to a run task.",
        Access::SignedAddress | Access::Token | Access::Right(..) | Access::All(_) | Access::Depends(_) => "",
    }
}

fn compared(route: &Route) -> &'static str {
    match route.in_terraform_cloud {
        InTerraformCloud::Same => "the same",
        InTerraformCloud::Differs(how) => how,
        InTerraformCloud::Missing => "not there",
    }
}

fn reference() -> String {
    let mut text = INTRODUCTION.to_owned();
    let mut subject: Option<Subject> = None;
    for route in routes::all() {
        if subject != Some(route.subject) {
            subject = Some(route.subject);
            text.push_str(&heading(route.subject));
        }
        let methods = route.methods.join(", ");
        let (path, summary, who, compared) = (route.path, &route.summary, who(&route), compared(&route));
        writeln!(text, "| {methods} | `{path}` | {summary}{who} | {compared} |").expect("a text takes everything");
    }
    text
}

fn heading(Subject { title, page }: Subject) -> String {
    let link = page.map(|page| format!("[{title} in Terraform Cloud]({TERRAFORM_CLOUD}/{page})\n\n"));
    let link = link.unwrap_or_default();
    format!("\n## {title}\n\n{link}| Method | Path | What it does | In Terraform Cloud |\n|---|---|---|---|\n")
}

#[test]
fn the_reference_says_what_the_table_says() {
    let expected = reference();
    if std::env::var_os("TACO_WRITE_DOCS").is_some() {
        std::fs::write(FILE, &expected).expect("docs/ can be written");
    }
    let found = std::fs::read_to_string(FILE).unwrap_or_default();
    assert!(found == expected, "docs/api.md is not what the table of routes says: run `cargo xtask docs`");
}

#[test]
fn every_route_says_what_it_does() {
    for route in routes::all() {
        assert!(route.summary.ends_with('.'), "{:?} {} has no sentence", route.methods, route.path);
    }
}
