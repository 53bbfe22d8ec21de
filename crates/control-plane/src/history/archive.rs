//! Moving finished records out of memory.
//!
//! Pages and catalogs are written first, under names that nothing else has; then one commit names them and deletes the
//! records from the state. Whoever dies in between leaves objects that nothing names, which are removed after a while.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use bytes::Bytes;
use jiff::Timestamp;
use serde_json::value::RawValue;
use sha2::{Digest, Sha256};
use taco_boxed::boxed;
use taco_domain::OrganizationState;
use taco_domain::comment::Comment;
use taco_domain::configuration_version::ConfigurationVersion;
use taco_domain::history::{
    BundleIds, HistoryPart, HistorySegment, RestoredBundle, due_bundles, may_leave, workspace_histories,
};
use taco_domain::id::HistorySegmentId;
use taco_domain::run::Run;
use taco_domain::state_version::StateVersion;
use taco_history::{Bundle, Catalog, CatalogBuilder, IdIndex, Malformed, PageWriter, Place, Texts};
use taco_ledger::beacon::HISTORY;
use taco_ledger::bucket::Created;
use taco_ledger::{Key, Transaction, View, layout};
use taco_tables::{Holds, Record, RecordKey};
use tokio::task::JoinError;

use super::parts::{Part, PartName, damaged, unavailable};
use super::rows::{Masked, RowTexts};
use crate::control_plane::{ControlPlane, OrganizationSnapshot};
use crate::error::Error;
use crate::privileged::Privileged;

/// So many segments of about one size become one of the next size.
const MERGED_AT_ONCE: usize = 16;
/// A segment with as many bundles is left as it is: a merge reads and writes all of its rows at once.
const LARGEST_MERGED: u64 = 8_192;

/// What moving records achieved.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct Archived {
    /// How many bundles left memory.
    pub bundles: usize,
    /// Whether more could leave at once.
    pub more: bool,
}

/// The objects of a new segment.
struct NewSegment {
    record: HistorySegment,
    objects: Vec<(Key, Bytes)>,
}

/// The catalogs of a segment that is being made.
#[derive(Default)]
struct Catalogs {
    runs: CatalogBuilder,
    state_versions: CatalogBuilder,
    configuration_versions: CatalogBuilder,
    comments: IdIndex,
    outputs: IdIndex,
}

#[boxed]
impl ControlPlane {
    async fn archive_organization(&self, org: &OrganizationSnapshot) -> Result<Archived, Error> {
        let planned = org.last_seen();
        let (rules, now, state) = (self.shared.history_rules, self.now(), planned.clone());
        let bundles = aside(move || due_bundles(&state, rules, now)).await;
        if bundles.is_empty() {
            if self.note_newest_runs(org).await? {
                return Ok(Archived { bundles: 0, more: true });
            }
            self.merge_segments(org).await?;
            self.sweep_history(org).await?;
            return Ok(Archived::default());
        }
        let number = bundles.len();
        let (plane, organization, state) = (self.clone(), org.clone(), planned.clone());
        let (new, bundles) = aside(move || (plane.new_segment(&organization, &state, &bundles), bundles)).await;
        let new = new?;
        let state = planned.clone();
        let decide = move |tx: &mut Transaction<OrganizationState>, segment: &HistorySegment| {
            move_out(tx, &planned, &bundles, segment)
        };
        let moved = self.store_and_commit(org, new, state, decide).await?;
        metrics::counter!("taco_history_bundles_total").increment(if moved { number as u64 } else { 0 });
        Ok(Archived { bundles: if moved { number } else { 0 }, more: moved })
    }

