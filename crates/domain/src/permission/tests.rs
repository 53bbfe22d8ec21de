//! The table of who may do what, spelled out by role and token, so that a changed rule shows up as a changed row.

use jiff::{SignedDuration, Timestamp};

use super::*;
use crate::id::{MembershipId, OrganizationPrefix, ProjectId, TeamProjectId, TeamWorkspaceId};
use crate::membership::{Membership, MembershipStatus};
use crate::organization::Organization;
use crate::team_access::{
    ProjectRole, RunsRight, StateRight, TeamProject, TeamWorkspace, VariablesRight, WorkspaceRole,
};
use crate::token_lifetime::TokenLifetimePatch;

/// An organization with a team for each kind of right, and a member for each team.
struct Scene {
    state: OrganizationState,
    organization: Organization,
    project: Project,
    workspace: Workspace,
    consumer: Workspace,
    stranger: Workspace,
}

fn organization_id() -> OrganizationId {
    OrganizationId::from_random([100; 16])
}

fn organization_prefix() -> OrganizationPrefix {
    organization_id().organization_prefix()
}

fn now() -> Timestamp {
    Timestamp::UNIX_EPOCH
}

fn team_id(name: &str) -> TeamId {
    TeamId::derived(organization_prefix(), name)
}

fn user_id(name: &str) -> UserId {
    UserId::derived(organization_prefix(), name)
}

fn workspace(number: u8, name: &str, project: ProjectId) -> Workspace {
    Workspace::new(
        WorkspaceId::within(organization_prefix(), [number; 16]),
        name.parse().expect("legal"),
        project,
        now(),
    )
}

impl Scene {
    fn new() -> Self {
        let organization = Organization::new(organization_id(), "a@b.c".parse().expect("legal"), now());
        let project = Project::default_of(organization.default_project, now());
        let elsewhere =
            Project::new(ProjectId::within(organization_prefix(), [9; 16]), "elsewhere".parse().expect("legal"), now());
        let consumer = workspace(2, "consumer", elsewhere.id);
        let stranger = workspace(3, "stranger", elsewhere.id);
        let workspace = Workspace { remote_state_consumers: [consumer.id].into(), ..workspace(1, "web", project.id) };
        let mut state = OrganizationState::default();
        state.organizations.put(&organization).expect("put");
        for project in [&project, &elsewhere] {
            state.projects.put(project).expect("put");
        }
        for workspace in [&workspace, &consumer, &stranger] {
            state.workspaces.put(workspace).expect("put");
        }
        let mut scene = Self { state, organization, project, workspace, consumer, stranger };
        scene.add_teams();
        scene
    }

    fn add_teams(&mut self) {
        let owners = Team::owners(self.organization.owners_team, now());
        self.state.teams.put(&owners).expect("put");
        self.add_member("owner", Some(owners.id));
        self.add_member("member", None);
        for (name, access) in [
            ("read", WorkspaceRole::Read),
            ("plan", WorkspaceRole::Plan),
            ("write", WorkspaceRole::Write),
            ("admin", WorkspaceRole::Admin),
        ] {
            self.add_workspace_team(name, access, WorkspaceRights::NONE);
        }
        let outputs =
            WorkspaceRights { runs: RunsRight::Read, state_versions: StateRight::ReadOutputs, ..WorkspaceRights::NONE };
        self.add_workspace_team("outputs", WorkspaceRole::Custom, outputs);
        let operate = WorkspaceRights {
            runs: RunsRight::Apply,
            variables: VariablesRight::Read,
            workspace_locking: true,
            run_tasks: true,
            // No custom role makes an admin.
            admin: true,
            ..WorkspaceRights::NONE
        };
        self.add_workspace_team("operate", WorkspaceRole::Custom, operate);
        for (name, access) in [
            ("project-read", ProjectRole::Read),
            ("project-write", ProjectRole::Write),
            ("project-maintain", ProjectRole::Maintain),
            ("project-admin", ProjectRole::Admin),
        ] {
            let team = self.add_team(name, OrganizationAccess::default());
            let access = TeamProject {
                id: TeamProjectId::derived(organization_prefix(), name),
                team,
                project: self.project.id,
                access,
                custom: ProjectRights::NONE,
                custom_workspaces: WorkspaceRights::NONE,
            };
            self.state.team_projects.put(&access).expect("put");
        }
        let none = OrganizationAccess::default();
        self.add_team("read-all", OrganizationAccess { read_workspaces: true, ..none });
        self.add_team("manage-all", OrganizationAccess { manage_workspaces: true, ..none });
        self.add_team("manage-projects", OrganizationAccess { manage_projects: true, ..none });
        let manage_people =
            OrganizationAccess { manage_membership: true, manage_teams: true, manage_vcs_settings: true, ..none };
        self.add_team("manage-people", manage_people);
    }

