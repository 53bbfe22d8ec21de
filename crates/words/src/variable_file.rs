//! Files with variables, or what people paste of them: `.tfvars`, `.tfvars.json` and `.env`.

use std::fmt;

use hcl_edit::Span;
use hcl_edit::structure::Body;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::variable::VariableCategory;

/// File format of variables.
#[derive(Clone, Copy, PartialEq, Eq, Serialize, Deserialize, Debug)]
#[serde(rename_all = "kebab-case")]
pub enum VariableFormat {
    /// For terraform: `region = "eu"`
    Tfvars,
    /// For terraform: `{ "region": "eu" }`
    TfvarsJson,
    /// For the environment: `REGION=eu`
    Env,
}

/// A variable that a file holds.
#[derive(Clone, PartialEq, Eq)]
pub struct FileVariable {
    pub key: String,
    pub value: String,
    /// The value is an expression, not a text.
    pub hcl: bool,
}

/// The value may be secret.
impl fmt::Debug for FileVariable {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "FileVariable({})", self.key)
    }
}

/// Reason why a text holds no variables. It names places and keys, never values: they may be secret.
#[derive(Clone, PartialEq, Eq, thiserror::Error, Debug)]
#[error("{0}")]
pub struct UnreadableVariables(String);

impl VariableFormat {
    pub const ALL: [Self; 3] = [Self::Tfvars, Self::TfvarsJson, Self::Env];

    /// Name in requests and forms.
    pub fn word(self) -> &'static str {
        match self {
            Self::Tfvars => "tfvars",
            Self::TfvarsJson => "tfvars-json",
            Self::Env => "env",
        }
    }

    /// Format according to a file's name.
    pub fn of_name(name: &str) -> Option<Self> {
        match () {
            () if name.ends_with(".tfvars") => Some(Self::Tfvars),
            () if name.ends_with(".tfvars.json") => Some(Self::TfvarsJson),
            () if name.ends_with(".env") || name.starts_with(".env.") => Some(Self::Env),
            () => None,
        }
    }

    pub fn category(self) -> VariableCategory {
        match self {
            Self::Tfvars | Self::TfvarsJson => VariableCategory::Terraform,
            Self::Env => VariableCategory::Env,
        }
    }

    /// The variables in a text, in its order.
    pub fn parse(self, text: &str) -> Result<Vec<FileVariable>, UnreadableVariables> {
        match self {
            Self::Tfvars => tfvars(text),
            Self::TfvarsJson => tfvars_json(text),
            Self::Env => env(text),
        }
    }
}

fn unreadable(what: impl Into<String>) -> UnreadableVariables {
    UnreadableVariables(what.into())
}

fn tfvars(text: &str) -> Result<Vec<FileVariable>, UnreadableVariables> {
    let body: Body = text.parse().map_err(|error: hcl_edit::parser::Error| {
        let place = error.location();
        unreadable(format!("not valid HCL (line {}, column {})", place.line(), place.column()))
    })?;
    if let Some(block) = body.blocks().next() {
        let what = format!("the block {} is not expected: variables are written as KEY = VALUE", block.ident.as_str());
        return Err(unreadable(what));
    }
    let variable = |attribute: &hcl_edit::structure::Attribute| {
        let key = attribute.key.as_str().to_owned();
        let expression =
            || attribute.value.span().and_then(|span| text.get(span)).unwrap_or_default().trim().to_owned();
        match attribute.value.as_str() {
            Some(value) => FileVariable { key, value: value.to_owned(), hcl: false },
            None => FileVariable { key, value: expression(), hcl: true },
        }
    };
    Ok(body.attributes().map(variable).collect())
}

fn tfvars_json(text: &str) -> Result<Vec<FileVariable>, UnreadableVariables> {
    let values: Map<String, Value> = serde_json::from_str(text).map_err(|error| {
        unreadable(format!("it is no JSON object: look at line {}, column {}", error.line(), error.column()))
    })?;
    let variable = |(key, value)| match value {
        Value::String(value) => FileVariable { key, value, hcl: false },
        // JSON is an expression, too, once nothing in it looks like a template.
        other => FileVariable { key, value: other.to_string().replace("${", "$${").replace("%{", "%%{"), hcl: true },
    };
    Ok(values.into_iter().map(variable).collect())
}

