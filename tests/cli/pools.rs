use serde_json::json;

use crate::person::Person;

const ACME: [&str; 2] = ["--org", "acme"];

fn words<'a>(words: &[&'a str]) -> Vec<&'a str> {
    words.iter().chain(&ACME).copied().collect()
}

#[test]
fn pools_and_their_tokens_are_made_listed_and_deleted() {
    let person = Person::with_workspace();
    let made = person.succeeds(&words(&["pool", "create", "rack-1"])).stdout;
    assert!(made.starts_with("Created agent pool rack-1 (apool-"), "{made}");
    let limited = person.json(&words(&["pool", "create", "rack-2", "--workspace", "network"]));
    assert_eq!(limited["organization-scoped"], false);
    let list = person.succeeds(&words(&["pool", "ls"]));
    assert_eq!(list.stdout.lines().next(), Some("NAME\tPOOL\tAGENTS\tFOR ALL\tCREATED"));
    let found: Vec<_> =
        list.rows().iter().map(|row| (row[0].to_owned(), row[2].to_owned(), row[3].to_owned())).collect();
    let row = |name: &str, everyone: &str| (name.to_owned(), "0".to_owned(), everyone.to_owned());
    assert_eq!(found, [row("rack-1", "yes"), row("rack-2", "no")]);

    let token = person.succeeds(&words(&["pool", "token", "create", "rack-1", "--description", "host 7"])).stdout;
    assert!(token.trim_end().len() > 20 && token.lines().count() == 1, "{token}");
    let tokens = person.succeeds(&words(&["pool", "token", "ls", "rack-1"]));
    assert_eq!(tokens.rows()[0][3], "host 7");
    assert!(!tokens.stdout.contains(token.trim_end()), "it is shown once");
    let id = tokens.rows()[0][0].to_owned();
    person.fails(2, &words(&["pool", "token", "rm", &id]));
    person.succeeds(&words(&["pool", "token", "rm", &id, "--yes"]));
    assert_eq!(person.succeeds(&words(&["pool", "token", "ls", "rack-1"])).rows().len(), 0);

    let agents = person.succeeds(&words(&["agent", "ls", "--pool", "rack-1"])).stdout;
    assert_eq!(agents, "NAME\tPOOL\tSTATUS\tADDRESS\tLAST SEEN\tVERSION\tAGENT\n");
    assert_eq!(person.json(&words(&["agent", "ls"])), json!([]));
    let unknown = person.fails(3, &words(&["agent", "ls", "--pool", "rack-9"]));
    assert!(unknown.contains("taco pool ls --org acme"), "{unknown}");
    assert_eq!(person.json(&words(&["pool", "rm", "rack-2", "--yes"]))["deleted"], true);
    assert_eq!(person.json(&words(&["pool", "ls"])).as_array().map(Vec::len), Some(1));
}
