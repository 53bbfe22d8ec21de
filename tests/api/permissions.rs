//! Every route of the table, with every kind of caller.
//!
//! What a caller may do is asked of the one function that decides; what the API does has to agree. A handler that is
//! not in the table cannot be reached, so none is forgotten. Whoever is refused gets 404, and a stranger gets the very
//! bytes that everyone gets where nothing is.

use std::collections::BTreeMap;

use axum::http::StatusCode;
use harness::api_server::{Answer, ApiServer, Client};
use serde_json::{Value, json};
use taco_control_plane::{Caller, TakenPhase, Taker, WorkspaceRef};
use taco_domain::permission::{Action, Actor, Resource, allow};
use taco_tfc_api::routes::{self, Access, Route};

use crate::agent_door;
use crate::configuration_versions::given_configuration;
use crate::runs::{act, start_run};
use crate::states::{lock, push};

/// A site in which every path of the table leads somewhere.
pub(crate) struct Fixture {
    pub(crate) server: ApiServer,
    /// What stands for the words in braces.
    pub(crate) names: BTreeMap<&'static str, String>,
}

/// Who asks.
enum Who {
    Outsider,
    /// A user with such a role in the organization.
    Member(Role),
    /// The token of a team with such a role.
    Team(Role),
    Organization,
    AuditTrail,
    AgentPool,
    OtherAgentPool,
    /// Whoever holds a token of a phase of the workspace's run.
    Phase(Phase, Holder),
    /// What runs inside the run of a workspace that knows nothing of this one.
    RunElsewhere,
    /// What runs inside the run of a workspace that may read this one's state.
    RunOfConsumer,
    SiteAdmin,
    /// Someone who may do much in another organization.
    Rival(Rival),
}

/// A phase that is under way in the workspace.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Phase {
    Plan,
    SpeculativePlan,
    Apply,
}

/// Who has a phase's token.
#[derive(Clone, Copy)]
enum Holder {
    /// What runs in it.
    Run,
    /// Its agent, which comes to the API by this token as well: older agents give it to what they run.
    Agent,
}

enum Rival {
    Owner,
    OwnersToken,
    Organization,
    AuditTrail,
    AgentPool,
    Run,
}

impl Who {
    /// Whether they must not even learn that the organization exists.
    fn is_stranger(&self) -> bool {
        matches!(self, Self::Outsider | Self::Rival(_))
    }
}

