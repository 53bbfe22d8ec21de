//! Every route of the table, with every kind of caller.
//!
//! Permissions come from the one function that decides; the API's behaviour has to agree. A handler that is not in the
//! table cannot be reached, so none is forgotten. A refused caller gets 404, and a stranger gets the very bytes that
//! everyone gets where nothing is.

use std::ops::Deref;

use axum::http::StatusCode;
use harness::api_server::{Answer, Client};
use harness::permission_site::{
    CONFIGURATION, MEMBERS, PermissionSite, Role, attributes, invited, next_phase, owners_of,
};
use serde_json::json;
use taco_control_plane::Caller;
use taco_domain::permission::{Action, Actor};
use taco_tfc_api::routes::{self, Access, Place, Route};

use crate::runs::act;

/// Caller of a request.
#[derive(Clone, Copy)]
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
    /// Holder of a token of a phase of the workspace's run.
    Phase(Phase, Holder),
    /// Code inside the run of a workspace that knows nothing of this one.
    RunElsewhere,
    /// Code inside the run of a workspace that may read this one's state.
    RunOfConsumer,
    SiteAdmin,
    /// Someone who may do much in another organization.
    Rival(Rival),
}

/// A phase that is under way in the workspace.
#[derive(Clone, Copy)]
enum Phase {
    Plan,
    SpeculativePlan,
    Apply,
}

/// Holder of a phase's token.
#[derive(Clone, Copy)]
enum Holder {
    /// Code that runs in it.
    Run,
    /// Its agent, which comes to the API by this token as well: older agents give it to what they run.
    Agent,
}

#[derive(Clone, Copy)]
enum Rival {
    Owner,
    OwnersToken,
    Organization,
    AuditTrail,
    AgentPool,
    Run,
}

impl Who {
    /// True if they must not even learn that the organization exists.
    fn is_stranger(&self) -> bool {
        matches!(self, Self::Outsider | Self::Rival(_))
    }
}

