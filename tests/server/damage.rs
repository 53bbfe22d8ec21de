//! Damage in the bucket: altered, deleted or swapped objects are noticed at start, by `taco doctor` and `taco audit
//! verify`, and by the doors, which refuse what is not what was stored. Everyone else goes on.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};

use flate2::Compression;
use flate2::write::GzEncoder;
use harness::api_client::ApiClient;
use harness::home::{Home, ServerProcess};
use harness::process::Process;
use harness::run_site::{RunSite, SITE_TOKEN, admin_of, text};
use md5::{Digest as _, Md5};
use nix::sys::signal::Signal;
use serde_json::{Value, json};

const KEY: &str = "a key that only these tests know";

fn start(home: &Home) -> ServerProcess {
    let mut command = home.taco(&["server"]);
    command.env("TACO_LISTEN", "127.0.0.1:0").env("TACO_SITE_TOKEN", SITE_TOKEN).env("TACO_SECRET_KEY", KEY);
    ServerProcess::start(command.env("TACO_AGENT_CONCURRENCY", "0"))
}

fn stop(mut server: ServerProcess) {
    server.process.signal(Signal::SIGTERM);
    assert_eq!(server.process.wait().code(), Some(0), "{server:?}");
}

/// Code and table of a command that looks at the bucket.
fn look(home: &Home, words: &[&str]) -> (Option<i32>, String) {
    let output = home.taco(words).env("TACO_SECRET_KEY", KEY).output().expect("it runs");
    (output.status.code(), String::from_utf8(output.stdout).expect("it is text"))
}

fn files_below(directory: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(directory).into_iter().flatten().map(|entry| entry.expect("readable").path());
    let mut files: Vec<_> =
        entries.flat_map(|path| if path.is_dir() { files_below(&path) } else { vec![path] }).collect();
    files.sort();
    files
}

/// The newest commit of a ledger.
fn newest(home: &Home, ledger: &str) -> PathBuf {
    let log = files_below(&home.bucket().join("ledgers").join(ledger).join("log"));
    log.into_iter().rfind(|path| path.extension().is_some_and(|kind| kind == "json")).expect("a commit")
}

/// The key of an object.
fn key_of(home: &Home, path: &Path) -> String {
    path.strip_prefix(home.bucket()).expect("in the bucket").to_str().expect("text").to_owned()
}

async fn ledger_of(admin: &ApiClient, organization: &str) -> String {
    let shown = admin.get(&format!("/api/v2/organizations/{organization}")).await;
    text(&shown["data"]["attributes"]["external-id"])
}

/// Changes one byte in the middle of a commit, which stays JSON.
fn alter(commit: &Path) {
    let content = fs::read_to_string(commit).expect("a commit");
    let altered = content.replacen("\"server\":\"", "\"server\":\"x", 1);
    assert_ne!(content, altered);
    fs::write(commit, altered).expect("written");
}

#[tokio::test]
async fn an_altered_or_deleted_newest_commit_is_noticed_at_start_and_by_the_commands() {
    let home = Home::default();
    let server = start(&home);
    let admin = admin_of(&server.address);
    for organization in ["acme", "other"] {
        admin.given_organization(organization).await;
        admin.given_workspace(organization, "web").await;
    }
    let ledger = ledger_of(&admin, "acme").await;
    stop(server);
    let (code, table) = look(&home, &["doctor", "--deep"]);
    assert_eq!(code, Some(0), "{table}");
    let commit = newest(&home, &ledger);
    let (key, sound) = (key_of(&home, &commit), fs::read(&commit).expect("a commit"));
    let damages: [&dyn Fn(); 2] = [&|| alter(&commit), &|| fs::remove_file(&commit).expect("removed")];
    for damage in damages {
        damage();
        for words in [&["doctor"][..], &["audit", "verify"], &["audit", "verify", "--ledger", &ledger]] {
            let (code, table) = look(&home, words);
            assert_eq!(code, Some(1), "{words:?} {table}");
            assert!(table.contains(&key), "{words:?} does not name {key}: {table}");
        }
        // Who has no key sees it, too.
        let keyless = home.taco(&["audit", "verify"]).output().expect("it runs");
        assert_eq!(keyless.status.code(), Some(1), "{}", String::from_utf8_lossy(&keyless.stdout));

        let server = start(&home);
        let admin = admin_of(&server.address);
        let (status, answer) = admin.send("GET", "/api/v2/organizations/acme/workspaces", None).await;
        assert_eq!(status.as_u16(), 500, "{answer}");
        assert!(answer["errors"][0]["detail"].as_str().is_some_and(|detail| detail.contains("damaged")), "{answer}");
        server.process.line_of_stderr(|line| line.contains(&key));
        admin.get("/api/v2/organizations/other/workspaces").await;
        stop(server);
        fs::write(&commit, &sound).expect("restored");
    }
    let (code, table) = look(&home, &["doctor", "--deep"]);
    assert_eq!(code, Some(0), "{table}");

    // Nothing works without the site's ledger, so that a server does not start.
    let commit = newest(&home, "site");
    alter(&commit);
    let refused = home.taco(&["server"]).env("TACO_LISTEN", "127.0.0.1:0").env("TACO_SECRET_KEY", KEY).output();
    let said = String::from_utf8_lossy(&refused.expect("it ends").stderr).into_owned();
    assert!(said.contains(&key_of(&home, &commit)), "{said}");
}