    fn add_team(&mut self, name: &str, organization_access: OrganizationAccess) -> TeamId {
        let team = Team { organization_access, ..Team::new(team_id(name), name.parse().expect("legal"), now()) };
        self.state.teams.put(&team).expect("put");
        self.add_member(name, Some(team.id));
        team.id
    }

    fn add_workspace_team(&mut self, name: &str, access: WorkspaceRole, custom: WorkspaceRights) {
        let team = self.add_team(name, OrganizationAccess::default());
        let access = TeamWorkspace {
            id: TeamWorkspaceId::derived(organization_prefix(), name),
            team,
            workspace: self.workspace.id,
            access,
            custom,
        };
        self.state.team_workspaces.put(&access).expect("put");
    }

    fn add_member(&mut self, name: &str, team: Option<TeamId>) {
        let membership = Membership {
            id: MembershipId::derived(organization_prefix(), name),
            user: user_id(name),
            email: format!("{name}@acme.test").parse().expect("legal"),
            status: MembershipStatus::Active,
            teams: team.into_iter().collect(),
            created_at: now(),
            link: None,
        };
        self.state.memberships.put(&membership).expect("put");
    }

    fn actor(&self, name: &str) -> Actor {
        let organization = organization_id();
        let run = |workspace: &Workspace| Actor::Run {
            organization,
            run: RunId::within(organization_prefix(), [1; 16]),
            workspace: workspace.id,
        };
        let agent = |phase| Actor::Attempt {
            organization,
            run: RunId::within(organization_prefix(), [1; 16]),
            workspace: self.workspace.id,
            phase,
        };
        match name {
            "anonymous" => Actor::Anonymous,
            "site-admin" => Actor::User { id: user_id(name), site_admin: true, by: Credential::Token { life: None } },
            "team-token" => Actor::Team { organization, team: team_id("write"), from_organization: false },
            "lent-team-token" => Actor::Team { organization, team: team_id("write"), from_organization: true },
            "owners-token" => {
                Actor::Team { organization, team: self.organization.owners_team, from_organization: false }
            }
            "organization-token" => Actor::Organization(organization),
            "foreign-token" => Actor::Organization(OrganizationId::from_random([101; 16])),
            "audit-token" => Actor::AuditTrail(organization),
            "agent-token" => {
                Actor::AgentPool { organization, pool: AgentPoolId::within(organization_prefix(), [1; 16]) }
            }
            "own-run" => run(&self.workspace),
            "consumer-run" => run(&self.consumer),
            "stranger-run" => run(&self.stranger),
            "plan-agent" => agent(PhaseKind::Plan),
            "apply-agent" => agent(PhaseKind::Apply),
            "run-task" => Actor::RunTask {
                organization,
                run: RunId::within(organization_prefix(), [1; 16]),
                workspace: self.workspace.id,
                result: TaskResultId::within(organization_prefix(), [1; 16]),
            },
            _ => Actor::User { id: user_id(name), site_admin: false, by: Credential::Token { life: None } },
        }
    }

