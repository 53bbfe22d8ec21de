//! Check that the objects in an organization's records exist in the bucket: for `taco doctor`.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use futures::{StreamExt, TryStreamExt, stream};
use serde::Serialize;
use taco_domain::OrganizationState;
use taco_domain::configuration_version::{ConfigurationStatus, ConfigurationVersion};
use taco_domain::id::WorkspaceId;
use taco_domain::phase::{PhaseKind, StoredLog};
use taco_domain::policy_words::PolicyFile;
use taco_domain::registry_file::RegistryFile;
use taco_domain::run::Run;
use taco_domain::state_version::{StateVersion, StateVersionStatus};
use taco_ledger::blob::{BlobError, Stored};
use taco_ledger::seal::sealed_size;
use taco_ledger::{
    Blobs, Bucket, BucketError, BucketErrorKind, Key, LedgerName, LogChunks, MasterKeys, SharedRng, layout,
};

use crate::configuration_archives::{configuration_key, readme_key};
use crate::error::Error;
use crate::history::read_history;
use crate::log_id::log_id;
use crate::logs::log_digest;
use crate::plan_files::plan_key_in;
use crate::policy_code::policy_key;
use crate::registry_blobs::{docs_key, module_key, provider_file_key};
use crate::state_blobs::{json_state_key_in, state_key_in, stored_as};
use crate::task_outcomes::outcomes_key;
use crate::uploaded_plans::PlanForm;

/// So many objects are looked at together.
const AT_ONCE: usize = 16;

/// An object that is not what the ledger says it is.
#[derive(Clone, PartialEq, Eq, Serialize, Debug)]
pub struct DamagedObject {
    pub object: String,
    /// Description of the object, and what depends on it.
    pub what: String,
    pub why: String,
    pub advice: &'static str,
}

/// Findings about the objects of one organization.
#[derive(Clone, Default, Debug)]
pub struct ExaminedObjects {
    pub objects: usize,
    pub damaged: Vec<DamagedObject>,
}

/// Depth of the check: with or without comparing content.
#[derive(Clone, Debug)]
pub enum Depth {
    /// Presence and size alone.
    Quick,
    /// Everything is read, opened with these keys, and compared with its digest.
    Deep(Arc<MasterKeys>),
}

const FROM_BACKUP: &str = "restore it from a backup or from the bucket's own versions";
const PUSH_OR_ROLL_BACK: &str = "restore it from a backup or from the bucket's own versions; or `taco state rollback` to a \
                                 version that is sound, or push a copy of the state with `taco state push --force`";
const PLAN_AGAIN: &str = "restore it from a backup, or plan again: this plan is not shown and not applied";
const POLICY_AGAIN: &str = "restore it from a backup, or upload it again";
const PUBLISH_AGAIN: &str = "restore it from a backup, or delete the version and publish it again";
const UPLOAD_AGAIN: &str = "restore it from a backup, or upload the configuration again";

fn registry_file(key: Key, what: String, file: &RegistryFile) -> Expected {
    let stored = Stored { size: file.size, sha256: file.sha256.clone(), md5: String::new() };
    Expected { key, what, advice: PUBLISH_AGAIN, content: Content::Known(stored) }
}

/// An object that a record names.
struct Expected {
    key: Key,
    what: String,
    advice: &'static str,
    content: Content,
}

enum Content {
    /// The record has its digest.
    Known(Stored),
    /// Only that it is there is known; what is sealed proves itself.
    Unknown,
}

/// One attempt's log.
struct ExpectedLog {
    log: String,
    epoch: u64,
    what: String,
    /// It has at least so many bytes.
    at_least: u64,
    stored: Option<StoredLog>,
}