#[tokio::test]
async fn a_running_server_writes_nothing_after_a_newest_commit_that_is_gone() {
    let home = Home::default();
    let server = start(&home);
    let admin = admin_of(&server.address);
    admin.given_organization("acme").await;
    admin.given_organization("other").await;
    admin.given_workspace("acme", "web").await;
    let commit = newest(&home, &ledger_of(&admin, "acme").await);
    let sound = fs::read(&commit).expect("a commit");
    fs::remove_file(&commit).expect("removed");
    let body = json!({ "data": { "type": "workspaces", "attributes": { "name": "more" } } });
    let (status, answer) = admin.send("POST", "/api/v2/organizations/acme/workspaces", Some(&body)).await;
    assert_eq!(status.as_u16(), 500, "{answer}");
    let key = key_of(&home, &commit);
    server.process.line_of_stderr(|line| line.contains(&key) && line.contains("deleted"));
    assert!(newest(&home, &ledger_of(&admin, "acme").await) < commit, "nothing was written");
    // Who reads is served, and other organizations do not notice.
    admin.workspace("acme", "web").await;
    admin.given_workspace("other", "web").await;

    fs::write(&commit, sound).expect("restored");
    admin.given_workspace("acme", "more").await;
    stop(server);
    let (code, table) = look(&home, &["doctor"]);
    assert_eq!(code, Some(0), "{table}");
}

/// A configuration with a README.
fn archive() -> Vec<u8> {
    let mut archive = tar::Builder::new(GzEncoder::new(Vec::new(), Compression::fast()));
    for (name, content) in [("main.tf", ""), ("README.md", "# what this is")] {
        let mut header = tar::Header::new_gnu();
        header.set_size(content.len() as u64);
        header.set_mode(0o644);
        archive.append_data(&mut header, name, content.as_bytes()).expect("there is room");
    }
    archive.into_inner().and_then(GzEncoder::finish).expect("there is room")
}

/// A site whose bucket has every kind of object, and `other`, which nothing happens to.
struct Everything {
    site: RunSite,
    _agent: Process,
    workspace: String,
    run: String,
    /// A file of each kind in the bucket.
    objects: Vec<(String, PathBuf)>,
}

impl Everything {
    async fn made() -> Self {
        let (site, server) = RunSite::with_lease(30).await;
        let admin = admin_of(&server.address);
        let agent = site.agent("one", &server.address);
        let body = site.workspace_for_agents("web");
        let workspace = text(&admin.post("/api/v2/organizations/acme/workspaces", body).await["data"]["id"]);
        admin.given_configuration(&workspace, archive()).await;
        let run = admin.start_run(&workspace).await;
        assert_eq!(admin.end_of(&run).await, "applied");
        // A state with its form as JSON.
        admin.given_organization("other").await;
        for organization in ["acme", "other"] {
            let pushed = admin.given_workspace(organization, "pushed").await;
            push_with_json(&admin, &pushed).await;
        }
        let blobs = site.home.bucket().join("blobs").join(ledger_of(&admin, "acme").await);
        stop(server);
        let mut objects = Vec::new();
        for kind in
            ["states", "json-states", "configurations", "readmes", "plans", "json-plans", "redacted-plans", "logs"]
        {
            let found = files_below(&blobs.join(kind));
            objects.push((kind.to_owned(), found.first().unwrap_or_else(|| panic!("no {kind}")).clone()));
        }
        let log = files_below(&blobs.join("logs")).pop().expect("a log");
        objects.push(("last piece of logs".to_owned(), log));
        Self { site, _agent: agent, workspace, run, objects }
    }

