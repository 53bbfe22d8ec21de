//! Modules of the private registry, through the API and through the protocol of the engines.

use axum::http::StatusCode;
use flate2::Compression;
use flate2::write::GzEncoder;
use harness::api_server::{Answer, ApiServer};
use harness::configurations::packed;
use harness::permission_site::attributes;
use harness::registry::{MODULE, module_path};
use serde_json::{Value, json};

const MODULES: &str = "/api/v2/organizations/acme/registry-modules";
const PROTOCOL: &str = "/api/registry/v1/modules/acme/greeter/local";

async fn site() -> ApiServer {
    let server = ApiServer::start().await;
    server.given_organization("acme").await;
    server
}

fn refusal(answer: &Answer) -> String {
    answer.json()["errors"][0]["detail"].as_str().unwrap_or_default().to_owned()
}

/// Where an engine downloads a module.
async fn location(server: &ApiServer, path: &str) -> String {
    let answer = server.admin().get(path).await.expect(StatusCode::NO_CONTENT);
    let location = answer.headers["x-terraform-get"].to_str().expect("text").to_owned();
    assert!(location.ends_with("/archive.tar.gz?archive=tar.gz"), "{location}");
    location.strip_prefix("http://taco.test").expect("ours").to_owned()
}

#[tokio::test]
async fn a_module_is_published_found_and_downloaded() {
    let server = site().await;
    let admin = server.admin();
    server.given_module("acme", "greeter", "local").await;
    let path = module_path("acme", "greeter", "local");
    let shown = admin.get(&path).await.expect(StatusCode::OK);
    assert_eq!((shown.attribute("status"), shown.attribute("namespace")), (json!("pending"), json!("acme")));
    admin.get(&format!("{PROTOCOL}/1.0.0/download")).await.expect(StatusCode::NOT_FOUND);

    let (_, upload) = server.given_module_version(&path, "1.0.0").await;
    assert!(upload.contains("/object/"), "{upload}");
    let pending = admin.get(&path).await;
    assert_eq!(pending.attribute("version-statuses"), json!([{ "version": "1.0.0", "status": "pending" }]));
    let listed = admin.get(&format!("{PROTOCOL}/versions")).await.expect(StatusCode::OK);
    assert_eq!(listed.json(), json!({ "modules": [{ "versions": [] }] }), "it is not there yet");

    let archive = packed(&MODULE);
    for _ in 0..2 {
        // A publisher whose answer was lost sends it again.
        server.anyone().send("PUT", &upload, None, archive.clone()).await.expect(StatusCode::OK);
    }
    server.given_published_module(&path, "1.10.0", &MODULE).await;
    server.given_published_module(&path, "2.0.0-beta.1", &MODULE).await;
    let listed = admin.get(&format!("{PROTOCOL}/versions")).await;
    let versions = json!([{ "version": "2.0.0-beta.1" }, { "version": "1.10.0" }, { "version": "1.0.0" }]);
    assert_eq!(listed.json()["modules"][0]["versions"], versions);
    assert_eq!(admin.get(&path).await.attribute("status"), "setup_complete");

    let place = location(&server, &format!("{PROTOCOL}/1.0.0/download")).await;
    let sent = server.anyone().get(&place).await.expect(StatusCode::OK);
    assert_eq!(sent.bytes, archive, "byte by byte, and without a token");
    let latest = admin.get(PROTOCOL).await.expect(StatusCode::OK).json();
    assert_eq!((&latest["version"], &latest["id"]), (&json!("1.10.0"), &json!("acme/greeter/local/1.10.0")));
    let root = &latest["root"];
    assert_eq!(root["readme"], "# Greeter\n\nGreets **everyone**.\n");
    let input = |name: &str| root["inputs"].as_array().expect("a list").iter().find(|it| it["name"] == name).cloned();
    let greeting = input("greeting").expect("it is there");
    assert_eq!((&greeting["type"], &greeting["required"]), (&json!("string"), &json!(true)));
    let sizes = input("sizes").expect("it is there");
    assert_eq!(sizes["type"], "map(object({\n  cidr = string\n}))");
    assert_eq!((&sizes["default"], &sizes["nullable"]), (&json!("{}"), &json!(false)));
    assert_eq!(root["outputs"][0]["name"], "said");
    assert_eq!(root["provider_dependencies"][0]["source"], "hashicorp/null");
    assert_eq!(latest["submodules"][0]["path"], "modules/quiet");
    assert_eq!(latest["examples"][0]["dependencies"][0]["source"], "../..");
}

