//! Clients that send slowly: they cost their own organization a slot, and no other one its time.

use std::time::Duration;

use harness::api_client::ApiClient;
use harness::home::{Home, ServerProcess};
use harness::run_site::{SITE_TOKEN, admin_of, configuration, text, until};
use serde_json::json;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;
use tokio::task::JoinSet;
use tokio::time::interval;

/// Sends the head of a request and then a byte now and then, until there is an answer: its status.
async fn dawdle(server: String, head: String) -> u16 {
    let stream = TcpStream::connect(&server).await.expect("it listens");
    let (mut reader, mut writer) = stream.into_split();
    writer.write_all(head.as_bytes()).await.expect("it takes the head");
    let mut tick = interval(Duration::from_secs(5));
    let mut answer = [0; 12];
    let reading = reader.read_exact(&mut answer);
    tokio::pin!(reading);
    loop {
        tokio::select! {
            read = &mut reading => {
                read.expect("an answer");
                break;
            }
            // Once there is an answer, it may no longer be taken.
            _ = tick.tick() => {
                _ = writer.write_all(b"x").await;
            }
        }
    }
    String::from_utf8_lossy(&answer)[9..].parse().expect("a status")
}

/// The address for the archive of a new configuration: path and query.
async fn announced(admin: &ApiClient, workspace: &str) -> String {
    let body = json!({ "data": { "type": "configuration-versions", "attributes": { "auto-queue-runs": false } } });
    let versions = format!("/api/v2/workspaces/{workspace}/configuration-versions");
    let address = text(&admin.post(&versions, body).await["data"]["attributes"]["upload-url"]);
    address.strip_prefix(&admin.origin).expect("an address of this server").to_owned()
}

async fn given_workspace(admin: &ApiClient, organization: &str) -> String {
    admin.given_organization(organization).await;
    text(&admin.given_workspace(organization, "web").await["id"])
}

/// Waits until the slow ones have what they can have: their organization's next one is kept waiting.
async fn uploads(admin: &ApiClient, workspace: &str, archive: Vec<u8>) -> u16 {
    let address = format!("{}{}", admin.origin, announced(admin, workspace).await);
    admin.client.put(address).body(archive).send().await.expect("an answer").status().as_u16()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_hundred_slow_uploads_cost_their_own_organizations_alone() {
    let home = Home::default();
    let mut command = home.taco(&["server"]);
    command.env("TACO_LISTEN", "127.0.0.1:0").env("TACO_SITE_TOKEN", SITE_TOKEN).env("TACO_AGENT_CONCURRENCY", "0");
    let server = ServerProcess::start(&mut command);
    let admin = admin_of(&server.address);
    let victim = given_workspace(&admin, "victim").await;
    // More slow archives than are inspected at once, of organizations that have eight each.
    let mut slow = JoinSet::new();
    for number in 0..5 {
        let workspace = given_workspace(&admin, &format!("slow-{number}")).await;
        for _ in 0..20 {
            let path = announced(&admin, &workspace).await;
            let head = format!("PUT {path} HTTP/1.1\r\nhost: taco\r\ncontent-length: 1000000\r\n\r\n");
            slow.spawn(dawdle(server.address.clone(), head));
        }
    }
    // Theirs is what everyone else's is: taken, or refused for what it is. (It takes the slow ones' uploads some time to
    // begin; all others go on whenever that is.)
    let mut looks = 0;
    until("the victim's uploads are taken while the slow ones go on", async || {
        assert_eq!(uploads(&admin, &victim, configuration()).await, 200);
        assert_eq!(uploads(&admin, &victim, b"this is no archive".to_vec()).await, 422);
        looks += 1;
        looks >= 10
    })
    .await;
    let statuses = slow.join_all().await;
    let count = |status: u16| statuses.iter().filter(|other| **other == status).count();
    assert_eq!(count(408) + count(429), statuses.len(), "{statuses:?}");
    assert!(count(408) >= 40, "those who had a slot were too slow: {statuses:?}");
    // When they are gone, all is as before.
    let workspace = text(&admin.workspace("slow-0", "web").await["id"]);
    assert_eq!(uploads(&admin, &workspace, configuration()).await, 200);
}

#[tokio::test(flavor = "multi_thread")]
async fn slow_states_of_one_organization_do_not_delay_those_of_another() {
    let home = Home::default();
    let mut command = home.taco(&["server"]);
    command.env("TACO_LISTEN", "127.0.0.1:0").env("TACO_SITE_TOKEN", SITE_TOKEN).env("TACO_AGENT_CONCURRENCY", "0");
    let server = ServerProcess::start(&mut command);
    let admin = admin_of(&server.address);
    given_workspace(&admin, "slow").await;
    given_workspace(&admin, "victim").await;
    let mut slow = JoinSet::new();
    for number in 0..30 {
        admin.given_workspace("slow", &format!("number-{number}")).await;
        let head = format!(
            "POST /api/http-backend/slow/number-{number} HTTP/1.1\r\nhost: taco\r\nauthorization: Bearer {SITE_TOKEN}\r\ncontent-length: 1000000\r\n\r\n"
        );
        slow.spawn(dawdle(server.address.clone(), head));
    }
    for serial in 1..=10 {
        let state = json!({ "version": 4, "serial": serial, "lineage": "one", "outputs": {}, "resources": [] });
        let (status, answer) = admin.send("POST", "/api/http-backend/victim/web", Some(&state)).await;
        assert!(status.is_success(), "{status}: {answer}");
    }
    let statuses = slow.join_all().await;
    assert!(statuses.iter().all(|status| matches!(status, 408 | 429)), "{statuses:?}");
    assert!(statuses.iter().filter(|status| **status == 408).count() >= 8, "{statuses:?}");
}
