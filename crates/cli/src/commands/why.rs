//! `taco why`

use clap::Args;
use serde_json::Value;

use super::workspaces;
use crate::EXIT_CODES;
use crate::api::one;
use crate::browser;
use crate::failure::Failure;
use crate::output;
use crate::print::on_one_line;
use crate::process_env::ProcessEnv;
use crate::resource::in_words;
use crate::session::{Flags, Session};

/// Say why a workspace is stale: who changed what, when, and what it last applied against
#[derive(Args, Debug)]
#[command(after_help = format!("\
With --json:
  {{\"unit\", \"freshness\", \"reasons\": [{{\"producer\", \"status\", \"certain\", \"sentence\",
    \"outputs\": [{{\"name\", \"change\", \"from_commit\", \"to_commit\", \"run\", \"by\", \"at\"}}]}}]}}

Examples:
  taco why acme/cluster
  taco why cluster --json

{EXIT_CODES}"))]
pub struct Arguments {
    /// Workspace, or ORGANIZATION/WORKSPACE [default: as --ws]
    workspace: Option<String>,
    /// Open the graph around it in the browser
    #[arg(long)]
    web: bool,
    #[command(flatten)]
    flags: Flags,
}

pub(crate) async fn run(arguments: &Arguments, process_env: &ProcessEnv) -> Result<(), Failure> {
    let session = Session::open(&arguments.flags, process_env).await?;
    let name = session.target.workspace(arguments.workspace.as_deref())?;
    if arguments.web {
        let mut page = session.target.host.at(&["app", &name.organization, "graph"]);
        page.query_pairs_mut().append_pair("around", &name.name);
        return browser::show(&page);
    }
    let (workspace, _) = workspaces::find(&session, &name).await?;
    let path = ["workspaces", workspace.id(), "why"];
    let why = one(session.api.get(&format!("reasons of {name}"), &path, &[]).await?)?;
    if session.json {
        return output::json(why.attributes());
    }
    if session.quiet {
        return output::line(&why.text("freshness"));
    }
    let sentences = sentences(why.attributes());
    sentences.iter().enumerate().try_for_each(|(number, sentence)| {
        let bullet = if number > 0 { "  - " } else { "" };
        output::line(&format!("{bullet}{}", on_one_line(sentence)))
    })
}

/// What a server says in words; where it says none, the words that follow from the rest.
fn sentences(why: &Value) -> Vec<String> {
    let told = why["sentences"].as_array().into_iter().flatten().map(in_words);
    let mut told: Vec<String> = told.collect();
    if told.is_empty() {
        told.push(format!("{}: {}.", in_words(&why["unit"]), in_words(&why["freshness"]).replace('_', " ")));
        let reasons = why["reasons"].as_array().into_iter().flatten();
        told.extend(reasons.map(|reason| in_words(&reason["sentence"])).filter(|sentence| !sentence.is_empty()));
    }
    told
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_server_says_it_in_sentences_or_in_fields() {
        let said = json!({ "unit": "app", "freshness": "stale", "sentences": ["app is stale.", "network did it."] });
        assert_eq!(sentences(&said), ["app is stale.", "network did it."]);
        let fields = json!({ "unit": "app", "freshness": "may_change", "reasons": [{ "sentence": "A plan." }, {}] });
        assert_eq!(sentences(&fields), ["app: may change.", "A plan."]);
    }
}
