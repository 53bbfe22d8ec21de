//! Search over everything in an organization that a caller may see.

use taco_boxed::boxed;
use taco_domain::agent_pool::AgentPool;
use taco_domain::id::RunId;
use taco_domain::permission::{Action, Resource};
use taco_domain::project::Project;
use taco_domain::search::Query;
use taco_domain::team::Team;
use taco_domain::variable_set::VariableSet;

use crate::caller::Caller;
use crate::control_plane::{ControlPlane, OrganizationSnapshot};
use crate::error::Error;
use crate::runs::{RunView, VisibleWorkspaces};
use crate::teams::KnownTeams;
use crate::variable_sets;
use crate::workspace_view::WorkspaceView;

/// Of so many of the newest runs the messages are searched; any run is found by its id.
const SEARCHED_RUNS: usize = 500;

/// Results of a search, the best of each kind first.
#[derive(Clone)]
pub struct Found {
    pub org: OrganizationSnapshot,
    pub workspaces: Vec<WorkspaceView>,
    pub projects: Vec<Project>,
    pub variable_sets: Vec<VariableSet>,
    pub agent_pools: Vec<AgentPool>,
    pub teams: Vec<Team>,
    pub runs: Vec<RunView>,
}

#[boxed]
impl ControlPlane {
    /// What fits the query in an organization, up to `limit` of each kind. Ids find what they name.
    pub async fn search(&self, caller: &Caller, organization: &str, typed: &str, limit: usize) -> Result<Found, Error> {
        let org = self.organization_named(caller, organization).await?;
        let mut found = in_organization(caller, &org, &Query::new(typed), limit);
        if let Ok(id) = typed.trim().parse::<RunId>()
            && id.organization_prefix() == org.id().organization_prefix()
            && let Ok(run) = self.run(caller, id).await
        {
            found.runs.insert(0, run);
        }
        Ok(found)
    }
}

fn in_organization(caller: &Caller, org: &OrganizationSnapshot, query: &Query, limit: usize) -> Found {
    let state = &*org.state;
    let may = |action| caller.may(action, org.resource()).allowed;
    let sees_all = may(Action::ReadWorkspace);
    let workspaces = query.best(
        state.workspaces.iter(),
        |workspace| workspace.name.as_str(),
        |workspace| sees_all || caller.may(Action::ReadWorkspace, Resource::Workspace(state, workspace)).allowed,
        limit,
    );
    let projects = query.best(
        state.projects.iter(),
        |project| project.name.as_str(),
        |project| caller.may(Action::ReadProject, Resource::Project(state, project)).allowed,
        limit,
    );
    let variable_sets = query.best(
        state.variable_sets.iter(),
        |set| set.name.as_str(),
        |set| variable_sets::may_read(caller, state, set),
        limit,
    );
    let reads_directory = may(Action::ReadDirectory);
    let agent_pools = query.best(state.agent_pools.iter(), |pool| pool.name.as_str(), |_| reads_directory, limit);
    let known = KnownTeams::of(caller, state);
    let sees_team = |team: &Team| reads_directory && known.contains(state, &team.id);
    let teams = query.best(state.teams.iter(), |team| team.name.as_str(), sees_team, limit);
    Found {
        workspaces: workspaces
            .into_iter()
            .map(|workspace| WorkspaceView { workspace: workspace.clone(), org: org.clone() })
            .collect(),
        projects: projects.into_iter().cloned().collect(),
        variable_sets: variable_sets.into_iter().cloned().collect(),
        agent_pools: agent_pools.into_iter().cloned().collect(),
        teams: teams.into_iter().cloned().collect(),
        runs: runs(caller, org, query, limit),
        org: org.clone(),
    }
}

/// The newest whose messages fit, newest first.
fn runs(caller: &Caller, org: &OrganizationSnapshot, query: &Query, limit: usize) -> Vec<RunView> {
    let mut sight = VisibleWorkspaces::new(caller, &org.state);
    let newest = org.state.runs.by().newest.iter().take(SEARCHED_RUNS);
    let fitting = newest.filter(|run| query.rank(&run.options.message).is_some());
    let seen = fitting.filter_map(|run| Some((run, sight.of(run)?)));
    let view = |(run, workspace): (&taco_domain::run::Run, &taco_domain::workspace::Workspace)| RunView {
        run: run.clone(),
        workspace: workspace.clone(),
        org: org.clone(),
        reader: None,
    };
    seen.take(limit).map(view).collect()
}