    fn doctor(&self, deep: bool) -> (Option<i32>, String) {
        look(&self.site.home, if deep { &["doctor", "--deep"] } else { &["doctor"] })
    }
}

async fn push_with_json(admin: &ApiClient, workspace: &Value) {
    admin.act(workspace, "lock").await;
    let state = json!({ "version": 4, "serial": 1, "lineage": "a", "outputs": {}, "resources": [] }).to_string();
    let attributes = json!({ "serial": 1, "lineage": "a", "md5": hex::encode(Md5::digest(&state)) });
    let announced = json!({ "data": { "type": "state-versions", "attributes": attributes } });
    let id = text(&workspace["id"]);
    let version = admin.post(&format!("/api/v2/workspaces/{id}/state-versions"), announced).await;
    for (attribute, bytes) in [("hosted-json-state-upload-url", "{}".to_owned()), ("hosted-state-upload-url", state)] {
        let address = text(&version["data"]["attributes"][attribute]);
        let sent = admin.client.put(address).body(bytes).send().await.expect("an answer");
        assert!(sent.status().is_success(), "{attribute}: {sent:?}");
    }
    admin.act(workspace, "unlock").await;
}

fn flip_a_byte(path: &Path) {
    let mut bytes = fs::read(path).expect("a file");
    let last = bytes.len() - 1;
    bytes[last / 2] ^= 1;
    fs::write(path, bytes).expect("written");
}

#[tokio::test(flavor = "multi_thread")]
async fn the_doctor_names_every_kind_of_damaged_object_and_what_depends_on_it() {
    let all = Everything::made().await;
    for deep in [false, true] {
        let (code, table) = all.doctor(deep);
        assert_eq!(code, Some(0), "{table}");
    }
    for (kind, path) in &all.objects {
        let (key, sound) = (key_of(&all.site.home, path), fs::read(path).expect("a file"));
        fs::remove_file(path).expect("removed");
        let (code, table) = all.doctor(false);
        assert_eq!(code, Some(1), "{kind} is missing: {table}");
        assert!(table.contains(&key) && table.contains("workspace acme/"), "{kind} {key}: {table}");
        assert!(table.contains("What to do"), "{table}");

        fs::write(path, &sound[..sound.len() - 1]).expect("cut off");
        let (code, table) = all.doctor(false);
        let proves_itself = ["json-states", "readmes"].contains(&kind.as_str());
        assert!(code == Some(1) && table.contains(&key) || proves_itself, "{kind} was cut off: {table}");

        fs::write(path, &sound).expect("restored");
        flip_a_byte(path);
        let (code, table) = all.doctor(true);
        assert_eq!(code, Some(1), "{kind} was altered: {table}");
        assert!(table.contains(&key), "{kind} {key}: {table}");
        fs::write(path, &sound).expect("restored");
    }
    // Objects of one kind in each other's place.
    let states = files_below(all.objects[0].1.parent().expect("a folder"));
    let [one, two] = [&states[0], &states[1]].map(|path| fs::read(path).expect("a state"));
    fs::write(&states[0], &two).expect("written");
    fs::write(&states[1], &one).expect("written");
    let (code, table) = all.doctor(true);
    assert_eq!(code, Some(1), "{table}");
    for state in &states[..2] {
        assert!(table.contains(&key_of(&all.site.home, state)), "{table}");
    }
    assert!(table.contains("the current state of workspace acme/"), "{table}");
    fs::write(&states[0], &one).expect("restored");
    fs::write(&states[1], &two).expect("restored");
    let (code, table) = all.doctor(true);
    assert_eq!(code, Some(0), "{table}");
}

