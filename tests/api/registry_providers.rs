//! Providers of the private registry, through the API and through the protocol of the engines.

use axum::http::StatusCode;
use harness::api_server::{Answer, ApiServer};
use harness::permission_site::attributes;
use harness::registry::{
    ARCHIVE, CHECKSUMS, FILENAME, KEY_ID, PUBLIC_KEY, SIGNATURE, path_of, platform, provider_path,
};
use serde_json::{Value, json};

const KEYS: &str = "/api/registry/private/v2/gpg-keys";
const PROTOCOL: &str = "/api/registry/v1/providers/acme/null";

async fn site() -> ApiServer {
    let server = ApiServer::start().await;
    server.given_organization("acme").await;
    server
}

fn refusal(answer: &Answer) -> String {
    assert_eq!(answer.status, StatusCode::UNPROCESSABLE_ENTITY, "{:?}", answer.bytes);
    answer.json()["errors"][0]["detail"].as_str().unwrap_or_default().to_owned()
}

#[tokio::test]
async fn a_provider_is_published_found_and_downloaded() {
    let server = site().await;
    let (_, _, platform) = server.given_published_provider("acme").await;
    let admin = server.admin();
    let listed = admin.get(&format!("{PROTOCOL}/versions")).await.expect(StatusCode::OK).json();
    let entry = json!({ "version": "1.0.0", "protocols": ["5.0"], "platforms": [{ "os": "linux", "arch": "amd64" }] });
    assert_eq!(listed, json!({ "versions": [entry] }));
    // Engines write addresses in lower case.
    server.given_organization("Labs").await;
    admin.get("/api/registry/v1/providers/labs/null/versions").await.expect(StatusCode::NOT_FOUND);

    let found = admin.get(&format!("{PROTOCOL}/1.0.0/download/linux/amd64")).await.expect(StatusCode::OK).json();
    let shasum = CHECKSUMS.split_whitespace().next().expect("a checksum");
    assert_eq!((&found["filename"], &found["shasum"]), (&json!(FILENAME), &json!(shasum)));
    let key = &found["signing_keys"]["gpg_public_keys"][0];
    assert_eq!((&key["key_id"], &key["ascii_armor"]), (&json!(KEY_ID), &json!(PUBLIC_KEY)));
    let hashes = &found["packages"]["linux_amd64"]["hashes"];
    assert_eq!(hashes[0], format!("zh:{shasum}"));
    assert!(hashes[1].as_str().expect("a hash").starts_with("h1:"), "{hashes}");
    for (address, expected) in
        [("download_url", ARCHIVE), ("shasums_url", CHECKSUMS.as_bytes()), ("shasums_signature_url", SIGNATURE)]
    {
        let sent = server.anyone().get(&path_of(&found[address])).await.expect(StatusCode::OK);
        assert_eq!(sent.bytes, expected, "{address}");
    }
    admin.get(&format!("{PROTOCOL}/1.0.0/download/plan9/amd64")).await.expect(StatusCode::NOT_FOUND);
    admin.get(&format!("{PROTOCOL}/1.0/download/linux/amd64")).await.expect(StatusCode::NOT_FOUND);

    // What someone may have installed does not change any more, and the key stays with it.
    let conflict = admin.delete(&format!("{KEYS}/acme/{KEY_ID}")).await;
    assert_eq!(conflict.status, StatusCode::CONFLICT);
    admin.delete(&provider_path("acme", "null")).await.expect(StatusCode::NO_CONTENT);
    server.anyone().get(&path_of(&found["download_url"])).await.expect(StatusCode::NOT_FOUND);
    admin.delete(&format!("{KEYS}/acme/{KEY_ID}")).await.expect(StatusCode::NO_CONTENT);
    assert!(platform.starts_with("provpltfrm-"));
}

/// A version that was announced, and the paths to which its two files are sent.
async fn announced(server: &ApiServer, version: &str, key: &str) -> (String, String) {
    let versions = format!("{}/versions", provider_path("acme", "null"));
    let body = attributes("registry-provider-versions", json!({ "version": version, "key-id": key }));
    let made = server.admin().post(&versions, &body).await.expect(StatusCode::CREATED);
    let links = &made.data()["links"];
    (path_of(&links["shasums-upload"]), path_of(&links["shasums-sig-upload"]))
}

