//! A new secret key: what the old one sealed stays readable as long as the old one is named, and tokens go on.

use harness::home::{Home, ServerProcess};
use serde_json::{Value, json};

const OLD: &str = "the key of last year, long enough";
const NEW: &str = "the key of this year, long enough";
const SITE_TOKEN: &str = "a token that only this test knows";

fn start(home: &Home, key: &str, previous: Option<&str>) -> ServerProcess {
    let mut command = home.taco(&["server"]);
    command.env("TACO_LISTEN", "127.0.0.1:0").env("TACO_SITE_TOKEN", SITE_TOKEN).env("TACO_SECRET_KEY", key);
    if let Some(previous) = previous {
        command.env("TACO_PREVIOUS_SECRET_KEY", previous);
    }
    ServerProcess::start(&mut command)
}

/// Status and document of an answer.
async fn ask(server: &ServerProcess, token: &str, method: &str, path: &str, body: Value) -> (u16, Value) {
    let method = reqwest::Method::from_bytes(method.as_bytes()).expect("a method");
    let request = reqwest::Client::new().request(method, format!("http://{}{path}", server.address)).bearer_auth(token);
    let request = request.header("content-type", "application/vnd.api+json").body(body.to_string());
    let answer = request.send().await.expect("the server answers");
    let status = answer.status().as_u16();
    (status, serde_json::from_slice(&answer.bytes().await.expect("a body")).unwrap_or_default())
}

#[tokio::test]
async fn states_and_tokens_outlive_the_key() {
    let home = Home::default();
    let state = json!({ "version": 4, "serial": 1, "lineage": "a", "outputs": {}, "resources": [] });
    let (address, token) = ("/api/http-backend/acme/web", {
        let server = start(&home, OLD, None);
        let made = |kind: &str, name: &str| json!({ "data": { "type": kind, "attributes": { "name": name, "email": "a@acme.test" } } });
        let organization = made("organizations", "acme");
        assert_eq!(ask(&server, SITE_TOKEN, "POST", "/api/v2/organizations", organization).await.0, 201);
        let workspaces = "/api/v2/organizations/acme/workspaces";
        assert_eq!(ask(&server, SITE_TOKEN, "POST", workspaces, made("workspaces", "web")).await.0, 201);
        let written = ask(&server, SITE_TOKEN, "POST", "/api/http-backend/acme/web", state.clone()).await;
        assert_eq!(written.0, 200, "{}", written.1);
        let (_, me) = ask(&server, SITE_TOKEN, "GET", "/api/v2/account/details", json!({})).await;
        let path = format!("/api/v2/users/{}/authentication-tokens", me["data"]["id"].as_str().expect("an id"));
        let (_, issued) = ask(&server, SITE_TOKEN, "POST", &path, json!({})).await;
        issued["data"]["attributes"]["token"].as_str().expect("a token").to_owned()
    });
    {
        let server = start(&home, NEW, Some(OLD));
        assert_eq!(ask(&server, &token, "GET", address, json!({})).await, (200, state.clone()));
        let next = json!({ "version": 4, "serial": 2, "lineage": "a", "outputs": {}, "resources": [] });
        assert_eq!(ask(&server, &token, "POST", address, next.clone()).await.0, 200);
        assert_eq!(ask(&server, &token, "GET", address, json!({})).await, (200, next));
    }
    // The site's own key is under the new one by now, and so is what was written since.
    let server = start(&home, NEW, None);
    assert_eq!(ask(&server, &token, "GET", address, json!({})).await.1["serial"], 2);
    drop(server);
    let refused = home.taco(&["server"]).env("TACO_LISTEN", "127.0.0.1:0").env("TACO_SECRET_KEY", OLD).output();
    let said = String::from_utf8_lossy(&refused.expect("it ends").stderr).into_owned();
    assert!(said.contains("sealed with another key"), "{said}");
}

