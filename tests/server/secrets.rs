//! Secrets stay out of the bucket, the log and the metrics, also where someone wants to see everything.

use std::fs::{self, Permissions};
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Arc;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use harness::api_client::ApiClient;
use harness::binary::binary;
use harness::browser::Browser;
use harness::home::{Home, ServerProcess};
use harness::process::Process;
use harness::run_site::{admin_of, configuration_of, run_that_applies_itself, text};
use md5::{Digest, Md5};
use reqwest::Client;
use serde_json::{Value, json};
use taco_control_plane::{NotificationSettings, Privileged, Settings};
use taco_domain::grant::challenge_of;
use taco_ledger::{Environment, Location, MasterKey, MasterKeys, Options, Peers, SharedRng, SystemClock};
use tempfile::TempDir;
use tokio::time::{Duration, Instant, sleep};

const SECRET_KEY: &str = "s3cr3t-key-of-the-server-of-32-letters";
const PASSWORD: &str = "s3cr3t-password-of-the-admin";
const WRONG_PASSWORD: &str = "s3cr3t-password-of-someone-else";
const VERIFIER: &str = "0e2ee2c2-43a5-4e6f-9d04-a3eb4c9d1c11.123456789";

/// Secrets that must not be found: their names, and their possible encodings.
#[derive(Default)]
struct Secrets(Vec<(String, Vec<String>)>);

impl Secrets {
    /// Remembers a secret and returns it.
    fn add(&mut self, what: &str, secret: impl Into<String>) -> String {
        let secret = secret.into();
        assert!(secret.len() >= 16, "{what} is too short to be looked for: {secret}");
        self.0.push((what.to_owned(), disguises(&secret)));
        secret
    }

    /// Secrets found in these bytes, with the line of each.
    fn found_in(&self, bytes: &[u8]) -> Vec<String> {
        let text = &String::from_utf8_lossy(bytes);
        let found = self.0.iter().flat_map(|(what, disguises)| {
            let places = disguises.iter().filter_map(|disguised| text.find(disguised));
            places.map(move |place| {
                let line = &text[text[..place].rfind('\n').map_or(0, |end| end + 1)..];
                let line: String = line.lines().next().unwrap_or_default().chars().take(300).collect();
                format!("{what}: {line}")
            })
        });
        found.collect()
    }
}

/// A secret as it is, hexadecimal and in base64: so it could get into logs and files.
fn disguises(secret: &str) -> Vec<String> {
    let mut disguises = vec![secret.to_owned(), hex::encode(secret)];
    // In base64 a text looks different at each of three places, and its ends depend on its peers.
    for before in 0..3 {
        let encoded = STANDARD.encode([vec![0; before], secret.as_bytes().to_vec()].concat());
        let end = encoded.trim_end_matches('=').len() - 1;
        disguises.push(encoded[before + usize::from(before > 0)..end].to_owned());
    }
    disguises
}

/// A stand-in for terraform: it tells what it was given, and makes plans and states that hold a secret. It lives away
/// from the server, near which no run may write.
fn install_engine() -> (TempDir, PathBuf) {
    let programs = tempfile::tempdir().expect("a directory");
    let found = programs.path().join("found");
    let program = programs.path().join("terraform");
    fs::write(&program, ENGINE.replace("FOUND", &found.display().to_string())).expect("written");
    fs::set_permissions(&program, Permissions::from_mode(0o755)).expect("a mode");
    (programs, found)
}

const ENGINE: &str = r#"#!/bin/sh
case $1 in
version)
    echo '{"terraform_version":"1.11.4"}' ;;
plan)
    for word in "$@"; do
        case $word in -out=*) echo s3cr3t-in-the-file-of-a-plan >"${word#-out=}" ;; esac
    done
    cat "$TF_CLI_CONFIG_FILE" >>"FOUND"
    echo "it is $OF_WORKSPACE and $OF_SET"
    exit 2 ;;
show)
    echo '{"format_version":"1.2","terraform_version":"1.11.4","resource_changes":[],"output_changes":{},"variables":{"x":{"value":"s3cr3t-in-the-json-of-a-plan"}}}' ;;
