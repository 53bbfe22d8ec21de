//! `taco audit`

use std::process::ExitCode;

use anyhow::{Context, bail};
use clap::{Args, Subcommand};
use serde_json::json;
use taco_cli::print;
use taco_ledger::audit::{self, LedgerReport, Problem};
use taco_ledger::{LedgerName, SharedRng};

use crate::config::{BucketFlags, Configuration, ProcessEnv};
use crate::local::LocalHost;
use crate::{bucket, logging, master_keys};

/// Show the audit log, or prove that it is unchanged
#[derive(Args, Debug)]
pub(crate) struct Arguments {
    #[command(subcommand)]
    verb: Verb,
}

#[derive(Subcommand, Debug)]
enum Verb {
    Ls(Box<taco_cli::AuditLog>),
    Verify(Verify),
}

/// Prove that no change was altered, removed or inserted later
///
/// Every commit names the hash of the one before it, and a ledger's head names the newest. This reads them all, from the
/// bucket alone and without a server, and checks that the chain is whole and that the snapshots agree with it. Where the
/// secret key is at hand, it also compares the MACs that only servers can make. Note a ledger's last hash in another
/// place, and you can prove later that nothing before it was changed. Exits with 1 if a chain is broken.
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

pub(crate) fn run(Arguments { verb }: &Arguments) -> anyhow::Result<ExitCode> {
    match verb {
        Verb::Ls(arguments) => Ok(taco_cli::run_audit_log(arguments, LocalHost::new())),
        Verb::Verify(arguments) => verify(arguments),
    }
}

#[tokio::main(flavor = "current_thread")]
async fn verify(verify: &Verify) -> anyhow::Result<ExitCode> {
    let configuration = Configuration::load(&verify.flags, &ProcessEnv::of_this_process())?;
    let _logging = logging::start(&configuration.settings);
    let which = || configuration.bucket_in_words();
    let rng = SharedRng::from_system();
    let bucket = bucket::open(&configuration.settings, &rng).with_context(which)?.with_retries;
    let keys = master_keys::find(&configuration.settings, &rng)?;
    let reports = audit::verify(&*bucket, verify.ledger.as_ref(), keys.as_ref()).await.with_context(which)?;
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
    let joined = |found: &[Problem]| found.iter().map(ToString::to_string).collect::<Vec<_>>().join("; ");
    let verdict = match (report.is_sound(), report.unproven.is_empty()) {
        (false, _) => format!("broken: {}", joined(&report.problems)),
        (true, false) => format!("sound, but its end is not proven: {}", joined(&report.unproven)),
        (true, true) => "sound".to_owned(),
    };
    [report.ledger.clone(), report.commits.to_string(), report.last.to_string(), verdict]
}