/// Looks at every object that the records of an organization name.
pub async fn examine_objects(
    bucket: &Arc<dyn Bucket>,
    ledger: &LedgerName,
    organization: &str,
    state: &OrganizationState,
    depth: &Depth,
) -> Result<ExaminedObjects, BucketError> {
    let keys = match depth {
        Depth::Quick => None,
        Depth::Deep(keys) => Some(Arc::clone(keys)),
    };
    let examination = Examination {
        bucket,
        ledger,
        depth,
        blobs: Blobs::new(Arc::clone(bucket), keys),
        logs: LogChunks::new(Arc::clone(bucket), SharedRng::from_seed(0)),
        pieces: listed_pieces(&**bucket, ledger).await?,
    };
    let records = Records { ledger, organization, state, current: state };
    let mut found = ExaminedObjects::default();
    found.objects += examination.pieces.values().map(BTreeSet::len).sum::<usize>();
    found.add(examination.records(&records).await?);
    let history = read_history(bucket, ledger, state);
    for segment in history.segments() {
        found.objects += segment.parts.len();
        let places = match history.places(segment).await {
            Ok(places) => places,
            Err(error) => {
                found.damaged.push(damaged_history(error)?);
                continue;
            }
        };
        for places in places {
            match history.records(places).await {
                Ok(past) => {
                    let records = Records { ledger, organization, state: &past, current: state };
                    found.add(examination.records(&records).await?);
                }
                Err(error) => found.damaged.push(damaged_history(error)?),
            }
        }
    }
    Ok(found)
}

impl ExaminedObjects {
    fn add(&mut self, more: Self) {
        self.objects += more.objects;
        self.damaged.extend(more.damaged);
    }
}

/// A part of history that is not what was written there.
fn damaged_history(error: Error) -> Result<DamagedObject, BucketError> {
    match error {
        Error::Corrupt(taco_ledger::Error::Corrupt { object, why }) => Ok(DamagedObject {
            object: object.to_string(),
            what: "a part of the organization's history: finished runs, states and configurations".to_owned(),
            why,
            advice: FROM_BACKUP,
        }),
        Error::Unavailable(taco_ledger::Error::Unavailable(error)) => Err(error),
        other => Ok(DamagedObject {
            object: "history".to_owned(),
            what: "a part of the organization's history".to_owned(),
            why: other.to_string(),
            advice: FROM_BACKUP,
        }),
    }
}

/// Context for checking objects.
struct Examination<'a> {
    bucket: &'a Arc<dyn Bucket>,
    ledger: &'a LedgerName,
    depth: &'a Depth,
    blobs: Blobs,
    logs: LogChunks,
    pieces: BTreeMap<(String, u64), BTreeSet<u64>>,
}

impl Examination<'_> {
    async fn records(&self, records: &Records<'_>) -> Result<ExaminedObjects, BucketError> {
        let expected = records.objects();
        let mut found = ExaminedObjects { objects: expected.len(), damaged: Vec::new() };
        let objects = stream::iter(expected).map(|expected| self.object(expected)).buffered(AT_ONCE);
        found.damaged.extend(objects.try_collect::<Vec<_>>().await?.into_iter().flatten());
        let logs = stream::iter(records.logs()).map(|log| self.log(log)).buffered(AT_ONCE);
        found.damaged.extend(logs.try_collect::<Vec<_>>().await?.into_iter().flatten());
        Ok(found)
    }

    async fn object(&self, expected: Expected) -> Result<Option<DamagedObject>, BucketError> {
        let why = match self.depth {
            Depth::Quick => quick_look(&**self.bucket, &expected).await?,
            Depth::Deep(_) => deep_look(&self.blobs, &expected).await?,
        };
        Ok(why.map(|why| expected.damaged(why)))
    }

    async fn log(&self, log: ExpectedLog) -> Result<Vec<DamagedObject>, BucketError> {
        if let (Some(stored), Depth::Deep(_)) = (&log.stored, self.depth) {
            let damaged = self.logs.verify(self.ledger, &log.log, log.epoch, &log_digest(stored)).await?;
            return Ok(damaged.into_iter().map(|error| log.damaged(&error.key, &error.why)).collect());
        }
        let none = BTreeSet::new();
        let listed = self.pieces.get(&(log.log.clone(), log.epoch)).unwrap_or(&none);
        look_at_pieces(&**self.bucket, self.ledger, &log, listed).await
    }
}

impl Expected {
    fn damaged(self, why: String) -> DamagedObject {
        DamagedObject { object: self.key.to_string(), what: self.what, why, advice: self.advice }
    }
}

