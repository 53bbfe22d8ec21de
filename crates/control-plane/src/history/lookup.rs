//! Finding single records that left memory.

use std::sync::Arc;

use taco_boxed::boxed;
use taco_domain::id::{CommentId, ConfigurationVersionId, OutputId, RunEventId, RunId, StateVersionId};
use taco_domain::task_result::TaskResultId;
use taco_domain::task_stage::TaskStageId;
use taco_history::{Catalog, IdIndex, RowId};
use taco_tables::LooseRecords;

use super::parts::{HistoryReader, Located, PartName};
use super::rows::Masked;
use crate::control_plane::{ControlPlane, OrganizationSnapshot};
use crate::error::Error;

/// Something that may have left memory.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum HistoricId {
    Run(RunId),
    StateVersion(StateVersionId),
    ConfigurationVersion(ConfigurationVersionId),
    Comment(CommentId),
    Output(OutputId),
    Event(RunEventId),
    Stage(TaskStageId),
    Result(TaskResultId),
}

macro_rules! historic {
    ($($kind:ident($id:ty);)*) => {
        $(impl From<$id> for HistoricId {
            fn from(id: $id) -> Self {
                Self::$kind(id)
            }
        })*
    };
}

historic! {
    Run(RunId);
    StateVersion(StateVersionId);
    ConfigurationVersion(ConfigurationVersionId);
    Comment(CommentId);
    Output(OutputId);
    Event(RunEventId);
    Stage(TaskStageId);
    Result(TaskResultId);
}

impl HistoricId {
    pub(super) fn is_in_memory(self, org: &OrganizationSnapshot) -> bool {
        let state = &org.state;
        match self {
            Self::Run(id) => state.runs.contains(&id),
            Self::StateVersion(id) => state.state_versions.contains(&id),
            Self::ConfigurationVersion(id) => state.configuration_versions.contains(&id),
            Self::Comment(id) => state.comments.contains(&id),
            Self::Output(id) => state.state_versions.by().output.first(&id).is_some(),
            Self::Event(id) => state.run_with_event(id).is_some(),
            Self::Stage(id) => state.run_with_stage(id).is_some(),
            Self::Result(id) => state.place_of_result(id).is_some(),
        }
    }
}

#[boxed]
impl ControlPlane {
    /// The organization with this record in its place, should it have left memory, and all that left with it. If it is
    /// nowhere, the organization is as it was, and whoever looks finds nothing.
    pub(crate) async fn with_history(
        &self,
        org: OrganizationSnapshot,
        id: impl Into<HistoricId> + Send,
    ) -> Result<OrganizationSnapshot, Error> {
        let id = id.into();
        if org.state.history_segments.is_empty() || id.is_in_memory(&org) {
            return Ok(org);
        }
        let Some((_, bundle)) = self.historic_bundle(&org, id).await? else { return Ok(org) };
        let mut org = org.with_bundles([&*bundle]);
        // The configuration of a run may have left with another run.
        let configuration = match id {
            HistoricId::Run(run) => org.state.runs.get(&run).map(|run| run.configuration_version),
            _ => None,
        };
        if let Some(id) = configuration.filter(|id| !org.state.configuration_versions.contains(id))
            && let Some((_, bundle)) = self.historic_bundle(&org, id.into()).await?
        {
            org = org.with_bundles([&*bundle]);
        }
        Ok(org)
    }

    /// The bundle that has this record.
    pub(super) async fn historic_bundle(
        &self,
        org: &OrganizationSnapshot,
        id: HistoricId,
    ) -> Result<Option<(Located, Arc<LooseRecords>)>, Error> {
        let Some(located) = self.locate(org, id).await? else { return Ok(None) };
        Ok(self.history_of(org).bundles(vec![located]).await?.pop())
    }

    async fn locate(&self, org: &OrganizationSnapshot, id: HistoricId) -> Result<Option<Located>, Error> {
        let (reader, state) = (self.history_of(org), &org.state);
        let masked = Masked::of(state);
        let in_catalogs = |catalogs: Vec<Arc<Catalog>>, is_wanted: &dyn Fn(&RowId) -> bool| {
            let found = |catalog: &Arc<Catalog>| {
                let rows = catalog.ids().iter().enumerate().filter(|(_, id)| is_wanted(id));
                let row = rows.map(|(index, _)| catalog.row(index)).find(|row| !masked.is_row(catalog, row))?;
                Some((catalog.page(row.place).to_owned(), row.place))
            };
            catalogs.iter().find_map(found)
        };
        let in_indexes = |indexes: Vec<Arc<IdIndex>>, id: RowId| {
            let found = indexes.iter().filter_map(|index| index.find(&id));
            let mut counting = found.filter(|(page, place)| !masked.is_place(page, *place));
            counting.next().map(|(page, place)| (page.to_owned(), place))
        };
        // Ids of a run's parts are its own, turned.
        let of_part = |part: RowId, catalogs: Vec<Arc<Catalog>>| {
            let is_wanted = |run: &RowId| RunId::from_bytes(*run).is_ok_and(|run| run.could_have_part(part));
            in_catalogs(catalogs, &is_wanted)
        };
        let same = |id: RowId| move |other: &RowId| *other == id;
        Ok(match id {
            HistoricId::Run(id) => in_catalogs(reader.catalogs(state, PartName::Runs).await?, &same(id.to_bytes())),
            HistoricId::StateVersion(id) => {
                in_catalogs(reader.catalogs(state, PartName::StateVersions).await?, &same(id.to_bytes()))
            }
            HistoricId::ConfigurationVersion(id) => {
                in_catalogs(reader.catalogs(state, PartName::ConfigurationVersions).await?, &same(id.to_bytes()))
            }
            HistoricId::Event(id) => of_part(id.to_bytes(), reader.catalogs(state, PartName::Runs).await?),
            HistoricId::Stage(id) => of_part(id.to_bytes(), reader.catalogs(state, PartName::Runs).await?),
            HistoricId::Result(id) => of_part(id.to_bytes(), reader.catalogs(state, PartName::Runs).await?),
            HistoricId::Comment(id) => in_indexes(reader.indexes(state, PartName::Comments).await?, id.to_bytes()),
            HistoricId::Output(id) => in_indexes(reader.indexes(state, PartName::Outputs).await?, id.to_bytes()),
        })
    }

    pub(super) fn history_of<'a>(&'a self, org: &'a OrganizationSnapshot) -> HistoryReader<'a> {
        HistoryReader { bucket: self.bucket(), ledger: org.ledger.name(), cache: &self.shared.history }
    }
}

impl OrganizationSnapshot {
    /// The same organization with the records of these bundles in their places.
    pub(super) fn with_bundles<'a>(mut self, bundles: impl IntoIterator<Item = &'a LooseRecords>) -> Self {
        self.state = self.state.with(bundles);
        self
    }
}