/// Callers beside the members of the organization.
const OTHERS: &[(&str, Who)] = &[
    ("outsider", Who::Outsider),
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

fn callers() -> impl Iterator<Item = (&'static str, Who)> {
    let members = MEMBERS.iter().map(|(name, role)| (*name, Who::Member(*role)));
    members.chain(OTHERS.iter().copied())
}

/// One request to a route. Where its answer depends on which thing it names, a route has several.
pub(crate) struct Request {
    pub(crate) path: String,
    access: Access,
}

/// Response for everything that does not exist, or that the caller must not know of.
const NOT_FOUND: &str = r#"{"errors":[{"status":"404","title":"not found"}]}"#;

/// The site, and who calls its API.
pub(crate) struct Fixture(PermissionSite);

impl Deref for Fixture {
    type Target = PermissionSite;

    fn deref(&self) -> &PermissionSite {
        &self.0
    }
}

impl Fixture {
    pub(crate) async fn new() -> Self {
        Self(PermissionSite::new().await)
    }

    async fn fork(&self) -> Self {
        Self(self.0.fork().await)
    }

    async fn issue(&self, path: &str) -> String {
        let issued = self.server.admin().post(path, &json!({})).await.expect(StatusCode::CREATED);
        issued.attribute("token").as_str().expect("a token").to_owned()
    }

    /// A token of such a caller.
    async fn token_of(&self, who: Who) -> String {
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
            Who::Phase(phase, holder) => self.token_of_phase(phase, holder).await,
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
        let taken = match phase {
            Phase::Plan => next_phase(server, "acme").await,
            Phase::Apply => {
                self.plan_run().await;
                act(&server.admin(), &self.names["run"], "apply").await.expect(StatusCode::ACCEPTED);
                next_phase(server, "acme").await
            }
            Phase::SpeculativePlan => {
                let only = json!({ "plan-only": true });
                let run = server.admin().start_run(&self.names["workspace"], only).await.expect(StatusCode::CREATED);
                // The other run is ready as well, and either may come first.
                loop {
                    let taken = next_phase(server, "acme").await;
                    if taken.run.id.to_string() == run.id() {
                        break taken;
                    }
                }
            }
        };
        match holder {
            Holder::Run => taken.run_token,
            Holder::Agent => taken.token,
        }
    }

    /// A token of such a caller in another organization.
    async fn token_of_rival(&self, rival: Rival) -> String {
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
                server.given_configuration(&workspace, &CONFIGURATION).await;
                server.admin().start_run(&workspace, json!({})).await.expect(StatusCode::CREATED);
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
        self.server.given_configuration(&self.names["source"], &CONFIGURATION).await;
        self.server.admin().start_run(&self.names["source"], json!({})).await.expect(StatusCode::CREATED);
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

    /// All requests that a route is tried with.
    pub(crate) fn requests(&self, route: &Route) -> Vec<Request> {
        match route.access {
            Access::Depends(cases) => {
                let request = |case: &routes::Case| Request {
                    path: self.path(route, &self.naming(route.path, case)),
                    access: Access::All(case.rights),
                };
                cases.iter().map(request).collect()
            }
            access => vec![Request { path: self.path(route, route.path), access }],
        }
    }

    /// A path of the table with names in place of the placeholders, and with the query that it cannot do without.
    fn path(&self, route: &Route, path: &str) -> String {
        let within_organization = route.path.contains("{organization}");
        let path = if within_organization { path.replace("{workspace}", "{workspace_name}") } else { path.to_owned() };
        let query = route.sample_query.map(|query| format!("?{query}")).unwrap_or_default();
        let path = self.filled(&format!("{path}{query}"));
        assert!(!path.contains('{'), "the fixture has no name for a word of {path}");
        path
    }

    pub(crate) async fn send(&self, client: &Client, route: &Route, method: &str, path: &str) -> Answer {
        let body = if method == "GET" { String::new() } else { self.filled(route.sample_body) };
        client.send(method, path, Some("application/vnd.api+json"), body).await
    }
}

#[tokio::test]
async fn nobody_gets_in_without_a_token() {
    let fixture = Fixture::new().await;
    for authorization in [None, Some("Bearer taco_u_0000000000000000000000000000000000000000000")] {
        let client = fixture.server.with_authorization(authorization);
        for route in routes::all() {
            for method in route.methods {
                for request in fixture.requests(&route) {
                    let answer = fixture.send(&client, &route, method, &request.path).await;
                    let expected = match request.access {
                        Access::Public => Expected::Success,
                        Access::SignedAddress => Expected::Status(StatusCode::NOT_FOUND),
                        _ => Expected::Status(StatusCode::UNAUTHORIZED),
                    };
                    assert!(expected.is(&answer, &Who::Outsider), "{method} {}: {}", request.path, answer.status);
                }
            }
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn the_api_does_what_the_one_function_decides() {
    let callers: Vec<_> = callers().map(|(name, who)| tokio::spawn(differences(name, who))).collect();
    let mut differences = Vec::new();
    for caller in callers {
        differences.extend(caller.await.expect("a list"));
    }
    assert!(differences.is_empty(), "{}", differences.join("\n"));
}

/// Expected response.
#[derive(Debug)]
enum Expected {
    /// This, exactly.
    Status(StatusCode),
    Success,
    /// Success, or an error about some other obstacle.
    Allowed,
    /// 404.
    Refused,
}

impl Expected {
    fn is(&self, answer: &Answer, who: &Who) -> bool {
        let status = answer.status;
        match self {
            Self::Status(expected) => status == *expected,
            Self::Success => status.is_success(),
            Self::Allowed => {
                let obstacles = [StatusCode::CONFLICT, StatusCode::UNPROCESSABLE_ENTITY, StatusCode::LOCKED];
                status.is_success() || status.is_redirection() || obstacles.contains(&status)
            }
            Self::Refused => status == StatusCode::NOT_FOUND && (!who.is_stranger() || answer.bytes == NOT_FOUND),
        }
    }
}

/// Expected response to this request, from the decision of the one function about the caller.
async fn expected(fixture: &Fixture, caller: &Caller, access: Access) -> Expected {
    let rights = |may: bool| if may { Expected::Allowed } else { Expected::Refused };
    match access {
        Access::Public | Access::Token => Expected::Success,
        Access::SignedAddress | Access::TaskToken => Expected::Status(StatusCode::NOT_FOUND),
        Access::User => rights(matches!(caller.actor, Actor::User { .. })),
        Access::OrganizationToken => match caller.actor {
            Actor::Organization(_) | Actor::AuditTrail(_) => Expected::Allowed,
            // It tells where else to ask, and nothing about anyone.
            _ => Expected::Status(StatusCode::NOT_FOUND),
        },
        Access::Right(action, place) => rights(fixture.may(caller, &[(action, place)]).await),
        Access::All(all) => rights(fixture.may(caller, all).await),
        Access::Depends(_) => unreachable!("a request names one of the things"),
    }
}

/// Calls every route as this caller, and says where the answer is not what was decided.
async fn differences(name: &'static str, who: Who) -> Vec<String> {
    let site = Fixture::new().await;
    let token = site.token_of(who).await;
    let mut fixture = site.fork().await;
    let mut differences = Vec::new();
    for route in routes::all() {
        for method in route.methods {
            for Request { path, access } in site.requests(&route) {
                let caller = fixture.server.caller(&token).await;
                let expected = expected(&fixture, &caller, access).await;
                let answer = fixture.send(&fixture.server.with_token(&token), &route, method, &path).await;
                if !expected.is(&answer, &who) {
                    let said = String::from_utf8_lossy(&answer.bytes);
                    let status = answer.status;
                    differences.push(format!("{name}: {method} {path} gave {status}, expected {expected:?}: {said}"));
                }
                if *method != "GET" && answer.status.is_success() {
                    // Something is gone, or has another name now.
                    fixture = site.fork().await;
                }
            }
        }
    }
    differences
}

/// Every token may ask for all organizations: it finds its own.
#[tokio::test(flavor = "multi_thread")]
async fn everyone_finds_the_organizations_that_they_may_see() {
    let seen = callers().map(|(name, who)| async move {
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
