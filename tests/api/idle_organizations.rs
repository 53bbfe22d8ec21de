//! Cost of idle organizations for a server.

use std::time::Duration;

use axum::http::StatusCode;
use harness::api_server::ApiServer;
use harness::counted_bucket::CountedBucket;
use serde_json::json;
use taco_control_plane::LedgerName;
use tokio::time::{Instant, sleep};

const MANY: usize = 100;

/// Lets a server's scheduler work, until the test ends.
fn schedule(server: &ApiServer) {
    let scheduler = server.scheduler.clone();
    tokio::spawn(async move { scheduler.run(std::future::pending()).await });
}

async fn follows(server: &ApiServer, organizations: usize) {
    let deadline = Instant::now() + Duration::from_secs(90);
    while server.scheduler.following() != organizations {
        assert!(Instant::now() < deadline, "it follows {}", server.scheduler.following());
        sleep(Duration::from_millis(5)).await;
    }
}

#[tokio::test]
async fn a_change_of_the_site_costs_no_request_for_each_organization() {
    let bucket = CountedBucket::in_memory();
    let server = ApiServer::start_on(bucket.clone()).await;
    for number in 0..MANY {
        server.given_organization(&format!("org-{number}")).await;
    }
    schedule(&server);
    follows(&server, MANY).await;

    let before = bucket.operations();
    for number in 0..3 {
        let email = json!({ "data": { "type": "users", "attributes": { "email": format!("{number}@acme.test") } } });
        server.admin().patch("/api/v2/account/update", &email).await.expect(StatusCode::OK);
    }
    // That it follows this one shows that it has seen all of these changes.
    server.given_organization("one-more").await;
    follows(&server, MANY + 1).await;
    let made = bucket.operations() - before;
    assert!(made < MANY / 2, "{made} operations");
}

#[tokio::test]
async fn a_server_that_is_told_where_to_look_looks_there_and_nowhere_else() {
    let bucket = CountedBucket::in_memory();
    let here = ApiServer::start_on(bucket.clone()).await;
    for number in 0..MANY {
        here.given_organization(&format!("org-{number}")).await;
    }
    let there = here.another().await;
    schedule(&there);
    follows(&there, MANY).await;
    here.given_organization("one-more").await;

    let before = bucket.operations();
    there.scheduler.wake().look_at(vec![(LedgerName::site(), u64::MAX)]).await;
    follows(&there, MANY + 1).await;
    let made = bucket.operations() - before;
    assert!(made < MANY / 2, "{made} operations");

    let organization = there.control_plane.organization(&there.admin_caller().await, "org-7").await.expect("it");
    let ledger: LedgerName = organization.org.id().to_string().parse().expect("a name");
    let seen = there.control_plane.last_seen(&organization.org).seq();
    here.given_workspace("org-7", "web").await;
    let before = bucket.operations();
    there.scheduler.wake().look_at(vec![(ledger.clone(), seen)]).await;
    assert_eq!(bucket.operations(), before, "it has seen that");
    there.scheduler.wake().look_at(vec![(ledger, seen + 1)]).await;
    assert!(there.control_plane.last_seen(&organization.org).seq() > seen, "it has looked");
    assert!(bucket.operations() - before < 5, "{} operations", bucket.operations() - before);
}
