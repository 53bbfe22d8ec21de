//! What policies said about a run's plan.

use serde_json::Value;

use crate::resource::{Resource, in_words as text};

fn policies(run: &Resource) -> Option<&Value> {
    Some(run.get("taco-policies")).filter(|policies| policies.is_object())
}

/// What they said, in one text; empty if none applied.
pub(super) fn in_words(run: &Resource) -> String {
    let Some(policies) = policies(run) else { return String::new() };
    let counts = &policies["result-count"];
    let count = |name: &str, word: &str| match counts[name].as_u64() {
        None | Some(0) => None,
        Some(number) => Some(format!("{number} {word}")),
    };
    let parts = [
        count("passed", "passed"),
        count("advisory-failed", "advisory failed"),
        count("mandatory-failed", "mandatory failed"),
        count("errored", "with errors"),
    ];
    let counted = parts.into_iter().flatten().collect::<Vec<_>>().join(", ");
    let overridden = if policies["status"] == "overridden" { "; overridden" } else { "" };
    let counted = if counted.is_empty() { text(&policies["status"]) } else { counted };
    format!("{counted}{overridden}")
}

/// Shows what stands against the run to the person who watches.
pub(super) fn print(run: &Resource) {
    let stopping = policies(run).and_then(|policies| policies["stopping"].as_array());
    let stopping: Vec<String> = stopping.into_iter().flatten().map(text).collect();
    if !stopping.is_empty() {
        eprintln!("Mandatory policies stop the run: {}", stopping.join(", "));
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::resource::Document;

    #[test]
    fn policies_are_told_by_what_came_of_them() {
        let run = |policies: Value| {
            let data = json!({ "data": { "id": "run-1", "attributes": { "taco-policies": policies } } });
            Document::from(data).data[0].clone()
        };
        let counts = json!({ "passed": 2, "advisory-failed": 0, "mandatory-failed": 1, "errored": 0 });
        let failed = json!({ "status": "failed", "stopping": ["all/tags"], "result-count": counts });
        assert_eq!(in_words(&run(failed.clone())), "2 passed, 1 mandatory failed");
        let overridden = json!({ "status": "overridden", "stopping": [], "result-count": counts });
        assert_eq!(in_words(&run(overridden)), "2 passed, 1 mandatory failed; overridden");
        assert_eq!(in_words(&run(Value::Null)), "");
    }
}