fn env(text: &str) -> Result<Vec<FileVariable>, UnreadableVariables> {
    let mut variables = Vec::new();
    for (number, line) in text.lines().enumerate() {
        let line = line.trim();
        if line.is_empty() || line.starts_with('#') {
            continue;
        }
        let assignment = line.strip_prefix("export ").unwrap_or(line);
        let Some((key, value)) = assignment.split_once('=') else {
            return Err(unreadable(format!("line {} is not KEY=VALUE", number + 1)));
        };
        let value = unquoted(value.trim())
            .ok_or_else(|| unreadable(format!("line {} has a quote that does not end", number + 1)))?;
        variables.push(FileVariable { key: key.trim().to_owned(), value, hcl: false });
    }
    Ok(variables)
}

/// A value as a shell would understand it, as far as such files use quotes: `'as it is'`, `"with \n"`, plain.
fn unquoted(value: &str) -> Option<String> {
    if let Some(rest) = value.strip_prefix('\'') {
        return Some(rest.split_once('\'')?.0.to_owned());
    }
    let Some(rest) = value.strip_prefix('"') else {
        let end = value.find(" #").unwrap_or(value.len());
        return Some(value[..end].trim_end().to_owned());
    };
    let mut text = String::new();
    let mut letters = rest.chars();
    loop {
        match letters.next()? {
            '"' => return Some(text),
            '\\' => match letters.next()? {
                'n' => text.push('\n'),
                't' => text.push('\t'),
                'r' => text.push('\r'),
                other => text.push(other),
            },
            letter => text.push(letter),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parsed(format: VariableFormat, text: &str) -> Vec<(String, String, bool)> {
        let variables = format.parse(text).expect("it is legal");
        variables.into_iter().map(|variable| (variable.key, variable.value, variable.hcl)).collect()
    }

    fn row(key: &str, value: &str, hcl: bool) -> (String, String, bool) {
        (key.to_owned(), value.to_owned(), hcl)
    }

    #[test]
    fn tfvars_are_texts_and_expressions() {
        let text = "# where\nregion = \"eu\" // here\ncount = 3\nzones = [\n  \"a\", # first\n  \"b\",\n]\n\
                    tags = { a = \"b\" }\nmotto = <<EOT\nslow\nEOT\n";
        assert_eq!(
            parsed(VariableFormat::Tfvars, text),
            [
                row("region", "eu", false),
                row("count", "3", true),
                row("zones", "[\n  \"a\", # first\n  \"b\",\n]", true),
                row("tags", "{ a = \"b\" }", true),
                row("motto", "<<EOT\nslow\nEOT", true),
            ]
        );
        let json = r#"{ "region": "eu", "zones": ["a", "${b}"], "count": 3 }"#;
        let expected = [row("count", "3", true), row("region", "eu", false), row("zones", r#"["a","$${b}"]"#, true)];
        let mut found = parsed(VariableFormat::TfvarsJson, json);
        found.sort();
        assert_eq!(found, expected);
    }

    #[test]
    fn the_environment_is_lines_with_or_without_quotes() {
        let text = "# secrets\n\nexport A=1\nB = two words # not this\nC='$as \"is\"'\nD=\"a\\nb\\\"c\" # nor this\nE=\nF=a=b\n";
        assert_eq!(
            parsed(VariableFormat::Env, text),
            [
                row("A", "1", false),
                row("B", "two words", false),
                row("C", "$as \"is\"", false),
                row("D", "a\nb\"c", false),
                row("E", "", false),
                row("F", "a=b", false),
            ]
        );
    }

    #[test]
    fn a_refusal_names_the_place_and_no_value() {
        for (format, text, place) in [
            (VariableFormat::Tfvars, "a = 1\nb = s3cr3t {", "line 2"),
            (VariableFormat::Tfvars, "terraform {}\n", "block terraform"),
            (VariableFormat::TfvarsJson, "[\"s3cr3t\"]", "line 1"),
            (VariableFormat::Env, "A=1\ns3cr3t", "line 2"),
            (VariableFormat::Env, "A=\"s3cr3t", "line 1"),
        ] {
            let said = format.parse(text).expect_err("it is illegal").to_string();
            assert!(said.contains(place) && !said.contains("s3cr3t"), "{said}");
        }
    }

    #[test]
    fn a_name_tells_the_format() {
        for (name, format) in [
            ("terraform.tfvars", Some(VariableFormat::Tfvars)),
            ("prod.auto.tfvars", Some(VariableFormat::Tfvars)),
            ("prod.tfvars.json", Some(VariableFormat::TfvarsJson)),
            (".env", Some(VariableFormat::Env)),
            ("prod.env", Some(VariableFormat::Env)),
            (".env.local", Some(VariableFormat::Env)),
            ("variables.txt", None),
        ] {
            assert_eq!(VariableFormat::of_name(name), format, "{name}");
        }
    }
}
