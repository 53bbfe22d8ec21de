//! Users of the site, as its admins see them.

use axum::http::StatusCode;
use harness::api_server::ApiServer;
use serde_json::json;

const USERS: &str = "/api/v2/admin/users";

#[tokio::test]
async fn a_user_is_listed_suspended_and_let_in_again() {
    let server = ApiServer::start().await;
    let (id, token) = server.given_user("jane").await;
    let (admin, jane) = (server.admin(), server.with_token(&token));
    let act = async |action: &str| admin.post(&format!("{USERS}/{id}/actions/{action}"), &json!({})).await;

    let found = admin.get(&format!("{USERS}?q=JAN")).await.expect(StatusCode::OK);
    let found = found.data().as_array().expect("a list").clone();
    assert_eq!(found.len(), 1, "{found:?}");
    assert_eq!(found[0]["attributes"]["email"], "jane@acme.test");
    assert_eq!(found[0]["attributes"]["is-suspended"], false);

    for _ in 0..2 {
        let suspended = act("suspend").await.expect(StatusCode::OK);
        assert_eq!(suspended.attribute("is-suspended"), true, "also when it is asked for again");
    }
    jane.get("/api/v2/account/details").await.expect(StatusCode::UNAUTHORIZED);
    assert_eq!(act("unsuspend").await.expect(StatusCode::OK).attribute("is-suspended"), false);
    jane.get("/api/v2/account/details").await.expect(StatusCode::OK);
    jane.get(USERS).await.expect(StatusCode::NOT_FOUND);
    jane.post(&format!("{USERS}/{id}/actions/unsuspend"), &json!({})).await.expect(StatusCode::NOT_FOUND);

    let own = admin.get("/api/v2/account/details").await.expect(StatusCode::OK).id();
    let refused = admin.post(&format!("{USERS}/{own}/actions/suspend"), &json!({})).await.expect(StatusCode::CONFLICT);
    assert!(refused.error().0.contains("cannot suspend yourself"), "{refused:?}");
}