    /// Writes the objects of a segment, then commits it. False if that came to nothing, because things have changed since
    /// `planned`.
    async fn store_and_commit(
        &self,
        org: &OrganizationSnapshot,
        new: NewSegment,
        planned: View<OrganizationState>,
        mut decide: impl FnMut(&mut Transaction<OrganizationState>, &HistorySegment) -> bool + Send + 'static,
    ) -> Result<bool, Error> {
        for (key, bytes) in &new.objects {
            // What is there may be named by a commit, so nothing is ever overwritten.
            if self.bucket().create(key, bytes.clone()).await.map_err(unavailable)? == Created::AlreadyThere {
                return Ok(false);
            }
        }
        let record = new.record;
        let committed = org.commit(Self::own_intent("history.archive"), move |tx| {
            // Its objects may have been taken for abandoned and removed.
            let was_swept = tx.state().history_sweep() != planned.history_sweep();
            if !was_swept && decide(tx, &record) { Ok(true) } else { Err(Error::Conflict(String::new())) }
        });
        match committed.await {
            Err(Error::Conflict(_)) => {
                for (key, _) in &new.objects {
                    self.bucket().delete(key).await.map_err(unavailable)?;
                }
                Ok(false)
            }
            other => other,
        }
    }

    fn new_segment(
        &self,
        org: &OrganizationSnapshot,
        state: &OrganizationState,
        bundles: &[BundleIds],
    ) -> Result<NewSegment, Error> {
        let id = HistorySegmentId::within(org.id().organization_prefix(), self.random());
        // A segment's first page has its name; merged ones speak of several.
        let page = id.to_string();
        let page_key = layout::history_page(org.ledger.name(), &page);
        let broken = |error: Malformed| damaged(&page_key, &error.0);
        let mut writer = PageWriter::new().map_err(broken)?;
        let mut catalogs = Catalogs::default();
        for ids in bundles {
            let place = writer.add(0, &bundle_of(state, ids)).map_err(broken)?;
            catalogs.add(state, ids, &page, place).map_err(broken)?;
        }
        let mut new = self.segment_of(org, id, catalogs, bundles.len() as u64).map_err(broken)?;
        new.objects.push((page_key, writer.finish().into()));
        Ok(new)
    }

    fn segment_of(
        &self,
        org: &OrganizationSnapshot,
        id: HistorySegmentId,
        catalogs: Catalogs,
        bundles: u64,
    ) -> Result<NewSegment, Malformed> {
        let mut parts = BTreeMap::new();
        let mut objects = Vec::new();
        let Encoded { parts: encoded, pages, newest_run } = catalogs.encode()?;
        for (name, rows, bytes) in encoded {
            let (size, sha256) = (bytes.len() as u64, hex::encode(Sha256::digest(&bytes)));
            parts.insert(name.as_str().to_owned(), HistoryPart { rows, size, sha256 });
            let key = layout::history_part(org.ledger.name(), &id.to_string(), name.as_str());
            objects.push((key, Bytes::from(bytes)));
        }
        let pages = pages.into_iter().collect();
        let record = HistorySegment { id, created_at: self.now(), bundles, parts, pages, newest_run };
        Ok(NewSegment { record, objects })
    }

    /// Notes in segments of older versions when their newest run was created. True if there may be more of them.
    async fn note_newest_runs(&self, org: &OrganizationSnapshot) -> Result<bool, Error> {
        let state = org.last_seen();
        let is_unknown = |segment: &&HistorySegment| segment.newest_run.is_none() && segment.runs() > 0;
        let unknown: Vec<_> = state.history_segments.iter().filter(is_unknown).take(MERGED_AT_ONCE).cloned().collect();
        let mut noted = Vec::new();
        for segment in unknown {
            if let Some(Part::Catalog(runs)) = self.history_of(org).part(&segment, PartName::Runs).await?
                && let Some(newest_run) = newest_run(&runs)
            {
                noted.push(HistorySegment { newest_run: Some(newest_run), ..segment });
            }
        }
        if noted.is_empty() {
            return Ok(false);
        }
        let decide = move |tx: &mut Transaction<OrganizationState>| {
            for segment in &noted {
                // It may have been merged meanwhile.
                if tx.state().history_segments.contains(&segment.id) {
                    tx.put(segment);
                }
            }
            Ok::<_, Error>(true)
        };
        org.commit(Self::own_intent("history.archive"), decide).await
    }

