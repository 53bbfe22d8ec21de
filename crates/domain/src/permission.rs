//! Permissions: one function, [`allow`], and one table, [`RULES`].
//!
//! Rights add up, and nothing takes one away: those of a site admin, of an owner, and of teams in the organization, in
//! the project and in the workspace. Each action is one row of the table; a new action does not work without one.

mod access;
mod rules;

use std::borrow::Cow;

use jiff::SignedDuration;

use crate::author::Author;
use crate::id::{AgentPoolId, OrganizationId, RunId, TeamId, UserId, WorkspaceId};
use crate::organization_state::OrganizationState;
use crate::phase::PhaseKind;
use crate::project::Project;
use crate::run_tasks::task_result::TaskResultId;
use crate::team::{OrganizationAccess, Team};
use crate::team_access::{ProjectRights, TeamProject, WorkspaceRights};
use crate::token::TokenKind;
use crate::workspace::Workspace;
use rules::{RULES, Rule};

pub use access::{Access, Case, Place};

/// Caller of an action.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Actor {
    Anonymous,
    User {
        id: UserId,
        site_admin: bool,
        by: Credential,
    },
    /// A team's token.
    Team {
        organization: OrganizationId,
        team: TeamId,
        /// It comes from the organization's token, and so may do no more than that may, regardless of the team's
        /// rights.
        from_organization: bool,
    },
    /// An organization's token.
    Organization(OrganizationId),
    /// A token that reads an organization's audit trail and nothing else.
    AuditTrail(OrganizationId),
    /// An agent. It works through its own door; here it may do nothing.
    AgentPool {
        organization: OrganizationId,
        pool: AgentPoolId,
    },
    /// Code inside a run, in any of its phases. It is somebody's code, so it reads and changes nothing.
    Run {
        organization: OrganizationId,
        run: RunId,
        workspace: WorkspaceId,
    },
    /// The agent that executes a phase of a run, at the agents' door: with the same token it is a
    /// [`Run`](Self::Run) everywhere else.
    Attempt {
        organization: OrganizationId,
        run: RunId,
        workspace: WorkspaceId,
        phase: PhaseKind,
    },
    /// A run task that is asked about a run. It reads that run's plan and configuration, and writes its own result; that
    /// the run is the one it is asked about, whoever shows these has to see to.
    RunTask {
        organization: OrganizationId,
        run: RunId,
        workspace: WorkspaceId,
        result: TaskResultId,
    },
    /// Taco itself.
    Taco,
}

/// Credential with which a user logged in.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Credential {
    /// A token that lives so long; `None` for one without an end.
    Token {
        life: Option<SignedDuration>,
    },
    Session,
}

impl Actor {
    /// Author for records and the audit trail.
    pub fn author(&self) -> Author {
        match *self {
            Self::User { id, .. } => Author::User(id),
            Self::Team { team, .. } => Author::Team(team),
            Self::Organization(id) | Self::AuditTrail(id) => Author::Organization(id),
            Self::AgentPool { pool, .. } => Author::AgentPool(pool),
            Self::Run { run, .. } | Self::Attempt { run, .. } | Self::RunTask { run, .. } => Author::Run(run),
            Self::Anonymous | Self::Taco => Author::Taco,
        }
    }

    /// True for the organization's token, or one that comes from it.
    pub fn is_from_organization(&self) -> bool {
        matches!(self, Self::Organization(_) | Self::Team { from_organization: true, .. })
    }

    /// The organization that it cannot leave.
    fn organization(&self) -> Option<OrganizationId> {
        match *self {
            Self::Team { organization, .. }
            | Self::Organization(organization)
            | Self::AuditTrail(organization)
            | Self::AgentPool { organization, .. }
            | Self::Run { organization, .. }
            | Self::Attempt { organization, .. }
            | Self::RunTask { organization, .. } => Some(organization),
            Self::Anonymous | Self::User { .. } | Self::Taco => None,
        }
    }
}

/// To what something is done.
#[derive(Clone, Copy)]
pub enum Resource<'a> {
    Site,
    /// A user's account, tokens and sessions.
    Account(UserId),
    Organization(&'a OrganizationState),
    Project(&'a OrganizationState, &'a Project),
    Workspace(&'a OrganizationState, &'a Workspace),
}

