//! Values of bound variables: what becomes of an output in a run, why a run cannot have it, and what a run remembers of
//! what it was given.

use std::fmt::Write as _;

use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

use crate::binding::Binding;
use crate::graph::output_commit::OutputCommitNumber;
use crate::id::{RunId, StateVersionId, WorkspaceId};
use crate::output::{OutputDigest, digest_value};
use crate::state_file::Output;
use crate::variable::{LARGEST_VALUE, VariableCategory};
use crate::variable_precedence::JobVariable;

/// Maximum nesting depth of a value.
const DEEPEST: usize = 128;
/// Maximum number of names in a sentence.
const MAX_NAMES: usize = 10;

/// What a run was given for a bound variable, without the value.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize, Debug)]
pub struct BoundVariable {
    pub key: String,
    pub category: VariableCategory,
    pub producer: WorkspaceId,
    pub output: String,
    /// The producer's newest output commit when the plan began; `None` where its outputs were not taken in yet.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub commit: Option<OutputCommitNumber>,
    pub digest: OutputDigest,
    /// Type in cty's notation.
    #[serde(rename = "type")]
    pub detailed_type: String,
    #[serde(default)]
    pub sensitive: bool,
    /// The state that has the value.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub state_version: Option<StateVersionId>,
    /// The run whose plan announces the value: only for a run that is never applied.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub announced_by: Option<RunId>,
}

/// Reason why a binding has no value for a run. With the binding it makes a sentence: [`BindingProblem::of`].
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum BindingProblem {
    ProducerGone,
    NotShared(String),
    NeverApplied(String),
    Encrypted(String),
    Missing {
        producer: String,
        there: Vec<String>,
    },
    /// A plan that the run is to see removes it.
    Removed(String),
    Unreadable {
        producer: String,
        why: String,
    },
    /// The value cannot be that of a variable.
    Unfit {
        producer: String,
        why: String,
    },
    /// The plan had another value.
    Changed(String),
}

impl BindingProblem {
    /// The whole sentence: what is bound to what, what is wrong, and what to do.
    pub fn of(&self, binding: &Binding) -> String {
        self.about(&binding.key, binding.category, &binding.output)
    }

    pub fn about(&self, key: &str, category: VariableCategory, output: &str) -> String {
        let kind = match category {
            VariableCategory::Terraform => "variable",
            VariableCategory::Env => "environment variable",
        };
        let bound = |producer: &str| format!("the {kind} {key} is bound to the output {output} of {producer}");
        let remedy = "or remove the binding";
        match self {
            Self::ProducerGone => {
                let bound = bound("a workspace that was deleted");
                format!("{bound}: remove the binding, and bind the variable to another output")
            }
            Self::NotShared(producer) => format!(
                "{}, which does not share its state with this workspace: let {producer} share it in its settings, {remedy}",
                bound(producer)
            ),
            Self::NeverApplied(producer) => format!(
                "{}, which was never applied and has no outputs yet: apply {producer} first, {remedy}",
                bound(producer)
            ),
            Self::Encrypted(producer) => format!(
                "{}, whose state was encrypted by its engine, so that its outputs cannot be read here: write it without encryption, {remedy}",
                bound(producer)
            ),
            Self::Missing { producer, there } => format!(
                "{}, which has no such output: {}. Add it to {producer} and apply that, {remedy}",
                bound(producer),
                listed(there)
            ),
            Self::Removed(producer) => {
                format!("{}, and the plan of {producer} removes it: keep the output, {remedy}", bound(producer))
            }
            Self::Unreadable { producer, why } => {
                format!("{}, whose state cannot be read: {why}", bound(producer))
            }
            Self::Unfit { producer, why } => format!("{}: {why}", bound(producer)),
            Self::Changed(producer) => {
                format!("{}, and the value that the plan was made with is gone: plan again", bound(producer))
            }
        }
    }
}