apply)
    cat "$TF_CLI_CONFIG_FILE" >>"FOUND"
    echo '{"version":4,"serial":1,"lineage":"run","terraform_version":"1.11.4","outputs":{"x":{"value":"s3cr3t-in-the-state-of-a-run","type":"string","sensitive":true}},"resources":[]}' >".terraform/taco/workspaces/$TFC_WORKSPACE_NAME/terraform.tfstate" ;;
esac
"#;

/// The tokens that runs were given.
fn tokens_in(found: &Path) -> Vec<String> {
    let found = fs::read_to_string(found).expect("the engine ran");
    let tokens = found.lines().filter_map(|line| line.trim().strip_prefix("token = \"")?.strip_suffix('"'));
    // Each is there once for each name of the server.
    let mut tokens: Vec<String> = tokens.map(str::to_owned).collect();
    tokens.sort();
    tokens.dedup();
    tokens
}

fn document(kind: &str, attributes: Value) -> Value {
    json!({ "data": { "type": kind, "attributes": attributes } })
}

/// The last part of a signed address, which is what opens it.
fn pass_of(address: &Value) -> String {
    text(address).rsplit('/').next().expect("a last part").split('?').next().expect("a first part").to_owned()
}

/// Issues a token of every kind that the API issues.
async fn tokens(admin: &ApiClient, secrets: &mut Secrets) -> String {
    let user = text(&admin.get("/api/v2/account/details").await["data"]["id"]);
    let team = admin.post("/api/v2/organizations/acme/teams", document("teams", json!({ "name": "team" }))).await;
    let team = text(&team["data"]["id"]);
    let pool = document("agent-pools", json!({ "name": "rack" }));
    let pool = text(&admin.post("/api/v2/organizations/acme/agent-pools", pool).await["data"]["id"]);
    let mut of_pool = String::new();
    for (what, path) in [
        ("a user's token", format!("/api/v2/users/{user}/authentication-tokens")),
        ("a team's token", format!("/api/v2/teams/{team}/authentication-token")),
        ("an organization's token", "/api/v2/organizations/acme/authentication-token".to_owned()),
        (
            "a token for the audit trail",
            "/api/v2/organizations/acme/authentication-token?token=audit-trails".to_owned(),
        ),
        ("an agent pool's token", format!("/api/v2/agent-pools/{pool}/authentication-tokens")),
    ] {
        let issued = admin.post(&path, document("authentication-tokens", json!({ "description": "one" }))).await;
        of_pool = secrets.add(what, text(&issued["data"]["attributes"]["token"]));
        // Whoever recognises it has it in hand.
        admin.send_as(&of_pool, "/api/v2/organizations/acme").await;
    }
    of_pool
}

trait SendAs {
    async fn send_as(&self, token: &str, path: &str);
}

impl SendAs for ApiClient {
    async fn send_as(&self, token: &str, path: &str) {
        let client = Self { token: token.to_owned(), ..self.clone() };
        client.send("GET", path, None).await;
    }
}

/// Sets a password, logs in with it and with a wrong one, and lets a CLI log in.
async fn people(home: &Home, server: &ServerProcess, secrets: &mut Secrets) {
    let link = home.setup_link(&[("TACO_SECRET_KEY", SECRET_KEY)]);
    secrets.add("a link for a password", link.rsplit('/').next().expect("a last part"));
    let origin = format!("http://{}", server.address);
    let browser = Browser::at(origin.clone(), Client::builder());
    let (password, wrong) = (secrets.add("a password", PASSWORD), secrets.add("a wrong password", WRONG_PASSWORD));
    let page = browser.get(&link).await;
    let done = browser.send(&page.form(""), &[("password", &password), ("repeated", &password)]).await;
    assert_eq!(done.location(), "/app", "{}", done.text);
    let session = browser.cookie.borrow().clone().expect("a cookie");
    secrets.add("a session", session.split_once('=').expect("a value").1);

    let another = Browser::at(origin.clone(), Client::builder());
    for password in [&wrong, &password] {
        let page = another.get("/login").await;
        another.send(&page.form(""), &[("username", "admin"), ("password", password)]).await;
    }
    let session = another.cookie.borrow().clone().expect("a cookie");
    secrets.add("another session", session.split_once('=').expect("a value").1);

    let challenge = challenge_of(VERIFIER);
    let here = "http://localhost:10000/login";
    let wish = format!(
        "/oauth/authorize?client_id=terraform-cli&code_challenge={challenge}&code_challenge_method=S256\
         &redirect_uri=http%3A%2F%2Flocalhost%3A10000%2Flogin&response_type=code&state=x"
    );
    let page = browser.get(&wish).await;
    let answer = browser.send(&page.form("/oauth/authorize"), &[("decision", "approve")]).await;
    let back = url::Url::parse(answer.location()).expect("an address");
    let code = back.query_pairs().find(|(name, _)| name == "code").expect("a code").1.into_owned();
    secrets.add("a CLI's code", code.clone());
    secrets.add("a CLI's verifier", VERIFIER);
    let fields = [
        ("client_id", "terraform-cli"),
        ("code", &code),
        ("code_verifier", VERIFIER),
        ("grant_type", "authorization_code"),
        ("redirect_uri", here),
    ];
    let answer = Client::new().post(format!("{origin}/oauth/token")).form(&fields).send().await.expect("an answer");
    let answer: Value = answer.json().await.expect("JSON");
    let token = secrets.add("a CLI's token", text(&answer["access_token"]));
    admin_of(&server.address).send_as(&token, "/api/v2/account/details").await;
}

