//! Two servers on one bucket, behind each other's back.

use axum::http::StatusCode;
use harness::api_server::ApiServer;
use serde_json::json;

use crate::states::{lock, push};

/// Enough to meet every order in which two requests can reach a bucket in memory.
const ROUNDS: u64 = 100;

fn one_won(one: StatusCode, other: StatusCode, won: StatusCode, lost: StatusCode) -> bool {
    (one == won && other == lost) || (one == lost && other == won)
}

#[tokio::test(flavor = "multi_thread")]
async fn of_two_who_lock_push_or_create_at_once_one_wins() {
    let here = ApiServer::start().await;
    let there = here.another().await;
    here.given_organization("acme").await;
    let workspace = here.given_workspace("acme", "web").await;
    let (left, right) = (here.admin(), there.admin());
    for round in 1..=ROUNDS {
        let (one, other) = tokio::join!(lock(&left, &workspace), lock(&right, &workspace));
        assert!(one_won(one.status, other.status, StatusCode::OK, StatusCode::CONFLICT), "lock {round}");
        let (one, other) =
            tokio::join!(push(&left, &workspace, round, "a", "left"), push(&right, &workspace, round, "a", "right"));
        assert!(one_won(one.status, other.status, StatusCode::CREATED, StatusCode::CONFLICT), "push {round}");
        let path = format!("/api/v2/workspaces/{workspace}/actions/unlock");
        let (one, other) = tokio::join!(left.act(&path), right.act(&path));
        assert!(one_won(one.status, other.status, StatusCode::OK, StatusCode::CONFLICT), "unlock {round}");
        let body = json!({ "data": { "type": "workspaces", "attributes": { "name": format!("same-{round}") } } });
        let path = "/api/v2/organizations/acme/workspaces";
        let (one, other) = tokio::join!(left.post(path, &body), right.post(path, &body));
        let taken = StatusCode::UNPROCESSABLE_ENTITY;
        assert!(one_won(one.status, other.status, StatusCode::CREATED, taken), "create {round}");
    }
}

#[tokio::test]
async fn what_one_acknowledged_the_other_shows_at_once() {
    let here = ApiServer::start().await;
    let there = here.another().await;
    here.given_organization("acme").await;
    let workspace = here.given_workspace("acme", "web").await;
    there.admin().get(&format!("/api/v2/workspaces/{workspace}")).await.expect(StatusCode::OK);
    lock(&there.admin(), &workspace).await.expect(StatusCode::OK);
    push(&here.admin(), &workspace, 1, "a", "x").await.expect(StatusCode::CREATED);
    let path = format!("/api/v2/workspaces/{workspace}/current-state-version");
    assert_eq!(there.admin().get(&path).await.expect(StatusCode::OK).attribute("serial"), 1);
}
