//! Runs: start, list, read. What people decide about them is in `run_actions`; what agents do in `phases`.

pub(crate) mod dashboard;
pub(crate) mod load_samples;
pub(crate) mod log_id;
pub(crate) mod log_signals;
pub(crate) mod logs;
pub(crate) mod organization_load;
pub(crate) mod output_contracts;
pub(crate) mod phase_losses;
pub(crate) mod phase_tokens;
pub(crate) mod phase_uploads;
pub(crate) mod phases;
pub(crate) mod plan_files;
pub(crate) mod plans;
pub(crate) mod queue_lanes;
pub(crate) mod run_actions;
pub(crate) mod run_events;
pub(crate) mod run_filter;
pub(crate) mod run_flow;
pub(crate) mod run_links;
pub(crate) mod run_retries;
pub(crate) mod run_trends;
pub(crate) mod run_triggers;
pub(crate) mod uploaded_plans;
pub(crate) mod wait_notes;

use std::collections::HashMap;

use taco_boxed::boxed;
use taco_domain::OrganizationState;
use taco_domain::configuration_version::{ConfigurationStatus, ConfigurationVersion};
use taco_domain::id::{ConfigurationVersionId, RunId, WorkspaceId};
use taco_domain::new_run::NewRun;
use taco_domain::permission::{Action, Resource};
use taco_domain::run::{Run, RunSource, RunVariable};
use taco_domain::run_request::RunRequest;
use taco_domain::run_status::RunStatus;
use taco_domain::wait_reason::{WaitReason, new_run_waits, wait_reasons};
use taco_domain::workspace::Workspace;
use taco_tables::Record as _;

use crate::caller::Caller;
use crate::change::Tx;
use crate::control_plane::{ControlPlane, OrganizationSnapshot};
use crate::error::Error;
use crate::find::find;
use crate::history::{HistoricKind, InMemory, ListKey, ListedIds, ToChange, WorkspaceList};
use crate::page::{Listed, PageRequest};
use crate::presence::check_version;
use crate::run_filter::RunFilter;
use crate::run_flow::{put_run_and_follow_up, runs_refused};
use crate::workspace_view::{WorkspaceRef, WorkspaceView};

/// A run as a door shows it, with its workspace at the same moment.
#[derive(Clone)]
pub struct RunView {
    pub run: Run,
    pub workspace: Workspace,
    pub org: OrganizationSnapshot,
    /// The one who reads it. Without one, its log names no other workspaces.
    pub reader: Option<Caller>,
}

impl RunView {
    /// A run with the workspace that its organization has.
    pub(crate) fn of(org: OrganizationSnapshot, run: Run) -> Result<Self, Error> {
        let workspace = org.get::<Workspace>(&run.workspace)?.clone();
        Ok(Self { run, workspace, org, reader: None })
    }

    /// One page of these runs of an organization.
    pub(crate) fn page_of<'a>(
        org: &OrganizationSnapshot,
        runs: impl Iterator<Item = (&'a Run, &'a Workspace)>,
        page: PageRequest,
    ) -> Listed<Self> {
        let view = |(run, workspace): (&Run, &Workspace)| Self {
            run: run.clone(),
            workspace: workspace.clone(),
            org: org.clone(),
            reader: None,
        };
        Listed::from_all(runs, page).map(view)
    }

    /// For [`Caller::may`].
    pub fn resource(&self) -> Resource<'_> {
        Resource::Workspace(&self.org.state, &self.workspace)
    }

    /// Its workspace, at the same moment.
    pub fn workspace_view(&self) -> WorkspaceView {
        WorkspaceView { workspace: self.workspace.clone(), org: self.org.clone() }
    }

    /// The serial of its workspace's current state.
    pub fn current_serial(&self) -> Option<u64> {
        self.org.state.current_state_version(&self.workspace).map(|version| version.serial)
    }

    pub fn position_in_queue(&self) -> usize {
        self.org.state.position_in_queue(&self.run)
    }

    /// True if another run can be started with its configuration.
    pub fn configuration_is_usable(&self) -> bool {
        let configuration = self.org.state.configuration_versions.get(&self.run.configuration_version);
        configuration.is_some_and(|version| version.is_usable())
    }

    /// Looks again, and shows how things are now.
    pub async fn refresh(&mut self) -> Result<(), Error> {
        self.org.look().await?;
        self.org.state = self.org.last_seen();
        let state = &self.org.state;
        let run = state.runs.get(&self.run.id).cloned().ok_or(Error::NotFound(Run::NOUN))?;
        let workspace = state.workspaces.get(&run.workspace).cloned().ok_or(Error::NotFound(Run::NOUN))?;
        (self.run, self.workspace) = (run, workspace);
        Ok(())
    }

    /// The configuration that it plans.
    pub fn configuration(&self) -> Option<&ConfigurationVersion> {
        self.org.state.configuration_versions.get(&self.run.configuration_version)
    }
}