#[tokio::test]
async fn what_does_not_fit_together_is_refused_when_it_comes() {
    let server = site().await;
    let (admin, anyone) = (server.admin(), server.anyone());
    let named = json!({ "name": "null", "namespace": "acme", "registry-name": "private" });
    let providers = "/api/v2/organizations/acme/registry-providers";
    admin.post(providers, &attributes("registry-providers", named)).await.expect(StatusCode::CREATED);
    let (checksums, signature) = announced(&server, "1.0.0", KEY_ID).await;

    let said = refusal(&anyone.send("PUT", &checksums, None, "no checksum").await);
    assert!(said.contains("line 1"), "{said}");
    anyone.send("PUT", &checksums, None, CHECKSUMS).await.expect(StatusCode::OK);
    let said = refusal(&anyone.send("PUT", &signature, None, SIGNATURE).await);
    assert!(said.contains("add the public key first"), "{said}");
    for (armor, expected) in [
        ("", "can't be blank"),
        ("hello", "no RSA or Ed25519 key"),
        (PUBLIC_KEY.replace("PUBLIC", "PRIVATE").as_str(), "has a private key in it"),
    ] {
        let key = attributes("gpg-keys", json!({ "namespace": "acme", "ascii-armor": armor }));
        let said = refusal(&admin.post(KEYS, &key).await);
        assert!(said.contains(expected), "{said}");
    }
    let key = attributes("gpg-keys", json!({ "namespace": "acme", "ascii-armor": PUBLIC_KEY }));
    admin.post(KEYS, &key).await.expect(StatusCode::CREATED);
    assert!(refusal(&admin.post(KEYS, &key).await).contains("already been taken"));
    let said = refusal(&anyone.send("PUT", &signature, None, "no signature").await);
    assert!(said.contains("The signature"), "{said}");

    let platforms = format!("{}/versions/1.0.0/platforms", provider_path("acme", "null"));
    let made = admin.post(&platforms, &platform()).await.expect(StatusCode::CREATED);
    let upload = path_of(&made.data()["links"]["provider-binary-upload"]);
    let said = refusal(&anyone.send("PUT", &upload, None, ARCHIVE).await);
    assert!(said.contains("Send SHA256SUMS and its signature first"), "{said}");
    anyone.send("PUT", &signature, None, SIGNATURE).await.expect(StatusCode::OK);
    let other = format!("{CHECKSUMS}{}  other.zip\n", "0".repeat(64));
    let said = refusal(&anyone.send("PUT", &checksums, None, other).await);
    assert!(said.contains("does not belong to what it came with"), "{said}");
    let said = refusal(&anyone.send("PUT", &upload, None, "another file").await);
    assert!(said.contains("send the file that was signed"), "{said}");
    let listed = admin.get(&format!("{PROTOCOL}/versions")).await.json();
    assert_eq!(listed, json!({ "versions": [] }), "nothing can be installed yet");
    for _ in 0..2 {
        anyone.send("PUT", &upload, None, ARCHIVE).await.expect(StatusCode::OK);
    }
    let answer = anyone.send("PUT", &checksums, None, format!("{CHECKSUMS}\n")).await;
    assert!(matches!(answer.status, StatusCode::CONFLICT | StatusCode::UNPROCESSABLE_ENTITY), "{answer:?}");

    for (body, expected) in [
        (json!({ "os": "Linux", "arch": "amd64" }), "Os may only contain"),
        (json!({ "os": "linux", "arch": "amd64", "filename": "../x", "shasum": "ab" }), "Filename may only contain"),
        (json!({ "os": "linux", "arch": "arm64", "filename": "x", "shasum": "" }), "Shasum must be"),
        (json!({ "os": "linux", "arch": "amd64", "filename": "x", "shasum": "ab" }), "already been taken"),
    ] {
        let said = refusal(&admin.post(&platforms, &attributes("registry-provider-platforms", body)).await);
        assert!(said.contains(expected), "{said}");
    }
}

#[tokio::test]
async fn a_key_moves_to_another_organization() {
    let server = site().await;
    let admin = server.admin();
    server.given_organization("labs").await;
    let key = attributes("gpg-keys", json!({ "namespace": "acme", "ascii-armor": PUBLIC_KEY }));
    admin.post(KEYS, &key).await.expect(StatusCode::CREATED);
    let path = format!("{KEYS}/acme/{KEY_ID}");
    let nowhere = admin.patch(&path, &attributes("gpg-keys", json!({ "namespace": "nowhere" }))).await;
    assert!(refusal(&nowhere).contains("namespace not authorized"));
    let moved = admin.patch(&path, &attributes("gpg-keys", json!({ "namespace": "labs" }))).await;
    assert_eq!(moved.expect(StatusCode::OK).attribute("namespace"), "labs");
    admin.get(&path).await.expect(StatusCode::NOT_FOUND);
    let both = admin.get(&format!("{KEYS}?filter[namespace]=acme&filter[namespace]=labs")).await;
    let namespaces: Vec<Value> =
        both.data().as_array().expect("a list").iter().map(|key| key["attributes"]["namespace"].clone()).collect();
    assert_eq!(namespaces, [json!("labs")]);
}
