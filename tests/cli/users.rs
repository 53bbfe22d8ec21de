//! Users of the site.

use harness::browser::Browser;
use reqwest::{Client, StatusCode};

use crate::person::Person;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_user_is_suspended_and_resumed() {
    let person = Person::new();
    let admin = Browser::at(person.host(), Client::builder());
    admin.set_password(&person.home.setup_link(&[])).await;
    let users = "/app/admin/users";
    let fields = [("username", "jane"), ("email", "jane@acme.example")];
    let page = admin.get(users).await;
    let form = harness::browser::PageForm { action: users.to_owned(), ..page.form("/logout") };
    let page = admin.sends_and_follows(&form, &fields).await;
    let link = page.text.split("<code id=\"password-link\">").nth(1).and_then(|rest| rest.split('<').next());
    let link = link.expect("a link").trim_start_matches(&person.host()).to_owned();
    let jane = Browser::at(person.host(), Client::builder());
    jane.set_password(&link).await;

    person.fails(2, &["user", "suspend", "jane"]);
    let near = person.fails(3, &["user", "suspend", "jnae", "--yes"]);
    assert!(near.contains("did you mean jane?"), "{near}");
    let own = person.fails(4, &["user", "suspend", "admin", "--yes"]);
    assert!(own.contains("cannot suspend yourself"), "{own}");
    assert_eq!(person.succeeds(&["user", "suspend", "JANE", "--yes"]).stdout.trim(), "Suspended jane.");
    assert!(jane.get("/app").await.location().starts_with("/login"));
    assert_eq!(person.json(&["user", "resume", "jane@acme.example"])["is-suspended"], false);
    assert_eq!(jane.get("/app/organizations").await.status, StatusCode::OK);
}