    /// Makes one segment of many small ones, so that their number stays small. Pages stay where they are.
    async fn merge_segments(&self, org: &OrganizationSnapshot) -> Result<(), Error> {
        let planned = org.last_seen();
        let Some(small) = segments_to_merge(&planned) else { return Ok(()) };
        let reader = self.history_of(org);
        let masked = Masked::of(&planned);
        let mut catalogs = Catalogs::default();
        let mut pages = BTreeSet::new();
        let mut bundles = 0;
        for segment in &small {
            bundles += segment.bundles;
            let mut texts: Arc<Texts> = Arc::default();
            if let Some(Part::Texts(found)) = reader.part(segment, PartName::Texts).await? {
                texts = found;
            }
            for name in PartName::ALL {
                match reader.part(segment, name).await? {
                    Some(Part::Catalog(catalog)) => {
                        pages.extend(catalog.pages().iter().cloned());
                        let builder = catalogs.builder(name);
                        for (index, row) in catalog.rows().enumerate().filter(|(_, row)| !masked.is_row(&catalog, row))
                        {
                            let text = if name == PartName::Runs { texts.get(index) } else { "" };
                            builder.add(catalog.page(row.place), &row, text);
                        }
                    }
                    Some(Part::Index(index)) => {
                        let broken = |error: Malformed| damaged(&layout::history(org.ledger.name()), &error.0);
                        for (id, page, place) in index.iter().filter(|(_, page, place)| !masked.is_place(page, *place))
                        {
                            catalogs.index(name).add(page, id, place).map_err(broken)?;
                        }
                    }
                    Some(Part::Texts(_)) | None => {}
                }
            }
        }
        let id = HistorySegmentId::within(org.id().organization_prefix(), self.random());
        let (plane, organization) = (self.clone(), org.clone());
        let new = aside(move || plane.segment_of(&organization, id, catalogs, bundles)).await;
        let new = new.map_err(|error| damaged(&layout::history(org.ledger.name()), &error.0))?;
        let state = planned.clone();
        let decide = move |tx: &mut Transaction<OrganizationState>, merged: &HistorySegment| {
            merge(tx, &planned, &small, &pages, merged)
        };
        self.store_and_commit(org, new, state, decide).await?;
        Ok(())
    }
}

/// Verbs that ask nobody, for the server itself.
#[boxed]
impl Privileged {
    /// Moves what is finished into history, one batch at most of each organization that this server has open. Older servers
    /// beside this one could not find it there, so nothing moves while there are any.
    pub async fn archive_finished(&self) -> Result<Archived, Error> {
        let mut all = Archived::default();
        if !self.shared.environment.peers.all_can(HISTORY) {
            return Ok(all);
        }
        for org in self.organizations_in_memory() {
            let archived = self.archive_organization(&org).await?;
            all.bundles += archived.bundles;
            all.more |= archived.more;
        }
        Ok(all)
    }
}

/// Work that takes a while, beside those who are to be answered.
async fn aside<T: Send + 'static>(work: impl FnOnce() -> T + Send + 'static) -> T {
    match tokio::task::spawn_blocking(work).await.map_err(JoinError::try_into_panic) {
        Ok(done) => done,
        Err(Ok(panic)) => std::panic::resume_unwind(panic),
        // The process ends.
        Err(Err(_)) => std::future::pending().await,
    }
}