#[tokio::test]
async fn a_download_ends_when_whoever_asked_may_not_read_any_more() {
    let server = site().await;
    let admin = server.admin();
    server.given_module("acme", "greeter", "local").await;
    server.given_published_module(&module_path("acme", "greeter", "local"), "1.0.0", &MODULE).await;
    let team = attributes("teams", json!({ "name": "idle" }));
    let team = admin.post("/api/v2/organizations/acme/teams", &team).await.expect(StatusCode::CREATED).id();
    let tokens = format!("/api/v2/teams/{team}/authentication-token");
    let token = admin.post(&tokens, &json!({})).await.expect(StatusCode::CREATED);
    let token = token.attribute("token").as_str().expect("a token").to_owned();
    let download = format!("{PROTOCOL}/1.0.0/download");
    let answer = server.with_token(&token).get(&download).await.expect(StatusCode::NO_CONTENT);
    let place = answer.headers["x-terraform-get"].to_str().expect("text").to_owned();
    let place = place.strip_prefix("http://taco.test").expect("ours");
    server.anyone().get(place).await.expect(StatusCode::OK);
    admin.delete(&tokens).await.expect(StatusCode::NO_CONTENT);
    server.anyone().get(place).await.expect(StatusCode::NOT_FOUND);
    server.with_token(&token).get(&download).await.expect(StatusCode::UNAUTHORIZED);
}

#[tokio::test]
async fn what_is_no_module_is_refused_with_its_reason() {
    let server = site().await;
    let admin = server.admin();
    server.given_module("acme", "greeter", "local").await;
    let path = module_path("acme", "greeter", "local");
    let (_, upload) = server.given_module_version(&path, "1.0.0").await;
    let bomb = {
        let mut archive = tar::Builder::new(GzEncoder::new(Vec::new(), Compression::best()));
        let mut header = tar::Header::new_gnu();
        header.set_size(64 * 1024 * 1024);
        header.set_mode(0o644);
        let zeros = vec![0; 64 * 1024 * 1024];
        archive.append_data(&mut header, "main.tf", zeros.as_slice()).expect("in memory");
        archive.into_inner().and_then(GzEncoder::finish).expect("in memory")
    };
    for (archive, expected) in [
        (b"hello".to_vec(), "no tar.gz archive"),
        (packed(&[]), "no file that ends in .tf"),
        (packed(&[("README.md", "# Nothing")]), "no file that ends in .tf"),
        (bomb, "expands beyond the limit"),
    ] {
        let answer = server.anyone().send("PUT", &upload, None, archive).await;
        assert_eq!(answer.status, StatusCode::UNPROCESSABLE_ENTITY, "{expected}");
        assert!(refusal(&answer).contains(expected), "{}", refusal(&answer));
        let status = admin.get(&path).await.attribute("version-statuses")[0].clone();
        assert_eq!(status["status"], "reg_ingress_failed");
        assert!(status["error"].as_str().expect("a reason").contains(expected), "{status}");
        admin.get(&format!("{PROTOCOL}/1.0.0/download")).await.expect(StatusCode::NOT_FOUND);
    }
    server.anyone().send("PUT", &upload, None, packed(&MODULE)).await.expect(StatusCode::OK);
    let wrong = server.anyone().send("PUT", &upload, None, "hello").await;
    assert_eq!(wrong.status, StatusCode::UNPROCESSABLE_ENTITY);
    location(&server, &format!("{PROTOCOL}/1.0.0/download")).await;
}

#[tokio::test]
async fn names_and_versions_that_cannot_be_are_told() {
    let server = site().await;
    let admin = server.admin();
    server.given_module("acme", "greeter", "local").await;
    let path = module_path("acme", "greeter", "local");
    let made = |body: Value| {
        let admin = admin.clone();
        async move { admin.post(MODULES, &attributes("registry-modules", body)).await }
    };
    for (body, expected) in [
        (json!({}), "Name can't be blank"),
        (json!({ "name": "a b", "provider": "aws" }), "Name may only contain"),
        (json!({ "name": "a", "provider": "" }), "Provider can't be blank"),
        (json!({ "name": "a", "provider": "AWS" }), "lower-case letters and numbers"),
        (json!({ "name": "Greeter", "provider": "local" }), "Name has already been taken"),
        (json!({ "name": "a", "provider": "aws", "registry-name": "PRIVATE" }), "is not included in the list"),
        (json!({ "name": "a", "provider": "aws", "registry-name": "public" }), "Namespace can't be blank"),
        (json!({ "name": "a", "provider": "aws", "namespace": "other" }), "the organization's name, acme"),
    ] {
        let answer = made(body).await;
        assert_eq!(answer.status, StatusCode::UNPROCESSABLE_ENTITY, "{expected}");
        assert!(refusal(&answer).contains(expected), "{}", refusal(&answer));
    }
    server.given_module_version(&path, "1.2.3-alpha+feature").await;
    for (version, expected) in [
        ("", "can't be blank"),
        ("1.2", "such as 1.2.3"),
        ("v1.2.3", "leave out the v"),
        ("1.2.3-alpha+feature", "taken"),
    ] {
        let body = attributes("registry-module-versions", json!({ "version": version }));
        let answer = admin.post(&format!("{path}/versions"), &body).await;
        assert_eq!(answer.status, StatusCode::UNPROCESSABLE_ENTITY, "{version}");
        assert!(refusal(&answer).contains(expected), "{}", refusal(&answer));
    }
    let repository = json!({ "vcs-repo": { "identifier": "acme/terraform-aws-x" } });
    let answer = admin.post(&format!("{MODULES}/vcs"), &attributes("registry-modules", repository)).await;
    assert!(refusal(&answer).contains("version control connections"), "{}", refusal(&answer));
    let public =
        json!({ "name": "vpc", "provider": "aws", "registry-name": "public", "namespace": "terraform-aws-modules" });
    made(public).await.expect(StatusCode::CREATED);
    let public = "/api/v2/organizations/acme/registry-modules/public/terraform-aws-modules/vpc/aws";
    let body = attributes("registry-module-versions", json!({ "version": "1.0.0" }));
    let answer = admin.post(&format!("{public}/versions"), &body).await;
    assert!(refusal(&answer).contains("public registry come from there"), "{}", refusal(&answer));
}

