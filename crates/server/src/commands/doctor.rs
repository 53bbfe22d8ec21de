//! `taco doctor`

use std::process::ExitCode;
use std::sync::Arc;

use anyhow::Context;
use clap::Args;
use serde_json::json;
use taco_cli::print;
use taco_domain::{OrganizationState, Site};
use taco_ledger::doctor::{self, CREATE_IF_ABSENT, Finding, Outcome, REACHABLE, READ_AFTER_WRITE};
use taco_ledger::{Bucket, Dice, LedgerName, SystemClock, audit, format, layout};

use crate::config::{BucketFlags, Configuration, Surroundings};
use crate::{bucket, logging};

const FORMAT: &str = "format";
const LEDGERS: &str = "ledgers";
const RECORDS: &str = "records";

/// Check that the bucket can do what taco needs, and that what it holds is sound
///
/// Tries everything that a server rests on: that the bucket can be reached and written, that what was written is read
/// and listed at once, that of several writers who create the same object only one succeeds, and that clocks agree.
/// Then it reads the whole history of every ledger. It changes nothing, but for probe objects that it removes again,
/// and servers may run meanwhile. Exits with 1 if a check failed.
#[derive(Args, Debug)]
#[command(after_help = "\
Examples:
  taco doctor
  taco doctor --bucket s3://company-taco/production --json
  TACO_BUCKET=file:///srv/taco taco doctor")]
pub(crate) struct Arguments {
    /// Print JSON instead of a table
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    flags: BucketFlags,
}

#[tokio::main(flavor = "current_thread")]
pub(crate) async fn run(arguments: &Arguments) -> anyhow::Result<ExitCode> {
    let configuration = Configuration::load(&arguments.flags, &Surroundings::of_this_process())?;
    logging::start(&configuration.settings);
    let dice = Dice::from_system();
    let bucket = bucket::open(&configuration.settings, &dice).with_context(|| configuration.bucket_in_words())?.patient;
    let findings = examine(&bucket, &dice).await;
    if arguments.json {
        print::json(&json!(findings))?;
    } else {
        let rows = findings
            .iter()
            .map(|finding| [finding.check.to_owned(), finding.outcome.to_string(), finding.detail.clone()]);
        print::table(["CHECK", "OUTCOME", "DETAIL"], rows)?;
    }
    let failed = findings.iter().any(|finding| finding.outcome == Outcome::Failed);
    Ok(if failed { ExitCode::FAILURE } else { ExitCode::SUCCESS })
}

/// First what the bucket can do, then what is in it.
async fn examine(bucket: &Arc<dyn Bucket>, dice: &Dice) -> Vec<Finding> {
    let mut findings = doctor::examine(bucket, &SystemClock, dice).await;
    match doctor::first_failure(&findings, &[REACHABLE, READ_AFTER_WRITE, CREATE_IF_ABSENT]) {
        Some(failed) => {
            let because = format!("because \"{}\" failed", failed.check);
            findings
                .extend([FORMAT, LEDGERS, RECORDS].map(|check| Finding::new(check, Outcome::Skipped, because.clone())));
        }
        None => {
            findings.push(examine_format(&**bucket).await);
            findings.push(examine_ledgers(&**bucket).await);
            findings.push(examine_records(&**bucket).await);
        }
    }
    findings
}

async fn examine_format(bucket: &dyn Bucket) -> Finding {
    match format::read(bucket).await {
        Ok(Some(found)) => {
            let detail = format!("{}, made by {} at {}", found.format, found.created_by, found.created_at);
            Finding::new(FORMAT, Outcome::Passed, detail)
        }
        Ok(None) => Finding::new(FORMAT, Outcome::Passed, "no server has used this bucket yet"),
        Err(error) => Finding::new(FORMAT, Outcome::Failed, error.to_string()),
    }
}

async fn examine_ledgers(bucket: &dyn Bucket) -> Finding {
    let reports = match audit::verify(bucket, None).await {
        Ok(reports) => reports,
        Err(error) => return Finding::new(LEDGERS, Outcome::Failed, error.to_string()),
    };
    let problems: Vec<_> = reports.iter().flat_map(|report| &report.problems).map(ToString::to_string).collect();
    if !problems.is_empty() {
        return Finding::new(LEDGERS, Outcome::Failed, problems.join("; "));
    }
    let commits: u64 = reports.iter().map(|report| report.commits).sum();
    let detail = match reports.len() {
        0 => "there are none yet".to_owned(),
        ledgers => format!("ledgers: {ledgers}, commits: {commits}, all sound"),
    };
    Finding::new(LEDGERS, Outcome::Passed, detail)
}

/// Records that cannot be read stop nothing: servers set them aside. But somebody should know.
async fn examine_records(bucket: &dyn Bucket) -> Finding {
    match unreadable_records(bucket).await {
        Err(error) => Finding::new(RECORDS, Outcome::Failed, error.to_string()),
        Ok(unreadable) if unreadable.is_empty() => {
            Finding::new(RECORDS, Outcome::Passed, "this version can read all of them")
        }
        Ok(unreadable) => {
            let detail = format!("this version cannot read, and carries along untouched: {}", unreadable.join("; "));
            Finding::new(RECORDS, Outcome::Warned, detail)
        }
    }
}

async fn unreadable_records(bucket: &dyn Bucket) -> Result<Vec<String>, taco_ledger::Error> {
    let mut found = Vec::new();
    for folder in bucket.folders(&layout::ledgers()).await? {
        let Ok(name) = folder.parse::<LedgerName>() else { continue };
        let unreadable = if name == LedgerName::site() {
            audit::unreadable_records::<Site>(bucket, &name).await?
        } else {
            audit::unreadable_records::<OrganizationState>(bucket, &name).await?
        };
        found.extend(unreadable.into_iter().map(|(record, why)| format!("{record} in ledger {name} ({why})")));
    }
    Ok(found)
}
