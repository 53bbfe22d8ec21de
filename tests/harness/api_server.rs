//! The API of a server in this process, on a bucket in memory unless a test brings its own, with a clock that tests move.

use std::collections::BTreeSet;
use std::sync::{Arc, LazyLock, Mutex};
use std::time::Duration;

use axum::Router;
use axum::body::{Body, to_bytes};
use axum::http::header::{AUTHORIZATION, CONTENT_TYPE, HeaderMap};
use axum::http::{Method, Request, StatusCode};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use bytes::Bytes;
use jiff::{SignedDuration, Timestamp};
use md5::{Digest, Md5};
use serde_json::value::RawValue;
use serde_json::{Value, json};
use taco_agent_api::AgentApi;
use taco_control_plane::{
    AgentCaller, Caller, HistorySettings, NewToken, NotificationSettings, Privileged, RequestInfo, Settings,
};
use taco_domain::OrganizationState;
use taco_domain::history::HistoryRules;
use taco_domain::id::{OrganizationPrefix, UserId};
use taco_ledger::{Bucket, Clock, Environment, Ledger, MasterKey, MasterKeys, ObjectBucket, Options, Peers, SharedRng};
use taco_outbound::AllowedNetworks;
use taco_scheduler::{Leases, Scheduler, SingleServer};
use taco_server::courier::OutboundCourier;
use taco_tables::State;
use taco_tfc_api::Api;
use tower::ServiceExt;

use crate::configurations::packed;

pub const SITE_TOKEN: &str = "a text that the operator chose";
pub const SECRET: &str = "a master key with more than enough characters";

/// A clock that stands still until it is moved.
#[derive(Debug)]
struct TestClock(Mutex<Timestamp>);

impl Clock for TestClock {
    fn now(&self) -> Timestamp {
        *self.0.lock().expect("not poisoned")
    }
}

pub struct ApiServer {
    pub control_plane: Privileged,
    /// It works when a test lets it.
    pub scheduler: Scheduler,
    pub agents: AgentApi,
    router: Router,
    bucket: Arc<dyn Bucket>,
    clock: Arc<TestClock>,
    history: HistorySettings,
}

/// Requests to configured addresses are real, and reach this machine.
fn notification_settings() -> NotificationSettings {
    static COURIER: LazyLock<Arc<OutboundCourier>> = LazyLock::new(|| {
        let allowed = AllowedNetworks::parse("127.0.0.0/8").expect("a network");
        Arc::new(OutboundCourier::new(allowed, None).expect("a client"))
    });
    NotificationSettings { courier: Arc::clone(&COURIER) as _, site_url: "http://taco.test".to_owned() }
}

impl ApiServer {
    pub async fn start() -> Self {
        Self::start_on(Arc::new(ObjectBucket::in_memory())).await
    }

    /// On a bucket that is empty.
    pub async fn start_on(bucket: Arc<dyn Bucket>) -> Self {
        let clock = Arc::new(TestClock(Mutex::new("2026-01-01T12:00:00Z".parse().expect("a timestamp"))));
        Self::start_with(bucket, clock, HistorySettings::default()).await
    }

    /// On a bucket that is empty, and at another time.
    pub async fn start_at(bucket: Arc<dyn Bucket>, now: Timestamp) -> Self {
        Self::start_with(bucket, Arc::new(TestClock(Mutex::new(now))), HistorySettings::default()).await
    }

    /// With rules of its own for what leaves memory.
    pub async fn with_history(rules: HistoryRules) -> Self {
        Self::with_history_on(Arc::new(ObjectBucket::in_memory()), rules).await
    }

    /// The same on a bucket that is empty.
    pub async fn with_history_on(bucket: Arc<dyn Bucket>, rules: HistoryRules) -> Self {
        let clock = Arc::new(TestClock(Mutex::new("2026-01-01T12:00:00Z".parse().expect("a timestamp"))));
        let history = HistorySettings { rules, ..HistorySettings::default() };
        Self::start_with(bucket, clock, history).await
    }