enum Role {
    NoTeam,
    /// A team that may do nothing.
    Nothing,
    /// Access to the workspace, as attributes.
    Workspace(&'static str),
    /// Access to its project.
    Project(&'static str),
    /// A right in the whole organization.
    Flag(&'static str),
    Owner,
}

const CALLERS: &[(&str, Who)] = &[
    ("outsider", Who::Outsider),
    ("member without a team", Who::Member(Role::NoTeam)),
    ("member of an idle team", Who::Member(Role::Nothing)),
    ("workspace reader", Who::Member(Role::Workspace(r#"{"access":"read"}"#))),
    ("workspace planner", Who::Member(Role::Workspace(r#"{"access":"plan"}"#))),
    ("workspace writer", Who::Member(Role::Workspace(r#"{"access":"write"}"#))),
    ("workspace admin", Who::Member(Role::Workspace(r#"{"access":"admin"}"#))),
    ("reads outputs", Who::Member(Role::Workspace(r#"{"access":"custom","state-versions":"read-outputs"}"#))),
    ("locks", Who::Member(Role::Workspace(r#"{"access":"custom","workspace-locking":true}"#))),
    (
        "writes states",
        Who::Member(Role::Workspace(r#"{"access":"custom","state-versions":"write","workspace-locking":true}"#)),
    ),
    ("applies", Who::Member(Role::Workspace(r#"{"access":"custom","runs":"apply","variables":"write"}"#))),
    ("project reader", Who::Member(Role::Project(r#"{"access":"read"}"#))),
    ("project writer", Who::Member(Role::Project(r#"{"access":"write"}"#))),
    ("project maintainer", Who::Member(Role::Project(r#"{"access":"maintain"}"#))),
    ("project admin", Who::Member(Role::Project(r#"{"access":"admin"}"#))),
    (
        "custom in the project",
        Who::Member(Role::Project(
            r#"{"access":"custom","project-access":{"settings":"update"},"workspace-access":{"create":true}}"#,
        )),
    ),
    ("manages workspaces", Who::Member(Role::Flag("manage-workspaces"))),
    ("manages membership", Who::Member(Role::Flag("manage-membership"))),
    ("owner", Who::Member(Role::Owner)),
    ("idle team's token", Who::Team(Role::Nothing)),
    ("writing team's token", Who::Team(Role::Workspace(r#"{"access":"write"}"#))),
    ("organization's token", Who::Organization),
    ("audit trail's token", Who::AuditTrail),
    ("agent pool's token", Who::AgentPool),
    ("other agent pool's token", Who::OtherAgentPool),
    ("run token of a plan", Who::Phase(Phase::Plan, Holder::Run)),
    ("run token of a speculative plan", Who::Phase(Phase::SpeculativePlan, Holder::Run)),
    ("run token of an apply", Who::Phase(Phase::Apply, Holder::Run)),
    ("agent token in a plan", Who::Phase(Phase::Plan, Holder::Agent)),
    ("agent token in a speculative plan", Who::Phase(Phase::SpeculativePlan, Holder::Agent)),
    ("agent token in an apply", Who::Phase(Phase::Apply, Holder::Agent)),
    ("another workspace's run", Who::RunElsewhere),
    ("a consuming workspace's run", Who::RunOfConsumer),
    ("site admin", Who::SiteAdmin),
    ("owner of another organization", Who::Rival(Rival::Owner)),
    ("token of another organization's owners", Who::Rival(Rival::OwnersToken)),
    ("another organization's token", Who::Rival(Rival::Organization)),
    ("another organization's token for the audit trail", Who::Rival(Rival::AuditTrail)),
    ("agent pool's token of another organization", Who::Rival(Rival::AgentPool)),
    ("another organization's run", Who::Rival(Rival::Run)),
];

/// Where a right has to be.
#[derive(Clone, Copy)]
pub(crate) enum Place {
    Site,
    /// The account of the site's admin.
    Account,
    Organization,
    Project,
    Workspace,
    /// The workspace whose applies trigger runs in the other.
    Source,
}

/// What a request takes.
pub(crate) enum Takes {
    /// Everyone with a token is answered so.
    Anyone(StatusCode),
    /// To be a user.
    User,
    /// To be the token of an organization, or of its audit trail: whose it is stands nowhere else.
    OrganizationToken,
    /// All of these.
    Rights(Vec<(Action, Place)>),
}

/// One request to a route. Where its answer depends on which thing it names, a route has several.
pub(crate) struct Request {
    pub(crate) path: String,
    takes: Takes,
}

/// What everyone hears of what is not there, or not for them to know.
const NOT_FOUND: &str = r#"{"errors":[{"status":"404","title":"not found"}]}"#;

fn access_of(kind: &str, access: Value, team: &str, place: &str, id: &str) -> Value {
    json!({ "data": { "type": kind, "attributes": access, "relationships": {
        "team": { "data": { "type": "teams", "id": team } },
        place: { "data": { "type": format!("{place}s"), "id": id } },
    } } })
}

fn attributes(kind: &str, attributes: Value) -> Value {
    json!({ "data": { "type": kind, "attributes": attributes } })
}

impl Fixture {
    pub(crate) async fn new() -> Self {
        let server = ApiServer::start().await;
        let admin = server.admin();
        server.given_organization("acme").await;
        let body = attributes("projects", json!({ "name": "other" }));
        let project = admin.post("/api/v2/organizations/acme/projects", &body).await.expect(StatusCode::CREATED).id();
        let mut body = attributes("workspaces", json!({ "name": "web" }));
        body["data"]["relationships"]["project"]["data"] = json!({ "type": "projects", "id": project });
        let workspace =
            admin.post("/api/v2/organizations/acme/workspaces", &body).await.expect(StatusCode::CREATED).id();
        lock(&admin, &workspace).await.expect(StatusCode::OK);
        let version = push(&admin, &workspace, 1, "a", "x").await.expect(StatusCode::CREATED).id();
        admin.act(&format!("/api/v2/workspaces/{workspace}/actions/unlock")).await.expect(StatusCode::OK);
        let made = |path: &'static str, kind: &'static str, values: Value| {
            let admin = admin.clone();
            async move { admin.post(path, &attributes(kind, values)).await.expect(StatusCode::CREATED) }
        };
        let within = "/api/v2/organizations/acme";
        let outputs = admin.get(&format!("/api/v2/state-versions/{version}/outputs")).await;
        let output = outputs.data()[0]["id"].as_str().expect("an id").to_owned();
        let team = made("/api/v2/organizations/acme/teams", "teams", json!({ "name": "idle" })).await.id();
        let visible = json!({ "name": "visible", "visibility": "organization" });
        let visible_team = made("/api/v2/organizations/acme/teams", "teams", visible).await.id();
        let owners = owners_of(&server, "acme").await;
        let pool = made("/api/v2/organizations/acme/agent-pools", "agent-pools", json!({ "name": "pool" })).await.id();
        let key = json!({ "name": "key", "value": "secret" });
        let key = made("/api/v2/organizations/acme/ssh-keys", "ssh-keys", key).await.id();
        let variable = json!({ "key": "k", "category": "env" });
        let path = format!("/api/v2/workspaces/{workspace}/vars");
        let variable_of_workspace =
            admin.post(&path, &attributes("vars", variable.clone())).await.expect(StatusCode::CREATED).id();
        let set = json!({ "name": "set", "global": false });
        let set = made("/api/v2/organizations/acme/varsets", "varsets", set).await.id();
        let path = format!("/api/v2/varsets/{set}/relationships/vars");
        let variable_of_set = admin.post(&path, &attributes("vars", variable)).await.expect(StatusCode::CREATED).id();
        let tags = json!({ "data": [{ "type": "tags", "attributes": { "name": "env" } }] });
        let path = format!("/api/v2/workspaces/{workspace}/relationships/tags");
        admin.post(&path, &tags).await.expect(StatusCode::NO_CONTENT);
        let tag = admin.get(&format!("{within}/tags")).await.data()[0]["id"].as_str().expect("an id").to_owned();
        let account = admin.get("/api/v2/account/details").await;
        let (user, username) = (account.id(), account.attribute("username").as_str().expect("a name").to_owned());
        let issued = |path: String| {
            let admin = admin.clone();
            async move { admin.post(&path, &json!({})).await.expect(StatusCode::CREATED).id() }
        };
        let token_of_user = issued(format!("/api/v2/users/{user}/authentication-tokens")).await;
        let token_of_team = issued(format!("/api/v2/teams/{team}/authentication-token")).await;
        let token_of_owners = issued(format!("/api/v2/teams/{owners}/authentication-token")).await;
        let token_of_organization = issued(format!("{within}/authentication-token")).await;
        let token_of_audit_trail = issued(format!("{within}/authentication-token?token=audit-trails")).await;
        let token_of_pool = issued(format!("/api/v2/agent-pools/{pool}/authentication-tokens")).await;

        let source = server.given_workspace("acme", "source").await;
        let trigger = json!({ "data": { "relationships": {
            "sourceable": { "data": { "type": "workspaces", "id": source } },
        } } });
        let path = format!("/api/v2/workspaces/{workspace}/run-triggers");
        let trigger = admin.post(&path, &trigger).await.expect(StatusCode::CREATED).id();
        let estimating = attributes("organizations", json!({ "cost-estimation-enabled": true }));
        admin.patch(within, &estimating).await.expect(StatusCode::OK);
        let configuration = given_configuration(&server, &workspace).await;
        let run = start_run(&admin, &workspace, json!({})).await.expect(StatusCode::CREATED);
        let part = |name: &str| run.data()["relationships"][name]["data"].clone();
        let id_of = |thing: &Value| thing["id"].as_str().expect("an id").to_owned();
        let (plan, apply, event) = (id_of(&part("plan")), id_of(&part("apply")), id_of(&part("run-events")[0]));
        let estimate = id_of(&part("cost-estimate"));
        let run = run.id();
        let comment = attributes("comments", json!({ "body": "hello" }));
        let path = format!("/api/v2/runs/{run}/comments");
        let comment = admin.post(&path, &comment).await.expect(StatusCode::CREATED).id();
        let path = format!("/api/v2/agent-pools/{pool}/authentication-tokens");
        let pool_token = admin.post(&path, &json!({})).await.expect(StatusCode::CREATED);
        let agent = server.agent_caller(pool_token.attribute("token").as_str().expect("a token")).await;
        let agent =
            server.control_plane.connect_agent(&agent, None, None, "one", "1.0.0").await.expect("an agent").agent;

        let invitation = attributes("organization-memberships", json!({ "email": "guest@acme.test" }));
        let path = format!("{within}/organization-memberships");
        let membership = admin.post(&path, &invitation).await.expect(StatusCode::CREATED).id();
        let access = |kind: &'static str, place: &'static str, id: &str| {
            let (admin, team, id) = (admin.clone(), team.clone(), id.to_owned());
            let path = format!("/api/v2/{kind}");
            async move {
                let body = access_of(kind, json!({ "access": "read" }), &team, place, &id);
                admin.post(&path, &body).await.expect(StatusCode::CREATED).id()
            }
        };
        let team_workspace = access("team-workspaces", "workspace", &workspace).await;
        let team_project = access("team-projects", "project", &project).await;
        let names = BTreeMap::from([
            ("organization", "acme".to_owned()),
            ("workspace", workspace),
            ("state_version", version),
            ("output", output),
            ("project", project),
            ("team", team),
            ("visible team", visible_team),
            ("owners", owners),
            ("team_workspace", team_workspace),
            ("team_project", team_project),
            ("pool", pool),
            ("key", key),
            ("variable", variable_of_workspace),
            ("variable_set", set),
            ("set_variable", variable_of_set),
            ("tag", tag),
            ("user", user),
            ("username", username),
            ("token of the user", token_of_user),
            ("token of the team", token_of_team),
            ("token of the owners", token_of_owners),
            ("token of the organization", token_of_organization),
            ("token of the audit trail", token_of_audit_trail),
            ("token of the pool", token_of_pool),
            ("membership", membership),
            ("source", source),
            ("run_trigger", trigger),
            ("configuration_version", configuration),
            ("run", run),
            ("plan", plan.clone()),
            ("log", plan),
            ("apply", apply),
            ("cost_estimate", estimate),
            ("run_event", event),
            ("comment", comment),
            ("agent", agent.id.to_string()),
            ("pass", "1-00".to_owned()),
            ("action", "soft_delete_backing_data".to_owned()),
        ]);
        Self { server, names }
    }

    async fn issue(&self, path: &str) -> String {
        let issued = self.server.admin().post(path, &json!({})).await.expect(StatusCode::CREATED);
        issued.attribute("token").as_str().expect("a token").to_owned()
    }

    /// A token of such a caller.
    async fn token_of(&self, who: &Who) -> String {
        let within = "/api/v2/organizations/acme";
        match who {
            Who::SiteAdmin => self.issue(&format!("/api/v2/users/{}/authentication-tokens", self.names["user"])).await,
            Who::Outsider => self.server.given_user("outsider").await.1,
            Who::Organization => self.issue(&format!("{within}/authentication-token")).await,
            Who::AuditTrail => self.issue(&format!("{within}/authentication-token?token=audit-trails")).await,
            Who::AgentPool => {
                self.issue(&format!("/api/v2/agent-pools/{}/authentication-tokens", self.names["pool"])).await
            }
            Who::OtherAgentPool => self.pool_token("acme").await,
            Who::Phase(phase, holder) => self.token_of_phase(*phase, *holder).await,
            Who::RunElsewhere => self.run_of_source().await,
            Who::RunOfConsumer => {
                let consumers =
                    format!("/api/v2/workspaces/{}/relationships/remote-state-consumers", self.names["workspace"]);
                let body = json!({ "data": [{ "type": "workspaces", "id": self.names["source"] }] });
                self.server.admin().post(&consumers, &body).await.expect(StatusCode::NO_CONTENT);
                self.run_of_source().await
            }
            Who::Rival(rival) => self.token_of_rival(rival).await,
            Who::Member(role) => {
                let (_, token) = self.server.given_user("jane").await;
                let team = self.team_with(role).await;
                self.server.with_token(&token).accepts(&invited(&self.server, "acme", "jane", team).await).await;
                token
            }
            Who::Team(role) => {
                let team = self.team_with(role).await.expect("a team");
                self.issue(&format!("/api/v2/teams/{team}/authentication-token")).await
            }
        }
    }

    /// A token of such a phase, which is under way from now on.
    async fn token_of_phase(&self, phase: Phase, holder: Holder) -> String {
        let server = &self.server;
        let mut taken = match phase {
            Phase::Plan | Phase::Apply => next_phase(server, "acme").await,
            Phase::SpeculativePlan => {
                let only = json!({ "plan-only": true });
                let run = start_run(&server.admin(), &self.names["workspace"], only).await.expect(StatusCode::CREATED);
                // The other run is ready as well, and either may come first.
                loop {
                    let taken = next_phase(server, "acme").await;
                    if taken.run.id.to_string() == run.id() {
                        break taken;
                    }
                }
            }
        };
        if phase == Phase::Apply {
            for word in ["plan", "json-plan", "redacted-plan"] {
                agent_door::send(server, &taken, word, "{}").await.expect(StatusCode::NO_CONTENT);
            }
            agent_door::send(server, &taken, "outcome", agent_door::planned()).await.expect(StatusCode::NO_CONTENT);
            act(&server.admin(), &self.names["run"], "apply").await.expect(StatusCode::ACCEPTED);
            taken = next_phase(server, "acme").await;
        }
        match holder {
            Holder::Run => taken.run_token,
            Holder::Agent => taken.token,
        }
    }

    /// A token of such a caller in another organization.
    async fn token_of_rival(&self, rival: &Rival) -> String {
        let (server, within) = (&self.server, "/api/v2/organizations/globex");
        server.given_organization("globex").await;
        let owners = owners_of(server, "globex").await;
        match rival {
            Rival::Owner => {
                let (_, token) = server.given_user("rival").await;
                server.with_token(&token).accepts(&invited(server, "globex", "rival", Some(owners)).await).await;
                token
            }
            Rival::OwnersToken => self.issue(&format!("/api/v2/teams/{owners}/authentication-token")).await,
            Rival::Organization => self.issue(&format!("{within}/authentication-token")).await,
            Rival::AuditTrail => self.issue(&format!("{within}/authentication-token?token=audit-trails")).await,
            Rival::AgentPool => self.pool_token("globex").await,
            Rival::Run => {
                let workspace = server.given_workspace("globex", "web").await;
                given_configuration(server, &workspace).await;
                start_run(&server.admin(), &workspace, json!({})).await.expect(StatusCode::CREATED);
                next_phase(server, "globex").await.run_token
            }
        }
    }

    /// A token of a pool that nothing else uses.
    async fn pool_token(&self, organization: &str) -> String {
        let path = format!("/api/v2/organizations/{organization}/agent-pools");
        let body = attributes("agent-pools", json!({ "name": "another" }));
        let pool = self.server.admin().post(&path, &body).await.expect(StatusCode::CREATED).id();
        self.issue(&format!("/api/v2/agent-pools/{pool}/authentication-tokens")).await
    }

    /// The token of a run in the workspace whose applies trigger the other's runs.
    async fn run_of_source(&self) -> String {
        given_configuration(&self.server, &self.names["source"]).await;
        start_run(&self.server.admin(), &self.names["source"], json!({})).await.expect(StatusCode::CREATED);
        // The other workspace's run is ready as well, and either may come first.
        loop {
            let token = next_phase(&self.server, "acme").await.run_token;
            if let Actor::Run { workspace, .. } = self.server.caller(&token).await.actor
                && workspace.to_string() == self.names["source"]
            {
                return token;
            }
        }
    }

    /// A team that has nothing but this.
    async fn team_with(&self, role: &Role) -> Option<String> {
        let admin = self.server.admin();
        let mut wanted = json!({ "name": "janes" });
        match role {
            Role::NoTeam => return None,
            Role::Owner => return Some(self.names["owners"].clone()),
            Role::Flag(flag) => wanted["organization-access"] = json!({ *flag: true }),
            Role::Nothing | Role::Workspace(_) | Role::Project(_) => {}
        }
        let team = admin.post("/api/v2/organizations/acme/teams", &attributes("teams", wanted)).await;
        let team = team.expect(StatusCode::CREATED).id();
        let (kind, place, access) = match role {
            Role::Workspace(access) => ("team-workspaces", "workspace", access),
            Role::Project(access) => ("team-projects", "project", access),
            _ => return Some(team),
        };
        let access = serde_json::from_str(access).expect("JSON");
        let body = access_of(kind, access, &team, place, &self.names[place]);
        admin.post(&format!("/api/v2/{kind}"), &body).await.expect(StatusCode::CREATED);
        Some(team)
    }

    /// All requests that a route and a method are tried with.
    pub(crate) fn requests(&self, route: &Route, method: &str) -> Vec<Request> {
        use Place::{Account, Organization};
        let to = |word: &str, name: &str, rights: &[(Action, Place)]| {
            let path = route.path.replace(word, &self.names[name]);
            Request { path: self.path(route, path), takes: Takes::Rights(rights.to_vec()) }
        };
        let whole = |takes| vec![Request { path: self.path(route, route.path.to_owned()), takes }];
        let action = match route.access {
            Access::Public => return whole(Takes::Anyone(public_answer(route))),
            Access::SignedAddress => return whole(Takes::Anyone(StatusCode::NOT_FOUND)),
            Access::Right(action) => action,
            Access::Token => {
                return match route.path {
                    // What it holds is looked at elsewhere.
                    "/api/v2/organizations" => whole(Takes::Anyone(StatusCode::OK)),
                    "/api/v2/account/details" | "/api/v2/account/update" => whole(Takes::User),
                    // What each finds there, tests/api/invitations.rs says.
                    path if path.starts_with("/api/v2/account/invitations") => whole(Takes::User),
                    "/api/v2/organization/audit-trail" => whole(Takes::OrganizationToken),
                    "/api/v2/authentication-tokens/{token}" => {
                        let account = if method == "GET" { Action::ReadAccount } else { Action::UpdateAccount };
                        [
                            ("token of the user", account, Account),
                            ("token of the team", Action::ManageTeams, Organization),
                            ("token of the owners", Action::ManageOwners, Organization),
                            ("token of the organization", Action::ManageOrganizationToken, Organization),
                            ("token of the audit trail", Action::ManageOrganizationToken, Organization),
                            ("token of the pool", Action::ManageAgentPools, Organization),
                        ]
                        .map(|(name, action, place)| to("{token}", name, &[(action, place)]))
                        .into()
                    }
                    path => panic!("every token opens {method} {path}: say here what each may find there"),
                };
            }
        };
        // What is beside a thing may be hidden: who else has access, unless one decides that, and the other end of a trigger.
        let beside = match route.path {
            "/api/v2/team-workspaces/{team_workspace}" => Some((Action::ManageWorkspaceTeams, Place::Workspace)),
            "/api/v2/team-projects/{team_project}" => Some((Action::ManageProjectTeams, Place::Project)),
            "/api/v2/run-triggers/{run_trigger}" => Some((Action::ReadWorkspace, Place::Source)),
            _ => None,
        };
        if method == "GET"
            && let Some(beside) = beside
        {
            return whole(Takes::Rights(vec![(action, place_of(route)), beside]));
        }
        if !route.path.contains("{team}") {
            return whole(Takes::Rights(vec![(action, place_of(route))]));
        }
        // Secret teams are known to their members and to those who manage teams; owners are chosen by owners.
        let (manage, owners) = ((Action::ManageTeams, Organization), (Action::ManageOwners, Organization));
        let (secret, visible, of_owners) = ("team", "visible team", "owners");
        match route.path {
            path if path.contains("/authentication-token") => {
                vec![to("{team}", secret, &[manage]), to("{team}", of_owners, &[owners])]
            }
            path if path.contains("/relationships/") => vec![
                to("{team}", secret, &[(action, Organization), manage]),
                to("{team}", visible, &[(action, Organization)]),
                to("{team}", of_owners, &[owners]),
            ],
            _ if method == "GET" => {
                vec![to("{team}", secret, &[manage]), to("{team}", visible, &[(action, Organization)])]
            }
            _ => vec![to("{team}", secret, &[(action, Organization)])],
        }
    }

    /// A path of the table with names in place of the words in braces.
    fn path(&self, route: &Route, mut path: String) -> String {
        if route.path.contains("{organization}") {
            path = path.replace("{workspace}", "web");
        }
        for (word, name) in &self.names {
            path = path.replace(&format!("{{{word}}}"), name);
        }
        assert!(!path.contains('{'), "the fixture has no name for a word of {path}");
        match route.path {
            "/api/v2/state-versions" | "/api/v2/vars" => {
                format!("{path}?filter[organization][name]=acme&filter[workspace][name]=web")
            }
            "/api/v2/team-workspaces" => format!("{path}?filter[workspace][id]={}", self.names["workspace"]),
            "/api/v2/team-projects" => format!("{path}?filter[project][id]={}", self.names["project"]),
            "/api/v2/organizations/{organization}/explorer" => format!("{path}?type=workspaces"),
            _ => path,
        }
    }

    /// A body that says enough to get past the shape.
    fn body(&self, route: &Route, method: &str) -> String {
        let one = |kind: &str, name: &str| json!([{ "type": kind, "id": self.names[name] }]);
        let data = match route.path {
            "/api/v2/organizations/{organization}/workspaces" => json!({
                "attributes": { "name": "a-new-name" },
                "relationships": { "project": { "data": { "type": "projects", "id": self.names["project"] } } },
            }),
            "/api/v2/team-workspaces" => {
                let place = &self.names["workspace"];
                return access_of(
                    "team-workspaces",
                    json!({ "access": "read" }),
                    &self.names["team"],
                    "workspace",
                    place,
                )
                .to_string();
            }
            "/api/v2/team-projects" => {
                let place = &self.names["project"];
                return access_of("team-projects", json!({ "access": "read" }), &self.names["team"], "project", place)
                    .to_string();
            }
            path if path.starts_with("/api/http-backend") => return json!({ "ID": "x" }).to_string(),
            "/api/v2/organizations/{organization}/tags" => one("tags", "tag"),
            path if path.ends_with("/relationships/tags") => one("tags", "tag"),
            path if path.ends_with("/tag-bindings") => {
                json!([{ "type": "tag-bindings", "attributes": { "key": "a" } }])
            }
            path if path.ends_with("/relationships/users") => one("users", "username"),
            path if path.ends_with("/relationships/organization-memberships") => {
                one("organization-memberships", "membership")
            }
            path if path.ends_with("/relationships/workspaces") => one("workspaces", "workspace"),
            path if path.ends_with("/relationships/projects") => one("projects", "project"),
            path if path.ends_with("/vars") => json!({
                "attributes": { "key": "new", "category": "env" },
                "relationships": { "workspace": { "data": { "type": "workspaces", "id": self.names["workspace"] } } },
            }),
            "/api/v2/runs" => json!({ "relationships": {
                "workspace": { "data": { "type": "workspaces", "id": self.names["workspace"] } },
            } }),
            path if path.ends_with("/run-triggers") => json!({ "relationships": {
                "sourceable": { "data": { "type": "workspaces", "id": self.names["source"] } },
            } }),
            path if path.ends_with("/comments") => json!({ "attributes": { "body": "hello" } }),
            path if path.ends_with("/remote-state-consumers") => json!([]),
            path if path.ends_with("/state-versions") && method == "PATCH" => json!({ "relationships": {
                "rollback-state-version": { "data": { "type": "state-versions", "id": self.names["state_version"] } },
            } }),
            path if path.ends_with("/state-versions") => json!({ "attributes": { "serial": 9, "md5": "x" } }),
            _ => json!({ "attributes": { "name": "a-new-name", "email": "new@acme.test", "value": "v" } }),
        };
        json!({ "data": data }).to_string()
    }

    pub(crate) async fn send(&self, client: &Client, route: &Route, method: &str, path: &str) -> Answer {
        let body = if method == "GET" { String::new() } else { self.body(route, method) };
        client.send(method, path, Some("application/vnd.api+json"), body).await
    }

    /// What the one function says about the caller and these rights.
    async fn may(&self, caller: &Caller, rights: &[(Action, Place)]) -> bool {
        let admin = self.server.admin_caller().await;
        let web = WorkspaceRef::Named { organization: "acme".to_owned(), name: "web".to_owned() };
        let view = self.server.control_plane.workspace(&admin, &web).await.expect("the workspace");
        let state = &view.open.state;
        let project = state.projects.iter().find(|project| project.name.as_str() == "other");
        let source = state.workspace_named("source").expect("the source");
        rights.iter().all(|(action, place)| {
            let resource = match place {
                Place::Site => Resource::Site,
                Place::Account => Resource::Account(self.names["user"].parse().expect("an id")),
                Place::Organization => view.open.resource(),
                Place::Project => Resource::Project(&view.open.state, project.expect("the project")),
                Place::Workspace => view.resource(),
                Place::Source => Resource::Workspace(state, source),
            };
            allow(&caller.actor, *action, resource).allowed
        })
    }
}

/// What everyone is told at a route that asks nobody who they are.
fn public_answer(route: &Route) -> StatusCode {
    if route.path == "/api/v2/ping" { StatusCode::NO_CONTENT } else { StatusCode::OK }
}

/// Where the table's right has to be.
fn place_of(route: &Route) -> Place {
    let names_workspace = [
        "{variable}",
        "{workspace}",
        "{state_version}",
        "{output}",
        "/tags/{tag}",
        "v2/state-versions",
        "/team-workspaces",
        "v2/runs",
        "{configuration_version}",
        "{run_event}",
        "{comment}",
        "{plan}",
        "{apply}",
        "{cost_estimate}",
        "{run_trigger}",
    ];
    match route.path {
        "/api/v2/vars" => Place::Workspace,
        // Members see tags of the workspaces that they see; whoever deletes one takes it from all that carry it.
        path if path.ends_with("{organization}/tags") => {
            if route.methods == ["GET"] {
                Place::Organization
            } else {
                Place::Workspace
            }
        }
        path if path.contains("{user}") => Place::Account,
        path if path.contains("/admin/") || path == "/api/v2/organizations" => Place::Site,
        path if path.contains("{project}")
            || path.contains("/team-projects")
            || (path.ends_with("{organization}/workspaces") && route.methods == ["POST"]) =>
        {
            Place::Project
        }
        path if names_workspace.iter().any(|word| path.contains(word)) => Place::Workspace,
        _ => Place::Organization,
    }
}

async fn owners_of(server: &ApiServer, organization: &str) -> String {
    let path = format!("/api/v2/organizations/{organization}/teams?filter[names]=owners");
    server.admin().get(&path).await.data()[0]["id"].as_str().expect("an id").to_owned()
}

/// Invites a user to an organization, into such a team. The membership's id.
async fn invited(server: &ApiServer, organization: &str, user: &str, team: Option<String>) -> String {
    let teams: Vec<_> = team.into_iter().map(|team| json!({ "type": "teams", "id": team })).collect();
    let body = json!({ "data": { "type": "organization-memberships",
        "attributes": { "email": format!("{user}@acme.test") }, "relationships": { "teams": { "data": teams } } } });
    let path = format!("/api/v2/organizations/{organization}/organization-memberships");
    server.admin().post(&path, &body).await.expect(StatusCode::CREATED).id()
}

/// Takes the next phase of an organization, as an agent within a server does.
async fn next_phase(server: &ApiServer, organization: &str) -> TakenPhase {
    let plane = &server.control_plane;
    let taker = Taker::within(plane.id_for_agent_within(), "within");
    let open = plane.organization_named(&server.admin_caller().await, organization).await.expect("an organization");
    let taken = plane.take_phase(&open, taker).await.expect("a bucket");
    taken.expect("a phase is ready")
}

#[tokio::test]
async fn nobody_gets_in_without_a_token() {
    let fixture = Fixture::new().await;
    for authorization in [None, Some("Bearer taco_u_0000000000000000000000000000000000000000000")] {
        let client = fixture.server.with_authorization(authorization);
        for route in routes::all() {
            for method in route.methods {
                let expected = match route.access {
                    Access::Public => public_answer(&route),
                    Access::SignedAddress => StatusCode::NOT_FOUND,
                    Access::Token | Access::Right(_) => StatusCode::UNAUTHORIZED,
                };
                for request in fixture.requests(&route, method) {
                    let answer = fixture.send(&client, &route, method, &request.path).await;
                    assert_eq!(answer.status, expected, "{method} {}", request.path);
                }
            }
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn the_api_does_what_the_one_function_decides() {
    let callers: Vec<_> = CALLERS.iter().map(|(name, who)| tokio::spawn(differences(name, who))).collect();
    let mut differences = Vec::new();
    for caller in callers {
        differences.extend(caller.await.expect("a list"));
    }
    assert!(differences.is_empty(), "{}", differences.join("\n"));
}

/// Whether a path may lead nowhere afterwards: a run that is over has no plan, for instance. What is only added stands
/// in nobody's way.
fn takes_away(route: &Route, method: &str) -> bool {
    let acts = ["/actions/safe-delete", "/actions/{action}"].iter().any(|action| route.path.ends_with(action));
    matches!(method, "DELETE" | "PATCH") || acts || route.path.contains("/runs/{run}/actions/")
}

/// What an answer has to be.
#[derive(Debug)]
enum Expected {
    /// This, exactly.
    Status(StatusCode),
    /// What was asked for, or a word about what stands in its way.
    Allowed,
    /// 404.
    Refused,
}

impl Expected {
    fn is(&self, answer: &Answer, who: &Who) -> bool {
        let status = answer.status;
        match self {
            Self::Status(expected) => status == *expected,
            Self::Allowed => {
                let obstacles = [StatusCode::CONFLICT, StatusCode::UNPROCESSABLE_ENTITY, StatusCode::LOCKED];
                status.is_success() || status.is_redirection() || obstacles.contains(&status)
            }
            Self::Refused => status == StatusCode::NOT_FOUND && (!who.is_stranger() || answer.bytes == NOT_FOUND),
        }
    }
}

/// Calls every route as this caller, and says where the answer is not what was decided.
async fn differences(name: &'static str, who: &'static Who) -> Vec<String> {
    let mut fixture = Fixture::new().await;
    let mut token = fixture.token_of(who).await;
    let mut differences = Vec::new();
    for route in routes::all() {
        for method in route.methods {
            for number in 0..fixture.requests(&route, method).len() {
                let Request { path, takes } = fixture.requests(&route, method).swap_remove(number);
                let caller = fixture.server.caller(&token).await;
                let may = match takes {
                    Takes::Anyone(_) => true,
                    Takes::User => matches!(caller.actor, Actor::User { .. }),
                    Takes::OrganizationToken => matches!(caller.actor, Actor::Organization(_) | Actor::AuditTrail(_)),
                    Takes::Rights(ref rights) => fixture.may(&caller, rights).await,
                };
                let expected = match takes {
                    Takes::Anyone(status) => Expected::Status(status),
                    _ if may => Expected::Allowed,
                    // It tells where else to ask, and nothing about anyone.
                    Takes::OrganizationToken => Expected::Status(StatusCode::NOT_FOUND),
                    Takes::User | Takes::Rights(_) => Expected::Refused,
                };
                let answer = fixture.send(&fixture.server.with_token(&token), &route, method, &path).await;
                if !expected.is(&answer, who) {
                    let said = String::from_utf8_lossy(&answer.bytes);
                    let status = answer.status;
                    differences.push(format!("{name}: {method} {path} gave {status}, expected {expected:?}: {said}"));
                }
                if takes_away(&route, method) && answer.status.is_success() {
                    // Something is gone or has another name now.
                    fixture = Fixture::new().await;
                    token = fixture.token_of(who).await;
                }
            }
        }
    }
    differences
}

/// Every token may ask for all organizations: it finds its own.
#[tokio::test(flavor = "multi_thread")]
async fn everyone_finds_the_organizations_that_they_may_see() {
    let seen = CALLERS.iter().map(|(name, who)| async move {
        let fixture = Fixture::new().await;
        let token = fixture.token_of(who).await;
        let listed = fixture.server.with_token(&token).get("/api/v2/organizations").await.expect(StatusCode::OK);
        let listed = listed.data().as_array().expect("a list").iter().any(|organization| organization["id"] == "acme");
        let caller = fixture.server.caller(&token).await;
        let may = fixture.may(&caller, &[(Action::ReadOrganization, Place::Organization)]).await;
        assert_eq!(listed, may, "{name}");
    });
    futures::future::join_all(seen).await;
}
