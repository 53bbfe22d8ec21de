//! `taco doctor`

use std::process::ExitCode;
use std::sync::Arc;

use anyhow::{Context, bail};
use clap::Args;
use serde_json::json;
use taco_cli::print::{self, Cell};
use taco_control_plane::{DamagedObject, Depth, ExaminedObjects, examine_objects};
use taco_domain::id::OrganizationId;
use taco_domain::{OrganizationState, Site};
use taco_ledger::doctor::{self, CREATE_IF_ABSENT, Finding, Outcome, REACHABLE, READ_AFTER_WRITE};
use taco_ledger::{Bucket, BucketError, LedgerName, MasterKeys, SharedRng, SystemClock, audit, format, layout};

use crate::config::{BucketFlags, Configuration, ProcessEnv};
use crate::local::in_bucket_key;
use crate::{bucket, logging, master_keys};

const FORMAT: &str = "format";
const SECRET_KEY: &str = "secret key";
const LEDGERS: &str = "ledgers";
const RECORDS: &str = "records";
const OBJECTS: &str = "objects";
const OBJECT: &str = "object";

/// Maximum number of damaged objects that are listed one by one.
const MAX_SHOWN_FINDINGS: usize = 200;

/// Check the bucket and what is stored in it
///
/// Tries everything that a server rests on: that the bucket can be reached and written, that what was written is read
/// and listed at once, that of several writers who create the same object only one succeeds, and that clocks agree.
/// Then it reads the whole history of every ledger, and looks whether every state, plan, configuration and log that the
/// ledgers name is there with its size; with --deep, also whether its content is what was stored, which takes the secret
/// key and reads everything. Damage is named with what depends on it. It changes nothing, but for probe objects that it
/// removes again, and servers may run meanwhile. Exits with 1 if a check failed.
#[derive(Args, Debug)]
#[command(after_help = "\
Examples:
  taco doctor
  taco doctor --deep
  taco doctor --bucket s3://company-taco/production --json
  TACO_BUCKET=file:///srv/taco taco doctor")]
pub(crate) struct Arguments {
    /// Also read every state, plan, configuration and log, and compare it with its digest
    #[arg(long)]
    deep: bool,
    /// Print JSON instead of a table
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    flags: BucketFlags,
}

#[tokio::main(flavor = "current_thread")]
pub(crate) async fn run(arguments: &Arguments) -> anyhow::Result<ExitCode> {
    let configuration = Configuration::load(&arguments.flags, &ProcessEnv::of_this_process())?;
    let _logging = logging::start(&configuration.settings);
    let rng = SharedRng::from_system();
    // Opening it would create it, and every check of the wrong bucket would pass.
    if master_keys::directory(configuration.settings.bucket.as_str()).is_some_and(|directory| !directory.exists()) {
        bail!("{}: this directory does not exist; a server creates it when it starts", configuration.bucket_in_words());
    }
    let bucket =
        bucket::open(&configuration.settings, &rng).with_context(|| configuration.bucket_in_words())?.with_retries;
    let keys = master_keys::find(&configuration.settings, &rng)?;
    let findings = examine(&bucket, &rng, keys.map(Arc::new), arguments.deep).await;
    if arguments.json {
        print::json(&json!(findings))?;
    } else {
        let rows = findings.iter().map(|finding| {
            [finding.check.into(), Cell::Status(finding.outcome.to_string()), finding.detail.as_str().into()]
        });
        print::table(["CHECK", "OUTCOME", "DETAIL"], rows)?;
    }
    let failed = findings.iter().any(|finding| finding.outcome == Outcome::Failed);
    Ok(if failed { ExitCode::FAILURE } else { ExitCode::SUCCESS })
}

/// First what the bucket can do, then what is in it.
async fn examine(bucket: &Arc<dyn Bucket>, rng: &SharedRng, keys: Option<Arc<MasterKeys>>, deep: bool) -> Vec<Finding> {
    let mut findings = doctor::examine(bucket, &SystemClock, rng).await;
    match doctor::first_failure(&findings, &[REACHABLE, READ_AFTER_WRITE, CREATE_IF_ABSENT]) {
        Some(failed) => {
            let because = format!("because \"{}\" failed", failed.check);
            let skipped = [FORMAT, LEDGERS, RECORDS, OBJECTS];
            findings.extend(skipped.map(|check| Finding::new(check, Outcome::Skipped, because.clone())));
        }
        None => {
            findings.push(examine_format(&**bucket).await);
            findings.extend(examine_key(&**bucket).await);
            findings.push(examine_ledgers(&**bucket, keys.as_deref()).await);
            findings.push(examine_records(&**bucket).await);
            findings.extend(examine_all_objects(bucket, keys, deep).await);
        }
    }
    findings
}

