//! More than anyone wants to see at once: workspaces by the thousand, and a run with a long log and a large plan.

use std::fmt::Write as _;
use std::sync::Arc;

use axum::Router;
use bytes::Bytes;
use futures::StreamExt as _;
use reqwest::StatusCode;
use serde_json::{Value, json};
use taco_control_plane::{PhaseCaller, PhaseOutcome, PhaseRequest, PlanForm, RequestInfo};
use taco_domain::engine::Engine;
use taco_domain::phase::ResourceCounts;
use taco_ledger::Bucket;
use taco_web::Web;
use url::Url;

use crate::api_server::ApiServer;
use crate::configurations::packed;

/// Size of the chunks in which an agent sends a log.
const LOG_CHUNK_BYTES: usize = 512 * 1024;

pub struct LargeSite {
    pub api: ApiServer,
}

impl LargeSite {
    /// The organization `acme`.
    pub async fn on(bucket: Arc<dyn Bucket>) -> Self {
        let api = ApiServer::start_on(bucket).await;
        api.given_organization("acme").await;
        Self { api }
    }

    /// Pages that everyone sees as the site's admin.
    pub fn pages(&self, origin: &Url) -> Router {
        Web::new(self.api.control_plane.control_plane(), origin).without_login().into_router()
    }

    /// Adds workspaces, each with a tag and a description.
    pub async fn add_workspaces(&self, count: usize) {
        let make = |number: usize| {
            let client = self.api.admin();
            async move {
                let attributes = json!({ "name": format!("network-{number:05}"), "description": "One of many" });
                let tags = json!([{ "type": "tag-bindings", "attributes": { "key": "stage", "value": (number % 7).to_string() } }]);
                let body = json!({ "data": { "type": "workspaces", "attributes": attributes, "relationships": { "tag-bindings": { "data": tags } } } });
                client.post("/api/v2/organizations/acme/workspaces", &body).await.expect(StatusCode::CREATED);
            }
        };
        futures::stream::iter((0..count).map(make)).buffer_unordered(64).collect::<Vec<()>>().await;
    }

    /// A run that waits for confirmation, with so many lines of log and so many resources in its plan; its page's path.
    pub async fn add_run(&self, workspace: &str, lines: usize, resources: usize) -> String {
        let id = self.api.given_workspace("acme", workspace).await;
        self.configure(&id).await;
        let relationships = json!({ "workspace": { "data": { "type": "workspaces", "id": id } } });
        let body = json!({ "data": { "type": "runs", "attributes": { "message": "Much to do" }, "relationships": relationships } });
        let run = self.api.admin().post("/api/v2/runs", &body).await.expect(StatusCode::CREATED).id();
        let phase = self.take().await;
        let control_plane = &self.api.control_plane;
        let (log, mut offset) = (Bytes::from(long_log(lines)), 0);
        while offset < log.len() {
            let piece = log.slice(offset..log.len().min(offset + LOG_CHUNK_BYTES));
            let length = piece.len();
            control_plane.append_log(&phase, offset as u64, piece).await.expect("it is taken");
            offset += length;
        }
        let plan = Bytes::from(large_plan(resources).to_string());
        let plan = futures::stream::iter([Ok::<_, std::io::Error>(plan)]);
        control_plane.upload_plan(&phase, PlanForm::Redacted, plan).await.expect("it is taken");
        let counts = ResourceCounts { additions: resources as u64, ..ResourceCounts::default() };
        let engine = (Engine::Terraform, "1.11.4".to_owned());
        let outcome = PhaseOutcome::Planned {
            has_changes: true,
            counts,
            generated_configuration: false,
            engine,
            policies: Vec::new(),
        };
        control_plane.finish_phase(&phase, outcome).await.expect("the plan ends");
        format!("/app/acme/workspaces/{workspace}/runs/{run}")
    }

    async fn configure(&self, workspace: &str) {
        let body = json!({ "data": { "type": "configuration-versions", "attributes": { "auto-queue-runs": false } } });
        let path = format!("/api/v2/workspaces/{workspace}/configuration-versions");
        let announced = self.api.admin().post(&path, &body).await.expect(StatusCode::CREATED);
        let address = announced.attribute("upload-url").as_str().expect("an address").to_owned();
        let path = address.strip_prefix("http://taco.test").expect("an address of this site");
        let anyone = self.api.with_authorization(None);
        anyone.send("PUT", path, None, packed(&[("main.tf", "")])).await.expect(StatusCode::OK);
    }

    /// Takes the next phase, as an agent within a server does.
    async fn take(&self) -> PhaseCaller {
        let control_plane = &self.api.control_plane;
        let agent = control_plane.id_for_agent_within();
        let open = control_plane.all_organizations().await.expect("organizations").remove(0);
        let taken = control_plane.take_phase(&open, PhaseRequest::within(agent, "within")).await.expect("a bucket");
        let token = taken.expect("a phase is ready").token;
        control_plane.phase_caller(&token, RequestInfo::default()).await.expect("a phase's token")
    }
}

/// As an engine writes it for a terminal, with colours.
fn long_log(lines: usize) -> String {
    let mut log = String::from("\u{2}Terraform v1.11.4\r\n");
    for number in 0..lines {
        let _ = writeln!(
            log,
            "\x1b[0m\x1b[1mterraform_data.service[{number}]: Refreshing state... [id={number:08x}]\x1b[0m"
        );
    }
    log.push('\u{3}');
    log
}

/// As `show -json` has it.
fn large_plan(resources: usize) -> Value {
    let changes: Vec<Value> = (0..resources)
        .map(|number| {
            let after =
                json!({ "input": { "name": format!("service-{number}"), "size": number }, "triggers_replace": null });
            json!({
                "address": format!("module.region[{}].terraform_data.service[{number}]", number % 5),
                "module_address": format!("module.region[{}]", number % 5),
                "mode": "managed", "type": "terraform_data", "name": "service", "index": number,
                "provider_name": "terraform.io/builtin/terraform",
                "change": {
                    "actions": ["create"], "before": null, "after": after,
                    "after_unknown": { "id": true, "output": true }, "before_sensitive": false, "after_sensitive": {},
                },
            })
        })
        .collect();
    json!({ "format_version": "1.2", "terraform_version": "1.11.4", "applyable": true, "complete": true, "errored": false,
        "resource_changes": changes, "resource_drift": [], "output_changes": {} })
}
