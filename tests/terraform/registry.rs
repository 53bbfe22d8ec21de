//! The private registry: modules and providers that the engines get with the token of a login, and within runs with the
//! run's own.

use std::io::{Cursor, Write as _};
use std::path::Path;
use std::process::{Command, Stdio};

use harness::api_seed::ApiSeed;
use harness::configurations::packed;
use harness::registry::{MODULE, module_path, provider_path};
use serde_json::{Value, json};
use sha2::{Digest as _, Sha256};
use zip::ZipWriter;
use zip::write::SimpleFileOptions;

use crate::remote_scene::told_on_an_agent;
use crate::scene::{Scene, says};

told_on_an_agent!(a_module_is_used_by_people_and_by_runs(Cloud), a_provider_is_used_by_people_and_by_runs(Cloud));

fn attributes(kind: &str, attributes: Value) -> Value {
    json!({ "data": { "type": kind, "attributes": attributes } })
}

/// Sends bytes to an address that the API gave.
async fn sends(scene: &Scene, address: &Value, bytes: Vec<u8>) {
    let address = address.as_str().expect("an address");
    let answer = scene.admin.client.put(address).body(bytes).send().await.expect("an answer");
    let status = answer.status();
    assert!(status.is_success(), "{status}: {}", answer.text().await.unwrap_or_default());
}

/// The value of a workspace's only output.
async fn only_output(scene: &Scene, workspace: &str) -> Value {
    let listed = scene.admin.get(&format!("/api/v2/workspaces/{workspace}/current-state-version-outputs")).await;
    listed["data"][0]["attributes"]["value"].clone()
}

async fn publish_module(scene: &Scene, version: &str) {
    let path = module_path("acme", "greeter", "local");
    let body = attributes("registry-module-versions", json!({ "version": version }));
    let announced = scene.admin.post(&format!("{path}/versions"), body).await;
    // No provider but the one that the engines have in them.
    let mut files = MODULE.to_vec();
    files[0].1 = "resource \"terraform_data\" \"this\" {\n  input = var.greeting\n}\n";
    sends(scene, &announced["data"]["links"]["upload"], packed(&files)).await;
}

async fn a_module_is_used_by_people_and_by_runs(scene: Scene) {
    let modules = "/api/v2/organizations/acme/registry-modules";
    scene.admin.post(modules, attributes("registry-modules", json!({ "name": "greeter", "provider": "local" }))).await;
    for version in ["1.0.0", "1.1.0", "2.0.0"] {
        publish_module(&scene, version).await;
    }
    let host = scene.installation.host();
    let root = format!(
        r#"
        module "greeter" {{
          source   = "{host}/acme/greeter/local"
          version  = "~> 1.0"
          greeting = "hello"
        }}
        output "said" {{ value = module.greeter.said }}
        "#
    );
    let here = scene.directory("web", &root);
    says(&here.runs("init").await, "acme/greeter/local 1.1.0 for greeter");
    says(&here.runs("plan").await, "Plan: 1 to add");
    here.runs("apply -auto-approve").await;
    assert_eq!(here.runs("output -raw said").await, "hello");

    // Nobody has downloaded anything for this one: the run does it with its own token.
    let seed = ApiSeed { admin: scene.admin.clone(), organization: "acme", honest: true };
    let workspace = scene.given_remote_workspace("robot", json!({})).await;
    seed.configuration(&workspace, &[("main.tf", &root)]).await;
    seed.run(&workspace, json!({ "message": "by a run", "auto-apply": true }), "applied").await;
    assert_eq!(only_output(&scene, &workspace).await, "hello");

    let stranger = harness::engine::User::new(scene.user.engine, &scene.installation);
    let there = stranger.directory("web", &root);
    let said = there.fails("init").await;
    assert!(!said.contains("Downloading"), "{said}");
}

/// A release of the provider of `null_resource`, signed by a key that was made for it.
struct Release {
    archive: Vec<u8>,
    filename: String,
    shasum: String,
    checksums: Vec<u8>,
    signature: Vec<u8>,
    public_key: String,
    os: &'static str,
    arch: &'static str,
}

