//! Pages of lists over what is in memory and what is in history.

use std::cell::RefCell;
use std::cmp::Reverse;
use std::collections::HashMap;
use std::sync::Arc;

use taco_boxed::boxed;
use taco_domain::history::HistorySegment;
use taco_domain::id::WorkspaceId;
use taco_domain::{Author, OrganizationState};
use taco_history::{Catalog, Row, RowFilter, RowId, Source, select};

use super::parts::{Located, PartName};
use super::rows::Masked;
use crate::control_plane::{ControlPlane, OrganizationSnapshot};
use crate::error::Error;
use crate::page::PageRequest;
use crate::run_filter::RunFilter;

/// What a list is sorted by: the greatest order first, then the smallest tie.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(crate) struct ListKey {
    pub(crate) order: i64,
    pub(crate) tie: u64,
    pub(crate) id: RowId,
}

/// The ids of one page of a list, and how many the whole list has.
pub(crate) struct ListedIds {
    pub(crate) ids: Vec<RowId>,
    pub(crate) total: usize,
    /// The organization with all of them in it.
    pub(crate) org: OrganizationSnapshot,
}

/// Which rows of a workspace are listed, and in which order.
pub(crate) struct WorkspaceList<'a> {
    pub(crate) workspace: WorkspaceId,
    pub(crate) kind: HistoricKind,
    /// The second argument is what people search in, where that was asked for.
    pub(crate) fits: &'a (dyn Fn(&Row<'_>, &str) -> bool + Send + Sync),
    pub(crate) searches_texts: bool,
}

/// A kind of record that has catalogs.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum HistoricKind {
    Runs,
    StateVersions,
    ConfigurationVersions,
}

impl HistoricKind {
    fn part(self) -> PartName {
        match self {
            Self::Runs => PartName::Runs,
            Self::StateVersions => PartName::StateVersions,
            Self::ConfigurationVersions => PartName::ConfigurationVersions,
        }
    }

    /// The key of a row in the list of a workspace.
    fn key(self, row: &Row<'_>) -> ListKey {
        match self {
            Self::Runs | Self::ConfigurationVersions => ListKey::by_number(row.number, row.id),
            Self::StateVersions => ListKey { order: row.at, tie: u64::MAX - row.number, id: row.id },
        }
    }
}

impl ListKey {
    /// Sorts as the list does.
    pub(crate) fn in_list(&self) -> (Reverse<i64>, u64, RowId) {
        (Reverse(self.order), self.tie, self.id)
    }

    pub(crate) fn by_number(number: u64, id: RowId) -> Self {
        Self { order: i64::try_from(number).unwrap_or(i64::MAX), tie: 0, id }
    }

    pub(crate) fn by_time(at: jiff::Timestamp, id: RowId) -> Self {
        Self { order: super::rows::nanoseconds(at), tie: 0, id }
    }

    pub(crate) fn of_state(version: &taco_domain::state_version::StateVersion) -> Self {
        let order = super::rows::nanoseconds(version.created_at);
        Self { order, tie: u64::MAX - version.serial, id: version.id.to_bytes() }
    }
}

/// The part of a list that is in memory.
pub(crate) struct InMemory {
    /// The first of them, in the order of the list: as many as there are before the end of the page, if there are so many.
    pub(crate) first: Vec<ListKey>,
    /// How many there are.
    pub(crate) total: usize,
}

impl InMemory {
    /// The ids of a page of all runs, and how many there are, if nothing in history is as new as the last of them. Then no
    /// catalog has to be read.
    fn newest_page(&self, state: &OrganizationState, page: PageRequest) -> Option<(Vec<RowId>, usize)> {
        let page_of_keys = self.first.get(page.skip()..page.skip().checked_add(page.size())?)?;
        let last = page_of_keys.last()?;
        let is_newer = |segment: &HistorySegment| {
            segment.runs() == 0
                || segment.newest_run.is_some_and(|newest| super::rows::nanoseconds(newest) < last.order)
        };
        if !Masked::of(state).is_empty() || !state.history_segments.iter().all(is_newer) {
            return None;
        }
        let in_history: u64 = state.history_segments.iter().map(HistorySegment::runs).sum();
        let total = self.total.saturating_add(usize::try_from(in_history).unwrap_or(usize::MAX));
        Some((page_of_keys.iter().map(|key| key.id).collect(), total))
    }
}