/// Workload of an organization.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Capacity {
    /// Runs that wait for their turn or for an agent.
    pub pending: usize,
    /// Phases that agents execute.
    pub running: usize,
}

#[boxed]
impl ControlPlane {
    /// Starts a run, or puts it into its workspace's queue.
    pub async fn create_run(&self, caller: &Caller, request: RunRequest, source: RunSource) -> Result<RunView, Error> {
        let workspace = request.workspace.ok_or_else(|| Error::Invalid {
            pointer: "/data/relationships/workspace".to_owned(),
            detail: "The workspace in which the run starts must be given".to_owned(),
        })?;
        let mut org = self.authorized_from_cache(caller, workspace.organization_prefix(), Workspace::NOUN).await?;
        let (id, now) = (RunId::within(workspace.organization_prefix(), self.random()), self.now());
        let seal = |sent: &taco_domain::run_request::SentRunVariable| RunVariable {
            key: sent.key.clone(),
            sealed: self.seal(&RunVariable::seal_name(id, &sent.key), &sent.value),
        };
        let variables: Vec<RunVariable> = request.variables.iter().flatten().map(seal).collect();
        let used = request.configuration_version;
        let used = used.map(|configuration| ToChange::new(configuration, Action::QueuePlan, Workspace::NOUN));
        let agents = self.presence().agents();
        let decide = move |tx: &mut Tx<'_>| {
            let owner = &tx.workspace_of::<Workspace>(&workspace, Action::QueuePlan)?;
            let (state, asker) = (tx.state(), tx.caller());
            let resource = Resource::Workspace(state, owner);
            state.check_runs_start(owner).map_err(runs_refused)?;
            let configuration = configuration_for(state, owner, request.configuration_version)?;
            let mut auto_apply = request.wants_auto_apply(owner, configuration);
            if auto_apply && request.auto_apply == Some(true) {
                tx.require::<Workspace>(Action::ApplyRun, resource)?;
            }
            // Where it is the workspace's default, a plan of someone who may not apply waits for someone who may.
            auto_apply &= asker.may(Action::ApplyRun, resource).allowed;
            let mut options = request.options(owner, configuration, auto_apply, default_message(source))?;
            check_version(options.engine, &options.terraform_version, &owner.terraform_version, &agents, state)?;
            options.variables.clone_from(&variables);
            let structured_output = owner.structured_run_output_enabled && source != RunSource::Terraform;
            let by = asker.author();
            let run = NewRun { id, configuration, options, source, structured_output, by, now }.into_run(state);
            put_run_and_follow_up(tx, run, now)
        };
        let run = match used {
            Some(used) => self.change_restored(caller, &mut org, used, "run.create", decide).await?,
            None => org.change(caller, "run.create", now, decide).await?,
        };
        RunView::of(org, run)
    }

    /// Reason why the caller cannot start a run of the newest configuration in a workspace; `None` if they can.
    pub fn new_run_refusal(&self, caller: &Caller, view: &WorkspaceView) -> Option<String> {
        let right = caller.may(Action::QueuePlan, view.resource());
        if !right.allowed {
            return Some(right.reason.into_owned());
        }
        let state = &view.org.state;
        let checked = state.check_runs_start(&view.workspace).map_err(runs_refused);
        checked
            .and_then(|()| configuration_for(state, &view.workspace, None).map(|_| ()))
            .err()
            .map(|why| why.to_string())
    }

    /// Reasons why a run that starts now would wait for its turn, unless it only plans.
    pub fn new_run_waits(&self, view: &WorkspaceView) -> Vec<WaitReason> {
        new_run_waits(&view.org.state, &view.workspace)
    }

    pub async fn run(&self, caller: &Caller, id: RunId) -> Result<RunView, Error> {
        let org = self.authorized_organization(caller, id.organization_prefix(), Run::NOUN).await?;
        let org = self.with_history(org, id).await?;
        let run = find::<Run, _>(&*org.state, &id, Run::NOUN)?.clone();
        let workspace = find::<Workspace, _>(&*org.state, &run.workspace, Run::NOUN)?.clone();
        let view = RunView { run, workspace, org, reader: Some(caller.clone()) };
        caller.require(Action::ReadRuns, view.resource(), Run::NOUN)?;
        Ok(view)
    }

    /// A workspace's runs, newest first.
    pub async fn workspace_runs(
        &self,
        caller: &Caller,
        workspace: &WorkspaceRef,
        filter: &RunFilter,
        page: PageRequest,
    ) -> Result<Listed<RunView>, Error> {
        let WorkspaceView { workspace, org } = self.workspace_with_runs(caller, workspace).await?;
        let state = org.state.clone();
        let wanted = |run: &&Run| filter.takes(&state, &caller.site, &workspace, run);
        let in_memory = state.runs_of(workspace.id).filter(wanted);
        let in_memory = in_memory.map(|run| ListKey::by_number(run.number, run.id.to_bytes())).collect();
        let takes_all = filter.is_empty();
        let list = WorkspaceList {
            workspace: workspace.id,
            kind: HistoricKind::Runs,
            fits: &|row, text| takes_all || filter.takes_row(&state, &caller.site, &workspace, row, text),
            searches_texts: filter.searches_texts(),
        };
        let listed = self.list_workspace(org, &list, in_memory, page).await?;
        Ok(views(&listed, page))
    }

    /// The runs of an organization that the caller may see, newest first.
    pub async fn organization_runs(
        &self,
        caller: &Caller,
        organization: &str,
        filter: &RunFilter,
        page: PageRequest,
    ) -> Result<Listed<RunView>, Error> {
        let org = self.organization_named(caller, organization).await?;
        let state = org.state.clone();
        let mut sight = VisibleWorkspaces::new(caller, &state);
        let newest_first = state.runs.by().newest.iter();
        let key = |run: &Run| ListKey::by_time(run.created_at, run.id.to_bytes());
        let in_memory = if sight.sees_all && filter.is_empty() {
            let before_end = page.skip().saturating_add(page.size());
            InMemory { first: newest_first.take(before_end).map(key).collect(), total: state.runs.len() }
        } else {
            let wanted = newest_first.filter(|run| {
                let fits = |workspace: &Workspace| filter.takes(&state, &caller.site, workspace, run);
                sight.of(run).is_some_and(fits)
            });
            let first: Vec<_> = wanted.map(key).collect();
            InMemory { total: first.len(), first }
        };
        let sees = |id: WorkspaceId| {
            let workspace = state.workspaces.get(&id);
            workspace
                .is_some_and(|workspace| caller.may(Action::ReadRuns, Resource::Workspace(&state, workspace)).allowed)
        };
        let sees: Option<&(dyn Fn(WorkspaceId) -> bool + Send + Sync)> =
            if sight.sees_all { None } else { Some(&sees) };
        let listed = self.list_runs(org, filter, &caller.site, sees, in_memory, page).await?;
        Ok(views(&listed, page))
    }

    /// Queue of runs that agents execute or that wait for one, in order, as far as the caller may see them.
    pub async fn run_queue(
        &self,
        caller: &Caller,
        organization: &str,
        page: PageRequest,
    ) -> Result<Listed<RunView>, Error> {
        let org = self.organization_named(caller, organization).await?;
        let state = &org.state;
        let mut sight = VisibleWorkspaces::new(caller, state);
        let seen = state.run_queue().filter_map(|run| sight.of(run).map(|workspace| (run, workspace)));
        Ok(RunView::page_of(&org, seen, page))
    }

    /// Workload of an organization.
    pub async fn capacity(&self, caller: &Caller, organization: &str) -> Result<Capacity, Error> {
        let org = self.organization_named(caller, organization).await?;
        let runs = &org.state.runs;
        let open_runs = runs.by().open.iter();
        let waits = |run: &&Run| matches!(run.status, RunStatus::Pending | RunStatus::Confirmed);
        let pending = open_runs.filter(|run| waits(run) || run.queued_phase().is_some()).count();
        Ok(Capacity { pending, running: runs.by().executing.iter().count() })
    }

    /// Reasons why a run waits; empty for one that is in progress or over.
    pub fn wait_reasons(&self, view: &RunView) -> Vec<WaitReason> {
        wait_reasons(&view.org.state, &view.workspace, &view.run, &self.presence().agents())
    }

    /// A run's own variables as they were sent, for those who may see variables.
    pub fn run_variables(&self, caller: &Caller, view: &RunView) -> Result<Vec<(String, String)>, Error> {
        let variables = &view.run.options.variables;
        if variables.is_empty() || !caller.may(Action::ReadVariables, view.resource()).allowed {
            return Ok(Vec::new());
        }
        let opened = variables.iter().map(|variable| {
            let value = self.unseal(&RunVariable::seal_name(view.run.id, &variable.key), &variable.sealed)?;
            Ok((variable.key.clone(), value))
        });
        opened.collect()
    }
}