#[tokio::test]
async fn a_deprecated_version_warns_and_can_be_taken_back() {
    let server = site().await;
    let admin = server.admin();
    server.given_module("acme", "greeter", "local").await;
    let path = module_path("acme", "greeter", "local");
    server.given_published_module(&path, "1.0.0", &MODULE).await;
    let deprecation = json!({ "deprecation": { "deprecated-status": "Deprecated", "reason": "Use 2.0",
        "link": "https://acme.test/2" } });
    let body = attributes("registry-module-versions", deprecation);
    let done = admin.patch(&format!("{path}/1.0.0"), &body).await.expect(StatusCode::OK);
    assert_eq!(done.attribute("deprecation")["reason"], "Use 2.0");
    let listed = admin.get(&format!("{PROTOCOL}/versions")).await.json();
    let expected = json!({ "reason": "Use 2.0", "link": "https://acme.test/2" });
    assert_eq!(listed["modules"][0]["versions"][0]["deprecation"], expected);
    location(&server, &format!("{PROTOCOL}/1.0.0/download")).await;
    let wrong = json!({ "deprecation": { "link": "javascript:alert(1)" } });
    let answer = admin.patch(&format!("{path}/1.0.0"), &attributes("registry-module-versions", wrong)).await;
    assert_eq!(answer.status, StatusCode::UNPROCESSABLE_ENTITY);
    let undone = json!({ "deprecation": { "deprecated-status": "Undeprecated" } });
    let done = admin.patch(&format!("{path}/1.0.0"), &attributes("registry-module-versions", undone)).await;
    assert_eq!(done.expect(StatusCode::OK).attribute("deprecation"), Value::Null);
}

#[tokio::test]
async fn modules_are_listed_by_name_searched_and_deleted() {
    let server = site().await;
    let admin = server.admin();
    for (name, provider) in [("vpc", "aws"), ("vpc", "google"), ("dns", "aws"), ("bucket", "google")] {
        server.given_module("acme", name, provider).await;
        server.given_published_module(&module_path("acme", name, provider), "1.0.0", &MODULE).await;
    }
    let named = |query: &'static str| {
        let admin = admin.clone();
        async move {
            let listed = admin.get(&format!("{MODULES}?{query}")).await.expect(StatusCode::OK);
            let name =
                |it: &Value| format!("{}/{}", it["attributes"]["name"], it["attributes"]["provider"]).replace('"', "");
            let names: Vec<String> = listed.data().as_array().expect("a list").iter().map(name).collect();
            (names.join(" "), listed.json()["meta"]["pagination"]["total-count"].clone())
        }
    };
    let expected = |names: &str, total: usize| (names.to_owned(), json!(total));
    assert_eq!(named("").await, expected("bucket/google dns/aws vpc/aws vpc/google", 4));
    assert_eq!(named("page[size]=2&page[number]=2").await, expected("vpc/aws vpc/google", 4));
    assert_eq!(named("q=vp").await, expected("vpc/aws vpc/google", 2));
    assert_eq!(named("q=vpc%20goog").await, expected("vpc/google", 1));
    assert_eq!(named("filter[provider]=aws").await, expected("dns/aws vpc/aws", 2));
    assert_eq!(named("filter[registry_name]=public").await, expected("", 0));
    assert_eq!(named("filter[organization_name]=other").await, expected("", 0));

    let version = format!("{}/1.0.0", module_path("acme", "dns", "aws"));
    admin.delete(&version).await.expect(StatusCode::NO_CONTENT);
    admin.get(&module_path("acme", "dns", "aws")).await.expect(StatusCode::NOT_FOUND);
    admin.delete(&module_path("acme", "vpc", "google")).await.expect(StatusCode::NO_CONTENT);
    assert_eq!(named("").await, expected("bucket/google vpc/aws", 2));
    admin.delete(&format!("{MODULES}/private/acme/vpc")).await.expect(StatusCode::NO_CONTENT);
    admin.delete(&format!("{MODULES}/private/acme/vpc")).await.expect(StatusCode::NOT_FOUND);
    admin.act("/api/v2/registry-modules/actions/delete/acme/bucket").await.expect(StatusCode::NO_CONTENT);
    let listed = admin.get(MODULES).await;
    assert_eq!(listed.json()["meta"]["pagination"]["total-pages"], 0);
}