/// Lists the actions once, so that the test of the table can walk over all.
macro_rules! actions {
    ($($(#[$attribute:meta])* $name:ident,)*) => {
        #[derive(Clone, Copy, PartialEq, Eq, Debug)]
        pub enum Action {
            $($(#[$attribute])* $name,)*
        }

        impl Action {
            pub const ALL: &'static [Self] = &[$(Self::$name,)*];
        }
    };
}

actions! {
    /// Users, settings and everything else that concerns all organizations.
    ManageSite,
    CreateOrganization,
    ReadAccount,
    /// Profile, password, tokens and sessions.
    UpdateAccount,

    ReadOrganization,
    /// Members, teams, agent pools, agents, SSH keys: who and what there is, which no run needs.
    ReadDirectory,
    UpdateOrganization,
    DeleteOrganization,
    ManageOrganizationToken,
    ReadAuditTrail,
    ManageMembership,
    /// Membership in the team that may do everything.
    ManageOwners,
    ManageTeams,
    ManageOrganizationAccess,
    /// SSH keys and connections to version control.
    ManageVcsSettings,
    ManageAgentPools,
    ManageRunTasks,
    ManagePolicies,
    /// Lets runs go on that mandatory policies have stopped.
    OverridePolicies,
    ManageModules,
    ManageProviders,
    DownloadModules,
    CreateProject,
    /// Variable sets that the organization owns, wherever they apply.
    ReadVariableSets,
    ManageVariableSets,

    ReadProject,
    UpdateProject,
    DeleteProject,
    ManageProjectTeams,
    ReadProjectVariableSets,
    WriteProjectVariableSets,
    CreateWorkspace,

    /// Find it, with its settings.
    ReadWorkspace,
    /// Its runs and their logs, its configurations, and all else that belongs to it.
    ReadRuns,
    ReadWorkspaceTeams,
    UpdateWorkspace,
    DeleteWorkspace,
    MoveWorkspace,
    ManageWorkspaceTeams,
    /// Plans, speculative or not; comments; configurations.
    QueuePlan,
    /// The archive of a configuration.
    DownloadConfiguration,
    /// Confirm, discard, cancel.
    ApplyRun,
    ForceCancelRun,
    /// The whole plan, which holds values of sensitive variables.
    ReadWholePlan,
    ReadVariables,
    WriteVariables,
    ReadOutputs,
    /// The whole state, and values of sensitive outputs.
    ReadState,
    WriteState,
    /// Delete what cannot be restored.
    DeleteStateForGood,
    /// Lock, and unlock one's own.
    LockWorkspace,
    ForceUnlockWorkspace,
    ManageNotifications,
    AttachRunTasks,
}

/// All that one source of rights gives, for one resource.
#[derive(Clone, Copy, Default)]
struct Rights {
    /// Site admins and owners.
    everything: bool,
    organization: OrganizationAccess,
    project: ProjectRights,
    workspace: WorkspaceRights,
}

/// The answer, and why.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Decision {
    pub allowed: bool,
    /// A sentence to show. It may name teams and roles of the caller's organization, so where [`Self::visible`] is
    /// false only the log gets it.
    pub reason: Cow<'static, str>,
    /// True if the caller may know that the thing exists.
    pub visible: bool,
    /// True if the organization accepts this kind of credential at all. If not, the caller counts as not logged in.
    pub credential_accepted: bool,
}

impl Decision {
    fn allowed(reason: impl Into<Cow<'static, str>>) -> Self {
        Self { allowed: true, reason: reason.into(), visible: true, credential_accepted: true }
    }

    fn denied(reason: impl Into<Cow<'static, str>>, visible: bool) -> Self {
        Self { allowed: false, reason: reason.into(), visible, credential_accepted: true }
    }

    /// The same decision, unless something other than permission stands in the way.
    pub fn unless(self, obstacle: Option<impl Into<Cow<'static, str>>>) -> Self {
        match obstacle {
            Some(reason) if self.allowed => Self::denied(reason, true),
            _ => self,
        }
    }
}

/// Decides whether `actor` may do `action` to `resource`.
pub fn allow(actor: &Actor, action: Action, resource: Resource<'_>) -> Decision {
    let Some(rule) = RULES.iter().find(|rule| rule.action == action) else {
        return Decision::denied("Nobody may do this: it has no rule", false);
    };
    if *actor == Actor::Taco {
        return Decision::allowed("Taco does it by itself");
    }
    match resource {
        Resource::Site => allow_on_site(actor, rule),
        Resource::Account(user) => allow_on_account(actor, rule, user),
        Resource::Organization(state) => Within { state, project: None, workspace: None }.allow(actor, rule),
        Resource::Project(state, project) => {
            Within { state, project: Some(project), workspace: None }.allow(actor, rule)
        }
        Resource::Workspace(state, workspace) => {
            let project = state.projects.get(&workspace.project);
            Within { state, project, workspace: Some(workspace) }.allow(actor, rule)
        }
    }
}

fn allow_on_site(actor: &Actor, rule: &Rule) -> Decision {
    match (actor, rule.action) {
        (Actor::User { site_admin: true, .. }, _) => Decision::allowed("You are a site admin"),
        (Actor::User { .. }, Action::CreateOrganization) => Decision::allowed("Every user may"),
        (Actor::Anonymous, _) => Decision::denied(refusal(rule, "you are not logged in"), false),
        _ => Decision::denied(refusal(rule, "you have none"), false),
    }
}

fn allow_on_account(actor: &Actor, rule: &Rule, user: UserId) -> Decision {
    match actor {
        Actor::User { id, .. } if *id == user => Decision::allowed("It is your account"),
        Actor::User { site_admin: true, .. } => Decision::allowed("You are a site admin"),
        _ => Decision::denied(refusal(rule, "you are not"), false),
    }
}

fn refusal(rule: &Rule, have: &str) -> String {
    format!("You may not {}: that takes {}, and {have}", rule.words, rule.takes)
}

/// A place in an organization.
#[derive(Clone, Copy)]
struct Within<'a> {
    state: &'a OrganizationState,
    project: Option<&'a Project>,
    workspace: Option<&'a Workspace>,
}

/// Source of a right, for the reason.
#[derive(Clone, Copy)]
enum Source<'a> {
    SiteAdmin,
    Owner,
    OrganizationAccess(&'a Team),
    Project(&'a Team, crate::team_access::ProjectRole),
    Workspace(&'a Team, crate::team_access::WorkspaceRole),
}

impl Source<'_> {
    fn in_words(self) -> String {
        match self {
            Self::SiteAdmin => "You are a site admin".to_owned(),
            Self::Owner => "You are an owner of the organization".to_owned(),
            Self::OrganizationAccess(team) => format!("Team {} has rights in the whole organization", team.name),
            Self::Project(team, role) => format!("Team {} has {role} access to the project", team.name),
            Self::Workspace(team, role) => format!("Team {} has {role} access to the workspace", team.name),
        }
    }
}

impl<'a> Within<'a> {
    fn allow(self, actor: &Actor, rule: &Rule) -> Decision {
        let Some(organization) = self.state.organization() else {
            return Decision::denied("The organization does not exist", false);
        };
        if actor.organization().is_some_and(|own| own != organization.id) {
            return Decision::denied(refusal(rule, "the token belongs to another organization"), false);
        }
        match actor {
            Actor::User { by: Credential::Token { .. }, .. } if !organization.user_tokens_enabled => Decision {
                credential_accepted: false,
                ..Decision::denied("The organization does not allow personal access tokens: use a team token", false)
            },
            Actor::User { by: Credential::Token { life: Some(life) }, .. }
                if organization.longest_life(TokenKind::User).is_some_and(|longest| *life > longest) =>
            {
                let reason =
                    "Your token is valid for longer than the organization allows: create one that expires sooner";
                Decision { credential_accepted: false, ..Decision::denied(reason, false) }
            }
            Actor::User { .. } => self.allow_by_teams(rule, actor),
            Actor::Team { from_organization: true, .. } if !rule.organization_token => Decision::denied(
                format!("You may not {}: the token comes from the organization's token, which never may", rule.words),
                self.allow_by_teams(rule, actor).visible,
            ),
            Actor::Team { .. } => self.allow_by_teams(rule, actor),
            Actor::Organization(_) if rule.organization_token => Decision::allowed("The organization's token may"),
            Actor::Organization(_) => {
                Decision::denied(format!("You may not {}: an organization's token never may", rule.words), true)
            }
            Actor::AuditTrail(_) if rule.action == Action::ReadAuditTrail => {
                Decision::allowed("The token is for the audit trail")
            }
            Actor::Attempt { workspace, phase: PhaseKind::Apply, .. }
                if rule.apply_agent && self.workspace.is_some_and(|named| named.id == *workspace) =>
            {
                Decision::allowed("The agent of an apply sends the state that the apply leaves")
            }
            Actor::Run { workspace, .. } | Actor::Attempt { workspace, .. } => self.allow_run(rule, workspace),
            Actor::RunTask { workspace, .. }
                if rule.run_task && self.workspace.is_some_and(|named| named.id == *workspace) =>
            {
                Decision::allowed("The task is asked about this run")
            }
            Actor::AuditTrail(_) | Actor::AgentPool { .. } | Actor::RunTask { .. } | Actor::Anonymous | Actor::Taco => {
                Decision::denied(refusal(rule, "this token is for something else"), false)
            }
        }
    }

    fn allow_run(self, rule: &Rule, own: &WorkspaceId) -> Decision {
        let Some(workspace) = self.workspace else {
            // Not in a workspace at all: the organization itself, for instance to download a module.
            let allowed = rule.own_run && self.project.is_none();
            let reason =
                if allowed { "The run belongs to the organization".into() } else { refusal(rule, "you are a run") };
            return Decision { allowed, ..Decision::denied(reason, allowed) };
        };
        if workspace.id == *own {
            return if rule.own_run {
                Decision::allowed("It is the run's own workspace")
            } else {
                Decision::denied(refusal(rule, "a run has none"), true)
            };
        }
        let shared = self.state.workspaces.get(own).is_some_and(|own| workspace.shares_state_with(own));
        match (shared, rule.consumer_run) {
            (true, true) => Decision::allowed("The workspace shares its state with the run's"),
            (true, false) => Decision::denied(refusal(rule, "sharing the state does not give it"), true),
            (false, _) => {
                Decision::denied(refusal(rule, "the workspace does not share its state with the run's"), false)
            }
        }
    }

    fn allow_by_teams(self, rule: &Rule, actor: &Actor) -> Decision {
        let (site_admin, member, teams) = match actor {
            Actor::User { id, site_admin, .. } => match self.state.membership_of(id) {
                Some(membership) => (*site_admin, true, membership.teams.iter().collect()),
                None => (*site_admin, false, Vec::new()),
            },
            Actor::Team { team, .. } => (false, true, vec![team]),
            _ => (false, false, Vec::new()),
        };
        let mut visible = member && self.project.is_none() && self.workspace.is_none();
        if rule.member && member {
            return Decision::allowed("You are a member of the organization");
        }
        let teams: Vec<&Team> = teams.into_iter().filter_map(|team| self.state.teams.get(team)).collect();
        for (rights, source) in self.rights_of(site_admin, &teams) {
            if (rights.everything && passes_everything(rule.action)) || (rule.granted)(&rights) {
                return Decision::allowed(source.in_words());
            }
            visible |= rights.everything || self.shows(&rights);
        }
        visible |= self.workspace.is_none() && self.knows_a_workspace(&teams);
        let have = if member { "none of your teams has it" } else { "you are no member of the organization" };
        Decision::denied(refusal(rule, have), visible)
    }

    /// True if `actor` has all of these rights here.
    fn is_covered(self, actor: &Actor, rights: &Rights) -> bool {
        RULES.iter().filter(|rule| (rule.granted)(rights)).all(|rule| self.allow(actor, rule).allowed)
    }

    /// True if such rights make the place visible.
    fn shows(self, rights: &Rights) -> bool {
        match (self.workspace, self.project) {
            (Some(_), _) => rights.workspace != WorkspaceRights::NONE,
            (None, Some(_)) => rights.project.read,
            (None, None) => true,
        }
    }

    /// True if a team has access to a workspace, which also makes its project visible.
    fn knows_a_workspace(self, teams: &[&Team]) -> bool {
        let Some(project) = self.project else { return false };
        teams.iter().any(|team| {
            let workspaces = self.state.team_workspaces.by().team.get(&team.id);
            let mut projects = workspaces.filter_map(|access| self.state.workspaces.get(&access.workspace));
            projects.any(|workspace| workspace.project == project.id)
        })
    }

    /// Everything that gives rights here, each by itself. An action depends on one right, so looking at the sources one
    /// by one finds the same as their sum would.
    fn rights_of(self, site_admin: bool, teams: &[&'a Team]) -> Vec<(Rights, Source<'a>)> {
        let everything = Rights { everything: true, ..Rights::default() };
        let mut sources = Vec::new();
        if site_admin {
            sources.push((everything, Source::SiteAdmin));
        }
        for team in teams {
            if self.state.is_owners(team.id) {
                sources.push((everything, Source::Owner));
                continue;
            }
            if team.organization_access != OrganizationAccess::default() {
                sources.push((organization_rights(&team.organization_access), Source::OrganizationAccess(team)));
            }
            if let Some(project) = self.project
                && let Some(access) = self.state.team_projects.by().team_and_project.first(&(team.id, project.id))
            {
                let rights =
                    Rights { project: access.rights(), workspace: access.workspace_rights(), ..Rights::default() };
                sources.push((rights, Source::Project(team, access.access)));
            }
            if let Some(workspace) = self.workspace
                && let Some(access) = self.state.team_workspaces.by().team_and_workspace.first(&(team.id, workspace.id))
            {
                let rights = Rights { workspace: access.rights(), ..Rights::default() };
                sources.push((rights, Source::Workspace(team, access.access)));
            }
        }
        sources
    }
}

/// True if `actor` may do all that a team may, wherever it may. Only then may they act in its name: by creating a token
/// for it, or by granting it rights.
pub fn covers(actor: &Actor, state: &OrganizationState, team: &Team) -> bool {
    let organization = Within { state, project: None, workspace: None };
    if state.is_owners(team.id) {
        return allow(actor, Action::ManageOwners, Resource::Organization(state)).allowed;
    }
    let accesses = state.team_projects.by().team.get(&team.id);
    let of_workspaces = state.team_workspaces.by().team.get(&team.id);
    organization.is_covered(actor, &organization_rights(&team.organization_access))
        && accesses.into_iter().all(|access| covers_in_project(actor, state, access))
        && of_workspaces.into_iter().all(|access| {
            let Some(workspace) = state.workspaces.get(&access.workspace) else { return true };
            let place = Within { state, project: state.projects.get(&workspace.project), workspace: Some(workspace) };
            place.is_covered(actor, &Rights { workspace: access.rights(), ..Rights::default() })
        })
}

/// True if `actor` may do all in a project that a team may do there by this access.
pub fn covers_in_project(actor: &Actor, state: &OrganizationState, access: &TeamProject) -> bool {
    let Some(project) = state.projects.get(&access.project) else { return true };
    let rights = Rights { project: access.rights(), workspace: access.workspace_rights(), ..Rights::default() };
    Within { state, project: Some(project), workspace: None }.is_covered(actor, &rights)
}

/// True if `actor` may do all in the organization that these flags of a team stand for.
pub fn covers_in_organization(actor: &Actor, state: &OrganizationState, access: &OrganizationAccess) -> bool {
    Within { state, project: None, workspace: None }.is_covered(actor, &organization_rights(access))
}

/// Owners own an organization, not the site, and not each other's accounts.
fn passes_everything(action: Action) -> bool {
    !matches!(action, Action::ManageSite | Action::CreateOrganization | Action::ReadAccount | Action::UpdateAccount)
}

/// Rights in each project and workspace that follow from a team's rights in the organization.
fn organization_rights(access: &OrganizationAccess) -> Rights {
    let project = match () {
        () if access.manage_projects => ProjectRights::ADMIN,
        () if access.manage_workspaces => ProjectRights { move_workspaces: true, ..ProjectRights::MAINTAIN },
        () if access.read_projects || access.read_workspaces => ProjectRights::READ,
        () => ProjectRights::NONE,
    };
    let workspace = match () {
        () if access.manage_projects || access.manage_workspaces => WorkspaceRights::ADMIN,
        () if access.read_projects || access.read_workspaces => WorkspaceRights::READ,
        () => WorkspaceRights::NONE,
    };
    Rights { everything: false, organization: *access, project, workspace }
}

#[cfg(test)]
mod tests;
