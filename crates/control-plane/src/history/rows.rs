//! What catalogs say of records, and which of their rows count.

use std::collections::{BTreeMap, BTreeSet};

use jiff::Timestamp;
use taco_domain::OrganizationState;
use taco_domain::configuration_version::ConfigurationVersion;
use taco_domain::history::RestoredBundle;
use taco_domain::id::WorkspaceId;
use taco_domain::run::{Run, RunOptions};
use taco_domain::state_version::StateVersion;
use taco_history::{Catalog, Place, Row, RowId};

/// What filters ask of a run's options.
pub(super) mod run_flags {
    pub(crate) const PLAN_ONLY: u8 = 1;
    pub(crate) const SAVE_PLAN: u8 = 2;
    pub(crate) const REFRESH_ONLY: u8 = 4;
    pub(crate) const DESTROY: u8 = 8;
    pub(crate) const EMPTY_APPLY: u8 = 16;
    /// It has sealed variables, which follow when the master key changes.
    pub(crate) const SEALED: u8 = 32;
}

/// An apply wrote the state on its way to a later one.
const INTERMEDIATE: u8 = 1;

pub(crate) fn is_intermediate(row: &Row<'_>) -> bool {
    row.flags & INTERMEDIATE != 0
}

pub(super) fn nanoseconds(at: Timestamp) -> i64 {
    i64::try_from(at.as_nanosecond()).unwrap_or(if at > Timestamp::UNIX_EPOCH { i64::MAX } else { i64::MIN })
}

/// The texts of a row, which it borrows.
pub(super) struct RowTexts {
    status: String,
    source: String,
    author: String,
}

impl RowTexts {
    pub(super) fn of_run(run: &Run) -> Self {
        let (source, author) = (run.source.to_string(), run.created_by.to_string());
        Self { status: run.status_on_the_wire().to_owned(), source, author }
    }

    pub(super) fn of_state(version: &StateVersion) -> Self {
        Self { status: word(&version.status), source: String::new(), author: version.created_by.to_string() }
    }

    pub(super) fn of_configuration(version: &ConfigurationVersion) -> Self {
        let author = version.created_by.to_string();
        Self { status: word(&version.status), source: version.source.clone(), author }
    }

    pub(super) fn run<'a>(&'a self, run: &Run, place: Place) -> Row<'a> {
        let flags = flags_of(&run.options);
        self.row(run.id.to_bytes(), run.workspace, run.created_at, run.number, flags, place)
    }

    pub(super) fn state<'a>(&'a self, version: &StateVersion, is_intermediate: bool, place: Place) -> Row<'a> {
        let flags = if is_intermediate { INTERMEDIATE } else { 0 };
        self.row(version.id.to_bytes(), version.workspace, version.created_at, version.serial, flags, place)
    }

    pub(super) fn configuration<'a>(&'a self, version: &ConfigurationVersion, place: Place) -> Row<'a> {
        self.row(version.id.to_bytes(), version.workspace, version.created_at, version.number, 0, place)
    }

    fn row(&self, id: RowId, owner: WorkspaceId, at: Timestamp, number: u64, flags: u8, place: Place) -> Row<'_> {
        let Self { status, source, author } = self;
        Row { id, owner: owner.to_bytes(), at: nanoseconds(at), number, status, source, author, flags, place }
    }
}

pub(super) fn flags_of(options: &RunOptions) -> u8 {
    use run_flags as f;
    let flags = [
        (options.plan_only, f::PLAN_ONLY),
        (options.save_plan, f::SAVE_PLAN),
        (options.refresh_only, f::REFRESH_ONLY),
        (options.is_destroy, f::DESTROY),
        (options.allow_empty_apply, f::EMPTY_APPLY),
        (!options.variables.is_empty(), f::SEALED),
    ];
    flags.into_iter().filter(|(holds, _)| *holds).map(|(_, flag)| flag).sum()
}

/// The reverse of [`flags_of`], as far as filters ask.
pub(crate) fn options_of(flags: u8) -> RunOptions {
    use run_flags as f;
    let has = |flag: u8| flags & flag != 0;
    RunOptions {
        plan_only: has(f::PLAN_ONLY),
        save_plan: has(f::SAVE_PLAN),
        refresh_only: has(f::REFRESH_ONLY),
        is_destroy: has(f::DESTROY),
        allow_empty_apply: has(f::EMPTY_APPLY),
        ..RunOptions::default()
    }
}

/// A status as records and the wire spell it.
pub(super) fn word(status: &impl serde::Serialize) -> String {
    match serde_json::to_value(status) {
        Ok(serde_json::Value::String(word)) => word,
        _ => String::new(),
    }
}

/// The reverse of [`word`]; `None` for a status of a newer server.
pub(crate) fn stored_status<S: serde::de::DeserializeOwned>(word: &str) -> Option<S> {
    serde_json::from_value(serde_json::Value::String(word.to_owned())).ok()
}

/// Which rows of catalogs do not count: those of deleted workspaces, and those whose records came back.
pub(super) struct Masked<'a> {
    deleted: BTreeSet<RowId>,
    restored: BTreeMap<&'a str, BTreeSet<u32>>,
}

impl<'a> Masked<'a> {
    pub(super) fn of(state: &'a OrganizationState) -> Self {
        let deleted = state.workspace_histories.by().deleted.iter();
        let mut restored: BTreeMap<&str, BTreeSet<u32>> = BTreeMap::new();
        for (page, offset) in state.restored_bundles.iter().filter_map(RestoredBundle::place) {
            restored.entry(page).or_default().insert(offset);
        }
        Self { deleted: deleted.map(|history| history.workspace.to_bytes()).collect(), restored }
    }

    /// True if every row of history counts.
    pub(super) fn is_empty(&self) -> bool {
        self.deleted.is_empty() && self.restored.is_empty()
    }

    pub(super) fn is_place(&self, page: &str, place: Place) -> bool {
        self.restored.get(page).is_some_and(|offsets| offsets.contains(&place.offset))
    }

    pub(super) fn is_row(&self, catalog: &Catalog, row: &Row<'_>) -> bool {
        self.deleted.contains(&row.owner) || self.is_place(catalog.page(row.place), row.place)
    }

    /// Whether it may concern rows of a catalog. If not, nobody has to ask for each of them.
    pub(super) fn concerns(&self, catalog: &Catalog) -> bool {
        self.deleted.iter().any(|owner| catalog.owners().binary_search(owner).is_ok())
            || catalog.pages().iter().any(|page| self.restored.contains_key(page.as_str()))
    }
}
