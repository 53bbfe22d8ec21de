use harness::page_server::PageServer;
use harness::webhook_receiver::{Received, WebhookReceiver};
use reqwest::StatusCode;

use crate::form_scene::exactly;

const LIST: &str = "/app/acme/workspaces/web/settings/notifications";

#[tokio::test]
async fn a_notification_is_made_tried_edited_and_deleted() {
    let (server, receiver) = (PageServer::start().await, WebhookReceiver::start().await);
    server.api.given_organization("acme").await;
    server.api.given_workspace("acme", "web").await;
    let admin = server.admin().await;
    let empty = admin.get(LIST).await;
    assert!(empty.text.contains("No notifications yet."), "{}", empty.text);
    assert!(empty.text.contains("aria-current=\"page\">Notifications"), "the settings lead here: {}", empty.text);

    let form = exactly(&admin.get(&format!("{LIST}/new")).await, LIST);
    let url = receiver.url();
    let fields = |url| {
        [
            ("name", "Ops"),
            ("destination", "generic"),
            ("url", url),
            ("token", "s3cr3t"),
            ("trigger", "run:created"),
            ("trigger", "run:errored"),
            ("enabled", "on"),
        ]
    };
    let inside = admin.send(&form, &fields("https://169.254.169.254/")).await;
    assert_eq!(inside.status, StatusCode::UNPROCESSABLE_ENTITY);
    assert!(
        inside.text.contains("id=\"error-url\"") && inside.text.contains("is not on the internet"),
        "{}",
        inside.text
    );
    assert!(!inside.text.contains("s3cr3t"), "a secret is typed again");
    receiver.answers_with([500]);
    let silent = admin.send(&form, &fields(&url)).await;
    assert!(silent.text.contains("answered the verification with 500"), "{}", silent.text);
    let made = admin.send(&form, &fields(&url)).await;
    assert_eq!(made.done(), format!("{LIST}: Notification Ops created."), "{}", made.text);
    assert!(receiver.received().iter().all(|one| one.is_signed_with("s3cr3t")));

    let listed = admin.get(LIST).await;
    for part in ["Ops", "Webhook", "run:created", "run:errored", "Delivered", "200"] {
        assert!(listed.text.contains(part), "{part}: {}", listed.text);
    }
    let address = listed.text.split(&format!("href=\"{LIST}/nc-")).nth(1).and_then(|rest| rest.split('"').next());
    let address = format!("{LIST}/nc-{}", address.expect("a link"));
    let page = admin.get(&address).await;
    assert!(
        page.text.contains(&url) && page.text.contains("thank you") && !page.text.contains("s3cr3t"),
        "{}",
        page.text
    );

    let test = page.form(&format!("{address}/test"));
    assert_eq!(admin.send(&test, &[]).await.done(), format!("{address}: Test of Ops delivered."));
    receiver.answers_with([410]);
    let failed = admin.send(&test, &[]).await.done();
    assert!(failed.contains("Test of Ops failed. The destination answered the verification with 410"), "{failed}");
    assert!(admin.get(&address).await.text.contains("Failed"));

    let fields = [("name", "Operations"), ("url", url.as_str()), ("token", ""), ("trigger", "run:completed")];
    let saved = admin.send(&exactly(&page, &address), &fields).await;
    assert_eq!(saved.done(), format!("{LIST}: Notification Operations saved."), "{}", saved.text);
    let listed = admin.get(LIST).await.text;
    assert!(
        listed.contains("Operations") && listed.contains("disabled") && listed.contains("run:completed"),
        "{listed}"
    );
    admin.send(&test, &[]).await;
    assert!(receiver.received().last().is_some_and(|one: &Received| one.is_signed_with("s3cr3t")), "it kept its token");

    let delete = admin.get(&address).await.form(&format!("{address}/delete"));
    assert_eq!(admin.send(&delete, &[]).await.done(), format!("{LIST}: Notification Operations deleted."));
    assert_eq!(admin.get(&address).await.status, StatusCode::NOT_FOUND);
}

#[tokio::test]
async fn an_email_that_the_site_cannot_send_is_refused_beside_its_switch() {
    let server = PageServer::start().await;
    server.api.given_organization("acme").await;
    server.api.given_workspace("acme", "web").await;
    let admin = server.admin().await;
    let form = exactly(&admin.get(&format!("{LIST}/new")).await, LIST);
    let fields =
        [("name", "mail"), ("destination", "email"), ("emails", "ops@acme.test\r\nann@acme.test"), ("enabled", "on")];
    let refused = admin.send(&form, &fields).await;
    assert!(refused.text.contains("This site sends no email"), "{}", refused.text);
    assert!(refused.text.contains("ops@acme.test"), "what was typed stays");
    let made = admin.send(&form, &fields[..3]).await;
    assert_eq!(made.done(), format!("{LIST}: Notification mail created."), "{}", made.text);
}
