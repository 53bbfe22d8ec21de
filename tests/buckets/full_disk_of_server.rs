//! A server whose bucket is on a disk that fills up or turns read-only: what is stored can be read, and everybody who wants
//! to write is told why not, until the disk takes writes again.

use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::Command;

use harness::api_client::ApiClient;
use harness::home::{Home, ServerProcess};
use harness::run_site::{SITE_TOKEN, admin_of, until};
use serde_json::json;

/// The disk belongs to the server's name space; others reach it through the server.
fn start(home: &Home, starter: &[&str]) -> ServerProcess {
    let taco = home.taco(&["server"]);
    let mut command = Command::new(starter[0]);
    command.args(&starter[1..]).arg(taco.get_program()).args(taco.get_args()).env_clear().current_dir(home.path());
    command.env("HOME", home.path()).env("PATH", "/usr/bin:/bin:/usr/sbin:/sbin");
    command.env("TACO_BUCKET", format!("file://{}", home.path().join("disk/bucket").display()));
    command.env("TACO_LISTEN", "127.0.0.1:0").env("TACO_SITE_TOKEN", SITE_TOKEN).env("TACO_AGENT_CONCURRENCY", "0");
    ServerProcess::start(command.env("TACO_SECRET_KEY", "a key that only these tests know"))
}

/// The same with a small disk of its own.
fn start_with_disk(home: &Home) -> ServerProcess {
    let disk = home.path().join("disk");
    fs::create_dir(&disk).expect("it is made");
    let script = format!("mount -t tmpfs -o size=2m tmpfs '{}' && exec \"$@\"", disk.display());
    start(home, &["unshare", "--map-root-user", "--mount", "sh", "-c", &script, "sh"])
}

/// Command prefix to start something in the namespaces of another process.
fn beside(process: &str) -> [&str; 6] {
    ["nsenter", "--target", process, "--user", "--mount", "--preserve-credentials"]
}

/// Writes until nothing more fits.
fn fill(filler: &Path) {
    let mut file = fs::File::create(filler).expect("it is made");
    for size in [64 * 1024, 1024, 1] {
        while file.write_all(&vec![b'x'; size]).is_ok() {}
    }
}

async fn refusal(admin: &ApiClient, name: &str) -> (u16, String) {
    let body = json!({ "data": { "type": "workspaces", "attributes": { "name": name } } });
    let (status, answer) = admin.send("POST", "/api/v2/organizations/acme/workspaces", Some(&body)).await;
    (status.as_u16(), answer["errors"][0]["detail"].as_str().unwrap_or_default().to_owned())
}

#[tokio::test(flavor = "multi_thread")]
async fn a_full_disk_is_told_in_plain_words_and_reads_go_on() {
    let home = Home::default();
    let server = start_with_disk(&home);
    let admin = admin_of(&server.address);
    admin.given_organization("acme").await;

    let process = server.process.id().to_string();
    let filler = PathBuf::from(format!("/proc/{process}/root{}/disk/filler", home.path().display()));
    fill(&filler);
    let (status, detail) = refusal(&admin, "web").await;
    assert_eq!(status, 503, "{detail}");
    assert!(detail.contains("the bucket's disk is full"), "{detail}");
    assert!(!detail.contains(home.path().to_str().expect("UTF-8")) && !detail.contains("ledgers/"), "{detail}");
    admin.get("/api/v2/organizations/acme").await;
    let (status, reason) = server.read("/readyz").await;
    assert_eq!((status, reason.contains("the bucket's disk is full")), (503, true), "{reason}");
    assert_eq!(server.read("/readyz?for=reads").await.0, 200);

    // Another one starts on the same disk, and serves what is there.
    let other = start(&home, &beside(&process));
    admin_of(&other.address).get("/api/v2/organizations/acme").await;
    let (status, detail) = refusal(&admin_of(&other.address), "web").await;
    assert_eq!((status, detail.contains("full")), (503, true), "{detail}");

    fs::remove_file(&filler).expect("it is removed");
    for (server, name) in [(&server, "one"), (&other, "two")] {
        until("it takes writes", async || refusal(&admin_of(&server.address), name).await.0 == 201).await;
        until("it is ready", async || server.read("/readyz").await.0 == 200).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_read_only_disk_is_told_in_plain_words_and_reads_go_on() {
    let home = Home::default();
    let server = start_with_disk(&home);
    let admin = admin_of(&server.address);
    admin.given_organization("acme").await;

    let process = server.process.id().to_string();
    let remount = |mode: &str| {
        let [starter, beside @ ..] = beside(&process);
        let mut command = Command::new(starter);
        command.args(beside).args(["mount", "-o", &format!("remount,{mode}")]).arg(home.path().join("disk"));
        assert!(command.status().expect("mount (util-linux) is installed").success(), "the disk is not {mode}");
    };
    remount("ro");
    let (status, detail) = refusal(&admin, "web").await;
    assert_eq!(status, 503, "{detail}");
    assert!(detail.contains("read-only"), "{detail}");
    assert!(!detail.contains(home.path().to_str().expect("UTF-8")) && !detail.contains("ledgers/"), "{detail}");
    admin.get("/api/v2/organizations/acme").await;
    let (status, reason) = server.read("/readyz").await;
    assert_eq!((status, reason.contains("read-only")), (503, true), "{reason}");
    assert_eq!(server.read("/readyz?for=reads").await.0, 200);

    remount("rw");
    until("it takes writes", async || refusal(&admin, "one").await.0 == 201).await;
    until("it is ready", async || server.read("/readyz").await.0 == 200).await;
    assert_eq!(refusal(&admin, "one").await.0, 422, "it was made once");
}
