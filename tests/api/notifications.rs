//! Notifications: who may have them told where, and what arrives there.

use std::collections::BTreeSet;

use axum::http::StatusCode;
use harness::api_server::{Answer, ApiServer, Client};
use harness::permission_site::attributes;
use harness::webhook_receiver::{Received, WebhookReceiver};
use jiff::SignedDuration;
use serde_json::{Value, json};
use taco_control_plane::AttemptOutcome;

use crate::run_phases::{applied, execute, planned};
use crate::runs::{given_workspace, start_run};

const KIND: &str = "notification-configurations";
const TOKEN: &str = "a key that only the receiver knows";

fn of(workspace: &str) -> String {
    format!("/api/v2/workspaces/{workspace}/{KIND}")
}

fn one(id: &str) -> String {
    format!("/api/v2/{KIND}/{id}")
}

/// A generic webhook to the receiver, as attributes.
fn webhook(receiver: &WebhookReceiver, triggers: &[&str]) -> Value {
    json!({ "name": "hook", "destination-type": "generic", "enabled": true, "url": receiver.url(), "token": TOKEN,
        "triggers": triggers })
}

async fn create(admin: &Client, path: &str, values: Value) -> Answer {
    admin.post(path, &attributes(KIND, values)).await
}

async fn update(admin: &Client, id: &str, values: Value) -> Answer {
    admin.patch(&one(id), &attributes(KIND, values)).await
}

/// Delivers what is due, as servers do, until nothing is.
pub(crate) async fn deliver(server: &ApiServer) -> Vec<AttemptOutcome> {
    let mut outcomes = Vec::new();
    for org in server.control_plane.all_organizations().await.expect("organizations") {
        loop {
            let due = server.control_plane.due_deliveries(&org);
            if due.is_empty() {
                break;
            }
            for delivery in due {
                outcomes.push(server.control_plane.deliver(&org, delivery).await.expect("a bucket"));
            }
        }
    }
    outcomes
}

fn triggers(received: &[Received]) -> Vec<String> {
    received.iter().map(Received::trigger).collect()
}

#[tokio::test]
async fn a_run_is_told_from_its_beginning_to_its_end() {
    let (server, receiver) = (ApiServer::start().await, WebhookReceiver::start().await);
    let admin = server.admin();
    let workspace = given_workspace(&server).await;
    let all = ["run:created", "run:planning", "run:needs_attention", "run:applying", "run:completed", "run:errored"];
    let made = create(&admin, &of(&workspace), webhook(&receiver, &all)).await.expect(StatusCode::CREATED);
    assert_eq!(triggers(&receiver.received()), ["verification"]);

    let run = start_run(&admin, &workspace, json!({ "message": "Move \"it\" <north>" })).await.id();
    execute(&server, planned(true)).await;
    assert_eq!(receiver.received().len(), 1, "nothing is sent while a run waits for it");
    assert_eq!(deliver(&server).await, [AttemptOutcome::Delivered; 3]);
    admin.post(&format!("/api/v2/runs/{run}/actions/apply"), &json!({})).await.expect(StatusCode::ACCEPTED);
    execute(&server, applied()).await;
    deliver(&server).await;
    let received = receiver.received();
    let expected =
        ["verification", "run:created", "run:planning", "run:needs_attention", "run:applying", "run:completed"];
    assert_eq!(triggers(&received), expected, "in the order in which it happened");
    assert!(received.iter().all(|one| one.is_signed_with(TOKEN) && !one.is_signed_with("another")));
    let ids: BTreeSet<_> = received.iter().map(Received::delivery).collect();
    assert_eq!(ids.len(), received.len());

    let told = received[3].json();
    assert_eq!(told["notification_configuration_id"], json!(made.id()));
    assert_eq!(told["run_url"], format!("http://taco.test/app/acme/workspaces/web/runs/{run}"));
    assert_eq!(
        (told["run_message"].clone(), told["payload_version"].clone()),
        (json!("Move \"it\" <north>"), json!(1))
    );
    assert_eq!((told["workspace_name"].clone(), told["organization_name"].clone()), (json!("web"), json!("acme")));
    assert_eq!(told["notifications"][0]["run_status"], "planned");
    assert_eq!(told["notifications"][0]["message"], "Run Needs Attention");
    let name = admin.get("/api/v2/account/details").await.attribute("username");
    assert_eq!(received[1].json()["notifications"][0]["run_updated_by"], name);
    assert_eq!(received[5].json()["notifications"][0]["run_status"], "applied");

    let read = admin.get(&one(&made.id())).await.expect(StatusCode::OK);
    let answers = read.attribute("delivery-responses");
    assert_eq!((answers[0]["code"].clone(), answers[0]["successful"].clone()), (json!("200"), json!("true")));
    assert_eq!((answers[0]["body"].clone(), answers[0]["url"].clone()), (json!("thank you"), json!(receiver.url())));
    assert!(answers[0]["headers"]["content-type"].is_array(), "{answers}");
    assert_eq!(answers.as_array().map(Vec::len), Some(1), "clients get the last");
}