    async fn start_with(bucket: Arc<dyn Bucket>, clock: Arc<TestClock>, history: HistorySettings) -> Self {
        let server = Self::open(bucket, clock, 1, history).await;
        server.control_plane.first_start().await.expect("a first start");
        server
    }

    /// Another server on the same bucket.
    pub async fn another(&self) -> Self {
        Self::open(Arc::clone(&self.bucket), Arc::clone(&self.clock), 2, self.history).await
    }

    /// The same, with chance of its own.
    pub async fn another_numbered(&self, number: u64) -> Self {
        Self::open(Arc::clone(&self.bucket), Arc::clone(&self.clock), number, self.history).await
    }

    /// Another server on a bucket that began as a copy of this one's: what it does, this one does not see.
    pub async fn on_copy(&self, bucket: Arc<dyn Bucket>) -> Self {
        let clock = Arc::new(TestClock(Mutex::new(self.clock.now())));
        Self::open(bucket, clock, 2, self.history).await
    }

    /// Another server, with rules of its own for what leaves memory.
    pub async fn on_copy_with_history(&self, bucket: Arc<dyn Bucket>, rules: HistoryRules) -> Self {
        let clock = Arc::new(TestClock(Mutex::new(self.clock.now())));
        Self::open(bucket, clock, 2, HistorySettings { rules, ..self.history }).await
    }

    /// The ledger of the only organization, for tests that spoil something in it.
    pub async fn ledger(&self) -> Ledger<OrganizationState> {
        self.ledger_of().await
    }

    /// The same, as a server writes it: commits bear digests by the site's key.
    pub async fn keyed_ledger(&self) -> Ledger<OrganizationState> {
        let open = self.control_plane.all_organizations().await.expect("organizations").remove(0);
        let name = open.id().to_string().parse().expect("a legal name");
        let environment = environment(&self.bucket, &self.clock, 3);
        let options = Options { keys: Some(Arc::new(master_keys(environment.rng.clone()))), ..Options::default() };
        Ledger::open(environment, name, options).await.expect("a ledger")
    }

    /// The same as a program with other records sees it.
    pub async fn ledger_of<S: State>(&self) -> Ledger<S> {
        let org = self.control_plane.all_organizations().await.expect("organizations").remove(0);
        let name = org.id().to_string().parse().expect("a legal name");
        Ledger::open(environment(&self.bucket, &self.clock, 3), name, Options::default()).await.expect("a ledger")
    }

    async fn open(bucket: Arc<dyn Bucket>, clock: Arc<TestClock>, number: u64, history: HistorySettings) -> Self {
        let environment = environment(&bucket, &clock, number);
        let rng = environment.rng.clone();
        let settings = Settings {
            master_keys: Arc::new(master_keys(rng)),
            site_token: Some(SITE_TOKEN.to_owned()),
            ledger: Options::default(),
            timeouts: Default::default(),
            limits: Default::default(),
            history,
            hosts: vec!["taco.test".to_owned()],
            notifications: notification_settings(),
            opa: std::env::var_os("TACO_TEST_OPA").map(Into::into),
        };
        let control_plane = Privileged::open(environment, settings).await.expect("a control plane");
        let router = Api::new(control_plane.control_plane(), "http://taco.test").into_router();
        let scheduler =
            Scheduler::new(control_plane.clone(), Leases::of(Duration::from_secs(30)), Arc::new(SingleServer));
        let agents = AgentApi::new(control_plane.clone(), scheduler.clone(), "http://taco.test");
        Self { control_plane, scheduler, agents, router, bucket, clock, history }
    }

    /// The same server, which lets each token make so many requests in a second.
    pub fn with_rate_limit(self, per_second: u16) -> Self {
        let api = Api::new(self.control_plane.control_plane(), "http://taco.test").with_rate_limit(per_second);
        Self { router: api.into_router(), ..self }
    }

    pub fn pass(&self, time: SignedDuration) {
        let mut now = self.clock.0.lock().expect("not poisoned");
        *now = now.checked_add(time).expect("a timestamp");
    }

