use std::fs;

use crate::person::Person;

#[test]
fn a_directory_gets_its_block_once_and_then_needs_no_flags() {
    let person = Person::with_workspace();
    let done = person.succeeds(&["init", "--ws", "acme/network"]);
    assert!(done.stdout.starts_with("./backend.tf keeps the state in acme/network on "), "{done:?}");
    assert!(done.stdout.contains("\"tfe.v2\""), "plain http needs a host block: {done:?}");
    let shown = person.json(&["ws", "show"]);
    assert_eq!((&shown["name"], &shown["organization"]), (&"network".into(), &"acme".into()));
    let again = person.fails(4, &["init", "--ws", "acme/network"]);
    assert!(again.contains("backend.tf"), "{again}");
}

#[test]
fn the_http_backend_has_a_block_too() {
    let person = Person::new();
    fs::create_dir(person.home.path().join("app")).expect("it is made");
    let done = person.succeeds(&["init", "--http", "--org", "acme", "--ws", "app", "--file", "state.tf", "app"]);
    assert!(done.stdout.contains("TF_HTTP_PASSWORD"), "{done:?}");
    assert!(done.stdout.contains("`taco ws create acme/app --execution-mode local`"), "nothing makes it: {done:?}");
    let block = fs::read_to_string(person.home.path().join("app/state.tf")).expect("it is there");
    let address = format!("http://{}/api/http-backend/acme/app", person.server.address);
    assert!(block.contains(&format!("address        = \"{address}\"")), "{block}");
    assert!(block.contains(&format!("lock_address   = \"{address}/lock\"")), "{block}");
}

#[test]
fn shells_complete_all_commands() {
    let person = Person::new();
    for shell in ["bash", "zsh", "fish"] {
        let script = person.succeeds(&["completion", shell]).stdout;
        assert!(["rollback", "doctor", "discard", "refresh-only"].iter().all(|word| script.contains(word)), "{shell}");
    }
}
