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
        let block = self.cloud(&format!(r#"name = "{workspace}""#));
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

    /// An attribute of the newest run of `acme/web`.
    pub(crate) async fn newest(&self, attribute: &str) -> Value {
        self.runs_of("web").await.first().map_or(Value::Null, |run| run["attributes"][attribute].clone())
    }

    /// Waits until this many runs were begun in `acme/web` and the newest has this status.
    pub(crate) async fn until_newest(&self, count: usize, status: &str) {
        until(async || {
            let runs = self.runs_of("web").await;
            runs.len() >= count && runs[0]["attributes"]["status"] == status
        })
        .await;
    }
}

/// What a command that must end with this exit code printed.
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