/// The runs on one page of a list.
fn views(listed: &ListedIds, page: PageRequest) -> Listed<RunView> {
    let org = &listed.org;
    let view = |id: &[u8; 16]| {
        let run = org.state.runs.get(&RunId::from_bytes(*id).ok()?)?;
        let workspace = org.state.workspaces.get(&run.workspace)?;
        Some(RunView { run: run.clone(), workspace: workspace.clone(), org: org.clone(), reader: None })
    };
    Listed { items: listed.ids.iter().filter_map(view).collect(), page, total: listed.total }
}

/// Workspaces that a caller may see, each checked once.
pub(crate) struct VisibleWorkspaces<'a> {
    caller: &'a Caller,
    state: &'a OrganizationState,
    /// Their rights are such that they see every workspace.
    sees_all: bool,
    known: HashMap<WorkspaceId, bool>,
}

impl<'a> VisibleWorkspaces<'a> {
    pub(crate) fn new(caller: &'a Caller, state: &'a OrganizationState) -> Self {
        Self { caller, state, sees_all: caller.reads_all_runs(state), known: HashMap::new() }
    }

    /// The run's workspace, if the caller may see it.
    pub(crate) fn of(&mut self, run: &Run) -> Option<&'a Workspace> {
        let workspace = self.state.workspaces.get(&run.workspace)?;
        if self.sees_all {
            return Some(workspace);
        }
        let (caller, state) = (self.caller, self.state);
        let seen = self
            .known
            .entry(workspace.id)
            .or_insert_with(|| caller.may(Action::ReadRuns, Resource::Workspace(state, workspace)).allowed);
        seen.then_some(workspace)
    }
}