fn listed(names: &[String]) -> String {
    let shown = names.iter().take(MAX_NAMES).map(String::as_str).collect::<Vec<_>>().join(", ");
    match names.len() {
        0 => "it has none".to_owned(),
        number if number > MAX_NAMES => format!("it has {shown} and {} more", number - MAX_NAMES),
        _ => format!("it has {shown}"),
    }
}

/// An output, and where it came from.
#[derive(Clone, Copy, Debug)]
pub struct OutputSource<'a> {
    pub producer: WorkspaceId,
    pub producer_name: &'a str,
    pub commit: Option<OutputCommitNumber>,
    pub state_version: Option<StateVersionId>,
    pub announced_by: Option<RunId>,
}

/// The variable as a run gets it, and what the run remembers of it.
pub fn bound_value(
    key: &[u8; 32],
    binding: &Binding,
    source: OutputSource<'_>,
    output: &Output,
) -> Result<(BoundVariable, JobVariable), BindingProblem> {
    let unfit = |why: String| BindingProblem::Unfit { producer: source.producer_name.to_owned(), why };
    let (value, hcl) = text_of(binding.category, &output.value).map_err(unfit)?;
    let (digest, detailed_type) = digest_value(key, &output.detailed_type, &output.value)
        .map_err(|why| unfit(format!("the value cannot be read: {why}")))?;
    let variable = JobVariable {
        key: binding.key.clone(),
        value,
        category: binding.category,
        hcl,
        sensitive: output.sensitive,
        bound_to: Some(binding.own_input()),
    };
    let bound = BoundVariable {
        key: binding.key.clone(),
        category: binding.category,
        producer: source.producer,
        output: binding.output.clone(),
        commit: source.commit,
        digest,
        detailed_type,
        sensitive: output.sensitive,
        state_version: source.state_version,
        announced_by: source.announced_by,
    };
    Ok((bound, variable))
}

/// The variable as the plan of a run had it, for its apply. `producer` is the name of the producer.
pub fn value_of_plan(
    key: &[u8; 32],
    bound: &BoundVariable,
    producer: &str,
    output: &Output,
) -> Result<JobVariable, BindingProblem> {
    let found = digest_value(key, &output.detailed_type, &output.value).ok();
    if found.is_none_or(|(digest, _)| digest != bound.digest) {
        return Err(BindingProblem::Changed(producer.to_owned()));
    }
    let unfit = |why: String| BindingProblem::Unfit { producer: producer.to_owned(), why };
    let (value, hcl) = text_of(bound.category, &output.value).map_err(unfit)?;
    let (key, category) = (bound.key.clone(), bound.category);
    // What it is bound to counts when a plan begins.
    Ok(JobVariable { key, value, category, hcl, sensitive: bound.sensitive || output.sensitive, bound_to: None })
}

/// A value as that of a variable: a text as it is, and everything else as an expression. The environment takes what fits
/// into one text. Reasons never show the value: it may be secret.
fn text_of(category: VariableCategory, value: &RawValue) -> Result<(String, bool), String> {
    let is_text = value.get().trim_start().starts_with('"');
    let (text, hcl) = match category {
        _ if is_text => (string_of(value)?, false),
        VariableCategory::Terraform => {
            let mut text = String::new();
            write_expression(value, &mut text, DEEPEST)?;
            (text, true)
        }
        VariableCategory::Env => {
            let text = value.get().trim();
            let is_one = text.starts_with(|first: char| first == '-' || first.is_ascii_digit() || "tf".contains(first));
            if !is_one {
                return Err("only a string, a number or a bool can be an environment variable: bind a Terraform \
                            variable, or an output such as jsonencode(…)"
                    .to_owned());
            }
            (text.to_owned(), false)
        }
    };
    if text.len() > LARGEST_VALUE {
        return Err(format!(
            "its value is too large for a variable: it takes {} bytes, and {LARGEST_VALUE} are allowed",
            text.len()
        ));
    }
    if text.contains('\0') {
        return Err("its value has the character NUL, which no program takes".to_owned());
    }
    Ok((text, hcl))
}

