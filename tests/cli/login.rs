use std::fs;
use std::os::unix::fs::PermissionsExt;

use serde_json::{Value, json};

use crate::person::{Done, Person, TOKEN};

#[test]
fn whoever_logs_in_needs_no_variables_until_they_log_out() {
    let person = Person::new();
    let address = person.server.address.as_str();
    let bare = |words: &[&str], input: &str| Done::of(&mut person.home.taco(words), input);
    let credentials = person.home.path().join(".terraform.d/credentials.tfrc.json");

    let wrong = bare(&["login", address], "wrong\n");
    assert_eq!(wrong.code, 3, "{wrong:?}");
    let empty = bare(&["login", address], "\n");
    assert_eq!(empty.code, 2, "{empty:?}");
    assert!(empty.stderr.contains("/app/settings/tokens"), "{empty:?}");
    assert!(!credentials.exists(), "what does not work is not kept");

    let done = bare(&["login", address], &format!("{TOKEN}\n"));
    assert_eq!(done.code, 0, "{done:?}");
    assert!(done.stdout.contains(&format!("Logged in to {address} as ")) && !done.stdout.contains(TOKEN), "{done:?}");
    assert_eq!(fs::metadata(&credentials).expect("it is there").permissions().mode() & 0o777, 0o600);
    let kept: Value = serde_json::from_slice(&fs::read(&credentials).expect("it is there")).expect("it is JSON");
    assert_eq!(kept, json!({ "credentials": { address: { "token": TOKEN } } }));

    let account = bare(&["whoami"], "");
    assert_eq!(account.code, 0, "{account:?}");
    assert!(account.rows().contains(&vec!["host", address]), "{account:?}");
    let variable = format!("TF_TOKEN_{}", address.replace('.', "_"));
    let done = Done::of(person.home.taco(&["whoami"]).env(variable, "wrong"), "");
    assert_eq!(done.code, 3, "terraform's variable goes before the file: {done:?}");

    let done = bare(&["logout"], "");
    assert!(done.stdout.starts_with(&format!("Logged out of {address}.")), "{done:?}");
    assert_eq!(bare(&["whoami"], "").code, 3);
    assert_eq!(
        bare(&["logout", "--json"], "").stdout,
        format!("{:#}\n", json!({ "host": address, "forgotten": false }))
    );
}

#[test]
fn after_terraform_login_alone_the_server_is_found() {
    let person = Person::new();
    let file = person.home.path().join(".terraform.d/credentials.tfrc.json");
    fs::create_dir(person.home.path().join(".terraform.d")).expect("it is made");
    let credentials = json!({ "credentials": { person.server.address.as_str(): { "token": TOKEN } } });
    fs::write(&file, credentials.to_string()).expect("it is written");
    let done = Done::of(&mut person.home.taco(&["whoami", "-v"]), "");
    assert_eq!(done.code, 0, "{done:?}");
    assert!(done.stderr.contains("(the only login in ~/.terraform.d/credentials.tfrc.json)"), "{done:?}");
}

#[test]
fn a_token_may_come_from_a_file() {
    let person = Person::new();
    fs::write(person.home.path().join("token"), format!("{TOKEN}\n")).expect("it is written");
    let done =
        Done::of(&mut person.home.taco(&["login", &person.server.address, "--token-file", "token", "--json"]), "");
    let told: Value = serde_json::from_str(&done.stdout).unwrap_or_else(|error| panic!("{error}: {done:?}"));
    assert_eq!(told["host"], person.server.address);
}