/// Keys in the order of the list.
struct Keys(Vec<ListKey>);

impl Source for Keys {
    fn count(&self) -> usize {
        self.0.len()
    }

    fn order(&self, index: usize) -> i64 {
        self.0[index].order
    }

    fn tie(&self, index: usize) -> (u64, RowId) {
        (self.0[index].tie, self.0[index].id)
    }
}

/// A row of a catalog.
pub(crate) struct CatalogRow {
    catalog: Arc<Catalog>,
    row: u32,
}

impl CatalogRow {
    pub(crate) fn row(&self) -> Row<'_> {
        self.catalog.row(self.row as usize)
    }

    fn located(&self) -> Located {
        let place = self.catalog.row(self.row as usize).place;
        (self.catalog.page(place).to_owned(), place)
    }
}

/// Rows of a catalog, newest first.
struct CatalogRows {
    catalog: Arc<Catalog>,
    /// `None` is all of them.
    rows: Option<Vec<u32>>,
}

impl CatalogRows {
    fn row(&self, index: usize) -> usize {
        self.rows.as_ref().map_or(index, |rows| rows[index] as usize)
    }
}

impl Source for CatalogRows {
    fn count(&self) -> usize {
        self.rows.as_ref().map_or(self.catalog.len(), Vec::len)
    }

    fn order(&self, index: usize) -> i64 {
        self.catalog.times()[self.row(index)]
    }

    fn tie(&self, index: usize) -> (u64, RowId) {
        (0, self.catalog.ids()[self.row(index)])
    }
}

#[boxed]
impl ControlPlane {
    /// One page of a workspace's records of a kind. `in_memory` are the keys of those that are wanted and in memory.
    pub(crate) async fn list_workspace(
        &self,
        org: OrganizationSnapshot,
        list: &WorkspaceList<'_>,
        in_memory: Vec<ListKey>,
        page: PageRequest,
    ) -> Result<ListedIds, Error> {
        let mut keys: Vec<(ListKey, Option<CatalogRow>)> = in_memory.into_iter().map(|key| (key, None)).collect();
        let historic = self.keys_in_history(&org, list).await?;
        keys.extend(historic.into_iter().map(|(key, row)| (key, Some(row))));
        let total = keys.len();
        keys.sort_by_key(|(key, _)| key.in_list());
        let wanted: Vec<_> = keys.into_iter().skip(page.skip()).take(page.size()).collect();
        let ids = wanted.iter().map(|(key, _)| key.id).collect();
        let places = wanted.iter().filter_map(|(_, row)| Some(row.as_ref()?.located())).collect();
        let org = self.with_places(org, places).await?;
        Ok(ListedIds { ids, total, org })
    }

    /// The keys of a workspace's records that are wanted and in history, in whatever order.
    pub(crate) async fn keys_in_history(
        &self,
        org: &OrganizationSnapshot,
        list: &WorkspaceList<'_>,
    ) -> Result<Vec<(ListKey, CatalogRow)>, Error> {
        let state = &org.state;
        if !state.workspace_histories.contains(&list.workspace) {
            return Ok(Vec::new());
        }
        let reader = self.history_of(org);
        let catalogs = reader.catalogs(state, list.kind.part()).await?;
        let texts = match list.searches_texts {
            true => reader.texts(state).await?,
            false => Vec::new(),
        };
        let masked = Masked::of(state);
        let mut keys = Vec::new();
        for (number, catalog) in catalogs.iter().enumerate() {
            for index in catalog.of_owner(&list.workspace.to_bytes()) {
                let row = catalog.row(index as usize);
                let text = texts.get(number).map_or("", |texts| texts.get(index as usize));
                if !masked.is_row(catalog, &row) && (list.fits)(&row, text) {
                    keys.push((list.kind.key(&row), CatalogRow { catalog: Arc::clone(catalog), row: index }));
                }
            }
        }
        Ok(keys)
    }

