//! Output, prompts and handling of tokens by the commands.

use std::fs;

use serde_json::{Value, json};

use crate::person::{Done, Person, TOKEN};

#[test]
fn a_quiet_command_prints_what_was_asked_for_and_nothing_else() {
    let person = Person::with_workspace();
    assert_eq!(person.succeeds(&["ws", "create", "acme/app", "-q"]).stdout, "");
    assert_eq!(person.succeeds(&["var", "set", "a=b", "--ws", "acme/app", "--quiet"]).stdout, "");
    assert_eq!(person.succeeds(&["ws", "rm", "acme/app", "--yes", "-q"]).stdout, "");
    assert_eq!(person.succeeds(&["ws", "ls", "--org", "acme", "-q"]).rows()[0][0], "network");
    assert_eq!(person.json(&["ws", "create", "acme/app", "-q"])["name"], "app");
    person.succeeds(&["pool", "create", "rack-1", "--org", "acme", "-q"]);
    let token = person.succeeds(&["pool", "token", "create", "rack-1", "--org", "acme", "-q"]).stdout;
    assert!(token.trim_end().len() > 20, "{token}");
    assert!(person.fails(3, &["ws", "show", "acme/nothing", "-q"]).contains("not found"));
    assert_eq!(person.does(&["ws", "ls", "-q", "-v"]).code, 2, "it cannot be both");
}

#[test]
fn a_verbose_command_tells_where_it_found_what() {
    let person = Person::with_workspace();
    let once = person.does(&["ws", "ls", "--org", "acme", "-v"]);
    assert_eq!(once.stderr, format!("Asks {}/ (TACO_HOST) with the token of TACO_TOKEN.\n", person.host()));
    let twice = person.does(&["ws", "ls", "--org", "acme", "-vv", "--host", &person.server.address]);
    assert!(twice.stderr.contains("(the command line)") && twice.stderr.contains("> GET http"), "{twice:?}");
    assert!(twice.stderr.contains("< 200 OK (request ") && !twice.stderr.contains(TOKEN), "{twice:?}");
    assert_eq!(once.stdout, twice.stdout, "what was asked for is the same");
}

#[test]
fn nobody_is_asked_who_does_not_want_it() {
    let person = Person::with_workspace();
    let refused = person.fails(2, &["ws", "rm", "acme/network", "--no-input"]);
    assert!(refused.contains("--yes") && refused.contains("--no-input"), "{refused}");
    person.succeeds(&["ws", "rm", "acme/network", "--no-input", "--yes"]);
    let paste = person.fails(2, &["login", &person.server.address, "--paste", "--no-input"]);
    assert!(paste.contains("--token-file"), "{paste}");
}

#[test]
fn scripts_get_the_token_in_use() {
    let person = Person::new();
    assert_eq!(person.succeeds(&["auth", "token"]).stdout, format!("{TOKEN}\n"));
    let bare = |words: &[&str], input: &str| Done::of(&mut person.home.taco(words), input);
    let none = bare(&["auth", "token", "--host", &person.server.address], "");
    assert_eq!((none.code, none.stdout.as_str()), (3, ""), "{none:?}");
    assert!(none.stderr.contains(&format!("taco login {}", person.server.address)), "{none:?}");
    assert_eq!(bare(&["login", &person.server.address], TOKEN).code, 0);
    let told: Value = serde_json::from_str(&bare(&["auth", "token", "--json"], "").stdout).expect("it is JSON");
    let file = person.home.path().join(".terraform.d/credentials.tfrc.json");
    assert_eq!(told, json!({ "host": person.server.address, "token": TOKEN, "source": file }));
}

#[test]
fn a_directory_may_say_what_its_commands_are_about() {
    let person = Person::with_workspace();
    let text = format!("host = \"{}\"\norganization = \"acme\"\nworkspace = \"network\"\n", person.server.address);
    fs::write(person.home.path().join(".taco.toml"), text).expect("it is written");
    let below = person.home.path().join("modules/one");
    fs::create_dir_all(&below).expect("they are made");
    assert_eq!(bare_whoami(&person), 2, "a token for any server goes to none that a file chose");
    let shown = Done::of(person.taco(&["ws", "show", "--json"]).current_dir(&below), "");
    let shown: Value = serde_json::from_str(&shown.stdout).unwrap_or_else(|error| panic!("{error}: {shown:?}"));
    assert_eq!(shown["name"], "network");
    assert_eq!(person.json(&["ws", "ls"]).as_array().map(Vec::len), Some(1));

    // One that is bound to the server may go there.
    let variable = format!("TF_TOKEN_{}", person.server.address.replace('.', "_"));
    let done = Done::of(person.home.taco(&["whoami", "-v"]).env(variable, TOKEN), "");
    assert_eq!(done.code, 0, "{done:?}");
    assert!(done.stderr.contains(".taco.toml)"), "{done:?}");
    fs::write(person.home.path().join(".taco.toml"), "hots = \"x\"\n").expect("it is written");
    assert!(person.fails(1, &["ws", "ls"]).contains(".taco.toml is not as it should be"));
}

fn bare_whoami(person: &Person) -> i32 {
    let done = Done::of(person.home.taco(&["whoami"]).env("TACO_TOKEN", TOKEN), "");
    assert!(!done.stderr.contains(TOKEN) && done.stderr.contains("TACO_TOKEN is not sent to"), "{done:?}");
    done.code
}

#[test]
fn a_repository_cannot_choose_who_gets_a_token() {
    let person = Person::new();
    let block = "terraform {\n  cloud {\n    hostname = \"HOST\"\n    organization = \"acme\"\n  }\n}\n";
    let block = block.replace("HOST", &person.server.address);
    fs::write(person.home.path().join("main.tf"), block).expect("it is written");
    assert_eq!(bare_whoami(&person), 2);
    let done = Done::of(person.home.taco(&["whoami"]).env("TACO_TOKEN", TOKEN), "");
    assert!(done.stderr.contains(&format!("TACO_HOST={}", person.server.address)), "{done:?}");
    person.succeeds(&["whoami"]);
    let pasted = Done::of(&mut person.home.taco(&["login"]), TOKEN);
    assert_eq!(pasted.code, 2, "{pasted:?}");
    assert!(pasted.stderr.contains(&format!("taco login {}", person.server.address)), "{pasted:?}");
    assert_eq!(Done::of(&mut person.home.taco(&["login", &person.server.address]), TOKEN).code, 0);
    assert_eq!(Done::of(person.home.taco(&["whoami"]).env("TACO_TOKEN", TOKEN), "").code, 0, "a login chose it");
}