impl ExpectedLog {
    fn damaged(&self, key: &Key, why: &str) -> DamagedObject {
        let what = format!("a piece of {}", self.what);
        DamagedObject { object: key.to_string(), what, why: why.to_owned(), advice: FROM_BACKUP }
    }
}

async fn quick_look(bucket: &dyn Bucket, expected: &Expected) -> Result<Option<String>, BucketError> {
    let Some(size) = bucket.size(&expected.key).await? else { return Ok(Some("it is missing".to_owned())) };
    Ok(match &expected.content {
        Content::Known(stored) if size != stored.size && size != sealed_size(stored.size) => {
            Some(format!("it was altered: it has {size} bytes instead of {}", sealed_size(stored.size)))
        }
        _ => None,
    })
}

async fn deep_look(blobs: &Blobs, expected: &Expected) -> Result<Option<String>, BucketError> {
    let opened = match &expected.content {
        Content::Known(stored) => blobs.read_compared(&expected.key, stored).await,
        Content::Unknown => match blobs.read(&expected.key, None).await {
            Ok(found) => found.ok_or_else(|| BlobError::Missing(expected.key.clone())),
            Err(error) => Err(error.into()),
        },
    };
    let judged =
        |error: BucketError| if error.kind == BucketErrorKind::Refused { Ok(Some(error.why)) } else { Err(error) };
    let mut body = match opened {
        Ok(download) => download.body,
        Err(BlobError::Missing(_)) => return Ok(Some("it is missing".to_owned())),
        Err(BlobError::Bucket(error)) => return judged(error),
        Err(error) => return Ok(Some(error.to_string())),
    };
    loop {
        match body.try_next().await {
            Ok(Some(_)) => {}
            Ok(None) => return Ok(None),
            Err(error) => return judged(error),
        }
    }
}

/// Start offsets of the chunks of all logs of an organization.
async fn listed_pieces(
    bucket: &dyn Bucket,
    ledger: &LedgerName,
) -> Result<BTreeMap<(String, u64), BTreeSet<u64>>, BucketError> {
    let mut pieces: BTreeMap<_, BTreeSet<u64>> = BTreeMap::new();
    for key in bucket.list(&layout::all_logs(ledger), None).await? {
        if let Some((log, epoch, offset)) = layout::piece_of(&key) {
            pieces.entry((log, epoch)).or_default().insert(offset);
        }
    }
    Ok(pieces)
}

/// Checks that the chunks of a log follow each other without gaps, up to its recorded length.
async fn look_at_pieces(
    bucket: &dyn Bucket,
    ledger: &LedgerName,
    log: &ExpectedLog,
    listed: &BTreeSet<u64>,
) -> Result<Vec<DamagedObject>, BucketError> {
    let key = |at: u64| layout::log_chunk(ledger, &log.log, log.epoch, at);
    let mut damaged = Vec::new();
    let (mut at, mut before) = (0, None);
    loop {
        let next = listed.range(at + 1..).next().copied();
        // A listing may lag, so each is asked for.
        match bucket.size(&key(at)).await? {
            Some(size) if size > 0 && next.is_none_or(|next| at + size <= next) => {
                let end = at + size;
                if log.stored.is_some() && end > log.at_least {
                    damaged.push(log.damaged(&key(at), "it was altered: it is longer than it was"));
                }
                (at, before) = (end, Some(at));
                continue;
            }
            Some(_) => damaged.push(log.damaged(&key(at), "it was altered: it has another length than it had")),
            None if at < log.at_least || next.is_some() => {
                // Only the lengths tell where pieces begin.
                let why = match before {
                    Some(before) => format!("it is missing, or {} before it was cut off", key(before)),
                    None => "it is missing".to_owned(),
                };
                damaged.push(log.damaged(&key(at), &why));
            }
            None => break,
        }
        match next {
            Some(next) => (at, before) = (next, None),
            None => break,
        }
    }
    Ok(damaged)
}

/// The records of an organization.
struct Records<'a> {
    ledger: &'a LedgerName,
    organization: &'a str,
    state: &'a OrganizationState,
    /// The organization as it is now; `state` may be a part of its history.
    current: &'a OrganizationState,
}