#[tokio::test]
async fn only_what_was_chosen_is_told_and_a_project_hears_of_all_its_workspaces() {
    let (server, receiver) = (ApiServer::start().await, WebhookReceiver::start().await);
    let admin = server.admin();
    let workspace = given_workspace(&server).await;
    let read = admin.get(&format!("/api/v2/workspaces/{workspace}")).await;
    let project = read.data()["relationships"]["project"]["data"]["id"].as_str().expect("an id").to_owned();
    let path = format!("/api/v2/projects/{project}/{KIND}");
    let made = create(&admin, &path, webhook(&receiver, &["run:errored", "run:completed"])).await;
    assert_eq!(made.data()["relationships"]["subscribable"]["data"]["type"], "projects");
    let silent = json!({ "name": "off", "destination-type": "generic", "enabled": false, "url": receiver.url(),
        "triggers": ["run:created"] });
    create(&admin, &of(&workspace), silent).await.expect(StatusCode::CREATED);
    start_run(&admin, &workspace, json!({})).await;
    execute(&server, planned(false)).await;
    server.pass(SignedDuration::from_secs(1));
    let canceled = start_run(&admin, &workspace, json!({})).await.id();
    admin.act(&format!("/api/v2/runs/{canceled}/actions/cancel")).await.expect(StatusCode::ACCEPTED);
    deliver(&server).await;
    let received = receiver.received();
    assert_eq!(triggers(&received), ["verification", "run:completed", "run:errored"]);
    assert_eq!(received[1].json()["notifications"][0]["run_status"], "planned_and_finished");
    assert_eq!(received[2].json()["notifications"][0]["message"], "Run Canceled");
}

#[tokio::test]
async fn what_fails_is_tried_again_with_the_same_id_and_then_given_up() {
    let (server, receiver) = (ApiServer::start().await, WebhookReceiver::start().await);
    let (other, admin) = (WebhookReceiver::start().await, server.admin());
    let workspace = given_workspace(&server).await;
    let failing = create(&admin, &of(&workspace), webhook(&receiver, &["run:created", "run:planning"])).await.id();
    create(&admin, &of(&workspace), webhook(&other, &["run:created"])).await.expect(StatusCode::CREATED);
    receiver.answers_with([500; 20]);
    start_run(&admin, &workspace, json!({})).await;
    execute(&server, planned(false)).await;
    let outcomes = deliver(&server).await;
    assert_eq!(outcomes.iter().filter(|outcome| **outcome == AttemptOutcome::Failed).count(), 1, "{outcomes:?}");
    assert_eq!(triggers(&other.received()), ["verification", "run:created"], "others do not wait");
    assert!(deliver(&server).await.is_empty(), "not at once");
    let mut attempts = 1;
    while attempts < 10 {
        server.pass(SignedDuration::from_hours(1));
        let outcome = deliver(&server).await;
        attempts += 1;
        let expected = if attempts < 10 { vec![AttemptOutcome::Failed] } else { vec![AttemptOutcome::GivenUp] };
        assert_eq!(outcome[..1], expected, "attempt {attempts}");
    }
    let received = receiver.received();
    let created: Vec<_> = received.iter().filter(|one| one.trigger() == "run:created").collect();
    assert_eq!(created.len(), 10);
    assert!(created.iter().all(|one| one.delivery() == created[0].delivery() && one.body == created[0].body));
    let answer = admin.get(&one(&failing)).await.attribute("delivery-responses")[0].clone();
    assert_eq!((answer["code"].clone(), answer["successful"].clone()), (json!("500"), json!("false")));

    // The next one had to wait for that, and is told as soon as the destination is back.
    update(&admin, &failing, json!({ "enabled": false })).await.expect(StatusCode::OK);
    server.pass(SignedDuration::from_hours(9));
    assert!(deliver(&server).await.is_empty(), "who disables it wants no more of it");
}

