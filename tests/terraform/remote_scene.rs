//! Workspaces whose runs an agent executes.

use harness::engine::{Directory, Done, Engine};
use harness::installation::{Installation, Transport};
use serde_json::{Value, json};

use crate::scene::{Backend, Scene, until};

impl Scene {
    /// One server whose own agent has both engines, and the workspace `acme/web` that it runs.
    pub(crate) async fn with_agent(engine: Engine, transport: Transport, backend: Backend) -> Self {
        let scene = Self::at(Installation::with_engines(transport), engine, backend).await;
        scene.given_remote_workspace("web", json!({})).await;
        scene
    }

    /// A workspace that runs the user's engine, and its id.
    pub(crate) async fn given_remote_workspace(&self, name: &str, more: Value) -> String {
        let mut attributes = json!({
            "name": name,
            "execution-mode": "remote",
            "taco-engine": self.user.engine.word(),
        });
        for (key, value) in more.as_object().expect("an object") {
            attributes[key] = value.clone();
        }
        let body = json!({ "data": { "type": "workspaces", "attributes": attributes } });
        let made = self.admin.post("/api/v2/organizations/acme/workspaces", body).await;
        made["data"]["id"].as_str().expect("an id").to_owned()
    }

    /// A directory whose runs happen in this workspace, ready for work.
    pub(crate) async fn initialized_in(&self, workspace: &str, resources: &str) -> Directory<'_> {
        let block = self.block_for(workspace);
        let directory = self.user.directory(workspace, &format!("{block}\n{resources}"));
        directory.runs("init").await;
        directory
    }

    /// The runs of a workspace, newest first.
    pub(crate) async fn runs_of(&self, workspace: &str) -> Vec<Value> {
        let id = self.admin.workspace("acme", workspace).await["id"].as_str().expect("an id").to_owned();
        let listed = self.admin.get(&format!("/api/v2/workspaces/{id}/runs")).await;
        listed["data"].as_array().expect("a list").clone()
    }

    /// Log of a run's phase, as far as there is one, or will be in a moment.
    pub(crate) async fn log_of(&self, run: &str, phase: &str) -> String {
        let shown = self.admin.get(&format!("/api/v2/runs/{run}/{phase}")).await;
        let address = shown["data"]["attributes"]["log-read-url"].as_str().expect("an address").to_owned();
        let answer = self.admin.client.get(format!("{address}?limit=65536&offset=0")).send().await;
        answer.expect("an answer").text().await.expect("text")
    }

    /// A pool for agents that run elsewhere: its id, and a token for them.
    pub(crate) async fn given_pool(&self, name: &str) -> (String, String) {
        let pool = json!({ "data": { "type": "agent-pools", "attributes": { "name": name } } });
        let pool = self.admin.post("/api/v2/organizations/acme/agent-pools", pool).await["data"]["id"].clone();
        let pool = pool.as_str().expect("an id").to_owned();
        let token = json!({ "data": { "type": "authentication-tokens", "attributes": { "description": "one" } } });
        let tokens = format!("/api/v2/agent-pools/{pool}/authentication-tokens");
        let token = self.admin.post(&tokens, token).await["data"]["attributes"]["token"].clone();
        (pool, token.as_str().expect("a token").to_owned())
    }

    /// A command with these variables. The `remote` backend sends none that were typed, but files of its directory.
    pub(crate) fn with_variables(&self, here: &Directory<'_>, words: &str, variables: &[(&str, &str)]) -> String {
        if self.backend == Backend::Cloud {
            return variables
                .iter()
                .fold(words.to_owned(), |words, (key, value)| format!("{words} -var={key}={value}"));
        }
        let lines = variables.iter().map(|(key, value)| match value.starts_with('[') {
            true => format!("{key} = {value}\n"),
            false => format!("{key} = {value:?}\n"),
        });
        here.write("typed.auto.tfvars", &lines.collect::<String>());
        words.to_owned()
    }

    /// Output of a command that must succeed, with these variables.
    pub(crate) async fn runs_with_variables(
        &self,
        here: &Directory<'_>,
        words: &str,
        variables: &[(&str, &str)],
    ) -> String {
        let said = here.runs(&self.with_variables(here, words, variables)).await;
        if self.backend != Backend::Cloud {
            here.write("typed.auto.tfvars", "");
        }
        said
    }

    /// An attribute of the newest run of the story's workspace.
    pub(crate) async fn newest(&self, attribute: &str) -> Value {
        self.runs_of(&self.name).await.first().map_or(Value::Null, |run| run["attributes"][attribute].clone())
    }

    /// Waits until this many runs were begun in the story's workspace and the newest has this status.
    pub(crate) async fn until_newest(&self, count: usize, status: &str) {
        until(async || {
            let runs = self.runs_of(&self.name).await;
            runs.len() >= count && runs[0]["attributes"]["status"] == status
        })
        .await;
    }
}

/// Output of a command that must end with this exit code.
#[track_caller]
pub(crate) fn ended(done: &Done, code: i32) -> String {
    assert_eq!(done.code, Some(code), "{}", done.said());
    done.said()
}

/// Lets both programs tell a story, one over http and the other over https.
macro_rules! told_on_an_agent {
    ($($story:ident($backend:ident)),* $(,)?) => { $(
        mod $story {
            use harness::engine::Engine::{Terraform, Tofu};
            use harness::installation::Transport::{Http, Https};
            use crate::scene::{Backend, Scene};

            #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
            async fn terraform_over_http() {
                super::$story(Scene::with_agent(Terraform, Http, Backend::$backend).await).await;
            }

            #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
            async fn tofu_over_https() {
                super::$story(Scene::with_agent(Tofu, Https, Backend::$backend).await).await;
            }
        }
    )* };
}

pub(crate) use told_on_an_agent;
