//! `taco config show`

use std::process::ExitCode;

use clap::{Args, Subcommand};
use serde_json::{Value, json};
use taco_cli::print;

use crate::config::{Configuration, Entry, ProcessEnv, ServerFlags, Setting};
use crate::master_keys;

/// Show settings and where they come from
#[derive(Args, Debug)]
pub(crate) struct Arguments {
    #[command(subcommand)]
    verb: Verb,
}

#[derive(Subcommand, Debug)]
enum Verb {
    Show(Show),
}

/// Print every setting, its value and where it came from; secrets stay hidden
///
/// Takes the same flags, variables and file as `taco server`, so it shows what that would run with.
#[derive(Args, Debug)]
#[command(after_help = "\
Examples:
  taco config show
  TACO_LISTEN=0.0.0.0:80 taco config show --json")]
struct Show {
    /// Print JSON instead of a table
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    flags: ServerFlags,
}

pub(crate) fn run(Arguments { verb: Verb::Show(show) }: &Arguments) -> anyhow::Result<ExitCode> {
    let configuration = Configuration::load(&show.flags, &ProcessEnv::of_this_process())?;
    let rows = configuration.entries.iter().map(|entry| Row::of(entry, &configuration));
    if show.json {
        print::json(&Value::from_iter(rows.map(Row::into_json)))?;
    } else {
        let rows = rows.map(|row| {
            [row.entry.setting.key.to_owned(), row.value.unwrap_or_else(|| "(not set)".to_owned()), row.source]
        });
        print::table(["KEY", "VALUE", "SOURCE"], rows)?;
    }
    Ok(ExitCode::SUCCESS)
}

/// A setting as it is shown.
struct Row<'a> {
    entry: &'a Entry,
    value: Option<String>,
    source: String,
}

impl<'a> Row<'a> {
    fn of(entry: &'a Entry, configuration: &Configuration) -> Self {
        let (value, source) = (entry.shown().map(str::to_owned), entry.origin.to_string());
        // Without the setting, a server on a directory has a key all the same.
        let beside = master_keys::key_file(configuration.settings.bucket.as_str());
        match beside.filter(|_| entry.setting.key == "secret_key" && value.is_none()) {
            Some(file) if file.exists() => {
                Self { entry, value: Some("(hidden)".to_owned()), source: file.display().to_string() }
            }
            Some(file) => Self { entry, value, source: format!("{} (created at the first start)", file.display()) },
            None => Self { entry, value, source },
        }
    }

    fn into_json(self) -> Value {
        let Setting { key, secret, .. } = self.entry.setting;
        json!({ "key": key, "value": self.value, "source": self.source, "secret": secret })
    }
}
