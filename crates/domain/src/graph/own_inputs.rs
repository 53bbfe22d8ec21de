//! Own inputs of a unit: configuration, variables, engine and lock file. What they are not made from, as other units'
//! outputs, is told by dependencies.

use std::fmt::Write as _;

use crate::configuration_version::ConfigurationVersion;
use crate::engine::Engine;
use crate::graph::consumption::OwnInputs;
use crate::output::OutputDigest;
use crate::variable_precedence::JobVariable;
use crate::workspace::Workspace;

/// Own inputs of a run with this configuration and these variables; `None` if the configuration's contents are unknown,
/// or known for another directory.
pub fn own_inputs(
    key: &[u8; 32],
    workspace: &Workspace,
    configuration: &ConfigurationVersion,
    variables: &[JobVariable],
    (engine, version): (Engine, &str),
) -> Option<OwnInputs> {
    let contents = configuration.contents.as_ref();
    let contents = contents.filter(|contents| contents.working_directory == workspace.working_directory)?;
    let lock_file = contents.lock_file.as_deref().unwrap_or_default();
    Some(OwnInputs {
        configuration: OutputDigest::of_bytes(key, "configuration", contents.files.as_bytes()),
        variables: OutputDigest::of_bytes(key, "variables", text_of(variables).as_bytes()),
        engine: format!("{engine} {version}"),
        lock_file: OutputDigest::of_bytes(key, "lock file", lock_file.as_bytes()),
    })
}

/// All that matters of variables, in one order.
fn text_of(variables: &[JobVariable]) -> String {
    let mut sorted: Vec<&JobVariable> = variables.iter().collect();
    sorted.sort_by(|one, other| (one.category, &one.key).cmp(&(other.category, &other.key)));
    let mut text = String::new();
    for JobVariable { key, value, category, hcl, sensitive: _, bound_to } in sorted {
        // A value that is another unit's output is not this one's own; that it is taken from there is.
        if let Some(bound_to) = bound_to {
            writeln!(text, "{category:?} {} {key} bound to {bound_to}", key.len()).expect("a text takes all");
            continue;
        }
        // Lengths keep two variables apart from one that reads like both.
        writeln!(text, "{category:?} {} {key} {} {value} {hcl}", key.len(), value.len()).expect("a text takes all");
    }
    text
}

#[cfg(test)]
mod tests {
    use jiff::Timestamp;

    use super::*;
    use crate::configuration_version::ConfigurationContents;
    use crate::configuration_version::tests::given_configuration;
    use crate::id::{ProjectId, WorkspaceId};
    use crate::variable::VariableCategory;
    use crate::walks::facts::own_change;

    fn variable(key: &str, value: &str) -> JobVariable {
        let (key, value) = (key.to_owned(), value.to_owned());
        JobVariable { key, value, category: VariableCategory::Terraform, hcl: false, sensitive: false, bound_to: None }
    }

    fn bound(value: &str) -> JobVariable {
        JobVariable { bound_to: Some("ws-1 a".to_owned()), ..variable("a", value) }
    }

    #[test]
    fn each_input_counts_and_is_named() {
        let project = ProjectId::from_random([2; 16]);
        let name = "web".parse().expect("legal");
        let workspace = Workspace::new(WorkspaceId::from_random([1; 16]), name, project, Timestamp::UNIX_EPOCH);
        let contents = |files: &str, lock_file: &str| ConfigurationContents {
            working_directory: String::new(),
            files: files.to_owned(),
            lock_file: Some(lock_file.to_owned()),
            modules: Vec::new(),
        };
        let with = |contents| ConfigurationVersion { contents, ..given_configuration(1) };
        let inputs = |contents, variables: &[JobVariable], version| {
            own_inputs(&[1; 32], &workspace, &with(Some(contents)), variables, (Engine::Terraform, version))
        };
        let before = inputs(contents("a", "l"), &[variable("a", "1"), variable("b", "2")], "1.9.0").expect("known");
        for (after, expected) in [
            (inputs(contents("a", "l"), &[variable("b", "2"), variable("a", "1")], "1.9.0"), None),
            (inputs(contents("b", "l"), &[variable("a", "1"), variable("b", "2")], "1.9.0"), Some("configuration")),
            (inputs(contents("a", "m"), &[variable("a", "1"), variable("b", "2")], "1.9.0"), Some("lock file")),
            (inputs(contents("a", "l"), &[variable("a", "2"), variable("b", "2")], "1.9.0"), Some("variables")),
            (inputs(contents("a", "l"), &[variable("a", "1")], "1.10.0"), Some("variables and engine")),
            (inputs(contents("a", "l"), &[bound("1"), variable("b", "2")], "1.9.0"), Some("variables")),
        ] {
            let after = after.expect("known");
            assert_eq!(own_change(&after, Some(&before)), expected.map(|words| format!("its own {words} changed")));
        }
        assert!(own_change(&before, None).is_some());
        let [one, other] = ["1", "2"].map(|value| inputs(contents("a", "l"), &[bound(value)], "1.9.0").expect("known"));
        assert_eq!(own_change(&one, Some(&other)), None, "what is bound is the producer's change");
        let elsewhere = Workspace { working_directory: "x".to_owned(), ..workspace.clone() };
        let known = with(Some(contents("a", "l")));
        assert_eq!(own_inputs(&[1; 32], &elsewhere, &known, &[], (Engine::Terraform, "1.9.0")), None);
        assert_eq!(own_inputs(&[1; 32], &workspace, &with(None), &[], (Engine::Terraform, "1.9.0")), None);
    }
}
