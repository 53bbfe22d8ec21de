use serde_json::json;

use crate::person::Person;

#[test]
fn notifications_are_made_listed_tried_and_deleted() {
    let person = Person::with_workspace();
    let at = |words: &[&'static str]| [&["notification"], words, &["--ws", "acme/network"]].concat();
    assert_eq!(person.json(&at(&["ls"])), json!([]));
    let made = person.succeeds(&at(&[
        "create",
        "ops",
        "--url",
        "https://hooks.acme.test/",
        "--on",
        "run:errored",
        "--disabled",
    ]));
    assert!(made.stdout.starts_with("Created notification ops (nc-"), "{}", made.stdout);
    let list = person.succeeds(&at(&["ls"]));
    assert_eq!(list.stdout.lines().next(), Some("NAME\tNOTIFICATION\tTYPE\tENABLED\tTRIGGERS\tLAST ANSWER"));
    let rows = list.rows();
    assert_eq!((rows[0][0], rows[0][2], rows[0][3], rows[0][4]), ("ops", "generic", "no", "run:errored"));

    let inside = person.fails(1, &at(&["create", "inside", "--url", "https://169.254.169.254/"]));
    assert!(inside.contains("address not allowed"), "{inside}");
    // Nothing answers on a name that nobody has.
    let test = person.fails(1, &at(&["test", "ops"]));
    assert!(test.contains("The verification did not get through"), "{test}");
    assert!(person.succeeds(&at(&["ls"])).rows()[0][5].starts_with("failed"));
    let unknown = person.fails(3, &at(&["test", "opps"]));
    assert!(unknown.contains("ops"), "{unknown}");
    person.fails(2, &at(&["rm", "ops"]));
    person.succeeds(&at(&["rm", "ops", "--yes"]));
    assert_eq!(person.json(&at(&["ls"])), json!([]));
}