    pub fn now(&self) -> Timestamp {
        self.clock.now()
    }

    /// A client with the site's token.
    pub fn admin(&self) -> Client {
        self.with_token(SITE_TOKEN)
    }

    pub fn with_token(&self, token: &str) -> Client {
        Client {
            control_plane: self.control_plane.clone(),
            router: self.router.clone(),
            authorization: Some(format!("Bearer {token}")),
            key: None,
        }
    }

    /// An agent, or any other client of the agents' door with this token.
    pub fn agent_with_token(&self, token: &str) -> Client {
        Client {
            control_plane: self.control_plane.clone(),
            router: self.agents.router(),
            authorization: Some(format!("Bearer {token}")),
            key: None,
        }
    }

    /// A client that sends this as its `Authorization`, or nothing.
    pub fn with_authorization(&self, authorization: Option<&str>) -> Client {
        Client {
            control_plane: self.control_plane.clone(),
            router: self.router.clone(),
            authorization: authorization.map(str::to_owned),
            key: None,
        }
    }

    /// Caller whom the control plane authenticates by a token.
    pub async fn caller(&self, token: &str) -> Caller {
        self.control_plane.authenticate(token, RequestInfo::default()).await.expect("a valid token")
    }

    /// The same of an agent with its pool's token.
    pub async fn agent_caller(&self, token: &str) -> AgentCaller {
        self.control_plane.recognise_agent(token, RequestInfo::default()).await.expect("a pool's token")
    }

    pub async fn admin_caller(&self) -> Caller {
        self.caller(SITE_TOKEN).await
    }

    /// A user's id and a token of theirs.
    pub async fn given_user(&self, name: &str) -> (UserId, String) {
        let admin = self.admin_caller().await;
        let made = self.control_plane.create_user(&admin, name, &format!("{name}@acme.test"), false).await;
        let (user, _) = made.expect("a user");
        let admin = self.admin_caller().await;
        let token = self.control_plane.create_user_token(&admin, user.id, NewToken::default()).await;
        (user.id, token.expect("a token").text.reveal())
    }

    /// An organization that the site's admin founds.
    pub async fn given_organization(&self, name: &str) {
        let body =
            json!({ "data": { "type": "organizations", "attributes": { "name": name, "email": "a@acme.test" } } });
        self.admin().post("/api/v2/organizations", &body).await.expect(StatusCode::CREATED);
    }

    /// Writes a state as a client does: under a lock. Its id.
    pub async fn given_state(&self, workspace: &str, state: &Value) -> String {
        let bytes = state.to_string();
        let attributes = json!({
            "serial": state["serial"], "lineage": state["lineage"],
            "md5": hex::encode(Md5::digest(&bytes)), "state": STANDARD.encode(&bytes),
        });
        let body = json!({ "data": { "type": "state-versions", "attributes": attributes } });
        let (admin, path) = (self.admin(), format!("/api/v2/workspaces/{workspace}"));
        admin.post(&format!("{path}/actions/lock"), &json!({})).await.expect(StatusCode::OK);
        let id = admin.post(&format!("{path}/state-versions"), &body).await.expect(StatusCode::CREATED).id();
        admin.post(&format!("{path}/actions/unlock"), &json!({})).await.expect(StatusCode::OK);
        id
    }

    /// A workspace's id.
    pub async fn given_workspace(&self, organization: &str, name: &str) -> String {
        let body = json!({ "data": { "type": "workspaces", "attributes": { "name": name } } });
        let path = format!("/api/v2/organizations/{organization}/workspaces");
        self.admin().post(&path, &body).await.expect(StatusCode::CREATED).id()
    }

