//! Sensitive values do not appear in logs, however the engine writes them.

use std::collections::BTreeSet;

use taco_agent_protocol::{Job, Variable};

const MASK: &str = "(sensitive)";
/// Minimum length of a masked value: shorter ones occur by accident, and a log full of masks is of no use.
const MIN_MASKED_LENGTH: usize = 4;
const UNMASKED_VALUES: [&str; 3] = ["true", "false", "null"];

/// Replaces the values that it knows.
#[derive(Clone, Default)]
pub(crate) struct Mask {
    /// The longest first, so that a value which contains another goes as a whole.
    secrets: Vec<String>,
}

impl Mask {
    /// All secrets of a job.
    pub(crate) fn of(job: &Job) -> Self {
        let mut secrets = BTreeSet::new();
        add(&mut secrets, &job.token);
        add(&mut secrets, job.run_token());
        for line in job.ssh_key.iter().flat_map(|key| key.lines()) {
            add(&mut secrets, line);
        }
        for variable in job.variables.iter().filter(|variable| variable.sensitive) {
            add_variable(&mut secrets, variable);
        }
        Self::of_texts(secrets)
    }

    /// Values, in every form in which engines write them.
    pub(crate) fn of_values(values: &BTreeSet<&str>) -> Self {
        let mut secrets = BTreeSet::new();
        values.iter().for_each(|value| add(&mut secrets, value));
        Self::of_texts(secrets)
    }

    fn of_texts(secrets: BTreeSet<String>) -> Self {
        let mut secrets: Vec<_> = secrets.into_iter().collect();
        secrets.sort_by_key(|secret| std::cmp::Reverse(secret.len()));
        Self { secrets }
    }

    pub(crate) fn hide(&self, text: &str) -> String {
        self.secrets.iter().fold(text.to_owned(), |text, secret| match text.contains(secret.as_str()) {
            true => text.replace(secret.as_str(), MASK),
            false => text,
        })
    }

    /// Masks output, which is not always a text: what has no secret stays as it is.
    pub(crate) fn hide_bytes(&self, bytes: Vec<u8>) -> Vec<u8> {
        match String::from_utf8(bytes) {
            Ok(text) => self.hide(&text).into_bytes(),
            Err(error) => {
                let text = String::from_utf8_lossy(error.as_bytes()).into_owned();
                match self.secrets.iter().any(|secret| text.contains(secret.as_str())) {
                    true => self.hide(&text).into_bytes(),
                    false => error.into_bytes(),
                }
            }
        }
    }
}

fn add_variable(secrets: &mut BTreeSet<String>, variable: &Variable) {
    add(secrets, &variable.value);
    // Logs are read line by line, and so are secrets of several lines.
    for line in variable.value.lines() {
        add(secrets, line);
    }
    if variable.hcl {
        for text in quoted_texts(&variable.value) {
            add(secrets, &text);
        }
    }
}

/// Adds a value as it is, and as the engines write it within JSON and within quotes.
fn add(secrets: &mut BTreeSet<String>, value: &str) {
    let value = value.trim();
    if value.len() < MIN_MASKED_LENGTH || UNMASKED_VALUES.contains(&value) {
        return;
    }
    secrets.insert(value.to_owned());
    let quoted = serde_json::to_string(value).unwrap_or_default();
    let escaped = quoted[1..quoted.len() - 1].to_owned();
    // Go's encoder also escapes these three.
    let escaped_by_go = escaped.replace('<', "\\u003c").replace('>', "\\u003e").replace('&', "\\u0026");
    // A text within quotes that is itself shown within JSON.
    let twice = serde_json::to_string(&escaped).unwrap_or_default();
    secrets.insert(twice[1..twice.len() - 1].to_owned());
    secrets.insert(escaped);
    secrets.insert(escaped_by_go);
}

/// The texts of an expression: in `{ password = "hunter22" }` it is the text that is secret.
fn quoted_texts(expression: &str) -> Vec<String> {
    let mut texts = Vec::new();
    let mut characters = expression.chars();
    while characters.by_ref().any(|character| character == '"') {
        let mut text = String::new();
        while let Some(character) = characters.next() {
            match character {
                '"' => break,
                '\\' => match characters.next() {
                    Some('n') => text.push('\n'),
                    Some('t') => text.push('\t'),
                    Some(other) => text.push(other),
                    None => break,
                },
                other => text.push(other),
            }
        }
        texts.push(text);
    }
    texts
}

#[cfg(test)]
mod tests {
    use taco_agent_protocol::VariableCategory;

    use super::*;

    fn mask(value: &str, hcl: bool) -> Mask {
        let mut secrets = BTreeSet::new();
        let variable = Variable {
            key: "key".to_owned(),
            value: value.to_owned(),
            category: VariableCategory::Terraform,
            hcl,
            sensitive: true,
        };
        add_variable(&mut secrets, &variable);
        Mask::of_texts(secrets)
    }

    #[test]
    fn values_are_hidden_in_every_form_in_which_engines_write_them() {
        for (value, hcl, line, expected) in [
            ("hunter22", false, "password is hunter22!", "password is (sensitive)!"),
            ("a\"b<c", false, r#"{"@message":"a\"b\u003cc"}"#, r#"{"@message":"(sensitive)"}"#),
            ("first line\nsecond line", false, "say second line", "say (sensitive)"),
            (r#"{ password = "hunter22", port = 80 }"#, true, "got hunter22 at 80", "got (sensitive) at 80"),
            ("true", false, "it is true", "it is true"),
            ("abc", false, "abc", "abc"),
            ("", false, "nothing", "nothing"),
        ] {
            assert_eq!(mask(value, hcl).hide(line), expected, "{value:?}");
        }
    }

    #[test]
    fn output_that_is_not_a_text_stays_as_it_is_unless_it_has_a_secret() {
        let mask = mask("hunter22", false);
        assert_eq!(mask.hide_bytes(b"\xff\xfe".to_vec()), b"\xff\xfe");
        assert!(!String::from_utf8_lossy(&mask.hide_bytes(b"\xffhunter22".to_vec())).contains("hunter22"));
    }
}