#[tokio::test(flavor = "multi_thread")]
async fn the_doors_refuse_what_is_damaged_and_serve_everything_else() {
    let all = Everything::made().await;
    let kinds = all.site.home.bucket().join("blobs");
    let kinds = kinds.join(key_of(&all.site.home, &all.objects[0].1).split('/').nth(1).expect("an organization"));
    let damages: [fn(&Path); 2] = [flip_a_byte, |path| fs::remove_file(path).expect("removed")];
    let sound: Vec<_> = files_below(&kinds).into_iter().map(|path| (fs::read(&path).expect("a file"), path)).collect();
    for damage in damages {
        sound.iter().for_each(|(_, path)| damage(path));
        let server = all.site.server();
        let admin = admin_of(&server.address);
        let plan = admin.get(&format!("/api/v2/runs/{}/plan", all.run)).await;
        let log = text(&plan["data"]["attributes"]["log-read-url"]);
        let plan = text(&plan["data"]["id"]);
        let shown = admin.get(&format!("/api/v2/runs/{}", all.run)).await;
        let configuration = text(&shown["data"]["relationships"]["configuration-version"]["data"]["id"]);
        let origin = &admin.origin;
        for address in [
            // It tells the values of outputs, which only the state has.
            format!("{origin}/api/v2/workspaces/{}/current-state-version", all.workspace),
            log + "?limit=65536&offset=0",
            format!("{origin}/api/v2/plans/{plan}/json-output"),
            format!("{origin}/api/v2/plans/{plan}/json-output-redacted"),
            format!("{origin}/api/v2/configuration-versions/{configuration}/download"),
        ] {
            let request = admin.client.get(&address).bearer_auth(&admin.token).send();
            let answer = request.await.expect("an answer");
            let (status, body) = (answer.status().as_u16(), answer.text().await.expect("a whole body"));
            assert_eq!(status, 500, "{address}: {body}");
            assert!(body.contains("damaged"), "{address}: {body}");
        }
        for (kind, path) in &all.objects {
            if ["configurations", "json-plans", "redacted-plans"].contains(&kind.as_str()) {
                let key = key_of(&all.site.home, path);
                server.process.line_of_stderr(|line| line.contains(&key));
            }
        }
        // No one else notices.
        let pushed = admin.workspace("other", "pushed").await;
        let address = format!("/api/v2/workspaces/{}/current-state-version", text(&pushed["id"]));
        let state = admin.get(&address).await;
        let download = text(&state["data"]["attributes"]["hosted-state-download-url"]);
        let answer = admin.client.get(download).bearer_auth(&admin.token).send().await.expect("an answer");
        assert_eq!(answer.status().as_u16(), 200);
        stop(server);
        sound.iter().for_each(|(bytes, path)| fs::write(path, bytes).expect("restored"));
    }
}

#[tokio::test]
async fn a_damaged_organization_keeps_nobody_from_hearing_of_the_others() {
    let home = Home::default();
    let server = start(&home);
    let admin = admin_of(&server.address);
    for organization in ["acme", "other"] {
        admin.given_organization(organization).await;
        let pushed = admin.given_workspace(organization, "pushed").await;
        push_with_json(&admin, &pushed).await;
    }
    let (acme, other) = (ledger_of(&admin, "acme").await, ledger_of(&admin, "other").await);
    stop(server);
    let commit = newest(&home, &acme);
    fs::write(&commit, "{").expect("written");
    let state = files_below(&home.bucket().join("blobs").join(other).join("states")).remove(0);
    fs::remove_file(&state).expect("removed");
    let (code, table) = look(&home, &["doctor"]);
    assert_eq!(code, Some(1), "{table}");
    for object in [&commit, &state] {
        assert!(table.contains(&key_of(&home, object)), "{}: {table}", object.display());
    }
    assert!(table.contains("the current state of workspace other/pushed"), "{table}");
}

#[tokio::test]
async fn a_bucket_directory_is_for_its_owner_alone() {
    let home = Home::default();
    fs::create_dir_all(home.bucket()).expect("made");
    // As an older version left it.
    fs::set_permissions(home.bucket(), fs::Permissions::from_mode(0o755)).expect("set");
    let server = start(&home);
    let mode = fs::metadata(home.bucket()).expect("a directory").permissions().mode();
    assert_eq!(mode & 0o777, 0o700, "{mode:o}");
    stop(server);
}
