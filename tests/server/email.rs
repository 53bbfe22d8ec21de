//! Notifications by e-mail, through a real mail server.

use harness::home::{Home, ServerProcess};
use harness::mail_server::{MailServer, PASSWORD};
use harness::run_site::{SITE_TOKEN, admin_of, configuration, run_that_applies_itself, text, until};
use reqwest::StatusCode;
use serde_json::json;

const KIND: &str = "notification-configurations";

#[tokio::test(flavor = "multi_thread")]
async fn email_goes_through_the_mail_server_of_the_settings() {
    let mail = MailServer::start();
    let home = Home::default();
    let mut command = home.taco(&["server"]);
    command.env("TACO_LISTEN", "127.0.0.1:0").env("TACO_SITE_TOKEN", SITE_TOKEN).env("TACO_AGENT_CONCURRENCY", "0");
    command.env("TACO_SMTP_URL", mail.url()).env("TACO_MAIL_FROM", "Taco <taco@acme.test>");
    let server = ServerProcess::start(&mut command);
    let admin = admin_of(&server.address);
    admin.given_organization("acme").await;
    let web = json!({ "data": { "type": "workspaces", "attributes": { "name": "web", "execution-mode": "remote" } } });
    let workspace = text(&admin.post("/api/v2/organizations/acme/workspaces", web).await["data"]["id"]);
    admin.given_configuration(&workspace, configuration()).await;
    let all = format!("/api/v2/workspaces/{workspace}/{KIND}");
    let email = |name: &str, addresses: &[&str]| {
        json!({ "data": { "attributes": { "name": name, "destination-type": "email", "enabled": true,
            "triggers": ["run:created"], "email-addresses": addresses } } })
    };
    let made = admin.post(&all, email("ops", &["ops@acme.test", "ann@acme.test"])).await;
    let refused = text(&admin.post(&all, email("nobody", &["nobody@acme.test"])).await["data"]["id"]);
    let id = text(&made["data"]["id"]);
    admin.post(&format!("/api/v2/{KIND}/{id}/actions/verify"), json!({})).await;
    let test = mail.message("Verification of ops");
    assert_eq!((test["from"].clone(), test["user"].clone()), (json!("taco@acme.test"), json!("taco")));
    assert_eq!(test["to"], json!(["ops@acme.test", "ann@acme.test"]));

    let run = text(&admin.post("/api/v2/runs", run_that_applies_itself(&workspace)).await["data"]["id"]);
    let told = text(&mail.message("Run Created: acme/web")["message"]);
    assert!(
        told.contains(&run) && told.contains("Message-ID: <nd-") && told.contains("multipart/alternative"),
        "{told}"
    );
    let answer = async |id: &str| {
        admin.get(&format!("/api/v2/{KIND}/{id}")).await["data"]["attributes"]["delivery-responses"][0].clone()
    };
    until("the refusal is noted", async || answer(&refused).await["successful"] == "false").await;
    assert!(text(&answer(&refused).await["body"]).contains("no such mailbox"));

    let nobody = format!("/api/v2/{KIND}/{refused}/actions/verify");
    let (status, document) = admin.send("POST", &nobody, Some(&json!({}))).await;
    assert_eq!(status, StatusCode::UNPROCESSABLE_ENTITY, "{document}");
    assert!(!server.process.stderr().contains(PASSWORD), "the log has no secrets");
}