/// Runs `taco rewrap --json` and tells its code, and what was renewed, left and unreadable of secrets and of objects.
fn rewrap(home: &Home, key: &str, previous: Option<&str>) -> (Option<i32>, [(u64, u64, usize); 2]) {
    let mut command = home.taco(&["rewrap", "--json"]);
    command.env("TACO_SECRET_KEY", key).env("TACO_LOG_LEVEL", "error");
    if let Some(previous) = previous {
        command.env("TACO_PREVIOUS_SECRET_KEY", previous);
    }
    let output = command.output().expect("it runs");
    let told: Value = serde_json::from_slice(&output.stdout).unwrap_or_else(|_| panic!("{output:?}"));
    let count = |row: usize, what: &str| told[row][what].as_u64().expect("a number");
    let unreadable = |row: usize| told[row]["unreadable"].as_array().expect("a list").len();
    (output.status.code(), [0, 1].map(|row| (count(row, "renewed"), count(row, "left"), unreadable(row))))
}

#[tokio::test]
async fn what_was_wrapped_anew_needs_no_old_key() {
    let home = Home::default();
    let state = json!({ "version": 4, "serial": 1, "lineage": "a", "outputs": {}, "resources": [] });
    let states = "/api/http-backend/acme/web";
    let made = |kind: &str, attributes: Value| json!({ "data": { "type": kind, "attributes": attributes } });
    {
        let server = start(&home, OLD, None);
        let organization = made("organizations", json!({ "name": "acme", "email": "a@acme.test" }));
        assert_eq!(ask(&server, SITE_TOKEN, "POST", "/api/v2/organizations", organization).await.0, 201);
        let workspaces = "/api/v2/organizations/acme/workspaces";
        let web = made("workspaces", json!({ "name": "web" }));
        let (_, web) = ask(&server, SITE_TOKEN, "POST", workspaces, web).await;
        assert_eq!(ask(&server, SITE_TOKEN, "POST", states, state.clone()).await.0, 200);
        let variables = format!("/api/v2/workspaces/{}/vars", web["data"]["id"].as_str().expect("an id"));
        for (key, sensitive) in [("one", true), ("two", true), ("plain", false)] {
            let attributes = json!({ "key": key, "value": "x", "category": "env", "sensitive": sensitive });
            assert_eq!(ask(&server, SITE_TOKEN, "POST", &variables, made("vars", attributes)).await.0, 201);
        }
        let key = made("ssh-keys", json!({ "name": "deploy", "value": "s3cr3t" }));
        assert_eq!(ask(&server, SITE_TOKEN, "POST", "/api/v2/organizations/acme/ssh-keys", key).await.0, 201);
    }
    // The site's own key follows at once; everything else needs the old key until it was wrapped anew.
    drop(start(&home, NEW, Some(OLD)));
    let (code, [secrets, objects]) = rewrap(&home, NEW, None);
    assert_eq!((code, secrets, objects), (Some(1), (0, 0, 3), (0, 0, 1)), "nothing can be done without the old key");
    {
        // Beside a server that is reading.
        let server = start(&home, NEW, Some(OLD));
        assert_eq!(rewrap(&home, NEW, Some(OLD)), (Some(0), [(3, 0, 0), (1, 0, 0)]));
        assert_eq!(ask(&server, SITE_TOKEN, "GET", states, json!({})).await, (200, state.clone()));
        assert_eq!(rewrap(&home, NEW, Some(OLD)), (Some(0), [(0, 3, 0), (0, 1, 0)]), "there is nothing left to do");
    }
    let server = start(&home, NEW, None);
    assert_eq!(ask(&server, SITE_TOKEN, "GET", states, json!({})).await, (200, state));
    assert_eq!(rewrap(&home, NEW, None), (Some(0), [(0, 3, 0), (0, 1, 0)]), "and all of it opens");
    let verified = home.taco(&["audit", "verify"]).output().expect("it runs");
    assert!(verified.status.success(), "the history is whole: {verified:?}");
}

#[test]
fn a_bucket_that_nobody_used_has_nothing_to_wrap() {
    let home = Home::default();
    assert_eq!(rewrap(&home, NEW, None), (Some(0), [(0, 0, 0), (0, 0, 0)]));
}