#[tokio::test]
async fn two_servers_agree_on_one_outcome() {
    let (server, receiver) = (ApiServer::start().await, WebhookReceiver::start().await);
    let (another, admin) = (server.another().await, server.admin());
    let workspace = given_workspace(&server).await;
    create(&admin, &of(&workspace), webhook(&receiver, &["run:created"])).await.expect(StatusCode::CREATED);
    start_run(&admin, &workspace, json!({})).await;
    let org = server.control_plane.all_organizations().await.expect("organizations").remove(0);
    let same = another.control_plane.all_organizations().await.expect("organizations").remove(0);
    let due = server.control_plane.due_deliveries(&org);
    assert_eq!(another.control_plane.due_deliveries(&same), due, "neither knows of the other");
    let (one, two) =
        tokio::join!(server.control_plane.deliver(&org, due[0]), another.control_plane.deliver(&same, due[0]));
    let mut outcomes = [one.expect("a bucket"), two.expect("a bucket")];
    outcomes.sort_by_key(|outcome| *outcome == AttemptOutcome::Superseded);
    assert_eq!(outcomes, [AttemptOutcome::Delivered, AttemptOutcome::Superseded]);
    let received = receiver.received();
    assert_eq!(received.len(), 3, "one verification, and the same twice");
    assert_eq!(received[1].delivery(), received[2].delivery());
}

#[tokio::test]
async fn whoever_enables_it_has_to_be_there() {
    let (server, receiver) = (ApiServer::start().await, WebhookReceiver::start().await);
    let admin = server.admin();
    let workspace = given_workspace(&server).await;
    receiver.answers_with([404]);
    let refused = create(&admin, &of(&workspace), webhook(&receiver, &[])).await;
    let (detail, pointer) = refused.expect(StatusCode::UNPROCESSABLE_ENTITY).error();
    assert!(detail.contains("answered the verification with 404"), "{detail}");
    assert_eq!(pointer.as_deref(), Some("/data/attributes/url"));
    let off = json!({ "name": "a", "destination-type": "generic", "enabled": false, "url": receiver.url() });
    let made = create(&admin, &of(&workspace), off).await.expect(StatusCode::CREATED).id();
    assert_eq!(receiver.received().len(), 1, "what is off is not asked");
    receiver.answers_with([302]);
    update(&admin, &made, json!({ "enabled": true })).await.expect(StatusCode::UNPROCESSABLE_ENTITY);
    assert_eq!(admin.get(&one(&made)).await.attribute("enabled"), false);
    let enabled = update(&admin, &made, json!({ "enabled": true })).await.expect(StatusCode::OK);
    assert_eq!(enabled.attribute("enabled"), true);
    update(&admin, &made, json!({ "name": "b" })).await.expect(StatusCode::OK);
    assert_eq!(receiver.received().len(), 3, "another name needs no verification");

    let verify = format!("{}/actions/verify", one(&made));
    admin.post(&verify, &json!({})).await.expect(StatusCode::OK);
    receiver.answers_with([503]);
    admin.post(&verify, &json!({})).await.expect(StatusCode::UNPROCESSABLE_ENTITY);
    let answer = admin.get(&one(&made)).await.attribute("delivery-responses")[0].clone();
    assert_eq!((answer["code"].clone(), answer["successful"].clone()), (json!("503"), json!("false")));
    let told = receiver.received()[0].json();
    assert!(told["run_id"].is_null() && told["organization_name"].is_null(), "{told}");
    assert_eq!(told["notifications"][0]["message"], "Verification of hook");
}

