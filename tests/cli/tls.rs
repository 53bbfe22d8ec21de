//! A server that speaks https.

use std::fs;

use serde_json::json;

use crate::person::{Done, Person, TOKEN};

#[test]
fn commands_work_over_https_for_those_who_trust_the_server() {
    let person = Person::with_tls().given_workspace();
    assert!(person.host().starts_with("https://"));
    let account = person.succeeds(&["whoami"]);
    assert!(account.rows().contains(&vec!["host", &person.server.address]), "{account:?}");
    assert_eq!(person.succeeds(&["ws", "ls", "--org", "acme"]).rows()[0][0], "network");

    let state = json!({ "version": 4, "serial": 1, "lineage": "l", "outputs": {}, "resources": [] }).to_string();
    fs::write(person.home.path().join("it.tfstate"), &state).expect("it is written");
    person.succeeds(&["state", "push", "it.tfstate", "--ws", "acme/network"]);
    assert_eq!(person.succeeds(&["state", "pull", "--ws", "acme/network"]).stdout, state, "byte by byte");

    let host = person.host();
    let mut login = person.home.taco(&["login", &host]);
    let done = Done::of(login.env("SSL_CERT_FILE", person.authority()), TOKEN);
    assert_eq!(done.code, 0, "{done:?}");
    let done = Done::of(person.home.taco(&["whoami"]).env("SSL_CERT_FILE", person.authority()), "");
    assert_eq!(done.code, 0, "the login knows that it is https: {done:?}");
}

#[test]
fn a_certificate_that_nobody_trusts_is_refused() {
    let person = Person::with_tls();
    let done = Done::of(person.taco(&["whoami"]).env_remove("SSL_CERT_FILE"), "");
    assert_eq!(done.code, 5, "{done:?}");
    assert!(done.stderr.to_lowercase().contains("certificate"), "{done:?}");
    assert!(done.stderr.contains("SSL_CERT_FILE"), "it says what to do: {done:?}");
}
