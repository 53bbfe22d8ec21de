//! Setting of a story, and the tests that are made from it.

use std::sync::Arc;
use std::time::Duration;

use harness::api_client::ApiClient;
use harness::engine::{Directory, Engine, User};
use harness::installation::{Installation, SITE_TOKEN, Transport};
use harness::load_balancer::LoadBalancer;
use serde_json::Value;

/// Backend with which a configuration keeps its state in a workspace of `acme`.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Backend {
    Cloud,
    Remote,
    Http,
}

pub(crate) struct Scene {
    /// Other scenes may take place there too.
    pub(crate) installation: Arc<Installation>,
    pub(crate) user: User,
    pub(crate) backend: Backend,
    /// The workspace of `acme` that the story is about.
    pub(crate) name: String,
    /// The one whose token `user` holds.
    pub(crate) admin: ApiClient,
}

impl Scene {
    /// Two servers, an organization, and someone who may do everything in it.
    pub(crate) async fn new(engine: Engine, transport: Transport, backend: Backend) -> Self {
        Self::at(Installation::of_two_servers(transport), engine, backend).await
    }

    pub(crate) async fn at(installation: Installation, engine: Engine, backend: Backend) -> Self {
        let scene = Self::within(Arc::new(installation), engine, backend, "web");
        scene.admin.given_organization("acme").await;
        scene
    }

    /// Scene in an installation that has `acme` already, with someone who may do everything in it.
    pub(crate) fn within(installation: Arc<Installation>, engine: Engine, backend: Backend, name: &str) -> Self {
        let user = User::new(engine, &installation).holds(installation.host(), SITE_TOKEN);
        let admin = installation.admin();
        Self { installation, user, backend, name: name.to_owned(), admin }
    }

    pub(crate) fn proxy(&self) -> &LoadBalancer {
        self.installation.proxy.as_ref().expect("there are two servers")
    }

    /// The `terraform` block for the story's workspace.
    pub(crate) fn block(&self) -> String {
        self.block_for(&self.name)
    }