/// A workspace whose runs the server's own agent executes, with everything in it that is sensitive.
async fn given_workspace(admin: &ApiClient, secrets: &mut Secrets, name: &str, settings: Value) -> String {
    let mut attributes = json!({ "name": name, "execution-mode": "remote" });
    for (key, value) in settings.as_object().expect("an object") {
        attributes[key] = value.clone();
    }
    let made = admin.post("/api/v2/organizations/acme/workspaces", document("workspaces", attributes)).await;
    let workspace = text(&made["data"]["id"]);
    for (key, category) in [("OF_WORKSPACE", "env"), ("of_workspace", "terraform")] {
        let value = secrets.add("a sensitive variable", format!("s3cr3t-{category}-variable-of-{name}"));
        let variable = json!({ "key": key, "value": value, "category": category, "sensitive": true });
        admin.post(&format!("/api/v2/workspaces/{workspace}/vars"), document("vars", variable)).await;
    }
    workspace
}

async fn given_shared_secrets(admin: &ApiClient, secrets: &mut Secrets) -> String {
    let set = document("varsets", json!({ "name": "set", "global": true }));
    let set = text(&admin.post("/api/v2/organizations/acme/varsets", set).await["data"]["id"]);
    let value = secrets.add("a set's sensitive variable", "s3cr3t-variable-of-a-set");
    let variable = json!({ "key": "OF_SET", "value": value, "category": "env", "sensitive": true });
    admin.post(&format!("/api/v2/varsets/{set}/relationships/vars"), document("vars", variable)).await;
    let value = secrets.add("an SSH key", "s3cr3t-ssh-key-of-the-organization");
    let key = document("ssh-keys", json!({ "name": "key", "value": value }));
    text(&admin.post("/api/v2/organizations/acme/ssh-keys", key).await["data"]["id"])
}

/// Pushes states in both ways, with a secret where outputs are and another where resources are.
async fn states(admin: &ApiClient, secrets: &mut Secrets, workspace: &str) {
    let output = secrets.add("a state's output", "s3cr3t-output-of-a-state");
    let attribute = secrets.add("a resource's attribute", "s3cr3t-attribute-of-a-resource");
    let state = |serial: u64| {
        let state = json!({
            "version": 4, "terraform_version": "1.11.4", "serial": serial, "lineage": "a",
            "outputs": { "secret": { "value": output, "type": "string", "sensitive": true } },
            "resources": [{
                "mode": "managed", "type": "terraform_data", "name": "one",
                "provider": "provider[\"terraform.io/builtin/terraform\"]",
                "instances": [{ "attributes": { "input": attribute } }],
            }],
        });
        state.to_string()
    };
    admin.act(&json!({ "id": workspace }), "lock").await;
    let versions = format!("/api/v2/workspaces/{workspace}/state-versions");
    let described =
        |serial: u64, state: &str| json!({ "serial": serial, "lineage": "a", "md5": hex::encode(Md5::digest(state)) });
    let first = state(1);
    let mut attributes = described(1, &first);
    attributes["state"] = STANDARD.encode(&first).into();
    admin.post(&versions, document("state-versions", attributes)).await;

    let second = state(2);
    let announced = admin.post(&versions, document("state-versions", described(2, &second))).await;
    let addresses = announced["data"]["attributes"].clone();
    let put = async |name: &str, body: String| {
        let sent = admin.client.put(text(&addresses[name])).body(body).send().await.expect("an answer");
        assert!(sent.status().is_success(), "{name}: {sent:?}");
    };
    put("hosted-state-upload-url", second).await;
    let shown = secrets.add("a state as JSON", "s3cr3t-in-the-json-of-a-state");
    put("hosted-json-state-upload-url", json!({ "format_version": "1.0", "values": shown }).to_string()).await;
    for name in ["hosted-state-upload-url", "hosted-json-state-upload-url"] {
        secrets.add(name, pass_of(&addresses[name]));
    }
    admin.act(&json!({ "id": workspace }), "unlock").await;
    let current = admin.get(&format!("/api/v2/workspaces/{workspace}/current-state-version")).await;
    let address = &current["data"]["attributes"]["hosted-state-download-url"];
    secrets.add("hosted-state-download-url", pass_of(address));
    let state = admin.client.get(text(address)).send().await.expect("an answer").text().await.expect("text");
    assert!(state.contains(&output), "whoever may read it does: {state}");
}

