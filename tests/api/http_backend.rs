//! Terraform's `http` backend.

use axum::http::StatusCode;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use harness::api_server::ApiServer;
use serde_json::json;

use crate::states::{given_member, lock, push, state};

const ADDRESS: &str = "/api/http-backend/acme/web";
const LOCK: &str = "/api/http-backend/acme/web/lock";

fn lock_info(id: &str) -> String {
    json!({ "ID": id, "Operation": "OperationTypeApply", "Who": "jane@host", "Version": "1.11.4" }).to_string()
}

#[tokio::test]
async fn a_client_locks_writes_reads_and_unlocks_in_both_dialects() {
    for (lock_method, unlock_method) in [("LOCK", "UNLOCK"), ("POST", "DELETE")] {
        let server = ApiServer::start().await;
        server.given_organization("acme").await;
        server.given_workspace("acme", "web").await;
        let (_, token) = server.given_user("jane").await;
        let basic = format!("Basic {}", STANDARD.encode("anyone:a text that the operator chose"));
        let admin = server.with_authorization(Some(&basic));
        server.with_token(&token).get(ADDRESS).await.expect(StatusCode::NOT_FOUND);

        admin.get(ADDRESS).await.expect(StatusCode::NO_CONTENT);
        admin.send(lock_method, LOCK, None, lock_info("one")).await.expect(StatusCode::OK);
        admin.send(lock_method, LOCK, None, lock_info("one")).await.expect(StatusCode::OK);
        let busy = admin.send(lock_method, LOCK, None, lock_info("two")).await.expect(StatusCode::CONFLICT);
        assert_eq!(busy.json()["ID"], "one");
        assert_eq!(busy.json()["Who"], "jane@host");

        let first = state(1, "a", "x");
        for query in ["", "?ID=two"] {
            let refused = admin.send("POST", &format!("{ADDRESS}{query}"), None, first.clone()).await;
            assert_eq!(refused.expect(StatusCode::LOCKED).json()["ID"], "one");
        }
        let write = format!("{ADDRESS}?ID=one");
        admin.send("POST", &write, None, first.clone()).await.expect(StatusCode::OK);
        admin.send("POST", &write, None, first.clone()).await.expect(StatusCode::OK);
        admin.send("POST", &write, None, state(1, "a", "y")).await.expect(StatusCode::CONFLICT);
        assert_eq!(admin.get(ADDRESS).await.expect(StatusCode::OK).bytes, first);

        admin.send(unlock_method, LOCK, None, lock_info("two")).await.expect(StatusCode::CONFLICT);
        admin.send(unlock_method, LOCK, None, lock_info("one")).await.expect(StatusCode::OK);
        admin.send(lock_method, LOCK, None, lock_info("three")).await.expect(StatusCode::OK);
        admin.send(unlock_method, LOCK, None, "").await.expect(StatusCode::OK);
    }
}

#[tokio::test]
async fn a_state_is_not_deleted_at_its_address() {
    let server = ApiServer::start().await;
    let admin = server.admin();
    server.given_organization("acme").await;
    server.given_workspace("acme", "web").await;
    admin.send("POST", ADDRESS, None, state(1, "a", "x")).await.expect(StatusCode::OK);
    let refused = admin.delete(ADDRESS).await.expect(StatusCode::METHOD_NOT_ALLOWED);
    let allowed = refused.headers["allow"].to_str().expect("text");
    assert!(["GET", "POST"].iter().all(|method| allowed.contains(method)) && !allowed.contains("DELETE"), "{allowed}");
    assert_eq!(admin.get(ADDRESS).await.expect(StatusCode::OK).bytes, state(1, "a", "x"));
}

#[tokio::test]
async fn it_shares_states_and_locks_with_the_api() {
    let server = ApiServer::start().await;
    let admin = server.admin();
    server.given_organization("acme").await;
    let workspace = server.given_workspace("acme", "web").await;
    lock(&admin, &workspace).await.expect(StatusCode::OK);
    push(&admin, &workspace, 1, "a", "x").await.expect(StatusCode::CREATED);
    assert_eq!(admin.get(ADDRESS).await.expect(StatusCode::OK).bytes, state(1, "a", "x"));
    let held = admin.send("LOCK", LOCK, None, lock_info("one")).await.expect(StatusCode::CONFLICT);
    assert_eq!(held.json()["Who"], "admin");
    admin.act(&format!("/api/v2/workspaces/{workspace}/actions/unlock")).await.expect(StatusCode::OK);
    admin.send("LOCK", LOCK, None, lock_info("one")).await.expect(StatusCode::OK);
    lock(&admin, &workspace).await.expect(StatusCode::CONFLICT);
}

