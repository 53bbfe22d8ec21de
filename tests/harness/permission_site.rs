//! A site in which every path of the tables of routes leads somewhere, and the members of its organization, by what
//! they may do: for the tests that call every route of the API, and ask for every page, as every kind of caller.

use std::collections::BTreeMap;
use std::sync::Arc;

use axum::http::StatusCode;
use serde_json::{Value, json};
use taco_agent_protocol::phase_path;
use taco_control_plane::{Caller, PhaseRequest, TakenPhase, WorkspaceRef};
use taco_domain::permission::{Action, Case, Decision, Place, Resource, allow};
use taco_ledger::ObjectBucket;

use crate::api_server::ApiServer;
use crate::registry::{KEY_ID, MODULE, module_path};
use crate::webhook_receiver::WebhookReceiver;

pub struct PermissionSite {
    pub server: ApiServer,
    bucket: Arc<ObjectBucket>,
    /// Values of the placeholders in braces.
    pub names: BTreeMap<&'static str, String>,
}

/// Rights of a member, or of a team.
#[derive(Clone, Copy)]
pub enum Role {
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

/// All kinds of members.
pub const MEMBERS: &[(&str, Role)] = &[
    ("member without a team", Role::NoTeam),
    ("member of an idle team", Role::Nothing),
    ("workspace reader", Role::Workspace(r#"{"access":"read"}"#)),
    ("workspace planner", Role::Workspace(r#"{"access":"plan"}"#)),
    ("workspace writer", Role::Workspace(r#"{"access":"write"}"#)),
    ("workspace admin", Role::Workspace(r#"{"access":"admin"}"#)),
    ("reads outputs", Role::Workspace(r#"{"access":"custom","state-versions":"read-outputs"}"#)),
    ("locks", Role::Workspace(r#"{"access":"custom","workspace-locking":true}"#)),
    ("writes states", Role::Workspace(r#"{"access":"custom","state-versions":"write","workspace-locking":true}"#)),
    ("writes variables", Role::Workspace(r#"{"access":"custom","variables":"write"}"#)),
    ("applies", Role::Workspace(r#"{"access":"custom","runs":"apply","variables":"write"}"#)),
    ("project reader", Role::Project(r#"{"access":"read"}"#)),
    ("project writer", Role::Project(r#"{"access":"write"}"#)),
    ("project maintainer", Role::Project(r#"{"access":"maintain"}"#)),
    ("project admin", Role::Project(r#"{"access":"admin"}"#)),
    (
        "custom in the project",
        Role::Project(
            r#"{"access":"custom","project-access":{"settings":"update"},"workspace-access":{"create":true}}"#,
        ),
    ),
    ("manages workspaces", Role::Flag("manage-workspaces")),
    ("manages membership", Role::Flag("manage-membership")),
    ("owner", Role::Owner),
];

/// Files of a configuration that runs can use.
pub const CONFIGURATION: [(&str, &str); 2] = [("main.tf", "configuration"), ("README.md", "# Configuration")];

fn access_of(kind: &str, access: Value, team: &str, place: &str, id: &str) -> Value {
    json!({ "data": { "type": kind, "attributes": access, "relationships": {
        "team": { "data": { "type": "teams", "id": team } },
        place: { "data": { "type": format!("{place}s"), "id": id } },
    } } })
}

pub fn attributes(kind: &str, attributes: Value) -> Value {
    json!({ "data": { "type": kind, "attributes": attributes } })
}

fn state_with_outputs() -> Value {
    json!({
        "version": 4, "terraform_version": "1.11.4", "serial": 1, "lineage": "a",
        "outputs": {
            "secret": { "value": "x", "type": "string", "sensitive": true },
            "plain": { "value": ["x"], "type": ["list", "string"] },
        },
        "resources": [{
            "mode": "managed", "type": "terraform_data", "name": "one",
            "provider": "provider[\"terraform.io/builtin/terraform\"]", "instances": [{ "attributes": {} }],
        }],
    })
}

impl PermissionSite {
    pub async fn new() -> Self {
        let bucket = Arc::new(ObjectBucket::in_memory());
        let server = ApiServer::start_on(Arc::clone(&bucket) as _).await;
        let admin = server.admin();
        server.given_organization("acme").await;
        let body = attributes("projects", json!({ "name": "other" }));
        let project = admin.post("/api/v2/organizations/acme/projects", &body).await.expect(StatusCode::CREATED).id();
        let mut body = attributes("workspaces", json!({ "name": "web" }));
        body["data"]["relationships"]["project"]["data"] = json!({ "type": "projects", "id": project });
        let workspace =
            admin.post("/api/v2/organizations/acme/workspaces", &body).await.expect(StatusCode::CREATED).id();
        let version = server.given_state(&workspace, &state_with_outputs()).await;
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
        let connection = json!({ "service-provider": "github", "api-url": "https://api.github.com",
            "http-url": "https://github.com", "oauth-token-string": "secret" });
        let connection = made("/api/v2/organizations/acme/oauth-clients", "oauth-clients", connection).await;
        let token = &connection.data()["relationships"]["oauth-tokens"]["data"][0]["id"];
        let (oauth_client, oauth_token) = (connection.id(), token.as_str().expect("an id").to_owned());
        let path = "/api/v2/organizations/acme/reserved-tag-keys";
        let reserved_tag_key = made(path, "reserved-tag-keys", json!({ "key": "cost-center" })).await.id();
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
        let hook = json!({ "name": "hook", "destination-type": "generic", "enabled": false,
            "url": "https://hooks.acme.test/" });
        let configured = |path: String| {
            let (admin, body) = (admin.clone(), attributes("notification-configurations", hook.clone()));
            async move {
                let path = format!("{path}/notification-configurations");
                admin.post(&path, &body).await.expect(StatusCode::CREATED).id()
            }
        };
        let notification_of_workspace = configured(format!("/api/v2/workspaces/{workspace}")).await;
        let notification_of_project = configured(format!("/api/v2/projects/{project}")).await;
        let notification_of_team = configured(format!("/api/v2/teams/{team}")).await;
        let declared = attributes("dependencies", json!({ "producer": "source" }));
        let path = format!("/api/v2/workspaces/{workspace}/dependencies");
        let dependency = admin.post(&path, &declared).await.expect(StatusCode::CREATED).id();
        // A variable that is bound to an output of it.
        server.given_state(&source, &state_with_outputs()).await;
        let sharing = attributes("workspaces", json!({ "global-remote-state": true }));
        admin.patch(&format!("/api/v2/workspaces/{source}"), &sharing).await.expect(StatusCode::OK);
        let binding = attributes("bindings", json!({ "key": "zones", "producer": "source", "output": "plain" }));
        let path = format!("/api/v2/workspaces/{workspace}/bindings");
        let binding = admin.post(&path, &binding).await.expect(StatusCode::CREATED).id();
        // A task that is asked after applies, so that it is in nothing's way.
        let receiver = WebhookReceiver::start().await;
        let task = json!({ "name": "scan", "url": receiver.url(), "category": "task" });
        let task = admin.post(&format!("{within}/tasks"), &attributes("tasks", task)).await;
        let task = task.expect(StatusCode::CREATED).id();
        let attached = json!({ "data": { "attributes": { "enforcement-level": "advisory", "stages": ["post_apply"] },
            "relationships": { "task": { "data": { "type": "tasks", "id": task } } } } });
        let path = format!("/api/v2/workspaces/{workspace}/tasks");
        let workspace_task = admin.post(&path, &attached).await.expect(StatusCode::CREATED).id();
        let hold = json!({ "data": { "type": "data-retention-policy-dont-deletes" } });
        for owner in [within.to_owned(), format!("/api/v2/workspaces/{workspace}")] {
            let path = format!("{owner}/relationships/data-retention-policy");
            admin.post(&path, &hold).await.expect(StatusCode::OK);
        }
        let estimating = attributes("organizations", json!({ "cost-estimation-enabled": true }));
        admin.patch(within, &estimating).await.expect(StatusCode::OK);
        let policy = json!({ "name": "tags", "kind": "opa", "query": "data.terraform.deny" });
        let policy = made("/api/v2/organizations/acme/policies", "policies", policy).await.id();
        let path = format!("/api/v2/policies/{policy}/upload");
        admin.send("PUT", &path, None, "package terraform\n\ndeny := []\n".to_owned()).await.expect(StatusCode::OK);
        let mut body = attributes("policy-sets", json!({ "name": "all", "kind": "opa", "global": true }));
        body["data"]["relationships"]["policies"]["data"] = json!([{ "type": "policies", "id": policy }]);
        let policy_set =
            admin.post("/api/v2/organizations/acme/policy-sets", &body).await.expect(StatusCode::CREATED).id();
        let path = format!("/api/v2/policy-sets/{policy_set}/versions");
        let policy_set_version = admin.post(&path, &json!({})).await.expect(StatusCode::CREATED).id();
        let parameter = json!({ "key": "owner", "value": "team", "category": "policy-set" });
        let path = format!("/api/v2/policy-sets/{policy_set}/parameters");
        let policy_parameter = admin.post(&path, &attributes("vars", parameter)).await.expect(StatusCode::CREATED).id();
        let configuration = server.given_configuration(&workspace, &CONFIGURATION).await;
        let run = admin.start_run(&workspace, json!({})).await.expect(StatusCode::CREATED);
        let part = |name: &str| run.data()["relationships"][name]["data"].clone();
        let id_of = |thing: &Value| thing["id"].as_str().expect("an id").to_owned();
        let (plan, apply, event) = (id_of(&part("plan")), id_of(&part("apply")), id_of(&part("run-events")[0]));
        let estimate = id_of(&part("cost-estimate"));
        let run = run.id();
        let stages = admin.get(&format!("/api/v2/runs/{run}/task-stages")).await.expect(StatusCode::OK);
        let stages = stages.data().as_array().cloned().unwrap_or_default();
        let with = |name: &str| {
            let listed =
                |stage: &&Value| stage["relationships"][name]["data"].as_array().is_some_and(|all| !all.is_empty());
            stages.iter().find(listed).expect("one of them has some").clone()
        };
        let (of_policies, of_tasks) = (with("policy-evaluations"), with("task-results"));
        let task_stage = id_of(&of_policies);
        let evaluation = id_of(&of_policies["relationships"]["policy-evaluations"]["data"][0]);
        let path = format!("/api/v2/policy-evaluations/{evaluation}/policy-set-outcomes");
        let outcome = id_of(&admin.get(&path).await.expect(StatusCode::OK).data()[0]);
        let task_result = id_of(&of_tasks["relationships"]["task-results"]["data"][0]);
        let comment = attributes("comments", json!({ "body": "hello" }));
        let path = format!("/api/v2/runs/{run}/comments");
        let comment = admin.post(&path, &comment).await.expect(StatusCode::CREATED).id();
        let path = format!("/api/v2/agent-pools/{pool}/authentication-tokens");
        let pool_token = admin.post(&path, &json!({})).await.expect(StatusCode::CREATED);
        let agent = server.agent_caller(pool_token.attribute("token").as_str().expect("a token")).await;
        let agent =
            server.control_plane.connect_agent(&agent, None, None, "one", "1.0.0").await.expect("an agent").agent;

        let walk = attributes("walks", json!({ "kind": "apply", "from": ["web"] }));
        let walk = admin.post(&format!("{within}/walks"), &walk).await.expect(StatusCode::CREATED).id();

        let module = server.given_module("acme", "greeter", "local").await;
        let path = module_path("acme", "greeter", "local");
        let module_version = server.given_published_module(&path, "1.0.0", &MODULE).await;
        let (provider, provider_version, provider_platform) = server.given_published_provider("acme").await;

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
        // Whoever asks first lets the server examine states; after this, nobody's question does.
        admin.get(&format!("{within}/graph")).await.expect(StatusCode::OK);
        let names = BTreeMap::from([
            ("organization", "acme".to_owned()),
            ("workspace", workspace),
            ("workspace_name", "web".to_owned()),
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
            ("oauth_client", oauth_client),
            ("oauth_token", oauth_token),
            ("reserved_tag_key", reserved_tag_key),
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
            ("notification", notification_of_workspace.clone()),
            ("notification of the workspace", notification_of_workspace),
            ("notification of the project", notification_of_project),
            ("notification of the team", notification_of_team),
            ("task", task),
            ("workspace_task", workspace_task),
            ("task_stage", task_stage),
            ("task_result", task_result),
            ("dependency", dependency),
            ("binding", binding),
            ("output_commit", "1".to_owned()),
            ("configuration_version", configuration),
            ("policy", policy),
            ("policy_set", policy_set),
            ("policy_set_version", policy_set_version),
            ("policy_parameter", policy_parameter),
            ("policy_evaluation", evaluation),
            ("policy_set_outcome", outcome),
            ("run", run),
            ("plan", plan.clone()),
            ("log", plan),
            ("apply", apply),
            ("cost_estimate", estimate),
            ("run_event", event),
            ("comment", comment),
            ("walk", walk),
            ("module", module),
            ("module_version", module_version),
            ("module_name", "greeter".to_owned()),
            ("module_provider", "local".to_owned()),
            ("provider", provider),
            ("provider_version", provider_version),
            ("provider_platform", provider_platform),
            ("provider_name", "null".to_owned()),
            ("registry", "private".to_owned()),
            ("namespace", "acme".to_owned()),
            ("version", "1.0.0".to_owned()),
            ("os", "linux".to_owned()),
            ("arch", "amd64".to_owned()),
            ("key_id", KEY_ID.to_owned()),
            ("agent", agent.id.to_string()),
            ("pass", "1-00".to_owned()),
            ("action", "soft_delete_backing_data".to_owned()),
        ]);
        Self { server, bucket, names }
    }

    /// The same site once more: what is done to one, the other does not know.
    pub async fn fork(&self) -> Self {
        self.server.control_plane.flush().await;
        let bucket = Arc::new(self.bucket.fork().expect("it is in memory"));
        let server = self.server.on_copy(Arc::clone(&bucket) as _).await;
        Self { server, bucket, names: self.names.clone() }
    }

    /// Lets the plan of the workspace's run end, as an agent does.
    pub async fn plan_run(&self) {
        let phase = next_phase(&self.server, "acme").await;
        let agent = self.server.agent_with_token(&phase.token);
        let outcome = json!({ "outcome": "planned", "has_changes": true, "counts": { "additions": 1 },
            "generated_configuration": false, "engine": { "engine": "terraform", "version": "1.11.4" } });
        let files = ["plan", "json-plan", "redacted-plan"].map(|word| (word, "{}".to_owned()));
        for (word, body) in files.into_iter().chain([("outcome", outcome.to_string())]) {
            let path = format!("{}/{word}", phase_path(&phase.attempt));
            agent.send("PUT", &path, None, body).await.expect(StatusCode::NO_CONTENT);
        }
    }

    /// A team that has nothing but this.
    pub async fn team_with(&self, role: Role) -> Option<String> {
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

    /// A text with names in place of the placeholders.
    pub fn filled(&self, text: &str) -> String {
        self.names.iter().fold(text.to_owned(), |text, (word, name)| text.replace(&format!("{{{word}}}"), name))
    }

    /// A path of a table that names this thing with its last placeholder: something of the site, or just a word.
    pub fn naming(&self, path: &str, case: &Case) -> String {
        let (before, rest) = path.rsplit_once('{').expect("a word in braces");
        let (_, after) = rest.split_once('}').expect("its end");
        format!("{before}{}{after}", self.names.get(case.named).map_or(case.named, String::as_str))
    }

    /// Decisions of the one function about the caller and these rights.
    pub async fn decisions(&self, caller: &Caller, rights: &[(Action, Place)]) -> Vec<Decision> {
        let admin = self.server.admin_caller().await;
        let web = WorkspaceRef::Named { organization: "acme".to_owned(), name: "web".to_owned() };
        let view = self.server.control_plane.workspace(&admin, &web).await.expect("the workspace");
        let state = self.server.control_plane.state(&view.org);
        let project = state.projects.iter().find(|project| project.name.as_str() == "other");
        let source = state.workspace_named("source").expect("the source");
        let decide = |(action, place): &(Action, Place)| {
            let resource = match place {
                Place::Site => Resource::Site,
                Place::Account => Resource::Account(self.names["user"].parse().expect("an id")),
                Place::Organization => view.org.resource(),
                Place::Project => Resource::Project(state, project.expect("the project")),
                Place::Workspace => view.resource(),
                Place::Source => Resource::Workspace(state, source),
            };
            allow(&caller.actor, *action, resource)
        };
        rights.iter().map(decide).collect()
    }

    /// True if the caller has all of these rights.
    pub async fn may(&self, caller: &Caller, rights: &[(Action, Place)]) -> bool {
        self.decisions(caller, rights).await.iter().all(|decision| decision.allowed)
    }
}

pub async fn owners_of(server: &ApiServer, organization: &str) -> String {
    let path = format!("/api/v2/organizations/{organization}/teams?filter[names]=owners");
    server.admin().get(&path).await.data()[0]["id"].as_str().expect("an id").to_owned()
}

/// Invites a user to an organization, into such a team. The membership's id.
pub async fn invited(server: &ApiServer, organization: &str, user: &str, team: Option<String>) -> String {
    let teams: Vec<_> = team.into_iter().map(|team| json!({ "type": "teams", "id": team })).collect();
    let body = json!({ "data": { "type": "organization-memberships",
        "attributes": { "email": format!("{user}@acme.test") }, "relationships": { "teams": { "data": teams } } } });
    let path = format!("/api/v2/organizations/{organization}/organization-memberships");
    server.admin().post(&path, &body).await.expect(StatusCode::CREATED).id()
}

/// Takes the next phase of an organization, as an agent within a server does.
pub async fn next_phase(server: &ApiServer, organization: &str) -> TakenPhase {
    let plane = &server.control_plane;
    let taker = PhaseRequest::within(plane.id_for_agent_within(), "within");
    let org = plane.organization_named(&server.admin_caller().await, organization).await.expect("an organization");
    let taken = plane.take_phase(&org, taker).await.expect("a bucket");
    taken.expect("a phase is ready")
}