/// A run that is planned and applied, and whose log is read.
async fn run(admin: &ApiClient, secrets: &mut Secrets, workspace: &str) {
    let run = text(&admin.post("/api/v2/runs", run_that_applies_itself(workspace)).await["data"]["id"]);
    assert_eq!(admin.end_of(&run).await, "applied");
    let plan = admin.get(&format!("/api/v2/runs/{run}/plan")).await;
    let address = &plan["data"]["attributes"]["log-read-url"];
    secrets.add("log-read-url", pass_of(address));
    let log = admin.client.get(text(address)).send().await.expect("an answer").text().await.expect("text");
    assert!(log.contains("it is (sensitive) and (sensitive)"), "{log}");
    // What only admins may read goes through the server's hands, too.
    let path = format!("/api/v2/runs/{run}/plan/json-output");
    let answer = admin.client.get(format!("{}{path}", admin.origin)).bearer_auth(&admin.token).send().await;
    let whole = answer.expect("an answer").text().await.expect("text");
    assert!(whole.contains("s3cr3t-in-the-json-of-a-plan"), "{whole}");
}

/// A snapshot of every ledger, as a server writes one after a thousand commits.
async fn snapshots(home: &Home) {
    let rng = SharedRng::from_seed(1);
    let environment = Environment {
        bucket: Arc::new(Location::directory(home.bucket()).open().expect("the bucket")),
        clock: Arc::new(SystemClock),
        rng: rng.clone(),
        server: "another".to_owned(),
        peers: Peers::none(),
    };
    let key = MasterKey::from_secret(SECRET_KEY).expect("long enough");
    let settings = Settings {
        master_keys: Arc::new(MasterKeys::new(key, Vec::new(), rng)),
        site_token: None,
        ledger: Options { snapshot_every: 1, ..Options::default() },
        timeouts: Default::default(),
        limits: Default::default(),
        history: Default::default(),
        hosts: Vec::new(),
        notifications: NotificationSettings::default(),
        opa: None,
    };
    let plane = Privileged::open(environment, settings).await.expect("a control plane");
    let ledgers = 1 + plane.all_organizations().await.expect("organizations").len();
    let deadline = Instant::now() + Duration::from_secs(30);
    while files_in(&home.bucket()).iter().filter(|file| is_snapshot(file)).count() < ledgers {
        assert!(Instant::now() < deadline, "no snapshots were written");
        sleep(Duration::from_millis(20)).await;
    }
}

fn is_snapshot(file: &Path) -> bool {
    file.extension().is_some_and(|extension| extension == "zst")
}

fn files_in(folder: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(folder).expect("a folder").map(|entry| entry.expect("an entry").path());
    entries.flat_map(|path| if path.is_dir() { files_in(&path) } else { vec![path] }).collect()
}

#[test]
fn a_secret_is_found_in_every_disguise() {
    let mut secrets = Secrets::default();
    let secret = secrets.add("it", "s3cr3t-of-whoever-looks");
    for around in ["", "x", "xy", "xyz"] {
        let whole = format!("{around}{secret}{around}");
        for hidden in [whole.clone(), hex::encode(&whole), STANDARD.encode(&whole)] {
            assert_eq!(secrets.found_in(hidden.as_bytes()).len(), 1, "{hidden}");
        }
    }
    assert!(secrets.found_in(b"s3cr3t-of-nobody").is_empty());
}