#[tokio::test]
async fn a_lock_is_its_authors_though_everyone_is_told_its_id() {
    let server = ApiServer::start().await;
    server.given_organization("acme").await;
    let workspace = server.given_workspace("acme", "web").await;
    let jane = given_member(&server, "jane", &workspace, "write").await;
    let joe = given_member(&server, "joe", &workspace, "write").await;
    let keeper = given_member(&server, "kate", &workspace, "admin").await;
    jane.send("LOCK", LOCK, None, lock_info("one")).await.expect(StatusCode::OK);
    let told = joe.send("LOCK", LOCK, None, lock_info("two")).await.expect(StatusCode::CONFLICT);
    assert_eq!(told.json()["ID"], "one");

    joe.send("LOCK", LOCK, None, lock_info("one")).await.expect(StatusCode::CONFLICT);
    let held = joe.send("UNLOCK", LOCK, None, lock_info("one")).await.expect(StatusCode::CONFLICT);
    assert_eq!(held.json()["ID"], "one");
    joe.send("UNLOCK", LOCK, None, "").await.expect(StatusCode::NOT_FOUND);
    let write = format!("{ADDRESS}?ID=one");
    for other in [&joe, &keeper] {
        let refused = other.send("POST", &write, None, state(1, "a", "x")).await.expect(StatusCode::LOCKED);
        assert_eq!(refused.json()["ID"], "one");
    }
    for _ in 0..2 {
        jane.send("POST", &write, None, state(1, "a", "x")).await.expect(StatusCode::OK);
    }
    // Those who may unlock by force may do so by the id, as tofu's `force-unlock` does.
    keeper.send("UNLOCK", LOCK, None, lock_info("one")).await.expect(StatusCode::OK);
    keeper.send("UNLOCK", LOCK, None, lock_info("one")).await.expect(StatusCode::OK);
    jane.send("UNLOCK", LOCK, None, lock_info("one")).await.expect(StatusCode::OK);

    // Their own lock people take away themselves, with its id or without, as terraform's `force-unlock` does.
    for unlock in [lock_info("three"), String::new()] {
        jane.send("LOCK", LOCK, None, lock_info("three")).await.expect(StatusCode::OK);
        jane.send("UNLOCK", LOCK, None, unlock).await.expect(StatusCode::OK);
        joe.send("LOCK", LOCK, None, lock_info("four")).await.expect(StatusCode::OK);
        joe.send("UNLOCK", LOCK, None, lock_info("four")).await.expect(StatusCode::OK);
    }
}

#[tokio::test]
async fn what_a_client_tells_about_its_lock_is_kept_as_far_as_people_can_read_it() {
    let server = ApiServer::start().await;
    let admin = server.admin();
    server.given_organization("acme").await;
    server.given_workspace("acme", "web").await;
    let sent = json!({ "ID": "one", "Who": "jane\u{202e}@host\u{0}", "Info": "", "Path": "x".repeat(50_000) });
    admin.send("LOCK", LOCK, None, sent.to_string()).await.expect(StatusCode::OK);
    let told = admin.send("LOCK", LOCK, None, lock_info("two")).await.expect(StatusCode::CONFLICT).json();
    assert_eq!(
        (&told["ID"], &told["Who"], &told["Path"]),
        (&json!("one"), &json!("jane@host"), &json!("x".repeat(512)))
    );
    admin.send("UNLOCK", LOCK, None, sent.to_string()).await.expect(StatusCode::OK);
    for id in ["x".repeat(513), "a\u{7}b".to_owned()] {
        admin.send("LOCK", LOCK, None, json!({ "ID": id }).to_string()).await.expect(StatusCode::BAD_REQUEST);
    }
    let digest = [("content-md5", "AAAA")];
    admin.send_with("POST", ADDRESS, &digest, state(1, "a", "x")).await.expect(StatusCode::BAD_REQUEST);
}

#[tokio::test]
async fn bad_locks_are_refused() {
    let server = ApiServer::start().await;
    let admin = server.admin();
    server.given_organization("acme").await;
    server.given_workspace("acme", "web").await;
    for body in ["", "x", "[]", "{}"] {
        admin.send("LOCK", LOCK, None, body).await.expect(StatusCode::BAD_REQUEST);
    }
    admin.send("GET", LOCK, None, "").await.expect(StatusCode::METHOD_NOT_ALLOWED);
    admin.send("UNLOCK", LOCK, None, lock_info("one")).await.expect(StatusCode::CONFLICT);
    server.with_authorization(None).get(ADDRESS).await.expect(StatusCode::UNAUTHORIZED);
    admin.send("POST", ADDRESS, None, "no state").await.expect(StatusCode::UNPROCESSABLE_ENTITY);
}