    fn resource(&self, kind: Kind) -> Resource<'_> {
        match kind {
            Kind::Organization => Resource::Organization(&self.state),
            Kind::Project => Resource::Project(&self.state, &self.project),
            Kind::Workspace => Resource::Workspace(&self.state, &self.workspace),
        }
    }

    fn allowed(&self, kind: Kind, action: Action) -> Vec<&'static str> {
        let allowed = |name: &&str| allow(&self.actor(name), action, self.resource(kind)).allowed;
        ACTORS.iter().copied().filter(allowed).collect()
    }

    fn who_sees(&self, kind: Kind) -> Vec<&'static str> {
        // An action that hardly anyone may do, so that most answers are refusals.
        let sees = |name: &&str| allow(&self.actor(name), Action::DeleteOrganization, self.resource(kind)).visible;
        ACTORS.iter().copied().filter(sees).collect()
    }
}

#[derive(Clone, Copy, Debug)]
enum Kind {
    Organization,
    Project,
    Workspace,
}

const ACTORS: &[&str] = &[
    "anonymous",
    "outsider",
    "member",
    "read",
    "plan",
    "write",
    "admin",
    "outputs",
    "operate",
    "project-read",
    "project-write",
    "project-maintain",
    "project-admin",
    "read-all",
    "manage-all",
    "manage-projects",
    "manage-people",
    "owner",
    "site-admin",
    "team-token",
    "lent-team-token",
    "owners-token",
    "organization-token",
    "foreign-token",
    "audit-token",
    "agent-token",
    "own-run",
    "consumer-run",
    "stranger-run",
    "plan-agent",
    "apply-agent",
    "run-task",
];

/// These may do everything in an organization, so the rows below leave them out.
const ALWAYS: &[&str] = &["owner", "site-admin", "owners-token"];

const WORKSPACE: &[(Action, &str)] = {
    use Action as A;
    const ADMINS: &str = "admin project-maintain project-admin manage-all manage-projects";
    const ADMINS_AND_ORGANIZATION: &str =
        "admin project-maintain project-admin manage-all manage-projects organization-token";
    &[
        (
            A::ReadWorkspace,
            "read plan write admin outputs operate project-read project-write project-maintain project-admin read-all \
             manage-all manage-projects team-token lent-team-token organization-token own-run consumer-run plan-agent apply-agent",
        ),
        (
            A::ReadRuns,
            "read plan write admin outputs operate project-read project-write project-maintain project-admin read-all \
             manage-all manage-projects team-token lent-team-token organization-token own-run plan-agent apply-agent",
        ),
        (
            A::ReadWorkspaceTeams,
            "read plan write admin outputs operate project-read project-write project-maintain project-admin read-all \
             manage-all manage-projects team-token lent-team-token organization-token",
        ),
        (
            A::QueuePlan,
            "plan write admin operate project-write project-maintain project-admin manage-all manage-projects team-token",
        ),
        (
            A::DownloadConfiguration,
            "plan write admin operate project-write project-maintain project-admin manage-all manage-projects team-token \
             run-task",
        ),
        (
            A::ApplyRun,
            "write admin operate project-write project-maintain project-admin manage-all manage-projects team-token",
        ),
        (A::ForceCancelRun, ADMINS),
        (A::ReadWholePlan, "admin project-maintain project-admin manage-all manage-projects run-task"),
        (
            A::ReadVariables,
            "read plan write admin operate project-read project-write project-maintain project-admin read-all manage-all \
             manage-projects team-token lent-team-token organization-token",
        ),
        (
            A::WriteVariables,
            "write admin project-write project-maintain project-admin manage-all manage-projects team-token lent-team-token \
             organization-token",
        ),
        (
            A::ReadOutputs,
            "read plan write admin outputs project-read project-write project-maintain project-admin read-all manage-all \
             manage-projects team-token lent-team-token organization-token own-run consumer-run plan-agent apply-agent",
        ),
        (
            A::ReadState,
            "read plan write admin project-read project-write project-maintain project-admin read-all manage-all \
             manage-projects team-token lent-team-token organization-token own-run consumer-run plan-agent apply-agent",
        ),
        (
            A::WriteState,
            "write admin project-write project-maintain project-admin manage-all manage-projects team-token apply-agent",
        ),
        (
            A::LockWorkspace,
            "write admin operate project-write project-maintain project-admin manage-all manage-projects team-token",
        ),
        (A::ForceUnlockWorkspace, ADMINS),
        (A::DeleteStateForGood, ADMINS),
        (A::UpdateWorkspace, ADMINS_AND_ORGANIZATION),
        (A::DeleteWorkspace, ADMINS_AND_ORGANIZATION),
        (A::ManageWorkspaceTeams, ADMINS_AND_ORGANIZATION),
        (A::MoveWorkspace, "project-admin manage-all manage-projects organization-token"),
        (A::ManageNotifications, ADMINS),
        (
            A::AttachRunTasks,
            "admin operate project-maintain project-admin manage-all manage-projects organization-token",
        ),
    ]
};