#[tokio::test(flavor = "multi_thread")]
async fn no_secret_gets_into_the_bucket_the_log_or_the_metrics() {
    let home = Home::default();
    let (programs, found) = install_engine();
    let path = format!("{}:/usr/bin:/bin", programs.path().display());
    let mut secrets = Secrets::default();
    let site_token = secrets.add("the site's token", harness::run_site::SITE_TOKEN);
    let mut command = home.taco(&["server"]);
    command.env("TACO_LISTEN", "127.0.0.1:0").env("TACO_SITE_TOKEN", site_token).env("RUST_LOG", "trace");
    command.env("TACO_SECRET_KEY", secrets.add("the master key", SECRET_KEY));
    command.env("PATH", &path).env("TACO_ENGINE_MIRROR", "http://127.0.0.1:9");
    let server = ServerProcess::start(&mut command);
    let admin = admin_of(&server.address);
    admin.given_organization("acme").await;
    for place in ["file of a plan", "json of a plan", "state of a run", "configuration"] {
        secrets.add(place, format!("s3cr3t-in-the-{}", place.replace(' ', "-")));
    }

    people(&home, &server, &mut secrets).await;
    let pool_token = tokens(&admin, &mut secrets).await;
    let key = given_shared_secrets(&admin, &mut secrets).await;
    let configuration = configuration_of(r#"locals { x = "s3cr3t-in-the-configuration" }"#);
    // One for the server's own agent, and one for an agent that is a process of its own.
    let own = given_workspace(&admin, &mut secrets, "own", json!({})).await;
    let pools = admin.get("/api/v2/organizations/acme/agent-pools").await;
    let pool = json!({ "execution-mode": "agent", "agent-pool-id": pools["data"][0]["id"] });
    let other = given_workspace(&admin, &mut secrets, "other", pool).await;
    let mut agent = Command::new(binary("taco-agent"));
    agent.current_dir(home.path()).env_clear().env("HOME", home.path()).env("PATH", &path).env("RUST_LOG", "trace");
    agent.env("TACO_ENGINE_MIRROR", "none").env("TACO_AGENT_TOKEN", pool_token);
    agent.args(["--server", &admin.origin, "--name", "one", "--work-dir"]).arg(home.path().join("one"));
    let agent = Process::start(&mut agent);
    for workspace in [&own, &other] {
        let body = json!({ "data": { "type": "workspaces", "attributes": { "id": key } } });
        admin.patch(&format!("/api/v2/workspaces/{workspace}/relationships/ssh-key"), body).await;
        admin.given_configuration(workspace, configuration.clone()).await;
        run(&admin, &mut secrets, workspace).await;
    }
    let pushed = given_workspace(&admin, &mut secrets, "pushed", json!({})).await;
    states(&admin, &mut secrets, &pushed).await;
    let tokens = tokens_in(&found);
    assert_eq!(tokens.len(), 4, "two plans and two applies");
    for token in tokens {
        secrets.add("a run's token", token);
    }
    snapshots(&home).await;

    let mut searched: Vec<(String, Vec<u8>)> = Vec::new();
    for file in files_in(&home.bucket()) {
        let bytes = fs::read(&file).expect("it is there");
        let bytes = if is_snapshot(&file) { zstd::decode_all(&bytes[..]).expect("zstd") } else { bytes };
        searched.push((file.display().to_string(), bytes));
    }
    searched.push(("the metrics".to_owned(), server.read("/metrics").await.1.into()));
    for (whose, log) in [("the server's log", server.process.stderr()), ("the agent's log", agent.stderr())] {
        assert!(log.contains("TRACE"), "{whose} has everything: {log}");
        searched.push((whose.to_owned(), log.into()));
    }
    searched.push(("what the server printed".to_owned(), server.process.stdout().into()));
    let leaks: Vec<String> = searched
        .iter()
        .flat_map(|(place, bytes)| secrets.found_in(bytes).into_iter().map(move |found| format!("{place} has {found}")))
        .collect();
    assert!(leaks.is_empty(), "{}", leaks.join("\n"));
}