/// The oldest segments of about one size, if there are enough of them.
fn segments_to_merge(state: &OrganizationState) -> Option<Vec<HistorySegment>> {
    let mut sizes: BTreeMap<u32, Vec<&HistorySegment>> = BTreeMap::new();
    for segment in state.history_segments.iter().filter(|segment| segment.bundles < LARGEST_MERGED) {
        sizes.entry(segment.bundles.max(1).ilog(MERGED_AT_ONCE as u64)).or_default().push(segment);
    }
    let mut enough = sizes.into_values().find(|segments| segments.len() >= MERGED_AT_ONCE)?;
    enough.sort_by_key(|segment| (segment.created_at, segment.id));
    enough.truncate(MERGED_AT_ONCE);
    Some(enough.into_iter().cloned().collect())
}

/// The records of a bundle as they stand in the log.
fn bundle_of(state: &OrganizationState, ids: &BundleIds) -> Bundle {
    fn json<R: Record>(state: &impl Holds<R>, id: &R::Id) -> Option<(RecordKey, Box<RawValue>)> {
        let value = state.table().json_of(id)?;
        Some((RecordKey { kind: R::KIND.to_owned(), id: id.to_string() }, value))
    }
    let run = ids.run.iter().filter_map(|id| json::<Run>(state, id));
    let comments = ids.comments.iter().filter_map(|id| json::<Comment>(state, id));
    let versions = ids.state_versions.iter().filter_map(|id| json::<StateVersion>(state, id));
    let configuration = ids.configuration_version.iter().filter_map(|id| json::<ConfigurationVersion>(state, id));
    Bundle { records: run.chain(comments).chain(versions).chain(configuration).collect() }
}

impl Catalogs {
    fn add(&mut self, state: &OrganizationState, ids: &BundleIds, page: &str, place: Place) -> Result<(), Malformed> {
        if let Some(run) = ids.run.and_then(|id| state.runs.get(&id)) {
            self.runs.add(page, &RowTexts::of_run(run).run(run, place), &run.options.message);
        }
        for id in &ids.comments {
            self.comments.add(page, id.to_bytes(), place)?;
        }
        for version in ids.state_versions.iter().filter_map(|id| state.state_versions.get(id)) {
            let texts = RowTexts::of_state(version);
            self.state_versions.add(page, &texts.state(version, state.is_intermediate(version), place), "");
            for output in &version.outputs {
                self.outputs.add(page, output.id.to_bytes(), place)?;
            }
        }
        if let Some(version) = ids.configuration_version.and_then(|id| state.configuration_versions.get(&id)) {
            let texts = RowTexts::of_configuration(version);
            self.configuration_versions.add(page, &texts.configuration(version, place), "");
        }
        Ok(())
    }

    fn builder(&mut self, name: PartName) -> &mut CatalogBuilder {
        match name {
            PartName::StateVersions => &mut self.state_versions,
            PartName::ConfigurationVersions => &mut self.configuration_versions,
            PartName::Runs | PartName::Texts | PartName::Comments | PartName::Outputs => &mut self.runs,
        }
    }

    fn index(&mut self, name: PartName) -> &mut IdIndex {
        match name {
            PartName::Outputs => &mut self.outputs,
            _ => &mut self.comments,
        }
    }

    /// The parts that have anything in them, as bytes.
    fn encode(mut self) -> Result<Encoded, Malformed> {
        let mut parts: Vec<EncodedPart> = Vec::new();
        let (runs, texts) = self.runs.finish()?;
        let newest_run = newest_run(&runs);
        let (state_versions, _) = self.state_versions.finish()?;
        let (configuration_versions, _) = self.configuration_versions.finish()?;
        parts.push((PartName::Texts, texts.len() as u64, Texts::encode(&texts)?));
        let mut pages = BTreeSet::new();
        for (name, catalog) in [
            (PartName::Runs, runs),
            (PartName::StateVersions, state_versions),
            (PartName::ConfigurationVersions, configuration_versions),
        ] {
            pages.extend(catalog.pages().iter().cloned());
            parts.push((name, catalog.len() as u64, catalog.encode()?));
        }
        for (name, index) in [(PartName::Comments, &mut self.comments), (PartName::Outputs, &mut self.outputs)] {
            parts.push((name, index.len() as u64, index.encode()?));
        }
        parts.retain(|(_, rows, _)| *rows > 0);
        Ok(Encoded { parts, pages, newest_run })
    }
}

