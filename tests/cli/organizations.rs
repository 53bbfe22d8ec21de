use serde_json::json;

use crate::person::Person;

#[test]
fn organizations_are_created_shown_edited_and_deleted() {
    let person = Person::new();
    let created = person.json(&["org", "create", "acme", "--email", "ops@acme.example"]);
    assert_eq!(created["id"], "acme");
    assert_eq!(created["email"], "ops@acme.example");
    person.succeeds(&["org", "create", "globex"]);
    let list = person.succeeds(&["org", "ls"]);
    assert_eq!(list.stdout.lines().next(), Some("NAME\tEMAIL\tEXECUTION\tCREATED"));
    assert_eq!(list.rows().iter().map(|row| row[0]).collect::<Vec<_>>(), ["acme", "globex"]);
    person.succeeds(&["org", "edit", "acme", "--email", "new@acme.example"]);
    assert_eq!(person.json(&["org", "show", "acme"])["email"], "new@acme.example");
    let shown = person.succeeds(&["org", "show", "--org", "acme"]).stdout;
    assert!(shown.starts_with("FIELD\tVALUE\nname\tacme\n"), "{shown}");
    let refused = person.fails(2, &["org", "rm", "globex"]);
    assert!(refused.contains("--yes"), "{refused}");
    assert_eq!(person.json(&["org", "rm", "globex", "--yes"]), json!({ "id": "globex", "deleted": true }));
    assert_eq!(person.json(&["org", "ls"]).as_array().map(Vec::len), Some(1));
}

#[test]
fn projects_are_found_by_name() {
    let person = Person::with_workspace();
    let created = person.json(&["project", "create", "platform", "--org", "acme", "--description", "for all"]);
    let id = created["id"].as_str().expect("it has one");
    assert!(id.starts_with("prj-"), "{id}");
    assert_eq!(person.json(&["project", "show", "platform", "--org", "acme"])["id"], id);
    assert_eq!(person.json(&["project", "show", id, "--org", "acme"])["description"], "for all");
    person.succeeds(&["ws", "edit", "acme/network", "--org", "acme", "--project", "platform"]);
    let workspaces = person.succeeds(&["ws", "ls", "--org", "acme", "--project", "platform"]);
    assert_eq!(workspaces.rows()[0][..3], ["network", "platform", "local"]);
    person.succeeds(&["project", "edit", "platform", "--org", "acme", "--name", "base"]);
    let names = person.succeeds(&["project", "ls", "--org", "acme"]);
    assert!(names.rows().iter().any(|row| row[0] == "base" && row[2] == "1"), "{names:?}");
    person.succeeds(&["ws", "rm", "acme/network", "--yes"]);
    person.succeeds(&["project", "rm", "base", "--org", "acme", "--yes"]);
    let gone = person.fails(3, &["project", "show", "base", "--org", "acme"]);
    assert!(gone.contains("taco project ls --org acme"), "{gone}");
}

#[test]
fn workspaces_are_created_listed_by_tag_edited_and_deleted() {
    let person = Person::with_workspace();
    let words = ["ws", "create", "acme/app", "--tag", "team=web", "--tag", "blue", "--auto-apply"];
    let created = person.json(&words);
    assert_eq!(created["name"], "app");
    assert_eq!(created["auto-apply"], true);
    assert_eq!(created["organization"], "acme");
    let names =
        |words: &[&str]| -> Vec<String> { person.succeeds(words).rows().iter().map(|row| row[0].to_owned()).collect() };
    assert_eq!(names(&["ws", "ls", "--org", "acme"]), ["app", "network"]);
    assert_eq!(names(&["ws", "ls", "--org", "acme", "--tag", "team=web"]), ["app"]);
    assert_eq!(names(&["ws", "ls", "--org", "acme", "--tag", "team=other"]), [""; 0]);
    assert_eq!(names(&["ws", "ls", "--org", "acme", "--search", "net"]), ["network"]);
    person.succeeds(&["ws", "edit", "acme/app", "--name", "shop", "--auto-apply=false"]);
    assert_eq!(person.json(&["ws", "show", "acme/shop"])["auto-apply"], false);
    let nothing = person.fails(2, &["ws", "edit", "acme/shop"]);
    assert!(nothing.contains("nothing to change"), "{nothing}");
    let taken = person.does(&["ws", "create", "acme/shop"]);
    assert!(taken.code == 1 || taken.code == 4, "{taken:?}");
    person.succeeds(&["ws", "rm", "acme/shop", "--yes"]);
    person.fails(3, &["ws", "show", "acme/shop"]);
}
