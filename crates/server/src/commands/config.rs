//! `taco config show`

use std::process::ExitCode;

use clap::{Args, Subcommand};
use serde_json::{Value, json};
use taco_cli::print;

use crate::config::{Configuration, Entry, ProcessEnv, ServerFlags};

/// Look at the configuration
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
    let entries = Configuration::load(&show.flags, &ProcessEnv::of_this_process())?.entries;
    if show.json {
        print::json(&Value::from_iter(entries.iter().map(as_json)))?;
    } else {
        let rows = entries.iter().map(|entry| {
            let value = entry.shown().unwrap_or("(not set)").to_owned();
            [entry.setting.key.to_owned(), value, entry.origin.to_string()]
        });
        print::table(["KEY", "VALUE", "SOURCE"], rows)?;
    }
    Ok(ExitCode::SUCCESS)
}

fn as_json(entry: &Entry) -> Value {
    json!({
        "key": entry.setting.key,
        "value": entry.shown(),
        "source": entry.origin.to_string(),
        "secret": entry.setting.secret,
    })
}
