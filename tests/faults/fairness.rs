//! Organizations that share the agents of the servers: one with a long queue does not keep another waiting until all of
//! it is done, also after a restart.

use harness::api_client::ApiClient;
use harness::home::{Home, ServerProcess, packs_soon};
use harness::run_site::{SITE_TOKEN, admin_of, configuration, text, until};
use harness::stand_in_engine::{StandInEngine, Step};
use serde_json::json;

const NOISE: usize = 40;

fn start(home: &Home, engine: &StandInEngine, concurrency: &str) -> ServerProcess {
    let mut command = home.taco(&["server"]);
    command.env("TACO_LISTEN", "127.0.0.1:0").env("TACO_SITE_TOKEN", SITE_TOKEN);
    command.env("PATH", engine.search_path()).env("TACO_ENGINE_MIRROR", "http://127.0.0.1:9");
    ServerProcess::start(packs_soon(&mut command).env("TACO_AGENT_CONCURRENCY", concurrency))
}

/// An organization with a workspace for the servers' own agents.
async fn given_workspace(admin: &ApiClient, organization: &str) -> String {
    admin.given_organization(organization).await;
    let body = json!({ "data": { "type": "workspaces", "attributes": { "name": "web", "execution-mode": "remote" } } });
    let made = admin.post(&format!("/api/v2/organizations/{organization}/workspaces"), body).await;
    let workspace = text(&made["data"]["id"]);
    admin.given_configuration(&workspace, configuration()).await;
    workspace
}

async fn start_plan(admin: &ApiClient, workspace: &str) -> String {
    let body = json!({ "data": { "type": "runs", "attributes": { "plan-only": true },
        "relationships": { "workspace": { "data": { "type": "workspaces", "id": workspace } } } } });
    text(&admin.post("/api/v2/runs", body).await["data"]["id"])
}

/// Number of the others' runs that had begun to plan before the small organization's only run did.
async fn begun_before_the_small_one(concurrency: &str, restart: bool) -> usize {
    let (home, engine) = (Home::default(), StandInEngine::install());
    let mut server = start(&home, &engine, concurrency);
    let mut admin = admin_of(&server.address);
    let (noisy, small) = (given_workspace(&admin, "noisy").await, given_workspace(&admin, "small").await);
    // The first of them has the agents until the queue is as long as it gets.
    engine.hold(Step::Plan);
    for _ in 0..NOISE {
        start_plan(&admin, &noisy).await;
    }
    let run = start_plan(&admin, &small).await;
    if restart {
        drop(server);
        server = start(&home, &engine, concurrency);
        admin = admin_of(&server.address);
    }
    until("something is planned", async || !engine.order_of(Step::Plan).is_empty()).await;
    engine.let_go(Step::Plan);
    until("it is planned", async || admin.run(&run).await["status"] == "planned_and_finished").await;
    let order = engine.order_of(Step::Plan);
    order.iter().position(|planned| *planned == run).unwrap_or_else(|| panic!("{run} is not in {order:?}"))
}

#[tokio::test(flavor = "multi_thread")]
async fn a_long_queue_of_one_organization_does_not_hold_up_another() {
    let begun = begun_before_the_small_one("1", false).await;
    assert!(begun <= 2, "{begun} of {NOISE} began before it");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_long_queue_does_not_hold_up_another_where_several_agents_work_after_a_restart() {
    let begun = begun_before_the_small_one("2", true).await;
    // Two when the server is killed, which are done again, and two that the next one may begin with.
    assert!(begun <= 4, "{begun} of {NOISE} began before it");
}
