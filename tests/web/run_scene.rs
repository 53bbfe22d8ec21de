//! A workspace whose runs a test executes itself, as an agent would, and people who look at them.

use axum::http::StatusCode;
use harness::browser::{Browser, Page};
use harness::page_server::PageServer;
use serde_json::{Value, json};
use taco_control_plane::{DueWait, PhaseCaller, PhaseOutcome, PhaseRequest, PlanForm, RequestInfo};
use taco_domain::engine::Engine;
use taco_domain::phase::ResourceCounts;

pub(crate) struct RunScene {
    pub(crate) server: PageServer,
    pub(crate) admin: Browser,
    /// The id of `acme/web`.
    pub(crate) workspace: String,
}

impl RunScene {
    /// The organization `acme` with the workspace `web`, which has a configuration.
    pub(crate) async fn start() -> Self {
        Self::on(PageServer::start().await).await
    }

    pub(crate) async fn on(server: PageServer) -> Self {
        let admin = server.admin().await;
        server.api.given_organization("acme").await;
        let workspace = server.api.given_workspace("acme", "web").await;
        let scene = Self { server, admin, workspace };
        scene.given_configuration(&scene.workspace).await;
        scene
    }

    pub(crate) async fn given_configuration(&self, workspace: &str) {
        self.given_files(workspace, &[("main.tf", "")]).await;
    }

    /// Uploads a configuration of these files.
    pub(crate) async fn given_files(&self, workspace: &str, files: &[(&str, &str)]) {
        self.server.api.given_configuration(workspace, files).await;
    }

    /// Starts a run through the API, and returns its id.
    pub(crate) async fn given_run(&self, attributes: Value) -> String {
        self.given_run_in(&self.workspace, attributes).await
    }

    pub(crate) async fn given_run_in(&self, workspace: &str, attributes: Value) -> String {
        let relationships = json!({ "workspace": { "data": { "type": "workspaces", "id": workspace } } });
        let body = json!({ "data": { "type": "runs", "attributes": attributes, "relationships": relationships } });
        self.server.api.admin().post("/api/v2/runs", &body).await.expect(StatusCode::CREATED).id()
    }

    pub(crate) async fn status(&self, run: &str) -> String {
        let read = self.server.api.admin().get(&format!("/api/v2/runs/{run}")).await.expect(StatusCode::OK);
        read.attribute("status").as_str().expect("a status").to_owned()
    }

    /// Takes the next phase, as an agent within a server does.
    pub(crate) async fn take(&self) -> PhaseCaller {
        let control_plane = &self.server.api.control_plane;
        let agent = control_plane.id_for_agent_within();
        let open = control_plane.all_organizations().await.expect("organizations").remove(0);
        let taken = control_plane.take_phase(&open, PhaseRequest::within(agent, "within")).await.expect("a bucket");
        let token = taken.expect("a phase is ready").token;
        control_plane.phase_caller(&token, RequestInfo::default()).await.expect("a phase's token")
    }

    /// Lets the logs of the runs that wait say why, as the scheduler does after a moment.
    pub(crate) async fn note_waits(&self) {
        let control_plane = &self.server.api.control_plane;
        let open = control_plane.all_organizations().await.expect("organizations").remove(0);
        let due = control_plane.waits_last_seen(&open).into_iter();
        let due = due.map(|wait| DueWait { wait, since: control_plane.now() }).collect();
        control_plane.note_waits(&open, due).await.expect("a bucket");
    }

    pub(crate) async fn log(&self, phase: &PhaseCaller, offset: usize, text: impl Into<bytes::Bytes>) {
        let appended = self.server.api.control_plane.append_log(phase, offset as u64, text.into()).await;
        assert!(appended.is_ok(), "{appended:?}");
    }

    pub(crate) async fn plan(&self, phase: &PhaseCaller, json: &Value) {
        self.plan_as(phase, PlanForm::Redacted, json).await;
    }

    pub(crate) async fn plan_as(&self, phase: &PhaseCaller, form: PlanForm, json: &Value) {
        let body = futures::stream::iter([Ok::<_, std::io::Error>(bytes::Bytes::from(json.to_string()))]);
        let stored = self.server.api.control_plane.upload_plan(phase, form, body).await;
        stored.expect("the plan is stored");
    }

    pub(crate) async fn finish(&self, phase: &PhaseCaller, outcome: PhaseOutcome) {
        self.server.api.control_plane.finish_phase(phase, outcome).await.expect("the phase ends");
    }

    /// A run whose plan found something and waits for a decision.
    pub(crate) async fn given_planned_run(&self, attributes: Value) -> String {
        let run = self.given_run(attributes).await;
        let phase = self.take().await;
        self.finish(&phase, planned()).await;
        run
    }

    /// Address of a run's page.
    pub(crate) fn address(run: &str) -> String {
        format!("/app/acme/workspaces/web/runs/{run}")
    }

    pub(crate) async fn look(&self, run: &str) -> Page {
        self.admin.get(&Self::address(run)).await
    }
}

pub(crate) fn planned() -> PhaseOutcome {
    let counts = ResourceCounts { additions: 3, changes: 1, destructions: 2, imports: 0 };
    let engine = (Engine::Terraform, "1.11.4".to_owned());
    PhaseOutcome::Planned { has_changes: true, counts, generated_configuration: false, engine, policies: Vec::new() }
}

pub(crate) fn applied() -> PhaseOutcome {
    PhaseOutcome::Applied { counts: ResourceCounts::default(), engine: (Engine::Terraform, "1.11.4".to_owned()) }
}

pub(crate) fn errored(message: &str) -> PhaseOutcome {
    PhaseOutcome::Errored { message: message.to_owned(), engine: None }
}

/// Malicious text with which every stored name and message is tested.
pub(crate) const NASTY: &str = "<script>alert(1)</script>\"'><img src=x onerror=alert(1)>&lt;";

/// Checks that nothing of [`NASTY`] became markup.
#[track_caller]
pub(crate) fn is_harmless(page: &Page) {
    assert!(!page.text.contains("<script>alert") && !page.text.contains("<img src=x"), "{}", page.text);
}