fn string_of(value: &RawValue) -> Result<String, String> {
    serde_json::from_str(value.get()).map_err(|_| "its value is no text that can be read".to_owned())
}

/// A value as HCL writes it. JSON is nearly that; texts are not: in HCL they can be templates, and escapes differ.
fn write_expression(value: &RawValue, text: &mut String, depth: usize) -> Result<(), String> {
    let depth = depth.checked_sub(1).ok_or_else(|| format!("its value is nested more than {DEEPEST} deep"))?;
    let unreadable = |_: serde_json::Error| "its value cannot be read".to_owned();
    match value.get().trim_start().as_bytes().first() {
        Some(b'{') => {
            let fields: std::collections::BTreeMap<String, &RawValue> =
                serde_json::from_str(value.get()).map_err(unreadable)?;
            text.push('{');
            for (number, (name, field)) in fields.into_iter().enumerate() {
                text.push_str(if number == 0 { "" } else { ", " });
                write_quoted(&name, text);
                text.push_str(" = ");
                write_expression(field, text, depth)?;
            }
            text.push('}');
        }
        Some(b'[') => {
            let elements: Vec<&RawValue> = serde_json::from_str(value.get()).map_err(unreadable)?;
            text.push('[');
            for (number, element) in elements.into_iter().enumerate() {
                text.push_str(if number == 0 { "" } else { ", " });
                write_expression(element, text, depth)?;
            }
            text.push(']');
        }
        Some(b'"') => write_quoted(&string_of(value)?, text),
        // A number keeps all of its digits.
        _ => text.push_str(value.get().trim()),
    }
    Ok(())
}