impl Release {
    fn made(version: &str) -> Self {
        let program = std::env::var_os("TACO_TEST_PROVIDER_NULL").expect(
            r#"TACO_TEST_PROVIDER_NULL is not set: run `cargo xtask test`, or eval "$(cargo xtask tools)" first"#,
        );
        let program = std::fs::read(Path::new(&program)).expect("it is there");
        let arch = match std::env::consts::ARCH {
            "x86_64" => "amd64",
            "aarch64" => "arm64",
            other => panic!("say here how engines call {other}"),
        };
        let mut writer = ZipWriter::new(Cursor::new(Vec::new()));
        let options = SimpleFileOptions::default().unix_permissions(0o755);
        writer.start_file(format!("terraform-provider-null_v{version}"), options).expect("a file");
        writer.write_all(&program).expect("in memory");
        let archive = writer.finish().expect("in memory").into_inner();
        let filename = format!("terraform-provider-null_{version}_{}_{arch}.zip", std::env::consts::OS);
        let shasum = hex::encode(Sha256::digest(&archive));
        let checksums = format!("{shasum}  {filename}\n").into_bytes();
        let (signature, public_key) = signed(&checksums);
        Self { archive, filename, shasum, checksums, signature, public_key, os: std::env::consts::OS, arch }
    }
}

/// A signature by a fresh key of GnuPG, and the public key.
fn signed(message: &[u8]) -> (Vec<u8>, String) {
    let home = tempfile::tempdir().expect("a directory");
    let gpg = |words: &[&str], input: &[u8]| {
        let mut child = Command::new("gpg")
            .args(["--homedir", home.path().to_str().expect("text"), "--batch", "--yes", "--passphrase", ""])
            .args(words)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .expect("gpg is installed");
        child.stdin.take().expect("piped").write_all(input).expect("it reads");
        let output = child.wait_with_output().expect("it ends");
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        output.stdout
    };
    gpg(&["--quick-generate-key", "publisher@acme.test", "ed25519", "sign", "never"], b"");
    let signature = gpg(&["--detach-sign"], message);
    let key = String::from_utf8(gpg(&["--armor", "--export"], b"")).expect("text");
    // Its agent would stay.
    let _ = Command::new("gpgconf").arg("--homedir").arg(home.path()).args(["--kill", "gpg-agent"]).status();
    (signature, key)
}

async fn publish_provider(scene: &Scene, version: &str) {
    let release = Release::made(version);
    let key = json!({ "namespace": "acme", "ascii-armor": release.public_key });
    let key = scene.admin.post("/api/registry/private/v2/gpg-keys", attributes("gpg-keys", key)).await;
    let named = json!({ "name": "null", "namespace": "acme", "registry-name": "private" });
    let providers = "/api/v2/organizations/acme/registry-providers";
    scene.admin.post(providers, attributes("registry-providers", named)).await;
    let versions = format!("{}/versions", provider_path("acme", "null"));
    let body = json!({ "version": version, "key-id": key["data"]["attributes"]["key-id"], "protocols": ["5.0"] });
    let announced = scene.admin.post(&versions, attributes("registry-provider-versions", body)).await;
    let links = &announced["data"]["links"];
    sends(scene, &links["shasums-upload"], release.checksums).await;
    sends(scene, &links["shasums-sig-upload"], release.signature).await;
    let platform =
        json!({ "os": release.os, "arch": release.arch, "filename": release.filename, "shasum": release.shasum });
    let platform = attributes("registry-provider-platforms", platform);
    let platform = scene.admin.post(&format!("{versions}/{version}/platforms"), platform).await;
    sends(scene, &platform["data"]["links"]["provider-binary-upload"], release.archive).await;
}

async fn a_provider_is_used_by_people_and_by_runs(scene: Scene) {
    publish_provider(&scene, "2.1.2").await;
    let host = scene.installation.host();
    let root = format!(
        r#"
        terraform {{
          required_providers {{
            null = {{
              source  = "{host}/acme/null"
              version = "2.1.2"
            }}
          }}
        }}
        resource "null_resource" "one" {{
          triggers = {{ greeting = "hello" }}
        }}
        output "greeting" {{ value = null_resource.one.triggers.greeting }}
        "#
    );
    let here = scene.directory("web", &root);
    let said = here.runs("init").await;
    says(&said, "acme/null v2.1.2");
    assert!(said.contains("signed") || said.contains("self-signed"), "{said}");
    let lock = std::fs::read_to_string(here.path.join(".terraform.lock.hcl")).expect("a lock file");
    assert!(lock.contains("h1:") && lock.contains("zh:"), "{lock}");
    here.runs("apply -auto-approve").await;
    assert_eq!(here.runs("output -raw greeting").await, "hello");

    let seed = ApiSeed { admin: scene.admin.clone(), organization: "acme", honest: true };
    let workspace = scene.given_remote_workspace("robot", json!({})).await;
    seed.configuration(&workspace, &[("main.tf", &root)]).await;
    seed.run(&workspace, json!({ "message": "by a run", "auto-apply": true }), "applied").await;
    assert_eq!(only_output(&scene, &workspace).await, "hello");
}