/// The parts of a segment, the pages that they speak of, and when the newest run in them was created.
struct Encoded {
    parts: Vec<EncodedPart>,
    pages: BTreeSet<String>,
    newest_run: Option<Timestamp>,
}

/// Creation time of the newest run in a catalog.
fn newest_run(runs: &Catalog) -> Option<Timestamp> {
    runs.times().first().and_then(|at| Timestamp::from_nanosecond(i128::from(*at)).ok())
}

/// A part of a segment: its name, the number of its rows, and its bytes.
type EncodedPart = (PartName, u64, Vec<u8>);

/// Takes bundles out of the state, unless anything about them has changed since they were written down.
fn move_out(
    tx: &mut Transaction<OrganizationState>,
    planned: &View<OrganizationState>,
    bundles: &[BundleIds],
    segment: &HistorySegment,
) -> bool {
    let state = tx.state();
    let unchanged = |bundle: &BundleIds| {
        bundle.run.iter().all(|id| state.runs.contains(id) && state.runs.is_unchanged(&planned.runs, id))
            && bundle.comments.iter().all(|id| state.comments.is_unchanged(&planned.comments, id))
            && bundle.state_versions.iter().all(|id| {
                state.state_versions.contains(id) && state.state_versions.is_unchanged(&planned.state_versions, id)
            })
            && bundle.configuration_version.iter().all(|id| {
                let versions = &state.configuration_versions;
                versions.contains(id) && versions.is_unchanged(&planned.configuration_versions, id)
            })
            && nothing_was_added(state, bundle)
            && may_leave(state, bundle)
    };
    if !bundles.iter().all(unchanged) {
        return false;
    }
    let histories = workspace_histories(state, bundles);
    for bundle in bundles {
        bundle.comments.iter().for_each(|id| tx.delete::<Comment>(id));
        bundle.state_versions.iter().for_each(|id| tx.delete::<StateVersion>(id));
        bundle.configuration_version.iter().for_each(|id| tx.delete::<ConfigurationVersion>(id));
        bundle.run.iter().for_each(|id| tx.delete::<Run>(id));
    }
    histories.iter().for_each(|history| tx.put(history));
    tx.put(segment);
    true
}

/// Whether a bundle has all that hangs on its run.
fn nothing_was_added(state: &OrganizationState, bundle: &BundleIds) -> bool {
    bundle.run.is_none_or(|run| {
        state.comments.by().run.under(&run).count() == bundle.comments.len()
            && state.state_versions.by().run.get(&run).count() == bundle.state_versions.len()
    })
}

/// Puts one segment in the place of many, unless something about them has changed.
fn merge(
    tx: &mut Transaction<OrganizationState>,
    planned: &View<OrganizationState>,
    small: &[HistorySegment],
    pages: &BTreeSet<String>,
    merged: &HistorySegment,
) -> bool {
    let state = tx.state();
    let is_there = |segment: &HistorySegment| state.history_segments.contains(&segment.id);
    let same_masks = state.restored_bundles.len() == planned.restored_bundles.len();
    if !small.iter().all(is_there) || !same_masks {
        return false;
    }
    // Restored bundles in these pages have no row any more.
    let dropped: Vec<String> = (state.restored_bundles.iter())
        .filter(|bundle| bundle.place().is_some_and(|(page, _)| pages.contains(page)))
        .map(|bundle| bundle.id.clone())
        .collect();
    dropped.iter().for_each(|id| tx.delete::<RestoredBundle>(id));
    small.iter().for_each(|segment| tx.delete::<HistorySegment>(&segment.id));
    tx.put(merged);
    true
}
