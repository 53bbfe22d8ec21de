//! Runs as tests tell them.

use std::sync::atomic::{AtomicU8, Ordering};

use flate2::Compression;
use flate2::write::GzEncoder;
use taco_agent_protocol::{
    Engine, EngineRequest, Job, Operation, Outcome, PhaseAttempt, PhaseKind, PlanSummary, ResourceCounts, Variable,
    VariableCategory,
};
use taco_words::id::{RunId, WorkspaceId};
use tempfile::TempDir;

use crate::agent_process::{AgentProcess, directory};
use crate::fake_server::FakeServer;

/// A server and an agent that is connected to it.
pub(crate) struct Scenario {
    pub(crate) server: FakeServer,
    pub(crate) agent: AgentProcess,
    pub(crate) work_dir: TempDir,
}

impl Scenario {
    pub(crate) async fn begin() -> Self {
        let server = FakeServer::start().await;
        let work_dir = directory();
        let agent = AgentProcess::start(&server.address, work_dir.path(), |_| {});
        server.agent_is_connected().await;
        Self { server, agent, work_dir }
    }

    /// Plans, and expects that it succeeds.
    pub(crate) async fn plan(&self, run: &Run) -> (PhaseAttempt, PlanSummary) {
        let phase = self.hand_out(run, PhaseKind::Plan).await;
        match self.server.outcome(&phase).await {
            Outcome::Planned(summary) => (phase, summary),
            other => panic!("{other:?}:\n{}", self.server.log(&phase)),
        }
    }

    /// Plans and applies, and expects that both succeed.
    pub(crate) async fn apply(&self, run: &Run) -> (PhaseAttempt, ResourceCounts) {
        self.plan(run).await;
        let phase = self.hand_out(run, PhaseKind::Apply).await;
        match self.server.outcome(&phase).await {
            Outcome::Applied { counts, .. } => (phase, counts),
            other => panic!("{other:?}:\n{}", self.server.log(&phase)),
        }
    }

    /// The message with which it failed.
    pub(crate) async fn failure(&self, run: &Run, phase: PhaseKind) -> String {
        let phase = self.hand_out(run, phase).await;
        match self.server.outcome(&phase).await {
            Outcome::Errored { message, .. } => message,
            other => panic!("{other:?}"),
        }
    }

    pub(crate) async fn hand_out(&self, run: &Run, phase: PhaseKind) -> PhaseAttempt {
        self.server.seen().configurations.insert(run.id, run.archive.clone().into());
        let has_state = self.server.seen().state.is_some();
        self.server.hand_out(run.job(phase, has_state, &self.server.address)).await
    }
}

#[derive(Clone)]
pub(crate) struct Run {
    pub(crate) id: RunId,
    pub(crate) archive: Vec<u8>,
    pub(crate) engine: Engine,
    pub(crate) version: String,
    pub(crate) structured_output: bool,
    pub(crate) operation: Operation,
    pub(crate) variables: Vec<Variable>,
    pub(crate) working_directory: String,
    pub(crate) workspace: String,
    pub(crate) timeout_seconds: u64,
}

impl Run {
    /// A run of a configuration with these files.
    pub(crate) fn of(engine: Engine, files: &[(&str, &str)]) -> Self {
        static COUNT: AtomicU8 = AtomicU8::new(1);
        Self {
            id: RunId::from_random([COUNT.fetch_add(1, Ordering::Relaxed); 16]),
            archive: archive(files),
            engine,
            version: "latest".to_owned(),
            structured_output: false,
            operation: Operation { refresh: true, ..Operation::default() },
            variables: Vec::new(),
            working_directory: String::new(),
            workspace: "prod".to_owned(),
            timeout_seconds: 120,
        }
    }

    /// Another run with the same configuration.
    pub(crate) fn again(&self) -> Self {
        Self { id: Self::of(self.engine, &[]).id, ..self.clone() }
    }

    pub(crate) fn with(mut self, change: impl FnOnce(&mut Self)) -> Self {
        change(&mut self);
        self
    }

    pub(crate) fn variable(mut self, key: &str, value: &str, change: impl FnOnce(&mut Variable)) -> Self {
        let (key, value, category) = (key.to_owned(), value.to_owned(), VariableCategory::Terraform);
        let mut variable = Variable { key, value, category, hcl: false, sensitive: false };
        change(&mut variable);
        self.variables.push(variable);
        self
    }

    pub(crate) fn job(&self, phase: PhaseKind, has_state: bool, server: &str) -> Job {
        Job {
            phase: PhaseAttempt { run: self.id, phase, epoch: 1 },
            token: format!("s3cr3t-phase-token-{}", self.id),
            run_token: Some(format!("s3cr3t-run-token-{}", self.id)),
            organization: "acme".to_owned(),
            workspace: self.workspace.clone(),
            workspace_id: WorkspaceId::from_random([2; 16]),
            engine: EngineRequest { engine: self.engine, version: self.version.clone() },
            working_directory: self.working_directory.clone(),
            operation: self.operation.clone(),
            structured_output: self.structured_output,
            variables: self.variables.clone(),
            ssh_key: None,
            has_state,
            timeout_seconds: self.timeout_seconds,
            server_url: server.to_owned(),
            policies: Default::default(),
        }
    }
}

fn archive(files: &[(&str, &str)]) -> Vec<u8> {
    let mut builder = tar::Builder::new(GzEncoder::new(Vec::new(), Compression::fast()));
    for (name, content) in files {
        let mut header = tar::Header::new_gnu();
        header.set_mode(0o644);
        header.set_size(content.len() as u64);
        builder.append_data(&mut header, name, content.as_bytes()).expect("a file");
    }
    builder.into_inner().and_then(GzEncoder::finish).expect("an archive")
}
