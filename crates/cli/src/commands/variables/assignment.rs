//! Variables on the command line, and in a file.

use std::io::{self, IsTerminal, Read};
use std::path::{Path, PathBuf};

use clap::Args;
use serde_json::{Map, Value};
use taco_words::variable::VariableCategory;
use taco_words::variable_file::{FileVariable, VariableFormat};

use crate::commands::{given, text};
use crate::failure::Failure;
use crate::session::Session;
use crate::variable_file::{Format, format_of};

/// A variable to write.
#[derive(Args, Debug)]
pub(crate) struct Assignment {
    /// An environment variable instead of a Terraform variable
    #[arg(long, short)]
    pub(crate) env: bool,
    /// The value is HCL, such as a list
    #[arg(long, value_name = "BOOL", num_args = 0..=1, require_equals = true, default_missing_value = "true")]
    hcl: Option<bool>,
    /// Write-only: the value is never shown again; this can't be undone
    #[arg(long, short)]
    sensitive: bool,
    /// Description
    #[arg(long, value_name = "TEXT")]
    pub(crate) description: Option<String>,
}

pub(crate) fn category(env: bool) -> &'static str {
    if env { "env" } else { "terraform" }
}

impl Assignment {
    pub(crate) fn category(&self) -> &'static str {
        category(self.env)
    }

    /// True if it has options that make no sense without one.
    pub(crate) fn is_about_a_variable(&self) -> bool {
        self.env || self.hcl.is_some() || self.sensitive
    }

    pub(crate) fn attributes(&self, key: &str, value: &str) -> Map<String, Value> {
        given([
            ("key", Some(key.into())),
            ("value", Some(value.into())),
            ("category", Some(self.category().into())),
            ("hcl", self.hcl.map(Value::from)),
            // Absent, it stays as it is: what is sensitive cannot be made readable.
            ("sensitive", self.sensitive.then_some(true.into())),
            ("description", text(&self.description)),
        ])
    }
}

/// Splits KEY=VALUE. A value that is not given is read from where it cannot be seen by others.
pub(crate) fn key_and_value(session: &Session, argument: &str) -> Result<(String, String), Failure> {
    if let Some((key, value)) = argument.split_once('=') {
        return Ok((key.to_owned(), value.to_owned()));
    }
    let value = if io::stdin().is_terminal() {
        if session.no_input {
            return Err(Failure::usage(format!("no value of {argument} is given"))
                .because("--no-input forbids to ask for it")
                .hint(format!("write {argument}=VALUE, or send the value to standard input")));
        }
        rpassword::prompt_password(format!("{argument}: "))?
    } else {
        let mut value = String::new();
        io::stdin().lock().read_to_string(&mut value)?;
        // The shell's `echo` adds it, and hardly anyone means it.
        value.strip_suffix('\n').map(|value| value.strip_suffix('\r').unwrap_or(value)).unwrap_or(&value).to_owned()
    };
    Ok((argument.to_owned(), value))
}

/// A file to read variables from.
#[derive(Args, Debug)]
pub(crate) struct ImportedFile {
    /// File such as prod.tfvars, prod.tfvars.json or .env, or `-` for standard input
    file: PathBuf,
    /// File format [default: by its name]
    #[arg(long, value_enum)]
    format: Option<Format>,
    /// Write-only: values are never shown again; this can't be undone
    #[arg(long, short)]
    sensitive: bool,
}

impl ImportedFile {
    /// The attributes of each variable in the file.
    pub(crate) fn read(&self) -> Result<Vec<Map<String, Value>>, Failure> {
        let name = self.file.display();
        let format = format_of(self.format, &self.file).ok_or_else(|| {
            Failure::usage(format!("unknown format of {name}"))
                .because("its name ends with none of .tfvars, .tfvars.json and .env")
                .hint("add --format tfvars, tfvars-json or env")
        })?;
        let unreadable = |error: io::Error| Failure::error(format!("{name} cannot be read")).because(error);
        let text = if self.file == Path::new("-") {
            io::read_to_string(io::stdin().lock()).map_err(unreadable)?
        } else {
            std::fs::read_to_string(&self.file).map_err(unreadable)?
        };
        let variables =
            format.parse(&text).map_err(|why| Failure::error(format!("{name} cannot be imported")).because(why))?;
        Ok(variables.iter().map(|variable| self.attributes(format, variable)).collect())
    }

    fn attributes(&self, format: VariableFormat, variable: &FileVariable) -> Map<String, Value> {
        given([
            ("key", Some(variable.key.as_str().into())),
            ("value", Some(variable.value.as_str().into())),
            ("category", Some(category(format.category() == VariableCategory::Env).into())),
            ("hcl", Some(variable.hcl.into())),
            ("sensitive", self.sensitive.then_some(true.into())),
        ])
    }
}