    pub(crate) fn block_for(&self, workspace: &str) -> String {
        match self.backend {
            Backend::Cloud => self.cloud(&format!(r#"name = "{workspace}""#)),
            Backend::Remote => self.remote(&format!(r#"name = "{workspace}""#)),
            Backend::Http => self.http(workspace, ""),
        }
    }

    pub(crate) fn cloud(&self, workspaces: &str) -> String {
        self.with_host("cloud", workspaces)
    }

    pub(crate) fn remote(&self, workspaces: &str) -> String {
        self.with_host(r#"backend "remote""#, workspaces)
    }

    fn with_host(&self, head: &str, workspaces: &str) -> String {
        let host = self.installation.host();
        format!(
            r#"
            terraform {{
              {head} {{
                hostname     = "{host}"
                organization = "acme"
                workspaces {{
                  {workspaces}
                }}
              }}
            }}
            "#
        )
    }

    pub(crate) fn http(&self, workspace: &str, more: &str) -> String {
        let address = self.http_address(workspace);
        format!(
            r#"
            terraform {{
              backend "http" {{
                address        = "{address}"
                lock_address   = "{address}/lock"
                unlock_address = "{address}/lock"
                username       = "anyone"
                password       = "{SITE_TOKEN}"
                {more}
              }}
            }}
            "#
        )
    }

    pub(crate) fn http_address(&self, workspace: &str) -> String {
        format!("{}{}", self.installation.origin, http_path(workspace))
    }

    /// A directory whose state is kept in the story's workspace, as soon as it was initialized.
    pub(crate) fn directory(&self, name: &str, resources: &str) -> Directory<'_> {
        self.user.directory(name, &format!("{}\n{resources}", self.block()))
    }

    /// A directory that is ready for work.
    pub(crate) async fn initialized(&self, resources: &str) -> Directory<'_> {
        if self.backend == Backend::Http {
            // The others make theirs on demand; this backend has no command for it.
            self.admin.given_workspace("acme", &self.name).await;
        }
        let directory = self.directory("web", resources);
        directory.runs("init").await;
        directory
    }

    pub(crate) async fn workspace(&self) -> Value {
        self.admin.workspace("acme", &self.name).await
    }

    /// The state versions of the workspace, newest first.
    pub(crate) async fn versions(&self) -> Vec<Value> {
        let query = format!("filter[organization][name]=acme&filter[workspace][name]={}&page[size]=100", self.name);
        let listed = self.admin.get(&format!("/api/v2/state-versions?{query}")).await;
        listed["data"].as_array().expect("a list").clone()
    }

    pub(crate) async fn is_locked(&self) -> bool {
        self.workspace().await["attributes"]["locked"].as_bool().expect("a boolean")
    }
}

fn http_path(workspace: &str) -> String {
    format!("/api/http-backend/acme/{workspace}")
}

impl Drop for Scene {
    /// Checks that the server has logged no errors of its own, whatever its clients did.
    fn drop(&mut self) {
        if std::thread::panicking() {
            for server in &self.installation.servers {
                eprintln!("{}", server.process.stderr());
            }
            return;
        }
        for server in &self.installation.servers {
            let said = server.process.stderr();
            assert!(!said.contains(r#""level":"ERROR""#), "{said}");
        }
        if let Some(proxy) = &self.installation.proxy {
            // So no one misses it: see `http_backend` in the API.
            let state_itself = format!("DELETE {}", http_path(&self.name));
            assert_eq!(proxy.saw(&state_itself) - proxy.saw(&format!("{state_itself}/lock")), 0, "a state is deleted");
        }
    }
}

/// A client has to have said this.
#[track_caller]
pub(crate) fn says(said: &str, part: &str) {
    let words = without_colours(said);
    let words = words.split_whitespace().filter(|word| *word != "│").collect::<Vec<_>>().join(" ");
    assert!(words.contains(part), "{part:?} is missing in:\n{said}");
}

/// Text without colours: the output of an agent's engine has them also for those who want none.
fn without_colours(said: &str) -> String {
    let mut parts = said.split("\u{1b}[");
    let first = parts.next().unwrap_or_default().to_owned();
    parts.fold(first, |text, part| text + part.split_once('m').map_or(part, |(_, rest)| rest))
}

/// Looks again and again until it is so.
pub(crate) async fn until(mut so: impl AsyncFnMut() -> bool) {
    let deadline = tokio::time::Instant::now() + Duration::from_secs(180);
    while !so().await {
        assert!(tokio::time::Instant::now() < deadline, "it does not come to pass");
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}

/// Lets both programs tell a story over http and over https.
macro_rules! told_by_both {
    ($($story:ident($backend:ident)),* $(,)?) => { $(
        mod $story {
            use harness::engine::Engine::{Terraform, Tofu};
            use harness::installation::Transport::{Http, Https};
            use crate::scene::{Backend, Scene};

            #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
            async fn terraform_over_http() {
                super::$story(Scene::new(Terraform, Http, Backend::$backend).await).await;
            }

            #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
            async fn terraform_over_https() {
                super::$story(Scene::new(Terraform, Https, Backend::$backend).await).await;
            }

            #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
            async fn tofu_over_http() {
                super::$story(Scene::new(Tofu, Http, Backend::$backend).await).await;
            }

            #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
            async fn tofu_over_https() {
                super::$story(Scene::new(Tofu, Https, Backend::$backend).await).await;
            }
        }
    )* };
}

/// Lets both programs tell a story over http and over https, with every backend.
macro_rules! told_with_every_backend {
    ($($story:ident),* $(,)?) => { $(
        mod $story {
            use super::$story as story;
            use crate::scene::Scene;

            async fn cloud(scene: Scene) {
                story(scene).await;
            }

            async fn remote(scene: Scene) {
                story(scene).await;
            }

            async fn http(scene: Scene) {
                story(scene).await;
            }

            crate::scene::told_by_both!(cloud(Cloud), remote(Remote), http(Http));
        }
    )* };
}

pub(crate) use {told_by_both, told_with_every_backend};
