//! Connections to forges are kept and shown as the provider and go-tfe expect; what is secret in them never comes out.

use axum::http::StatusCode;
use harness::api_server::{ApiServer, Client};
use harness::permission_site::attributes;
use serde_json::{Value, json};

const CLIENTS: &str = "/api/v2/organizations/acme/oauth-clients";
const SSH_KEY: &str = "-----BEGIN RSA PRIVATE KEY-----\nMIICXgIBAAKBgQDIF0s2\n-----END RSA PRIVATE KEY-----";

fn github() -> Value {
    json!({ "service-provider": "github", "api-url": "https://api.github.com", "http-url": "https://github.com",
        "oauth-token-string": "ghp_first" })
}

fn ids(data: &Value) -> Vec<&str> {
    data.as_array().expect("a list").iter().map(|one| one["id"].as_str().expect("an id")).collect()
}

async fn given_project(admin: &Client, name: &str) -> String {
    let body = attributes("projects", json!({ "name": name }));
    admin.post("/api/v2/organizations/acme/projects", &body).await.expect(StatusCode::CREATED).id()
}

#[tokio::test]
async fn a_connection_is_kept_and_its_secrets_never_come_out() {
    let server = ApiServer::start().await;
    server.given_organization("acme").await;
    let admin = server.admin();
    let made = admin.post(CLIENTS, &attributes("oauth-clients", github())).await.expect(StatusCode::CREATED);
    assert_eq!(made.attribute("service-provider-display-name"), "GitHub");
    for absent in ["name", "secret", "callback-url"] {
        assert!(made.attribute(absent).is_null(), "{absent}");
    }
    let client = format!("/api/v2/oauth-clients/{}", made.id());
    let data = made.data();
    let [token] = ids(&data["relationships"]["oauth-tokens"]["data"])[..] else { panic!("one token: {data}") };
    let token_path = format!("/api/v2/oauth-tokens/{token}");

    // A new token takes the place of the old one, so that workspaces which name it need not change.
    let rotated = attributes("oauth-clients", json!({ "oauth-token-string": "ghp_second" }));
    let rotated = admin.patch(&client, &rotated).await.expect(StatusCode::OK).data();
    assert_eq!(ids(&rotated["relationships"]["oauth-tokens"]["data"]), [token]);

    let refused = admin.patch(&token_path, &attributes("oauth-tokens", json!({ "ssh-key": "random" }))).await;
    assert!(refused.expect(StatusCode::UNPROCESSABLE_ENTITY).error().0.starts_with("Ssh key is invalid"));
    for (key, has_key) in [(json!({ "ssh-key": SSH_KEY }), true), (json!({}), true), (json!({ "ssh-key": "" }), false)]
    {
        let changed = admin.patch(&token_path, &attributes("oauth-tokens", key)).await.expect(StatusCode::OK);
        assert_eq!(changed.attribute("has-ssh-key"), has_key);
    }
    for path in [CLIENTS, "/api/v2/organizations/acme/oauth-tokens", &client, &token_path] {
        let answer = admin.get(path).await.expect(StatusCode::OK).json().to_string();
        assert!(!answer.contains("ghp_") && !answer.contains("MIICX"), "{path}: {answer}");
    }
    let included = admin.get(&format!("{client}?include=oauth_tokens")).await.json();
    assert_eq!(ids(&included["included"]), [token]);

    admin.delete(&token_path).await.expect(StatusCode::NO_CONTENT);
    assert_eq!(admin.get(&client).await.data()["relationships"]["oauth-tokens"]["data"], json!([]));
    let again = attributes("oauth-clients", json!({ "oauth-token-string": "ghp_third" }));
    let again = admin.patch(&client, &again).await.expect(StatusCode::OK).data();
    let [new] = ids(&again["relationships"]["oauth-tokens"]["data"])[..] else { panic!("one token: {again}") };
    assert_ne!(new, token);

    admin.delete(&client).await.expect(StatusCode::NO_CONTENT);
    admin.get(&format!("/api/v2/oauth-tokens/{new}")).await.expect(StatusCode::NOT_FOUND);
    admin.delete(&client).await.expect(StatusCode::NOT_FOUND);
}

