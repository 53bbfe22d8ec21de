//! Fills a site through the API, as its users would.

use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use md5::{Digest as _, Md5};
use serde_json::{Value, json};
use tokio::time::{Instant, sleep};

use crate::api_client::ApiClient;
use crate::configurations::packed;

/// Long enough for a machine that is busy with other tests.
const RUN_TIMEOUT: Duration = Duration::from_secs(180);

/// Text of an attacker who wants to run scripts in the browsers of others. If a page takes any of it for markup, it has
/// an element with `data-poison`, or the browser complains.
pub const POISON: &str = "\"'><img src=x onerror=alert(1) data-poison></title></textarea></script><script data-poison>alert(2)\
    </script><svg/onload=alert(3) data-poison><a href=javascript:alert(4) data-poison>{{7*7}}<!--\
    <div hx-get=/logout hx-trigger=load data-poison><meta http-equiv=refresh content=0;url=//evil.test data-poison>";

/// As much of it as fits into a name.
pub const SHORT_POISON: &str = "\"'></title><img src=x onerror=alert(1) data-poison>";

/// Creates things in one organization.
pub struct ApiSeed {
    pub admin: ApiClient,
    pub organization: &'static str,
    pub honest: bool,
}

impl ApiSeed {
    /// Creates the organization.
    pub async fn of_organization(admin: ApiClient, organization: &'static str, honest: bool) -> Self {
        let attributes = json!({ "name": organization, "email": "ops@acme.test" });
        let body = json!({ "data": { "type": "organizations", "attributes": attributes } });
        admin.post("/api/v2/organizations", body).await;
        Self { admin, organization, honest }
    }

    /// A text for others to read.
    pub fn text(&self, text: &str) -> String {
        if self.honest { text.to_owned() } else { format!("{text} {POISON}") }
    }

    /// A name that may hold any character.
    pub fn name(&self, name: &str) -> String {
        if self.honest { name.to_owned() } else { format!("{name} {SHORT_POISON}") }
    }

    /// Creates something in the organization, and returns its id.
    pub async fn create(&self, collection: &str, attributes: Value, relationships: Value) -> String {
        self.create_at(
            &format!("/api/v2/organizations/{}/{collection}", self.organization),
            collection,
            attributes,
            relationships,
        )
        .await
    }

    pub async fn create_at(&self, path: &str, kind: &str, attributes: Value, relationships: Value) -> String {
        let data = json!({ "type": kind, "attributes": attributes, "relationships": relationships });
        let made = self.admin.post(path, json!({ "data": data })).await;
        made["data"]["id"].as_str().expect("an id").to_owned()
    }

    pub async fn workspace(&self, project: &str, name: &str, description: &str) -> String {
        let relationships = json!({ "project": { "data": { "type": "projects", "id": project } } });
        let attributes = json!({ "name": name, "description": self.text(description), "execution-mode": "remote", "taco-engine": "terraform" });
        self.create("workspaces", attributes, relationships).await
    }

    pub async fn variable(&self, workspace: &str, attributes: Value) -> String {
        self.create_at(&format!("/api/v2/workspaces/{workspace}/vars"), "vars", attributes, json!({})).await
    }

    /// Uploads a configuration of these files, without a run.
    pub async fn configuration(&self, workspace: &str, files: &[(&str, &str)]) {
        let path = format!("/api/v2/workspaces/{workspace}/configuration-versions");
        let body = json!({ "data": { "type": "configuration-versions", "attributes": { "auto-queue-runs": false } } });
        let announced = self.admin.post(&path, body).await;
        let address = announced["data"]["attributes"]["upload-url"].as_str().expect("an address").to_owned();
        let sent = self.admin.client.put(address).body(packed(files)).send().await.expect("an answer");
        assert!(sent.status().is_success(), "the upload is refused: {}", sent.status());
    }

    /// Starts a run of the newest configuration, and waits until it has this status.
    pub async fn run(&self, workspace: &str, attributes: Value, status: &str) -> String {
        let relationships = json!({ "workspace": { "data": { "type": "workspaces", "id": workspace } } });
        let run = self.create_at("/api/v2/runs", "runs", attributes, relationships).await;
        self.until(&run, status).await;
        run
    }

    pub async fn until(&self, run: &str, status: &str) {
        let deadline = Instant::now() + RUN_TIMEOUT;
        loop {
            let shown = self.admin.get(&format!("/api/v2/runs/{run}")).await;
            let found = &shown["data"]["attributes"]["status"];
            if found == status {
                return;
            }
            let over = ["applied", "errored", "canceled", "discarded", "planned_and_finished"];
            assert!(!over.iter().any(|end| found == end), "the run {run} is {found} instead of {status}");
            assert!(Instant::now() < deadline, "the run {run} is still {found}, not {status}");
            sleep(Duration::from_millis(100)).await;
        }
    }

    /// Writes a state as a client does: under a lock.
    pub async fn state(&self, workspace: &str, state: &Value) {
        let bytes = state.to_string();
        let attributes = json!({
            "serial": state["serial"], "lineage": state["lineage"],
            "md5": hex::encode(Md5::digest(&bytes)), "state": STANDARD.encode(&bytes),
        });
        let path = format!("/api/v2/workspaces/{workspace}");
        self.admin.post(&format!("{path}/actions/lock"), json!({})).await;
        self.create_at(&format!("{path}/state-versions"), "state-versions", attributes, json!({})).await;
        self.admin.post(&format!("{path}/actions/unlock"), json!({})).await;
    }

    /// The state versions of a workspace, newest first.
    pub async fn states(&self, workspace: &str) -> Vec<String> {
        let listed = self.admin.get(&format!("/api/v2/workspaces/{workspace}/state-versions")).await;
        let listed = listed["data"].as_array().expect("a list").clone();
        listed.iter().map(|version| version["id"].as_str().expect("an id").to_owned()).collect()
    }
}
