//! `taco audit verify`

use std::process::ExitCode;

use anyhow::{Context, bail};
use clap::{Args, Subcommand};
use serde_json::json;
use taco_cli::print;
use taco_ledger::audit::{self, LedgerReport};
use taco_ledger::{Dice, LedgerName};

use crate::config::{BucketFlags, Configuration, Surroundings};
use crate::{bucket, logging};

/// Look at the history of changes
#[derive(Args, Debug)]
pub(crate) struct Arguments {
    #[command(subcommand)]
    verb: Verb,
}

#[derive(Subcommand, Debug)]
enum Verb {
    Verify(Verify),
}

/// Prove that no change was altered, removed or slipped in since it was made
///
/// Every commit names the hash of the one before it. This reads them all, from the bucket alone and without a server,
/// and checks that the chain is whole and that the snapshots agree with it. Note a ledger's last hash in another place,
/// and you can prove later that nothing before it was changed. Exits with 1 if a chain is broken.
#[derive(Args, Debug)]
#[command(after_help = "\
Examples:
  taco audit verify
  taco audit verify --ledger site --json")]
struct Verify {
    /// Only this ledger: `site`, or an organization's id
    #[arg(long, value_name = "NAME")]
    ledger: Option<LedgerName>,
    /// Print JSON instead of a table
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    flags: BucketFlags,
}

#[tokio::main(flavor = "current_thread")]
pub(crate) async fn run(Arguments { verb: Verb::Verify(verify) }: &Arguments) -> anyhow::Result<ExitCode> {
    let configuration = Configuration::load(&verify.flags, &Surroundings::of_this_process())?;
    logging::start(&configuration.settings);
    let which = || configuration.bucket_in_words();
    let bucket = bucket::open(&configuration.settings, &Dice::from_system()).with_context(which)?.patient;
    let reports = audit::verify(&*bucket, verify.ledger.as_ref()).await.with_context(which)?;
    if let Some(name) = &verify.ledger
        && reports.iter().all(|report| report.commits == 0 && report.is_sound())
    {
        bail!("{}: there is no ledger {name}", which());
    }
    if verify.json {
        print::json(&json!(reports))?;
    } else {
        print::table(["LEDGER", "COMMITS", "LAST HASH", "VERDICT"], reports.iter().map(row))?;
    }
    let sound = reports.iter().all(LedgerReport::is_sound);
    Ok(if sound { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

fn row(report: &LedgerReport) -> [String; 4] {
    let problems: Vec<_> = report.problems.iter().map(ToString::to_string).collect();
    let verdict = if report.is_sound() { "sound".to_owned() } else { format!("broken: {}", problems.join("; ")) };
    [report.ledger.clone(), report.commits.to_string(), report.last.to_string(), verdict]
}
