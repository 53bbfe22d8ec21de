//! A record that a newer server wrote and this one cannot read: operators are told of it, everything else goes on.

use harness::browser::Browser;
use harness::home::{Home, ServerProcess};
use harness::newer_server::NewerServer;
use harness::run_site::{SITE_TOKEN, admin_of, text};
use serde_json::{Value, json};

const KEY: &str = "a key that only these tests know";

fn start(home: &Home) -> ServerProcess {
    let mut command = home.taco(&["server"]);
    command.env("TACO_LISTEN", "127.0.0.1:0").env("TACO_SITE_TOKEN", SITE_TOKEN).env("TACO_SECRET_KEY", KEY);
    ServerProcess::start(command.env("TACO_AGENT_CONCURRENCY", "0"))
}

#[tokio::test(flavor = "multi_thread")]
async fn operators_are_told_what_a_server_cannot_read() {
    let home = Home::default();
    let server = start(&home);
    let admin = admin_of(&server.address);
    admin.given_organization("acme").await;
    let organization = text(&admin.get("/api/v2/organizations/acme").await["data"]["attributes"]["external-id"]);
    let web = admin.given_workspace("acme", "web").await;
    let web = text(&web["id"]);
    let newer = NewerServer::on(&home.bucket(), &organization).await;
    let source = |word: &'static str| {
        move |fields: &mut std::collections::BTreeMap<String, Value>| {
            drop(fields.insert("source".to_owned(), word.into()));
        }
    };
    newer.change(&web, source("tfe-of-tomorrow")).await;

    let told = |line: &str| line.contains("record_unreadable") && line.contains(&web);
    let (status, _) = admin.send("GET", &format!("/api/v2/workspaces/{web}"), None).await;
    assert_eq!(status.as_u16(), 503);
    let line = server.process.line_of_stderr(told);
    assert!(line.contains("a newer server wrote it"), "{line}");
    admin.given_workspace("acme", "other").await;
    for _ in 0..3 {
        admin.get("/api/v2/organizations/acme/workspaces").await;
    }
    assert_eq!(server.process.stderr().lines().filter(|line| told(line)).count(), 1, "once is enough");

    let gauge = |metrics: &str| {
        let line =
            metrics.lines().find(|line| line.starts_with("taco_unreadable_records") && line.contains(&organization));
        line.and_then(|line| line.rsplit(' ').next()).map(str::to_owned)
    };
    assert_eq!(gauge(&metrics(&server).await).as_deref(), Some("1"));
    let (status, said) = server.read("/readyz").await;
    assert_eq!(status, 200, "{said}");

    let doctor = home.taco(&["doctor"]).env("TACO_SECRET_KEY", KEY).output().expect("it runs");
    let said = String::from_utf8(doctor.stdout).expect("text");
    assert!(doctor.status.success(), "it is no damage: {said}");
    let said = said.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(said.contains("written by a newer server") && said.contains(&web), "{said}");

    let browser = Browser::at(format!("http://{}", server.address), reqwest::Client::builder());
    browser.set_password(&home.setup_link(&[("TACO_SECRET_KEY", KEY)])).await;
    let page = browser.get("/app/admin").await.text;
    assert!(page.contains("Unreadable records: 1."), "{page}");

    // The newer server makes it readable again.
    newer.change(&web, source("tfe-api")).await;
    let shown = admin.get(&format!("/api/v2/workspaces/{web}")).await;
    assert_eq!(shown["data"]["attributes"]["name"], json!("web"));
    assert_eq!(gauge(&metrics(&server).await).as_deref(), Some("0"));
}

async fn metrics(server: &ServerProcess) -> String {
    server.read("/metrics").await.1
}