#[tokio::test]
async fn addresses_within_the_site_are_refused() {
    let server = ApiServer::start().await;
    let admin = server.admin();
    let workspace = given_workspace(&server).await;
    for url in [
        "https://10.0.0.1/",
        "https://192.168.1.1/",
        "https://169.254.169.254/latest/meta-data/",
        "https://[::1]/",
        "https://[::ffff:10.0.0.1]/",
        "https://[fd00:ec2::254]/",
        "https://100.64.0.1/",
        "https://0.0.0.0/",
        "https://224.0.0.1/",
        "ftp://example.com/",
        "https://ann:secret@example.com/",
        "https://example.com:22/",
        "https://example.com:25/",
        "nonsense",
        "javascript:alert(1)",
    ] {
        let values = json!({ "name": "a", "destination-type": "generic", "enabled": false, "url": url });
        let refused = create(&admin, &of(&workspace), values).await;
        let (detail, pointer) = refused.expect(StatusCode::UNPROCESSABLE_ENTITY).error();
        assert_eq!(pointer.as_deref(), Some("/data/attributes/url"), "{url}: {detail}");
        assert!(!detail.contains("secret"), "{detail}");
    }
    // What is not encrypted can be stored, as clients do, and is not sent to the internet.
    let plain = json!({ "name": "a", "destination-type": "generic", "enabled": false, "url": "http://192.0.78.9/" });
    let made = create(&admin, &of(&workspace), plain).await.expect(StatusCode::CREATED).id();
    let (detail, _) =
        update(&admin, &made, json!({ "enabled": true })).await.expect(StatusCode::UNPROCESSABLE_ENTITY).error();
    assert!(detail.contains("must be encrypted"), "{detail}");
}

#[tokio::test]
async fn requests_of_the_provider_are_understood() {
    let (server, receiver) = (ApiServer::start().await, WebhookReceiver::start().await);
    let admin = server.admin();
    let workspace = given_workspace(&server).await;
    // Without a type, and with empty texts for what is not set.
    let sent = json!({ "data": { "attributes": { "name": "mail", "destination-type": "email", "enabled": false,
        "url": "", "token": "", "triggers": ["run:created", "assessment:drifted"],
        "email-addresses": ["ops@acme.test", "ops@acme.test"] } } });
    let made = admin.post(&of(&workspace), &sent).await.expect(StatusCode::CREATED);
    assert_eq!(made.attribute("email-addresses"), json!(["ops@acme.test"]));
    assert_eq!(made.attribute("triggers"), json!(["run:created", "assessment:drifted"]));
    assert!(made.attribute("url").is_null() && made.attribute("token").is_null());
    let account = admin.get("/api/v2/account/details").await.id();
    let users = |ids: &[&str]| {
        let ids: Vec<_> = ids.iter().map(|id| json!({ "type": "users", "id": id })).collect();
        json!({ "data": { "type": KIND, "attributes": {}, "relationships": { "users": { "data": ids } } } })
    };
    let path = one(&made.id());
    let named = admin.patch(&path, &users(&[&account])).await.expect(StatusCode::OK);
    assert_eq!(named.data()["relationships"]["users"]["data"][0]["id"], account);
    assert_eq!(named.attribute("email-addresses"), json!(["ops@acme.test"]), "what is not named stays");
    // An empty list is left out by go-tfe.
    let cleared = update(&admin, &made.id(), json!({ "name": "mail" })).await.expect(StatusCode::OK);
    assert_eq!(cleared.data()["relationships"]["users"]["data"], json!([]));
    let (stranger, _) = server.given_user("stranger").await;
    let (detail, pointer) =
        admin.patch(&path, &users(&[&stranger.to_string()])).await.expect(StatusCode::UNPROCESSABLE_ENTITY).error();
    assert!(detail.contains("not a member") && pointer.as_deref() == Some("/data/relationships/users"), "{detail}");
    let (detail, _) =
        update(&admin, &made.id(), json!({ "enabled": true })).await.expect(StatusCode::UNPROCESSABLE_ENTITY).error();
    assert!(detail.contains("sends no email"), "{detail}");

    let signed =
        create(&admin, &of(&workspace), webhook(&receiver, &["run:created"])).await.expect(StatusCode::CREATED);
    assert!(signed.attribute("token").is_null(), "a token goes in and never comes out");
    update(&admin, &signed.id(), json!({ "token": "" })).await.expect(StatusCode::OK);
    admin.post(&format!("{}/actions/verify", one(&signed.id())), &json!({})).await.expect(StatusCode::OK);
    let last = receiver.received().pop().expect("one");
    assert_eq!(last.header("x-tfe-notification-signature"), None);
    let listed = admin.get(&format!("{}?page%5Bsize%5D=1", of(&workspace))).await.expect(StatusCode::OK);
    assert_eq!(listed.json()["meta"]["pagination"]["total-count"], 2);
    admin.delete(&path).await.expect(StatusCode::NO_CONTENT);
    admin.get(&path).await.expect(StatusCode::NOT_FOUND);
}

