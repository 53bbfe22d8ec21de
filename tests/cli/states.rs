use std::fs;

use axum::http::Method;
use harness::trap_proxy::{Fate, Moment, TrapProxy};
use serde_json::{Value, json};

use crate::person::{Done, Person};

/// A state as terraform writes it.
fn state(serial: u64, url: &str, resources: &[(&str, &str)]) -> String {
    let resource = |(name, id): &(&str, &str)| {
        json!({
            "mode": "managed", "type": "null_resource", "name": name,
            "provider": "provider[\"registry.terraform.io/hashicorp/null\"]",
            "instances": [{ "schema_version": 0, "attributes": { "id": id, "triggers": null }, "sensitive_attributes": [] }],
        })
    };
    let state = json!({
        "version": 4, "terraform_version": "1.11.4", "serial": serial, "lineage": "3f1c9b57-6c1f-4c39-8c80-a2e2dc1f7a44",
        "outputs": { "url": { "value": url, "type": "string" } },
        "resources": resources.iter().map(resource).collect::<Vec<_>>(),
        "check_results": null,
    });
    format!("{state:#}\n")
}

const NETWORK: [&str; 2] = ["--ws", "acme/network"];

fn words<'a>(words: &[&'a str]) -> Vec<&'a str> {
    words.iter().chain(&NETWORK).copied().collect()
}

fn push(person: &Person, text: &str) -> Done {
    fs::write(person.home.path().join("it.tfstate"), text).expect("it is written");
    person.does(&words(&["state", "push", "it.tfstate"]))
}

#[test]
fn a_state_is_pushed_pulled_compared_and_brought_back() {
    let person = Person::with_workspace();
    let none = person.fails(3, &words(&["state", "pull"]));
    assert!(none.contains("has no state yet"), "{none}");

    let first = state(1, "http://one", &[("a", "1"), ("b", "1")]);
    let pushed = push(&person, &first);
    assert_eq!(pushed.code, 0, "{pushed:?}");
    assert!(pushed.stdout.starts_with("Uploaded serial 1 of acme/network (sv-"), "{pushed:?}");
    assert_eq!(person.succeeds(&words(&["state", "pull"])).stdout, first, "byte by byte");
    let addresses = person.succeeds(&words(&["state", "ls"]));
    assert_eq!(addresses.rows(), [["null_resource.a", "hashicorp/null"], ["null_resource.b", "hashicorp/null"]]);
    let resource = person.json(&words(&["state", "show", "null_resource.a"]));
    assert_eq!(resource["attributes"]["id"], "1");
    person.fails(3, &words(&["state", "show", "null_resource.z"]));

    let second = state(2, "http://two", &[("b", "2"), ("c", "1")]);
    let mut from_pipe = person.taco(&words(&["state", "push", "-", "--json"]));
    let pushed = Done::of(&mut from_pipe, &second);
    let stored: Value = serde_json::from_str(&pushed.stdout).unwrap_or_else(|error| panic!("{error}: {pushed:?}"));
    assert_eq!((&stored["serial"], &stored["status"]), (&json!(2), &json!("finalized")));
    assert!(!pushed.stdout.contains("/signed/"), "addresses that are credentials stay out: {pushed:?}");

    let versions = person.succeeds(&words(&["state", "versions"]));
    assert_eq!(versions.stdout.lines().next(), Some("SERIAL\tID\tSTATUS\tBYTES\tTERRAFORM\tCREATED\tBY"));
    assert_eq!(versions.rows().iter().map(|row| row[0]).collect::<Vec<_>>(), ["2", "1"]);

    let rows = "\tWHAT\tCHANGE\n-\tnull_resource.a\t\n~\tnull_resource.b\tid: \"1\" → \"2\"\n+\tnull_resource.c\t\n\
                ~\toutput.url\t\"http://one\" → \"http://two\"\n";
    for asked in [&["state", "diff"][..], &["state", "diff", "1"], &["state", "diff", "1", "2"]] {
        assert_eq!(person.succeeds(&words(asked)).stdout, rows, "{asked:?}");
    }
    let difference = person.json(&words(&["state", "diff", "1", versions.rows()[0][1]]));
    assert_eq!(difference["old"]["serial"], 1);
    assert_eq!(
        difference["resources"][1],
        json!({ "action": "changed", "address": "null_resource.b", "attributes": ["id"] })
    );
    assert_eq!(difference["outputs"][0]["after"], "http://two");

    let refused = person.fails(2, &words(&["state", "rollback", "1"]));
    assert!(refused.contains("--yes"), "{refused}");
    let back = person.succeeds(&words(&["state", "rollback", "1", "--yes"])).stdout;
    assert_eq!(back, "Rolled acme/network back to serial 1; it is now serial 3.\n");
    assert_eq!(person.succeeds(&words(&["state", "diff", "1", "3"])).stdout, "\tWHAT\tCHANGE\n");
    assert_eq!(person.json(&words(&["state", "show"]))["serial"], 3);
    assert_eq!(person.json(&["ws", "show", "acme/network"])["locked"], false, "nothing stays locked");

    let kept = person.fails(4, &["ws", "rm", "acme/network", "--yes"]);
    assert!(kept.contains("--force"), "{kept}");
    person.succeeds(&["ws", "rm", "acme/network", "--yes", "--force"]);
}