    /// Uploads a configuration of these files, which runs can use. Its id.
    pub async fn given_configuration(&self, workspace: &str, files: &[(&str, &str)]) -> String {
        let body = json!({ "data": { "type": "configuration-versions", "attributes": { "auto-queue-runs": false } } });
        let path = format!("/api/v2/workspaces/{workspace}/configuration-versions");
        let announced = self.admin().post(&path, &body).await.expect(StatusCode::CREATED);
        let address = announced.attribute("upload-url");
        let path = address.as_str().and_then(|address| address.strip_prefix("http://taco.test")).expect("an address");
        self.with_authorization(None).send("PUT", path, None, packed(files)).await.expect(StatusCode::OK);
        announced.id()
    }
}

fn master_keys(rng: SharedRng) -> MasterKeys {
    MasterKeys::new(MasterKey::from_secret(SECRET).expect("long enough"), Vec::new(), rng)
}

fn environment(bucket: &Arc<dyn Bucket>, clock: &Arc<TestClock>, number: u64) -> Environment {
    Environment {
        bucket: Arc::clone(bucket),
        clock: Arc::clone(clock) as _,
        rng: SharedRng::from_seed(number),
        server: format!("server-{number}"),
        peers: Peers::none(),
    }
}

/// Someone who calls the API.
#[derive(Clone)]
pub struct Client {
    control_plane: Privileged,
    router: Router,
    authorization: Option<String>,
    key: Option<String>,
}

/// Response of the API.
#[derive(Clone, Debug)]
pub struct Answer {
    pub status: StatusCode,
    pub headers: HeaderMap,
    pub bytes: Bytes,
}

impl Client {
    /// The same client, which calls its request by a name so that it can repeat it.
    pub fn with_key(&self, key: &str) -> Self {
        Self { key: Some(key.to_owned()), ..self.clone() }
    }

    pub async fn send(&self, method: &str, path: &str, content_type: Option<&str>, body: impl Into<Body>) -> Answer {
        let headers: Vec<_> = content_type.map(|sent| (CONTENT_TYPE.as_str(), sent)).into_iter().collect();
        self.send_with(method, path, &headers, body).await
    }

    pub async fn send_with(&self, method: &str, path: &str, headers: &[(&str, &str)], body: impl Into<Body>) -> Answer {
        let method = Method::from_bytes(method.as_bytes()).expect("a method");
        let is_delete = method == Method::DELETE;
        let mut request = Request::builder().method(method).uri(path).header("host", "taco.test");
        if let Some(authorization) = &self.authorization {
            request = request.header(AUTHORIZATION, authorization);
        }
        if let Some(key) = &self.key {
            request = request.header("idempotency-key", key);
        }
        for (name, value) in headers {
            request = request.header(*name, *value);
        }
        let request = request.body(body.into()).expect("a request");
        let response = self.router.clone().oneshot(request).await.expect("a router never fails");
        let (parts, body) = response.into_parts();
        let bytes = to_bytes(body, usize::MAX).await.expect("a whole body");
        if is_delete && parts.status.is_success() {
            assert_eq!(dangling_ids(&self.control_plane).await, Vec::<String>::new(), "after DELETE {path}");
        }
        Answer { status: parts.status, headers: parts.headers, bytes }
    }

    async fn send_json(&self, method: &str, path: &str, body: &Value) -> Answer {
        self.send(method, path, Some("application/vnd.api+json"), body.to_string()).await
    }

    /// Its `Authorization` header.
    pub fn authorization(&self) -> Option<&str> {
        self.authorization.as_deref()
    }

    pub async fn get(&self, path: &str) -> Answer {
        self.send("GET", path, None, Body::empty()).await
    }

    pub async fn post(&self, path: &str, body: &Value) -> Answer {
        self.send_json("POST", path, body).await
    }

    pub async fn patch(&self, path: &str, body: &Value) -> Answer {
        self.send_json("PATCH", path, body).await
    }

    pub async fn delete(&self, path: &str) -> Answer {
        self.send("DELETE", path, None, Body::empty()).await
    }

    /// Starts a run of the workspace's newest configuration.
    pub async fn start_run(&self, workspace: &str, attributes: Value) -> Answer {
        let relationships = json!({ "workspace": { "data": { "type": "workspaces", "id": workspace } } });
        let body = json!({ "data": { "type": "runs", "attributes": attributes, "relationships": relationships } });
        self.post("/api/v2/runs", &body).await
    }