#[tokio::test]
async fn bad_input_is_answered_with_what_is_allowed() {
    let server = ApiServer::start().await;
    let admin = server.admin();
    let workspace = given_workspace(&server).await;
    let good =
        json!({ "name": "a", "destination-type": "generic", "enabled": false, "url": "https://hooks.acme.test/" });
    for (field, value, words) in [
        ("name", json!(""), "can't be blank"),
        ("destination-type", json!("pigeon"), "generic, email, slack, microsoft-teams"),
        ("url", json!(""), "can't be blank"),
        ("triggers", json!(["run:flew"]), "is not one of run:created"),
        ("triggers", json!(["change_request:created"]), "is for teams"),
        ("email-addresses", json!(["a@acme.test"]), "must be blank"),
    ] {
        let mut values = good.clone();
        values[field] = value;
        let (detail, pointer) =
            create(&admin, &of(&workspace), values).await.expect(StatusCode::UNPROCESSABLE_ENTITY).error();
        assert!(detail.contains(words), "{field}: {detail}");
        assert_eq!(pointer, Some(format!("/data/attributes/{field}")));
    }
    for number in 0..20 {
        let mut values = good.clone();
        values["name"] = json!(format!("hook {number}"));
        create(&admin, &of(&workspace), values).await.expect(StatusCode::CREATED);
    }
    let (detail, _) = create(&admin, &of(&workspace), good).await.expect(StatusCode::CONFLICT).error();
    assert!(detail.contains("20 notification configurations"), "{detail}");
    let listed = admin.get(&of(&workspace)).await.data();
    let first = listed[0]["id"].as_str().expect("an id");
    let refused = update(&admin, first, json!({ "destination-type": "slack" })).await;
    assert!(refused.expect(StatusCode::UNPROCESSABLE_ENTITY).error().0.contains("can't be changed"));
}

#[tokio::test]
async fn chat_programs_get_their_own_form() {
    let (server, receiver) = (ApiServer::start().await, WebhookReceiver::start().await);
    let admin = server.admin();
    let workspace = given_workspace(&server).await;
    for kind in ["slack", "microsoft-teams"] {
        let values = json!({ "name": kind, "destination-type": kind, "enabled": true, "url": receiver.url(),
            "triggers": ["run:created"] });
        create(&admin, &of(&workspace), values).await.expect(StatusCode::CREATED);
    }
    start_run(&admin, &workspace, json!({ "message": "<!channel>" })).await;
    deliver(&server).await;
    let bodies: Vec<Value> = receiver.received().iter().skip(2).map(Received::json).collect();
    let slack = bodies.iter().find(|body| body["blocks"].is_array()).expect("one for Slack");
    assert_eq!(slack["text"], "Run Created in acme/web: &lt;!channel&gt;");
    let card = bodies.iter().find(|body| body["type"] == "message").expect("one for Microsoft Teams");
    assert_eq!(card["attachments"][0]["content"]["body"][1]["inlines"][0]["text"], "<!channel>");
}

#[tokio::test]
async fn what_is_to_be_told_is_nobodys_action_in_the_audit_trail() {
    let (server, receiver) = (ApiServer::start().await, WebhookReceiver::start().await);
    let admin = server.admin();
    let workspace = given_workspace(&server).await;
    let made = create(&admin, &of(&workspace), webhook(&receiver, &["run:planning"])).await.id();
    let run = start_run(&admin, &workspace, json!({})).await.id();
    execute(&server, planned(false)).await;
    let token = admin.post("/api/v2/organizations/acme/authentication-token?token=audit-trails", &json!({})).await;
    let auditor = server.with_token(token.attribute("token").as_str().expect("a token"));
    let events = auditor.get("/api/v2/organization/audit-trail").await.expect(StatusCode::OK).data();
    let things: Vec<_> = events
        .as_array()
        .expect("a list")
        .iter()
        .map(|event| (event["resource"]["action"].clone(), event["resource"]["id"].clone()))
        .collect();
    assert!(things.contains(&(json!("phase.take"), json!(run))), "{things:?}");
    assert!(things.contains(&(json!("create"), json!(made))), "{things:?}");
    let bucket = server.ledger().await;
    let newest = bucket.read().await.expect("a state").seq();
    let text = json!(bucket.history(1..=newest).await.expect("commits")).to_string();
    assert!(!text.contains(&receiver.url()) && !text.contains(TOKEN), "addresses and tokens are sealed");
}