    /// One page of an organization's runs, newest first. `in_memory` are those that are wanted and in memory; `sees` tells
    /// whether the runs of a workspace are wanted, and is `None` where all of them are.
    pub(crate) async fn list_runs(
        &self,
        org: OrganizationSnapshot,
        filter: &RunFilter,
        site: &taco_domain::Site,
        sees: Option<&(dyn Fn(WorkspaceId) -> bool + Send + Sync)>,
        in_memory: InMemory,
        page: PageRequest,
    ) -> Result<ListedIds, Error> {
        let wants_all = sees.is_none() && filter.is_empty();
        if wants_all && let Some((ids, total)) = in_memory.newest_page(&org.state, page) {
            return Ok(ListedIds { ids, total, org });
        }
        let not_needed = in_memory.total - in_memory.first.len();
        let in_memory = Keys(in_memory.first);
        let historic = self.historic_runs(&org, filter, site, sees).await?;
        let mut sources: Vec<&dyn Source> = vec![&in_memory];
        sources.extend(historic.iter().map(|rows| rows as &dyn Source));
        let total = sources.iter().map(|source| source.count()).sum::<usize>() + not_needed;
        let wanted = select(&sources, page.skip(), page.size());
        let ids = wanted.iter().map(|(source, index)| sources[*source].tie(*index).1).collect();
        let place = |(source, index): (usize, usize)| {
            let rows = historic.get(source.checked_sub(1)?)?;
            let row = rows.catalog.row(rows.row(index));
            Some((rows.catalog.page(row.place).to_owned(), row.place))
        };
        let places = wanted.into_iter().filter_map(place).collect();
        let org = self.with_places(org, places).await?;
        Ok(ListedIds { ids, total, org })
    }

    async fn historic_runs(
        &self,
        org: &OrganizationSnapshot,
        filter: &RunFilter,
        site: &taco_domain::Site,
        sees: Option<&(dyn Fn(WorkspaceId) -> bool + Send + Sync)>,
    ) -> Result<Vec<CatalogRows>, Error> {
        let state = &org.state;
        if state.history_segments.is_empty() || filter.takes_nothing() {
            return Ok(Vec::new());
        }
        let reader = self.history_of(org);
        let catalogs = reader.catalogs(state, PartName::Runs).await?;
        let texts = match filter.searches_texts() {
            true => reader.texts(state).await?,
            false => Vec::new(),
        };
        let (masked, search) = (Masked::of(state), filter.text_search());
        let wants_all = sees.is_none() && filter.is_empty();
        let takes_every_workspace = sees.is_none() && filter.takes_every_workspace();
        // A workspace has rows in many catalogs.
        let known: RefCell<HashMap<RowId, bool>> = RefCell::default();
        let takes_owner = |owner: &RowId| {
            *known.borrow_mut().entry(*owner).or_insert_with(|| {
                let workspace = WorkspaceId::from_bytes(*owner).ok().and_then(|id| state.workspaces.get(&id));
                workspace.is_some_and(|workspace| {
                    sees.is_none_or(|sees| sees(workspace.id)) && filter.takes_workspace(state, workspace)
                })
            })
        };
        let rows_of = |(number, catalog): (usize, Arc<Catalog>)| {
            let is_masked = masked.concerns(&catalog);
            if wants_all && !is_masked {
                return CatalogRows { catalog, rows: None };
            }
            let mut rows = catalog.filter(&RowFilter {
                owner: if takes_every_workspace { None } else { Some(&takes_owner) },
                status: &|status| filter.takes_status(status),
                source: &|source| filter.takes_source(source),
                author: &|author| filter.takes_author(site, Author::spelled(author)),
                flags: &|flags| filter.takes_options(&super::rows::options_of(flags)),
                at: &|at| filter.takes_time(at),
            });
            if is_masked {
                rows.retain(|index| !masked.is_row(&catalog, &catalog.row(*index as usize)));
            }
            if let (Some(texts), Some(search)) = (texts.get(number), &search) {
                rows.retain(|index| search.finds(&catalog.ids()[*index as usize], texts.get(*index as usize)));
            }
            CatalogRows { catalog, rows: Some(rows) }
        };
        Ok(catalogs.into_iter().enumerate().map(rows_of).collect())
    }

    async fn with_places(
        &self,
        org: OrganizationSnapshot,
        places: Vec<Located>,
    ) -> Result<OrganizationSnapshot, Error> {
        if places.is_empty() {
            return Ok(org);
        }
        let bundles = self.history_of(&org).bundles(places).await?;
        Ok(org.with_bundles(bundles.iter().map(|(_, bundle)| &**bundle)))
    }
}