    /// Accepts an invitation, which the site's admin has vouched to be for this user's address.
    pub async fn accepts(&self, membership: &str) {
        let body = json!({ "data": { "type": "invitations", "id": membership } });
        self.post("/api/v2/account/invitations/actions/accept", &body).await.expect(StatusCode::OK);
    }

    /// An action that says nothing.
    pub async fn act(&self, path: &str) -> Answer {
        self.send("POST", path, Some("application/vnd.api+json"), Body::empty()).await
    }
}

/// The ids that records of organizations name and nothing has. What was deleted stays named where that tells what
/// happened: by whom, with which token, by which agent of which pool, and in the paths of requests that were done. What
/// is in history is there, too, but it is not needed here.
async fn dangling_ids(control_plane: &Privileged) -> Vec<String> {
    const OUTLIVED: [&str; 3] = ["user", "agent", "at"];
    /// A run says which pool its agents were of, and which tasks it asked.
    const OF_RUNS: [&str; 4] = ["apool", "task", "wstask", "polset"];
    /// These are a part of the record that names them.
    const PARTS: [&str; 2] = ["wsout", "tag"];
    /// These may be in history.
    const HISTORIC: [&str; 4] = ["run", "sv", "cv", "wsc"];
    let mut dangling = Vec::new();
    for org in control_plane.all_organizations().await.expect("organizations") {
        let (mut there, mut named) = (BTreeSet::new(), BTreeSet::new());
        let has_history = !control_plane.state(&org).history_segments.is_empty();
        let look = &mut |kind: &str, id: &str, value: &RawValue| {
            there.insert(id.to_owned());
            let texts = value.get().split('"').skip(1).step_by(2);
            let ids = texts.filter(|text| {
                !text.contains('/')
                    && OrganizationPrefix::of(text) == Some(org.id().organization_prefix())
                    && *text != id
            });
            let tells_history = |prefix| OUTLIVED.contains(&prefix) || kind == "run" && OF_RUNS.contains(&prefix);
            let is_kept = |prefix| !tells_history(prefix) && !PARTS.contains(&prefix);
            let ids = ids.filter(|text| text.rsplit_once('-').is_some_and(|(prefix, _)| is_kept(prefix)));
            let ids = ids.filter(|text| {
                !has_history || text.rsplit_once('-').is_some_and(|(prefix, _)| !HISTORIC.contains(&prefix))
            });
            // That a workspace is gone is what the one says, and the other what was done to it in a walk.
            let ids = ids.filter(|_| !["workspace-history", "walk-node"].contains(&kind));
            named.extend(ids.map(|text| (text.to_owned(), format!("{kind} {id} names {text}"))));
        };
        control_plane.state(&org).for_each_json(look).expect("JSON");
        dangling.extend(named.into_iter().filter(|(text, _)| !there.contains(text)).map(|(_, what)| what));
    }
    dangling
}

impl Answer {
    /// Itself, if it has this status.
    #[track_caller]
    pub fn expect(self, status: StatusCode) -> Self {
        assert_eq!(self.status, status, "{}", String::from_utf8_lossy(&self.bytes));
        self
    }

    pub fn json(&self) -> Value {
        serde_json::from_slice(&self.bytes).unwrap_or(Value::Null)
    }

    pub fn data(&self) -> Value {
        self.json()["data"].clone()
    }

    pub fn id(&self) -> String {
        self.data()["id"].as_str().expect("an id").to_owned()
    }

    pub fn attribute(&self, name: &str) -> Value {
        self.data()["attributes"][name].clone()
    }

    /// Detail and pointer of the first error.
    pub fn error(&self) -> (String, Option<String>) {
        let error = self.json()["errors"][0].clone();
        let text = |value: &Value| value.as_str().map(str::to_owned);
        (text(&error["detail"]).unwrap_or_default(), text(&error["source"]["pointer"]))
    }
}