const PROJECT: &[(Action, &str)] = {
    use Action as A;
    const READERS: &str = "project-read project-write project-maintain project-admin read-all manage-all \
                           manage-projects organization-token";
    const ADMINS: &str = "project-admin manage-projects organization-token";
    &[
        (A::ReadProject, READERS),
        (A::UpdateProject, ADMINS),
        (A::DeleteProject, ADMINS),
        (A::ManageProjectTeams, ADMINS),
        (A::ReadProjectVariableSets, READERS),
        (A::WriteProjectVariableSets, ADMINS),
        (A::CreateWorkspace, "project-maintain project-admin manage-all manage-projects organization-token"),
    ]
};

const ORGANIZATION: &[(Action, &str)] = {
    use Action as A;
    const MEMBERS: &str = "member read plan write admin outputs operate project-read project-write project-maintain \
                           project-admin read-all manage-all manage-projects manage-people team-token lent-team-token \
                           organization-token own-run consumer-run stranger-run plan-agent apply-agent";
    &[
        (A::ReadOrganization, MEMBERS),
        (A::DownloadModules, MEMBERS),
        (
            A::ReadDirectory,
            "member read plan write admin outputs operate project-read project-write project-maintain project-admin \
             read-all manage-all manage-projects manage-people team-token lent-team-token organization-token",
        ),
        (A::UpdateOrganization, ""),
        (A::DeleteOrganization, ""),
        (A::ManageOrganizationToken, ""),
        (A::ReadAuditTrail, "organization-token audit-token"),
        (A::ManageMembership, "manage-people organization-token"),
        (A::ManageOwners, ""),
        (A::ManageTeams, "manage-people organization-token"),
        (A::ManageOrganizationAccess, "organization-token"),
        (A::ManageVcsSettings, "manage-people organization-token"),
        (A::ManageAgentPools, "organization-token"),
        (A::ManageRunTasks, "organization-token"),
        (A::ManagePolicies, "organization-token"),
        (A::OverridePolicies, ""),
        (A::ManageModules, "organization-token"),
        (A::ManageProviders, "organization-token"),
        (A::CreateProject, "manage-projects organization-token"),
        (A::ReadVariableSets, "read-all manage-all manage-projects organization-token"),
        (A::ManageVariableSets, "manage-all manage-projects organization-token"),
    ]
};

#[test]
fn every_action_has_one_rule_and_one_row_here() {
    for action in Action::ALL {
        assert_eq!(RULES.iter().filter(|rule| rule.action == *action).count(), 1, "{action:?}");
        let rows = [WORKSPACE, PROJECT, ORGANIZATION].concat();
        let elsewhere = matches!(
            action,
            Action::ManageSite | Action::CreateOrganization | Action::ReadAccount | Action::UpdateAccount
        );
        assert_eq!(rows.iter().filter(|row| row.0 == *action).count(), usize::from(!elsewhere), "{action:?}");
    }
}