/// A text as HCL writes it: nothing in it is code.
fn write_quoted(plain: &str, text: &mut String) {
    text.push('"');
    let mut characters = plain.chars().peekable();
    while let Some(character) = characters.next() {
        match character {
            '"' => text.push_str("\\\""),
            '\\' => text.push_str("\\\\"),
            '\n' => text.push_str("\\n"),
            '\r' => text.push_str("\\r"),
            '\t' => text.push_str("\\t"),
            '$' | '%' if characters.peek() == Some(&'{') => text.extend([character, character]),
            control if control.is_control() => {
                write!(text, "\\u{:04x}", u32::from(control)).expect("a text takes all");
            }
            other => text.push(other),
        }
    }
    text.push('"');
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::binding::tests::{bound, unit};

    const KEY: [u8; 32] = [7; 32];

    fn raw(text: &str) -> Box<RawValue> {
        RawValue::from_string(text.to_owned()).expect("JSON")
    }

    fn given(category: VariableCategory, kind: &str, value: &str) -> Result<(BoundVariable, JobVariable), String> {
        let (network, web) = (unit("network"), unit("web"));
        let binding = Binding { category, ..bound(&web, "v", &network, "o") };
        let source = OutputSource {
            producer: network.id,
            producer_name: "network",
            commit: Some(3),
            state_version: None,
            announced_by: None,
        };
        let output = Output { value: raw(value), detailed_type: raw(kind), sensitive: true };
        bound_value(&KEY, &binding, source, &output).map_err(|problem| problem.of(&binding))
    }

    #[test]
    fn texts_are_texts_and_the_rest_are_expressions() {
        use VariableCategory::Terraform;
        for (kind, value, expected, hcl) in [
            (r#""string""#, r#""a \"b\" ${c} \u003cd\u003e""#, r#"a "b" ${c} <d>"#, false),
            (r#""string""#, r#""""#, "", false),
            (r#""number""#, "12345678901234567890.10", "12345678901234567890.10", true),
            (r#""bool""#, "true", "true", true),
            (r#""string""#, "null", "null", true),
            (
                r#"["list","string"]"#,
                r#"["a", "${b}", "%{c}", "\b\/\n\ud83d\ude00"]"#,
                "[\"a\", \"$${b}\", \"%%{c}\", \"\\u0008/\\n😀\"]",
                true,
            ),
            (
                r#"["object",{"n":"number","l":["list","bool"]}]"#,
                r#"{"n": 1e2, "l": [], "a \"b\"": {"x": null}}"#,
                r#"{"a \"b\"" = {"x" = null}, "l" = [], "n" = 1e2}"#,
                true,
            ),
        ] {
            let (_, variable) = given(Terraform, kind, value).expect(value);
            assert_eq!((variable.value.as_str(), variable.hcl), (expected, hcl), "{value}");
            assert!(variable.sensitive, "as its output is");
            if hcl && value != "null" {
                taco_words::variable::check_expression(&variable.value).expect("HCL");
            }
        }
    }

    #[test]
    fn the_environment_takes_what_fits_into_one_text() {
        use VariableCategory::Env;
        for (value, expected) in [(r#""a\nb""#, "a\nb"), ("-1.50", "-1.50"), ("false", "false")] {
            let (_, variable) = given(Env, r#""string""#, value).expect(value);
            assert_eq!((variable.value.as_str(), variable.hcl), (expected, false));
        }
        for value in ["[1]", r#"{"a":1}"#, "null"] {
            let refusal = given(Env, r#""dynamic""#, value).expect_err(value);
            assert!(
                refusal.starts_with("the environment variable v is bound to the output o of network: "),
                "{refusal}"
            );
            assert!(refusal.contains("only a string, a number or a bool"), "{refusal}");
        }
    }

    #[test]
    fn what_no_variable_can_hold_is_refused_without_showing_it() {
        let long = format!("\"{}\"", "s3cret".repeat(60_000));
        for value in [long.as_str(), r#""s3cret\u0000""#] {
            let refusal = given(VariableCategory::Terraform, r#""string""#, value).expect_err("refused");
            assert!(!refusal.contains("s3cret") && refusal.len() < 200, "{refusal}");
        }
        let deep = format!("{}1{}", "[".repeat(140), "]".repeat(140));
        assert!(given(VariableCategory::Terraform, r#""dynamic""#, &deep).is_err());
    }

    #[test]
    fn an_apply_gets_what_its_plan_had_or_nothing() {
        let (bound, variable) = given(VariableCategory::Terraform, r#"["list","number"]"#, "[1, 2]").expect("a value");
        assert_eq!(bound.commit, Some(3));
        let output = |value| Output { value: raw(value), detailed_type: raw(r#"["list","number"]"#), sensitive: true };
        let again = value_of_plan(&KEY, &bound, "network", &output("[1,2.0]")).expect("the same");
        assert_eq!((again.category, again.hcl, again.sensitive), (variable.category, true, true));
        let other = value_of_plan(&KEY, &bound, "network", &output("[1]"));
        assert_eq!(other, Err(BindingProblem::Changed("network".to_owned())));
    }

    #[test]
    fn every_problem_says_what_is_bound_to_what_and_what_to_do() {
        let binding = bound(&unit("web"), "vpc_id", &unit("network"), "id");
        let name = || "network".to_owned();
        for problem in [
            BindingProblem::ProducerGone,
            BindingProblem::NotShared(name()),
            BindingProblem::NeverApplied(name()),
            BindingProblem::Encrypted(name()),
            BindingProblem::Missing { producer: name(), there: vec!["a".to_owned(), "b".to_owned()] },
            BindingProblem::Removed(name()),
        ] {
            let sentence = problem.of(&binding);
            assert!(sentence.starts_with("the variable vpc_id is bound to the output id of "), "{sentence}");
            assert!(sentence.contains("remove the binding"), "{sentence}");
        }
        let many: Vec<String> = (0..30).map(|number| format!("o{number}")).collect();
        assert!(listed(&many).ends_with("o9 and 20 more"), "{}", listed(&many));
    }
}
