//! Every command that an agent executes, told by both programs in both ways that they have to reach a server, to one
//! server with an agent within, and to two servers that know of each other from the bucket alone and leave all runs to
//! an agent elsewhere, over TLS. The stories of one combination share its servers; each has a workspace of its own.

use std::sync::Arc;

use futures::future::LocalBoxFuture;
use futures::{FutureExt as _, StreamExt as _, stream};
use harness::engine::Engine::{self, Terraform, Tofu};
use harness::installation::{Installation, Transport};
use serde_json::json;

use crate::remote_applies::{
    a_configuration_is_applied_and_destroyed, a_saved_plan_is_shown_and_applied,
    configuration_for_an_import_is_generated, options_reach_the_run,
};
use crate::remote_waits::{
    a_lock_is_waited_for, a_run_waits_for_an_agent, an_interrupted_apply_is_canceled, failures_are_shown,
    runs_wait_for_each_other,
};
use crate::scene::Backend::{self, Cloud, Remote};
use crate::scene::Scene;

/// Of one combination: programs wait for each other much of the time.
const CONCURRENCY: usize = 2;

struct Story {
    name: &'static str,
    backends: &'static [Backend],
    tell: fn(Scene) -> LocalBoxFuture<'static, ()>,
}

macro_rules! stories {
    ($($story:ident($($backend:ident),*)),* $(,)?) => {
        [$(Story { name: stringify!($story), backends: &[$($backend),*], tell: |scene| $story(scene).boxed_local() }),*]
    };
}

/// Stories for both backends. Features that the `remote` backend refuses by itself are tested with the `cloud` block
/// alone: plans in files, and configuration for imports.
const STORIES: [Story; 9] = stories![
    a_configuration_is_applied_and_destroyed(Cloud, Remote),
    options_reach_the_run(Cloud, Remote),
    a_saved_plan_is_shown_and_applied(Cloud),
    configuration_for_an_import_is_generated(Cloud),
    an_interrupted_apply_is_canceled(Cloud, Remote),
    a_lock_is_waited_for(Cloud, Remote),
    runs_wait_for_each_other(Cloud, Remote),
    a_run_waits_for_an_agent(Cloud, Remote),
    failures_are_shown(Cloud, Remote),
];

#[derive(Clone, Copy)]
enum Site {
    /// Over http.
    OneServer,
    /// Over https.
    TwoServersAndAnAgent,
}

async fn told(engine: Engine, backend: Backend, site: Site) {
    let installation = Arc::new(match site {
        Site::OneServer => Installation::with_engines(Transport::Http),
        Site::TwoServersAndAnAgent => Installation::of_two_servers_without_agents(Transport::Https),
    });
    installation.admin().given_organization("acme").await;
    let scene = |name| Scene::within(Arc::clone(&installation), engine, backend, name);
    let (more, _agent) = match site {
        Site::OneServer => (json!({}), None),
        Site::TwoServersAndAnAgent => {
            let (pool, token) = scene("rack").given_pool("rack").await;
            let agent = installation.agent("rack", &token);
            (json!({ "execution-mode": "agent", "agent-pool-id": pool }), Some(agent))
        }
    };
    let stories = STORIES.iter().filter(|story| story.backends.contains(&backend));
    let told = stories.map(|story| {
        let (scene, more) = (scene(story.name), more.clone());
        async move {
            scene.given_remote_workspace(story.name, more).await;
            println!("{}", story.name);
            (story.tell)(scene).await;
            println!("{} has been told", story.name);
        }
    });
    stream::iter(told).for_each_concurrent(CONCURRENCY, |story| story).await;
}

macro_rules! combinations {
    ($($name:ident($engine:ident, $backend:ident, $site:ident)),* $(,)?) => { $(
        #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
        async fn $name() {
            told($engine, $backend, Site::$site).await;
        }
    )* };
}

combinations!(
    terraform_with_a_cloud_block_and_one_server(Terraform, Cloud, OneServer),
    terraform_with_a_cloud_block_and_two_servers(Terraform, Cloud, TwoServersAndAnAgent),
    terraform_with_a_remote_backend_and_one_server(Terraform, Remote, OneServer),
    terraform_with_a_remote_backend_and_two_servers(Terraform, Remote, TwoServersAndAnAgent),
    tofu_with_a_cloud_block_and_one_server(Tofu, Cloud, OneServer),
    tofu_with_a_cloud_block_and_two_servers(Tofu, Cloud, TwoServersAndAnAgent),
    tofu_with_a_remote_backend_and_one_server(Tofu, Remote, OneServer),
    tofu_with_a_remote_backend_and_two_servers(Tofu, Remote, TwoServersAndAnAgent),
);