#[test]
fn each_role_and_token_may_do_what_its_row_says() {
    let scene = Scene::new();
    for (kind, rows) in [(Kind::Workspace, WORKSPACE), (Kind::Project, PROJECT), (Kind::Organization, ORGANIZATION)] {
        for (action, row) in rows {
            let named: Vec<&str> = row.split_whitespace().collect();
            let expected: Vec<&str> =
                ACTORS.iter().copied().filter(|name| ALWAYS.contains(name) || named.contains(name)).collect();
            assert_eq!(scene.allowed(kind, *action), expected, "{action:?}");
        }
    }
}

#[test]
fn only_those_with_rights_in_a_place_know_that_it_exists() {
    let scene = Scene::new();
    let hidden = |kind: Kind| -> Vec<&str> {
        let visible = scene.who_sees(kind);
        ACTORS.iter().copied().filter(|name| !visible.contains(name)).collect()
    };
    assert_eq!(
        hidden(Kind::Workspace),
        [
            "anonymous",
            "outsider",
            "member",
            "manage-people",
            "foreign-token",
            "audit-token",
            "agent-token",
            "stranger-run",
            "run-task"
        ]
    );
    assert_eq!(
        hidden(Kind::Project),
        [
            "anonymous",
            "outsider",
            "member",
            "manage-people",
            "foreign-token",
            "audit-token",
            "agent-token",
            "own-run",
            "consumer-run",
            "stranger-run",
            "plan-agent",
            "apply-agent",
            "run-task"
        ],
        "whoever works in a workspace knows of its project"
    );
    assert!(hidden(Kind::Organization).starts_with(&["anonymous", "outsider"]));
    assert!(!hidden(Kind::Organization).contains(&"member"));
}

#[test]
fn only_the_agent_of_an_apply_writes_a_state_and_only_in_its_own_workspace() {
    let scene = Scene::new();
    for name in ["own-run", "consumer-run", "stranger-run", "plan-agent", "apply-agent", "run-task"] {
        let may = |action, workspace| {
            let resource = Resource::Workspace(&scene.state, workspace);
            allow(&scene.actor(name), action, resource).allowed
        };
        for workspace in [&scene.workspace, &scene.consumer, &scene.stranger] {
            let own = workspace.id == scene.workspace.id;
            assert_eq!(may(Action::WriteState, workspace), name == "apply-agent" && own, "{name}");
            assert!(!may(Action::LockWorkspace, workspace), "{name}");
        }
    }
}

#[test]
fn nobody_covers_a_team_that_may_do_more_than_they_may() {
    let scene = Scene::new();
    let team = |name: &str| scene.state.teams.get(&team_id(name)).expect("a team");
    let owners = scene.state.teams.get(&scene.organization.owners_team).expect("a team");
    let covered = |name: &str, team: &Team| covers(&scene.actor(name), &scene.state, team);
    for (name, expected) in [
        ("owner", vec!["read", "plan", "write", "admin", "project-admin", "read-all", "manage-all", "manage-people"]),
        ("manage-people", vec!["manage-people"]),
        ("admin", vec!["read", "plan", "write", "admin"]),
        ("project-admin", vec!["read", "plan", "write", "admin", "project-admin"]),
        ("manage-all", vec!["read", "plan", "write", "admin", "read-all", "manage-all"]),
        ("organization-token", vec!["read", "read-all", "manage-people"]),
        ("own-run", vec![]),
    ] {
        let teams = ["read", "plan", "write", "admin", "project-admin", "read-all", "manage-all", "manage-people"];
        let found: Vec<&str> = teams.into_iter().filter(|wanted| covered(name, team(wanted))).collect();
        assert_eq!(found, expected, "{name}");
        assert_eq!(covered(name, owners), name == "owner", "{name}");
    }
}

#[test]
fn accounts_belong_to_their_users() {
    let scene = Scene::new();
    let may = |name: &str, action, resource| allow(&scene.actor(name), action, resource).allowed;
    for action in [Action::ReadAccount, Action::UpdateAccount] {
        let account = Resource::Account(user_id("member"));
        assert!(may("member", action, account));
        assert!(may("site-admin", action, account));
        for other in ["owner", "anonymous", "team-token", "organization-token", "own-run"] {
            assert!(!may(other, action, account), "{other}");
        }
    }
}