/// The configuration that a request names, or the newest that can be used.
pub(crate) fn configuration_for<'a>(
    state: &'a OrganizationState,
    workspace: &Workspace,
    wanted: Option<ConfigurationVersionId>,
) -> Result<&'a ConfigurationVersion, Error> {
    let refuse = |detail: String| {
        Err(Error::Invalid { pointer: "/data/relationships/configuration-version".to_owned(), detail })
    };
    let Some(id) = wanted else {
        return match state.usable_configuration(workspace.id) {
            Some(newest) => Ok(newest),
            None => refuse("The workspace has no configuration yet: upload one first".to_owned()),
        };
    };
    let named = state.configuration_versions.get(&id).filter(|version| version.workspace == workspace.id);
    let Some(version) = named else {
        return refuse(format!("The configuration version {id} does not exist in this workspace"));
    };
    match version.status {
        ConfigurationStatus::Uploaded => Ok(version),
        ConfigurationStatus::Pending => {
            refuse(format!("The configuration version {id} is pending: upload its archive first"))
        }
        ConfigurationStatus::Errored => {
            let why = version.error_message.as_deref().unwrap_or("its archive could not be used");
            refuse(format!("The configuration version {id} is errored: {why}"))
        }
        ConfigurationStatus::Archived
        | ConfigurationStatus::BackingDataSoftDeleted
        | ConfigurationStatus::BackingDataPermanentlyDeleted => {
            refuse(format!("The archive of the configuration version {id} is gone: upload it again"))
        }
    }
}

fn default_message(source: RunSource) -> &'static str {
    match source {
        RunSource::Terraform | RunSource::Cloud => "Started from the command line",
        RunSource::Page => "Started on the web",
        RunSource::Api | RunSource::ConfigurationVersion | RunSource::RunTrigger => "Started with the API",
    }
}
