use std::fs;

use crate::person::Person;

#[test]
fn a_directory_gets_its_block_once_and_then_needs_no_flags() {
    let person = Person::with_workspace();
    let done = person.succeeds(&["init", "--ws", "acme/network"]);
    let begin = "Created ./backend.tf, which connects this directory to acme/network on ";
    assert!(done.stdout.starts_with(begin) && !done.stdout.contains("Created workspace"), "{done:?}");
    for part in ["\"tfe.v2\"", "\"login.v1\""] {
        assert!(done.stdout.contains(part), "plain http needs a whole host block: {done:?}");
    }
    let shown = person.json(&["ws", "show"]);
    assert_eq!((&shown["name"], &shown["organization"]), (&"network".into(), &"acme".into()));
    let again = person.fails(4, &["init", "--ws", "acme/network"]);
    assert!(again.contains("backend.tf"), "{again}");
}

#[test]
fn the_workspace_is_created_if_it_does_not_exist() {
    let person = Person::new();
    let missing = person.succeeds(&["init", "--org", "acme", "--ws", "app", "--file", "first.tf"]);
    assert!(missing.stdout.contains("`taco ws create acme/app`"), "there is no organization yet: {missing:?}");
    fs::remove_file(person.home.path().join("first.tf")).expect("it was written");
    person.succeeds(&["org", "create", "acme", "--email", "ops@acme.example"]);
    let host_block = format!("host \"{}\" {{}}\n", person.server.address);
    fs::write(person.home.path().join(".terraformrc"), host_block).expect("it is written");
    let done = person.succeeds(&["init", "--org", "acme", "--ws", "app"]);
    assert!(done.stdout.contains("Created workspace acme/app.\n\nNext: `taco run start . --watch`"), "{done:?}");
    assert!(!done.stdout.contains("services"), "terraform knows the server already: {done:?}");
    assert_eq!(person.json(&["ws", "show", "acme/app"])["execution-mode"], "remote");
    fs::create_dir(person.home.path().join("other")).expect("it is made");
    let done = person.json(&["init", "--http", "--org", "acme", "--ws", "state", "other"]);
    assert_eq!(done["created"], true);
    assert_eq!(person.json(&["ws", "show", "acme/state"])["execution-mode"], "local");
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