#[test]
fn every_user_may_found_an_organization_and_site_admins_manage_the_site() {
    let scene = Scene::new();
    for name in ACTORS {
        let may = |action| allow(&scene.actor(name), action, Resource::Site).allowed;
        let is_user = matches!(scene.actor(name), Actor::User { .. });
        assert_eq!(may(Action::CreateOrganization), is_user, "{name}");
        assert_eq!(may(Action::ManageSite), *name == "site-admin", "{name}");
    }
}

#[test]
fn an_organization_may_refuse_users_own_tokens() {
    let mut scene = Scene::new();
    scene.organization.user_tokens_enabled = false;
    scene.state.organizations.put(&scene.organization).expect("put");
    let ask = |actor: &Actor| allow(actor, Action::ReadOrganization, Resource::Organization(&scene.state));
    for name in ["owner", "site-admin"] {
        let decision = ask(&scene.actor(name));
        assert!(!decision.allowed && !decision.credential_accepted, "{name}");
    }
    assert!(ask(&scene.actor("owners-token")).allowed);
    assert!(ask(&Actor::User { id: user_id("owner"), site_admin: false, by: Credential::Session }).allowed);
}

#[test]
fn an_organization_may_refuse_tokens_that_live_too_long() {
    let mut scene = Scene::new();
    let day = SignedDuration::from_hours(24);
    let patch = TokenLifetimePatch { token_type: "user".to_owned(), max_ttl_ms: day.as_millis() as i64 };
    scene.organization = scene.organization.with_token_lifetimes(&[patch], Timestamp::UNIX_EPOCH).expect("limits");
    let ask = |scene: &mut Scene, life| {
        scene.state.organizations.put(&scene.organization).expect("put");
        let actor = Actor::User { id: user_id("owner"), site_admin: false, by: Credential::Token { life } };
        allow(&actor, Action::ReadOrganization, Resource::Organization(&scene.state))
    };
    let longer = Some(day + SignedDuration::from_secs(1));
    assert!(ask(&mut scene, longer).allowed, "the limits are not switched on");
    scene.organization.max_ttl_enabled = true;
    let decision = ask(&mut scene, longer);
    assert!(!decision.allowed && !decision.credential_accepted);
    assert!(ask(&mut scene, Some(day)).allowed);
    assert!(ask(&mut scene, None).allowed, "the site's own token has no end");
}

#[test]
fn a_decision_gives_its_reason() {
    let scene = Scene::new();
    let reason = |name: &str, action| allow(&scene.actor(name), action, scene.resource(Kind::Workspace)).reason;
    for (name, action, expected) in [
        ("owner", Action::ApplyRun, "You are an owner of the organization"),
        ("site-admin", Action::ApplyRun, "You are a site admin"),
        ("write", Action::ApplyRun, "Team write has write access to the workspace"),
        ("project-write", Action::ApplyRun, "Team project-write has write access to the project"),
        ("manage-all", Action::ApplyRun, "Team manage-all has rights in the whole organization"),
        (
            "plan",
            Action::ApplyRun,
            "You may not apply, discard or cancel runs: that takes write access to the workspace, and none of your teams has it",
        ),
        (
            "outsider",
            Action::ReadWorkspace,
            "You may not see the workspace: that takes read access to the workspace, and you are no member of the organization",
        ),
        (
            "organization-token",
            Action::WriteState,
            "You may not write the workspace's state: an organization's token never may",
        ),
        (
            "stranger-run",
            Action::ReadState,
            "You may not read the workspace's state: that takes read access to the workspace, and the workspace does not share its state with the run's",
        ),
    ] {
        assert_eq!(reason(name, action), expected);
    }
}

#[test]
fn without_its_first_commit_an_organization_does_not_exist() {
    let scene = Scene::new();
    let empty = OrganizationState::default();
    let decision = allow(&scene.actor("owner"), Action::ReadOrganization, Resource::Organization(&empty));
    assert!(!decision.allowed && !decision.visible);
}
