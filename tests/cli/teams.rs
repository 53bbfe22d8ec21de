//! Teams, members, tokens and the audit log.

use serde_json::json;

use crate::person::Person;

const ACME: [&str; 2] = ["--org", "acme"];

fn words<'a>(words: &[&'a str]) -> Vec<&'a str> {
    words.iter().chain(&ACME).copied().collect()
}

#[test]
fn a_team_is_made_given_rights_members_and_access_and_deleted() {
    let person = Person::with_workspace();
    person.succeeds(&words(&["project", "create", "platform"]));
    let made = person.succeeds(&words(&["team", "create", "operators", "--allow", "manage-workspaces"])).stdout;
    assert!(made.starts_with("Created team operators (team-"), "{made}");
    let list = person.succeeds(&words(&["team", "ls"]));
    assert_eq!(list.stdout.lines().next(), Some("NAME\tID\tMEMBERS\tVISIBILITY\tRIGHTS"));
    let row = list.rows().into_iter().find(|row| row[0] == "operators").expect("it is listed");
    assert_eq!((row[2], row[4].contains("manage-workspaces")), ("0", true), "{row:?}");
    let edited = ["team", "edit", "operators", "--deny", "manage-workspaces", "--allow", "manage-teams"];
    person.succeeds(&words(&edited));
    let access = &person.json(&words(&["team", "show", "operators"]))["organization-access"];
    assert_eq!((&access["manage-workspaces"], &access["manage-teams"]), (&json!(false), &json!(true)));
    assert!(person.does(&words(&["team", "edit", "operators", "--allow", "manage-moon"])).code == 2);

    person.succeeds(&words(&["team", "member", "add", "operators", "admin"]));
    assert_eq!(person.json(&words(&["team", "show", "operators"]))["members"], json!(["admin"]));
    assert_eq!(person.succeeds(&words(&["team", "member", "ls", "operators"])).rows(), [["admin"]]);
    person.succeeds(&words(&["team", "members", "rm", "operators", "admin"]));

    for place in [["--workspace", "network"], ["--project", "platform"]] {
        let with = |verb: &[&'static str], rest: &[&'static str]| [verb, &place, rest, &ACME].concat();
        person.succeeds(&with(&["team", "access", "set", "operators"], &["--role", "read"]));
        person.succeeds(&with(&["team", "access", "set", "operators"], &["--role", "write"]));
        let list = person.succeeds(&with(&["team", "access", "ls"], &[]));
        assert_eq!(list.rows()[0][..2], ["operators", "write"], "{list:?}");
        person.fails(2, &with(&["team", "access", "rm", "operators"], &[]));
        person.succeeds(&with(&["team", "access", "rm", "operators"], &["--yes"]));
        person.fails(3, &with(&["team", "access", "rm", "operators"], &["--yes"]));
    }
    assert_eq!(person.json(&words(&["team", "rm", "operators", "--yes"]))["deleted"], true);
    let gone = person.fails(3, &words(&["team", "show", "operators"]));
    assert!(gone.contains("taco team ls --org acme"), "{gone}");
}

#[test]
fn someone_is_invited_listed_and_removed() {
    let person = Person::with_workspace();
    person.succeeds(&words(&["team", "create", "operators"]));
    let invited = person.does(&words(&["user", "invite", "jane@acme.example", "--team", "operators"]));
    assert_eq!((invited.code, invited.stdout.lines().count()), (0, 1), "{invited:?}");
    assert!(invited.stdout.starts_with("http") && invited.stderr.contains("Invited jane@acme.example"), "{invited:?}");
    let list = person.succeeds(&words(&["user", "ls"]));
    assert_eq!(list.stdout.lines().next(), Some("USERNAME\tEMAIL\tSTATUS\tTEAMS\tSINCE\tMEMBERSHIP"));
    let row = list.rows().into_iter().find(|row| row[1] == "jane@acme.example").expect("she is listed");
    assert_eq!(row[2..4], ["invited", "operators"]);
    let again = person.does(&words(&["user", "reinvite", "jane@acme.example", "-q"]));
    assert!(again.code == 0 && again.stdout.starts_with("http") && again.stdout != invited.stdout, "{again:?}");
    let near = person.fails(3, &words(&["user", "rm", "jnae@acme.example", "--yes"]));
    assert!(near.contains("did you mean jane@acme.example?"), "{near}");
    person.succeeds(&words(&["user", "rm", "jane@acme.example", "--yes"]));
    assert_eq!(person.json(&words(&["user", "ls"])).as_array().map(Vec::len), Some(1));
}

#[test]
fn tokens_are_created_listed_and_revoked() {
    let person = Person::with_workspace();
    person.succeeds(&words(&["team", "create", "operators"]));
    for holder in [&["--description", "laptop"][..], &["--team", "operators"], &["--organization"], &["--audit-log"]] {
        let create = [&["token", "create", "--expires", "30d"], holder, &ACME].concat();
        let token = person.succeeds(&create).stdout;
        assert!(token.trim_end().len() > 20 && token.lines().count() == 1, "{token}");
        let holder = if holder[0] == "--description" { &[] } else { holder };
        let list = [&["token", "ls"], holder, &ACME].concat();
        let listed = person.succeeds(&list);
        assert!(!listed.stdout.contains(token.trim_end()), "it is shown once");
        let ids: Vec<String> = listed.rows().iter().map(|row| row[0].to_owned()).collect();
        assert!(!ids.is_empty() && listed.rows().iter().any(|row| !row[3].is_empty()), "{listed:?}");
        if holder.len() == 1 {
            let replaced = person.fails(2, &create);
            assert!(replaced.contains("stops working") && replaced.contains("--yes"), "{replaced}");
        }
        let newest = ids.iter().find(|id| id.starts_with("at-")).expect("an id");
        person.fails(2, &["token", "revoke", newest]);
        person.succeeds(&["token", "revoke", newest, "--yes"]);
        let left = person.succeeds(&list);
        assert!(left.rows().iter().all(|row| row[0] != newest), "{left:?}");
    }
}

#[test]
fn the_audit_log_is_listed_and_filtered() {
    let person = Person::with_workspace();
    let all = person.succeeds(&words(&["audit", "ls"]));
    assert_eq!(all.stdout.lines().next(), Some("TIME\tBY\tACTION\tWHAT"));
    assert!(all.rows().len() > 1 && all.rows().iter().all(|row| row[0].ends_with('Z')), "{all:?}");
    let created =
        person.succeeds(&words(&["audit", "ls", "--type", "workspace", "--action", "create", "--since", "1h"]));
    assert_eq!(created.rows().len(), 1, "{created:?}");
    assert!(created.rows()[0][3].starts_with("workspace ws-"), "{created:?}");
    assert_eq!(person.json(&words(&["audit", "ls", "--by", "nobody"])), json!([]));
    assert_eq!(person.json(&words(&["audit", "ls", "--limit", "1"])).as_array().map(Vec::len), Some(1));
}

#[test]
fn versions_are_told() {
    let person = Person::new();
    let version = env!("CARGO_PKG_VERSION");
    let both = person.succeeds(&["version"]).stdout;
    assert_eq!(both, format!("taco {version}\nserver {version} at {}\n", person.server.address));
    assert_eq!(person.json(&["version"])["server"]["version"], version);
    let alone = person.home.taco(&["version"]).output().expect("it runs");
    assert_eq!(String::from_utf8_lossy(&alone.stdout), format!("taco {version}\n"));
}