impl Records<'_> {
    fn workspace(&self, id: WorkspaceId) -> String {
        let name =
            self.current.workspaces.get(&id).map_or_else(|| id.to_string(), |workspace| workspace.name.to_string());
        format!("workspace {}/{name}", self.organization)
    }

    fn objects(&self) -> Vec<Expected> {
        let states = self.state.state_versions.iter().flat_map(|version| self.of_state(version));
        let configurations =
            self.state.configuration_versions.iter().flat_map(|version| self.of_configuration(version));
        let plans = self.state.runs.iter().flat_map(|run| self.of_plan(run));
        let outcomes = self.state.runs.iter().flat_map(|run| self.of_tasks(run));
        states
            .chain(configurations)
            .chain(plans)
            .chain(outcomes)
            .chain(self.of_modules())
            .chain(self.of_providers())
            .chain(self.of_policies())
            .collect()
    }

    fn of_policies(&self) -> Vec<Expected> {
        let policy = |name: &str, file: &PolicyFile, advice: &'static str| {
            let stored = Stored { size: file.size, sha256: file.sha256.clone(), md5: String::new() };
            let what = format!("the code of {name} of organization {}", self.organization);
            Expected { key: policy_key(self.ledger, &file.blob), what, advice, content: Content::Known(stored) }
        };
        let own = self
            .state
            .policies
            .iter()
            .filter_map(|it| Some(policy(&format!("policy {}", it.name), it.code.as_ref()?, POLICY_AGAIN)));
        let versions = self.state.policy_set_versions.iter().filter_map(|version| {
            let set = self.state.policy_sets.get(&version.set);
            let name = set.map_or_else(String::new, |set| set.name.to_string());
            Some(policy(&format!("a version of policy set {name}"), version.code.as_ref()?, POLICY_AGAIN))
        });
        own.chain(versions).collect()
    }

    fn of_modules(&self) -> Vec<Expected> {
        let mut expected = Vec::new();
        for version in self.state.module_versions.iter() {
            let Some(file) = &version.archive else { continue };
            let module = self.state.registry_modules.get(&version.module);
            let name = module.map_or_else(String::new, |module| format!("{}/{}", module.name, module.provider));
            let of = format!("version {} of module {}/{name}", version.version, self.organization);
            let docs = docs_key(self.ledger, &file.blob);
            let what = format!("the documentation of {of}");
            expected.push(registry_file(module_key(self.ledger, &file.blob), of, file));
            expected.push(Expected { key: docs, what, advice: PUBLISH_AGAIN, content: Content::Unknown });
        }
        expected
    }

    fn of_providers(&self) -> Vec<Expected> {
        let mut expected = Vec::new();
        for version in self.state.provider_versions.iter() {
            let provider = self.state.registry_providers.get(&version.provider);
            let name = provider.map_or_else(String::new, |provider| provider.name.to_string());
            let of = format!("version {} of provider {}/{name}", version.version, self.organization);
            let own = [("the checksums of", &version.checksums), ("the signature of", &version.signature)];
            for (part, file) in own.into_iter().filter_map(|(part, file)| Some((part, file.as_ref()?))) {
                expected.push(registry_file(provider_file_key(self.ledger, &file.blob), format!("{part} {of}"), file));
            }
            for platform in self.state.provider_platforms.by().version.under(&version.id) {
                let Some(archive) = &platform.archive else { continue };
                let what = format!("{} of {of}", platform.filename);
                expected.push(registry_file(provider_file_key(self.ledger, &archive.file.blob), what, &archive.file));
            }
        }
        expected
    }

    fn of_state(&self, version: &StateVersion) -> Vec<Expected> {
        use StateVersionStatus as S;
        let has_data = matches!(version.status, S::Finalized | S::BackingDataSoftDeleted) && !version.blob.is_empty();
        if !has_data {
            return Vec::new();
        }
        let workspace = self.current.workspaces.get(&version.workspace);
        let is_current = workspace.is_some_and(|workspace| workspace.current_state_version == Some(version.id));
        let (which, advice) = match is_current {
            true => ("the current state", PUSH_OR_ROLL_BACK),
            false => ("an older state", FROM_BACKUP),
        };
        let of = format!("of {}, serial {} ({})", self.workspace(version.workspace), version.serial, version.id);
        let mut expected = vec![Expected {
            key: state_key_in(self.ledger, &version.blob),
            what: format!("{which} {of}"),
            advice,
            content: Content::Known(stored_as(version)),
        }];
        if version.has_json {
            expected.push(Expected {
                key: json_state_key_in(self.ledger, version),
                what: format!("{which} as JSON {of}"),
                advice: FROM_BACKUP,
                content: Content::Unknown,
            });
        }
        expected
    }

    fn of_configuration(&self, version: &ConfigurationVersion) -> Vec<Expected> {
        use ConfigurationStatus as S;
        if !matches!(version.status, S::Uploaded | S::BackingDataSoftDeleted) || version.blob.is_empty() {
            return Vec::new();
        }
        let is_used = self.current.usable_configuration(version.workspace).is_some_and(|used| used.id == version.id);
        let note = if is_used { ", which the next run uses" } else { "" };
        let of = format!("configuration {} of {}{note}", version.id, self.workspace(version.workspace));
        let content = match version.sha256.is_empty() {
            true => Content::Unknown,
            false => Content::Known(Stored { size: version.size, sha256: version.sha256.clone(), md5: String::new() }),
        };
        let key = configuration_key(self.ledger, &version.blob);
        let mut expected = vec![Expected { key, what: of.clone(), advice: UPLOAD_AGAIN, content }];
        if version.has_readme {
            let key = readme_key(self.ledger, &version.blob);
            let what = format!("the README of {of}");
            expected.push(Expected { key, what, advice: UPLOAD_AGAIN, content: Content::Unknown });
        }
        expected
    }

    fn of_plan(&self, run: &Run) -> Vec<Expected> {
        let Some(files) = &run.plan.files else { return Vec::new() };
        let of = format!("{} in {}", run.id, self.workspace(run.workspace));
        let expected = PlanForm::ALL.into_iter().filter_map(|form| {
            let file = files.get(form.blobs())?;
            let stored = Stored { size: file.size, sha256: file.sha256.clone(), md5: String::new() };
            let form_in_words = match form {
                PlanForm::File => "the plan",
                PlanForm::Json => "the plan as JSON",
                PlanForm::Redacted => "the plan as it is shown",
            };
            Some(Expected {
                key: plan_key_in(self.ledger, form, run.id, run.plan.epoch),
                what: format!("{form_in_words} of {of}"),
                advice: PLAN_AGAIN,
                content: Content::Known(stored),
            })
        });
        expected.collect()
    }

    /// Outcomes that run tasks sent.
    fn of_tasks(&self, run: &Run) -> Vec<Expected> {
        let results = run.stages.iter().flat_map(|stage| &stage.results);
        let sent = results.filter_map(|result| Some((result, result.outcomes.as_ref()?)));
        let expected = sent.map(|(result, outcomes)| Expected {
            key: outcomes_key(self.ledger, &outcomes.blob),
            what: format!(
                "outcomes of the task {} of {} in {}",
                result.task_name,
                run.id,
                self.workspace(run.workspace)
            ),
            advice: FROM_BACKUP,
            content: Content::Known(Stored {
                size: outcomes.size,
                sha256: outcomes.sha256.clone(),
                md5: String::new(),
            }),
        });
        expected.collect()
    }

    fn logs(&self) -> Vec<ExpectedLog> {
        let of_phase = |run: &Run, kind: PhaseKind| {
            let phase = run.phase(kind);
            let attempts = (1..=phase.epoch).map(|epoch| {
                let stored = phase.log.clone().filter(|_| epoch == phase.epoch);
                let left = phase.earlier_logs.get(epoch as usize - 1).copied().unwrap_or(0);
                ExpectedLog {
                    log: log_id(run.id, kind),
                    epoch,
                    what: format!("the log of the {kind} of {} in {}", run.id, self.workspace(run.workspace)),
                    at_least: stored.as_ref().map_or(left, StoredLog::size),
                    stored,
                }
            });
            attempts.collect::<Vec<_>>()
        };
        let both = |run: &Run| [of_phase(run, PhaseKind::Plan), of_phase(run, PhaseKind::Apply)];
        self.state.runs.iter().flat_map(both).flatten().collect()
    }
}
