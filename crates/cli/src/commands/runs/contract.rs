//! Outputs that a run's plan removes or retypes and that other workspaces use.

use serde_json::Value;

use crate::resource::{Resource, in_words as text};

fn contract(run: &Resource) -> Option<&Value> {
    Some(run.get("taco-output-contract")).filter(|contract| contract.is_object())
}

fn sentences(run: &Resource) -> Vec<String> {
    let sentences = contract(run).and_then(|contract| contract["sentences"].as_array());
    sentences.map(|sentences| sentences.iter().map(text).collect()).unwrap_or_default()
}

/// The changes in one text; empty if there are none.
pub(super) fn in_words(run: &Resource) -> String {
    sentences(run).join("; ")
}

/// True if the run waits for a word that this is meant.
pub(super) fn stops(run: &Resource) -> bool {
    contract(run).is_some_and(|contract| contract["stops"] == true && contract["accepted-at"].is_null())
}

/// Number of workspaces that the plan breaks, where that is to be decided.
pub(super) fn broken_workspaces(run: &Resource) -> Option<u64> {
    contract(run).filter(|_| stops(run)).and_then(|contract| contract["consumer-count"].as_u64())
}

/// Shows the changes to the person who is asked, or who watches.
pub(super) fn print(run: &Resource) {
    let sentences = sentences(run);
    if sentences.is_empty() {
        return;
    }
    eprintln!("Outputs that other workspaces use:");
    for sentence in sentences {
        eprintln!("  {sentence}");
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::resource::Document;

    fn run(contract: Value) -> Resource {
        let data = json!({ "data": { "id": "run-1", "attributes": { "taco-output-contract": contract } } });
        Document::from(data).data[0].clone()
    }

    #[test]
    fn what_is_accepted_is_told_and_no_longer_asked() {
        let contract = |accepted: Value| {
            run(
                json!({ "stops": true, "consumer-count": 2, "accepted-at": accepted, "sentences": ["id is removed: app uses it"] }),
            )
        };
        assert_eq!((stops(&contract(Value::Null)), broken_workspaces(&contract(Value::Null))), (true, Some(2)));
        let accepted = contract(json!("2026-01-01T00:00:00Z"));
        assert_eq!((stops(&accepted), broken_workspaces(&accepted)), (false, None));
        assert_eq!(in_words(&accepted), "id is removed: app uses it");
        assert_eq!((in_words(&run(Value::Null)), stops(&run(Value::Null))), (String::new(), false));
    }
}
