//! Two servers on one bucket, behind each other's back.

use std::sync::Arc;

use axum::http::StatusCode;
use futures::future::join_all;
use harness::api_server::{Answer, ApiServer, Client};
use serde_json::{Value, json};
use taco_ledger::Location;

use crate::states::{lock, push};

/// Enough to meet every order in which two requests can reach a bucket.
const ROUNDS: u64 = 1000;
/// A directory takes its time over each write, so several workspaces have their rounds at once.
const LANES_ON_A_DIRECTORY: u64 = 10;

/// Of two answers one has to be a success, the other a conflict with the text that clients look for.
#[track_caller]
fn one_wins(what: &str, round: u64, answers: (Answer, Answer), won: StatusCode, lost: (StatusCode, &str)) {
    let (one, other) = answers;
    let (winner, loser) = if one.status == won { (one, other) } else { (other, one) };
    assert_eq!((winner.status, loser.status), (won, lost.0), "{what}, round {round}: {:?}", loser.json());
    let (detail, _) = loser.error();
    assert!(detail.contains(lost.1), "{what}, round {round}: {detail}");
}

fn named(kind: &str, name: &str) -> Value {
    json!({ "data": { "type": kind, "attributes": { "name": name, "email": "a@acme.test" } } })
}

/// Each round asks both servers at once for what only one can have.
async fn of_two_one_wins(here: ApiServer, lanes: u64) {
    let there = here.another().await;
    here.given_organization("acme").await;
    let clients = (here.admin(), there.admin());
    let mut workspaces = Vec::new();
    for lane in 0..lanes {
        workspaces.push(here.given_workspace("acme", &format!("lane-{lane}")).await);
    }
    let rounds = ROUNDS / lanes;
    let all = workspaces.iter().enumerate().map(|(lane, workspace)| have_rounds(&clients, lane, workspace, rounds));
    join_all(all).await;
    for workspace in &workspaces {
        let versions = format!("/api/v2/workspaces/{workspace}/state-versions?page[size]=1");
        for client in [&clients.0, &clients.1] {
            let listed = client.get(&versions).await.expect(StatusCode::OK);
            assert_eq!(listed.json()["meta"]["pagination"]["total-count"], rounds, "one version for each round");
            assert_eq!(listed.data()[0]["attributes"]["serial"], rounds);
        }
    }
}

async fn have_rounds((left, right): &(Client, Client), lane: usize, workspace: &str, rounds: u64) {
    const TAKEN: (StatusCode, &str) = (StatusCode::UNPROCESSABLE_ENTITY, "Name has already been taken");
    let unlock = format!("/api/v2/workspaces/{workspace}/actions/unlock");
    for round in 1..=rounds {
        let answers = tokio::join!(lock(left, workspace), lock(right, workspace));
        one_wins("lock", round, answers, StatusCode::OK, (StatusCode::CONFLICT, "is locked by User admin"));

        let answers =
            tokio::join!(push(left, workspace, round, "a", "left"), push(right, workspace, round, "a", "right"));
        let serial = format!("The state has serial {round}");
        one_wins("push", round, answers, StatusCode::CREATED, (StatusCode::CONFLICT, &serial));

        let answers = tokio::join!(left.act(&unlock), right.act(&unlock));
        one_wins("unlock", round, answers, StatusCode::OK, (StatusCode::CONFLICT, "already unlocked"));

        for (kind, path) in [
            ("workspaces", "/api/v2/organizations/acme/workspaces"),
            ("projects", "/api/v2/organizations/acme/projects"),
            ("organizations", "/api/v2/organizations"),
        ] {
            // Names are case-insensitive.
            let name = |first: &str| named(kind, &format!("{first}ame-{lane}-{round}"));
            let (lower, upper) = (name("s"), name("S"));
            let answers = tokio::join!(left.post(path, &lower), right.post(path, &upper));
            one_wins(kind, round, answers, StatusCode::CREATED, TAKEN);
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn of_two_who_lock_push_or_create_at_once_one_wins() {
    of_two_one_wins(ApiServer::start().await, 1).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn of_two_who_lock_push_or_create_at_once_one_wins_on_a_directory() {
    let directory = tempfile::tempdir().expect("a directory");
    let bucket = Location::directory(directory.path()).open().expect("a bucket");
    of_two_one_wins(ApiServer::start_on(Arc::new(bucket)).await, LANES_ON_A_DIRECTORY).await;
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