/// Says it if the bucket has its own secret key in it.
async fn examine_key(bucket: &dyn Bucket) -> Option<Finding> {
    match in_bucket_key::read(bucket).await {
        Ok(None) => None,
        Ok(Some(_)) => Some(Finding::new(
            SECRET_KEY,
            Outcome::Warned,
            "it lies in the bucket, as local mode needs it: who can read the bucket can read what is sensitive, as in its \
             states. For a server, set TACO_SECRET_KEY to a new one and TACO_PREVIOUS_SECRET_KEY to this one, run `taco \
             rewrap`, and delete the object secret-key",
        )),
        Err(error) => Some(Finding::new(SECRET_KEY, Outcome::Failed, error.to_string())),
    }
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

async fn examine_ledgers(bucket: &dyn Bucket, keys: Option<&MasterKeys>) -> Finding {
    let reports = match audit::verify(bucket, None, keys).await {
        Ok(reports) => reports,
        Err(error) => return Finding::new(LEDGERS, Outcome::Failed, error.to_string()),
    };
    let problems: Vec<_> = reports.iter().flat_map(|report| &report.problems).map(ToString::to_string).collect();
    if !problems.is_empty() {
        let advice =
            "Restore each from a backup or from the bucket's own versions; servers refuse the ledger until then";
        return Finding::new(LEDGERS, Outcome::Failed, format!("{}. {advice}", problems.join("; ")));
    }
    let unproven: Vec<_> = reports.iter().flat_map(|report| &report.unproven).map(ToString::to_string).collect();
    if !unproven.is_empty() {
        let detail = format!("sound, but the newest commits are not proven: {}", unproven.join("; "));
        return Finding::new(LEDGERS, Outcome::Warned, detail);
    }
    let commits: u64 = reports.iter().map(|report| report.commits).sum();
    let detail = match reports.len() {
        0 => "there are none yet".to_owned(),
        ledgers => format!("ledgers: {ledgers}, commits: {commits}, all sound"),
    };
    let superseded: usize = reports.iter().map(|report| report.superseded).sum();
    let detail = match superseded {
        0 => detail,
        _ => format!("{detail}; superseded snapshots that servers will remove: {superseded}"),
    };
    Finding::new(LEDGERS, Outcome::Passed, detail)
}

/// Records that cannot be read stop nothing: servers set them aside. But somebody should know. A ledger that is damaged was
/// told before.
async fn examine_records(bucket: &dyn Bucket) -> Finding {
    let ledgers = match ledgers_in(bucket).await {
        Ok(ledgers) => ledgers,
        Err(error) => return Finding::new(RECORDS, Outcome::Failed, error.to_string()),
    };
    let (mut unreadable, mut damaged) = (Vec::new(), Vec::new());
    for name in ledgers {
        let found = if name == LedgerName::site() {
            audit::unreadable_records::<Site>(bucket, &name).await
        } else {
            audit::unreadable_records::<OrganizationState>(bucket, &name).await
        };
        match found {
            Ok(found) => {
                let told = found.into_iter().map(|(record, why)| format!("{record} in ledger {name} ({why})"));
                unreadable.extend(told);
            }
            Err(error) => damaged.push(format!("ledger {name}: {error}")),
        }
    }
    if !damaged.is_empty() {
        return Finding::new(RECORDS, Outcome::Failed, damaged.join("; "));
    }
    if unreadable.is_empty() {
        return Finding::new(RECORDS, Outcome::Passed, "this version can read all of them");
    }
    let detail = format!(
        "written by a newer server, or damaged: this version cannot read, and carries along untouched: {}",
        unreadable.join("; ")
    );
    Finding::new(RECORDS, Outcome::Warned, detail)
}

async fn ledgers_in(bucket: &dyn Bucket) -> Result<Vec<LedgerName>, BucketError> {
    let folders = bucket.folders(&layout::ledgers()).await?;
    Ok(folders.iter().filter_map(|folder| folder.parse().ok()).collect())
}

/// States, plans, configurations and logs, of every organization whose ledger can be read.
async fn examine_all_objects(bucket: &Arc<dyn Bucket>, keys: Option<Arc<MasterKeys>>, deep: bool) -> Vec<Finding> {
    let failed = |why: String| vec![Finding::new(OBJECTS, Outcome::Failed, why)];
    let depth = match (deep, keys) {
        (false, _) => Depth::Quick,
        (true, Some(keys)) => Depth::Deep(keys),
        (true, None) => return failed("to compare content takes the secret key: set TACO_SECRET_KEY".to_owned()),
    };
    let ledgers = match ledgers_in(&**bucket).await {
        Ok(ledgers) => ledgers,
        Err(error) => return failed(error.to_string()),
    };
    // Where the site's ledger is damaged, ids have to do for names.
    let site = audit::replay::<Site>(&**bucket, &LedgerName::site()).await.unwrap_or_default();
    let mut findings = Vec::new();
    let (mut objects, mut skipped) = (0, Vec::new());
    for ledger in ledgers.iter().filter(|name| **name != LedgerName::site()) {
        let organization = ledger.as_str().parse::<OrganizationId>().ok().and_then(|id| site.organizations.get(&id));
        let organization = organization.map_or_else(|| ledger.to_string(), |entry| entry.name.to_string());
        match examine_organization(bucket, ledger, &organization, &depth).await {
            Ok(examined) => {
                objects += examined.objects;
                findings.extend(examined.damaged.into_iter().map(finding_of));
            }
            Err(taco_ledger::Error::Unavailable(error)) => findings.extend(failed(error.to_string())),
            Err(_) => skipped.push(organization),
        }
    }
    let not_looked_at = match skipped.is_empty() {
        true => String::new(),
        false => format!("; those of {} were not looked at, because its ledger is damaged", skipped.join(", ")),
    };
    match (findings.len(), skipped.is_empty()) {
        (0, true) => {
            let detail = match deep {
                true => format!("{objects} objects, all as they were stored"),
                false => {
                    format!("{objects} objects, all there and as large as they were (--deep compares content, too)")
                }
            };
            vec![Finding::new(OBJECTS, Outcome::Passed, detail)]
        }
        (0, false) => {
            vec![Finding::new(OBJECTS, Outcome::Warned, format!("{objects} objects, all sound{not_looked_at}"))]
        }
        (damaged, _) => {
            let more = damaged.saturating_sub(MAX_SHOWN_FINDINGS);
            findings.truncate(MAX_SHOWN_FINDINGS);
            let shown = if more > 0 { format!(", of which {more} are not shown here") } else { String::new() };
            let detail = format!("damaged: {damaged} of {objects}{shown}{not_looked_at}");
            findings.push(Finding::new(OBJECTS, Outcome::Failed, detail));
            findings
        }
    }
}

fn finding_of(damaged: DamagedObject) -> Finding {
    let DamagedObject { object, what, why, advice } = damaged;
    Finding::new(OBJECT, Outcome::Failed, format!("{object}: {why}. It is {what}. What to do: {advice}"))
}

async fn examine_organization(
    bucket: &Arc<dyn Bucket>,
    ledger: &LedgerName,
    organization: &str,
    depth: &Depth,
) -> Result<ExaminedObjects, taco_ledger::Error> {
    let look = || async {
        let state = audit::replay::<OrganizationState>(&**bucket, ledger).await?;
        Ok::<_, taco_ledger::Error>(examine_objects(bucket, ledger, organization, &state, depth).await?)
    };
    let examined = look().await?;
    if examined.damaged.is_empty() {
        return Ok(examined);
    }
    // Servers may run meanwhile and remove what nothing names any more: what is damaged stays so.
    let again = look().await?;
    let damaged = examined.damaged.into_iter().filter(|one| again.damaged.iter().any(|it| it.object == one.object));
    Ok(ExaminedObjects { damaged: damaged.collect(), ..again })
}