#[test]
fn an_older_state_is_refused_and_nothing_stays_locked() {
    let person = Person::with_workspace();
    assert_eq!(push(&person, &state(5, "a", &[])).code, 0);
    let older = push(&person, &state(4, "b", &[]));
    assert!(older.code == 4, "{older:?}");
    assert!(older.stderr.contains("serial"), "{older:?}");
    assert_eq!(person.json(&["ws", "show", "acme/network"])["locked"], false);
    let nonsense = push(&person, "nonsense");
    assert_eq!(nonsense.code, 1);
    assert!(nonsense.stderr.starts_with("error: it.tfstate is no state\n"), "{nonsense:?}");
}

#[test]
fn a_state_that_the_server_refuses_leaves_nothing_locked() {
    let person = Person::with_workspace();
    let refused = push(&person, &state(1, "a", &[]).replace("\"version\": 4", "\"version\": 3"));
    assert_eq!(refused.code, 1, "{refused:?}");
    assert!(refused.stderr.contains("state format version 3 is not supported"), "{refused:?}");
    assert_eq!(person.json(&["ws", "show", "acme/network"])["locked"], false);
    assert_eq!(push(&person, &state(1, "a", &[])).code, 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn whoever_leaves_a_lock_behind_hears_of_it() {
    let person = Person::with_workspace();
    let proxy = TrapProxy::in_front_of(&format!("http://{}", person.server.address)).await;
    fs::write(person.home.path().join("it.tfstate"), state(1, "a", &[])).expect("it is written");
    let mut taco = person.taco(&words(&["state", "push", "it.tfstate"]));
    taco.env("TACO_HOST", proxy.address().trim_start_matches("http://"));
    let is_upload = |method: &Method, path: &str| *method == Method::PUT && path.contains("/signed/state/");
    let mut caught = proxy.stop(Moment::Before, Fate::IsCutOff, is_upload);
    let pushing = tokio::task::spawn_blocking(move || Done::of(&mut taco, ""));
    // It tries three times, and the server goes on waiting for the bytes.
    for _ in 0..2 {
        caught.wait().await;
        caught = proxy.stop(Moment::Before, Fate::IsCutOff, is_upload);
    }
    caught.wait().await;
    let pushed = pushing.await.expect("no panic");
    assert_ne!(pushed.code, 0, "{pushed:?}");
    let hint = "acme/network stays locked: `taco state unlock --ws acme/network` unlocks it";
    assert!(pushed.stderr.contains(hint) && pushed.stderr.lines().count() <= 3, "{pushed:?}");
    assert_eq!(person.json(&["ws", "show", "acme/network"])["locked"], true);
    person.succeeds(&words(&["state", "unlock", "--force"]));
}

#[test]
fn a_lock_says_who_holds_it_since_when_and_from_where() {
    let person = Person::with_workspace();
    let free = person.fails(4, &words(&["state", "unlock"]));
    assert!(free.contains("already unlocked"), "{free}");
    let locked = person.succeeds(&words(&["state", "lock", "--reason", "moving house"])).stdout;
    assert!(locked.starts_with("Locked acme/network."), "{locked}");
    let who = person.json(&["whoami"])["username"].as_str().expect("it has one").to_owned();

    let held = person.fails(4, &words(&["state", "lock"]));
    let expected = [format!("is locked by {who} since 20"), " from ".into(), "taco/".into(), "moving house".into()];
    for part in expected.iter().map(String::as_str).chain(["taco state unlock --force", "(request "]) {
        assert!(held.contains(part), "{part:?} is missing in {held}");
    }
    let shown = person.succeeds(&["ws", "show", "acme/network"]);
    let rows = shown.rows();
    let holder = rows.iter().find(|row| row[0] == "locked by").expect("a row")[1];
    for part in [&format!("{who} since 20"), " from 127.0.0.1 taco/", " (moving house)"] {
        assert!(holder.contains(part), "{part:?} is missing in {holder}");
    }

    assert_eq!(push(&person, &state(1, "a", &[])).code, 0, "whoever holds the lock may write");
    assert_eq!(person.json(&["ws", "show", "acme/network"])["locked"], true, "and keeps it");
    assert_eq!(person.json(&words(&["state", "unlock"]))["locked"], false);
    person.succeeds(&words(&["state", "lock"]));
    person.succeeds(&words(&["state", "unlock", "--force"]));
}