#[tokio::test]
async fn a_connection_is_for_all_workspaces_or_for_those_of_its_projects() {
    let server = ApiServer::start().await;
    server.given_organization("acme").await;
    let admin = server.admin();
    let (network, shop) = (given_project(&admin, "network").await, given_project(&admin, "shop").await);
    let mut body = attributes("oauth-clients", github());
    body["data"]["attributes"]["organization-scoped"] = json!(false);
    // Clients may send a project that is not of this organization; it does not count.
    body["data"]["relationships"]["projects"]["data"] =
        json!([{ "type": "projects", "id": network }, { "type": "projects", "id": "prj-2345678923456789" }]);
    let made = admin.post(CLIENTS, &body).await.expect(StatusCode::CREATED);
    assert_eq!(made.attribute("organization-scoped"), false);
    assert_eq!(ids(&made.data()["relationships"]["projects"]["data"]), [network.as_str()]);
    let client = format!("/api/v2/oauth-clients/{}", made.id());
    let list = |project: &str| json!({ "data": [{ "type": "projects", "id": project }] });
    let projects = format!("{client}/relationships/projects");
    for _ in 0..2 {
        admin.post(&projects, &list(&shop)).await.expect(StatusCode::NO_CONTENT);
    }
    assert_eq!(ids(&admin.get(&client).await.data()["relationships"]["projects"]["data"]).len(), 2);
    admin.post(&projects, &list("prj-2345678923456789")).await.expect(StatusCode::NOT_FOUND);
    let sent = Some("application/vnd.api+json");
    admin.send("DELETE", &projects, sent, list(&shop).to_string()).await.expect(StatusCode::NO_CONTENT);
    // A project that goes away takes nothing with it.
    admin.delete(&format!("/api/v2/projects/{network}")).await.expect(StatusCode::NO_CONTENT);
    assert_eq!(admin.get(&client).await.data()["relationships"]["projects"]["data"], json!([]));
}

#[tokio::test]
async fn what_no_forge_could_be_is_refused_by_name() {
    let server = ApiServer::start().await;
    server.given_organization("acme").await;
    let admin = server.admin();
    for (attribute, value, words) in [
        ("service-provider", json!("subversion"), "Service provider is one of ado_server"),
        ("api-url", json!("api.github.com"), "API URL is an address such as"),
        ("http-url", json!("https://me:password@github.com"), "HTTP URL is an address such as"),
        ("http-url", json!(""), "HTTP URL can't be blank"),
        ("private-key", json!("key"), "Private key is only for Azure DevOps Server"),
        ("oauth-token-string", json!("x".repeat(70_000)), "OAuth token is too long"),
    ] {
        let mut body = attributes("oauth-clients", github());
        body["data"]["attributes"][attribute] = value;
        let refused = admin.post(CLIENTS, &body).await.expect(StatusCode::UNPROCESSABLE_ENTITY);
        assert!(refused.error().0.starts_with(words), "{}", refused.error().0);
    }
    let mut body = attributes("oauth-clients", github());
    body["data"]["relationships"]["agent-pool"]["data"] =
        json!({ "type": "agent-pools", "id": "apool-2345678923456789" });
    let refused = admin.post(CLIENTS, &body).await.expect(StatusCode::UNPROCESSABLE_ENTITY);
    assert!(refused.error().0.contains("does not exist or you are not authorized"), "{}", refused.error().0);

    let data_center = json!({ "service-provider": "bitbucket_data_center", "api-url": "https://bitbucket.test",
        "http-url": "https://bitbucket.test", "key": "consumer", "secret": "private", "rsa-public-key": "public" });
    let made = admin.post(CLIENTS, &attributes("oauth-clients", data_center)).await.expect(StatusCode::CREATED);
    assert_eq!(made.data()["relationships"]["oauth-tokens"]["data"], json!([]));
    let path = format!("/api/v2/oauth-clients/{}", made.id());
    let refused = admin.patch(&path, &attributes("oauth-clients", json!({ "key": "" }))).await;
    assert!(refused.expect(StatusCode::UNPROCESSABLE_ENTITY).error().0.contains("must be present"));
    assert_eq!(admin.get(CLIENTS).await.data().as_array().expect("a list").len(), 1);
}
