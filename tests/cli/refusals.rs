use crate::person::{Person, TOKEN};

#[test]
fn a_wrong_token_says_how_to_log_in() {
    let person = Person::new();
    for (token, what) in [("wrong", "does not accept your token"), ("", "you are not logged in to")] {
        let output = person.taco(&["org", "ls"]).env("TACO_TOKEN", token).output().expect("it runs");
        let said = String::from_utf8(output.stderr).expect("it is text");
        assert_eq!(output.status.code(), Some(3), "{said}");
        assert!(
            said.contains(what)
                && !said.contains("Bearer")
                && said.contains(&format!("taco login {}", person.server.address)),
            "{said}"
        );
        assert_eq!(said.lines().count(), 3, "{said}");
    }
}

#[test]
fn what_is_not_there_is_named() {
    let person = Person::with_workspace();
    for (words, parts) in [
        (&["org", "show", "nowhere"][..], &["organization nowhere: not found", "taco whoami", "(request "][..]),
        (&["ws", "ls", "--org", "nowhere"], &["workspaces of organization nowhere: not found"]),
        (&["ws", "show", "acme/nothing"], &["workspace acme/nothing: not found", "taco ws ls --org acme"]),
        (&["state", "pull", "--ws", "acme/nothing"], &["workspace acme/nothing: not found"]),
        (&["state", "pull", "7", "--ws", "acme/network"], &["taco state versions --ws acme/network"]),
    ] {
        let said = person.fails(3, words);
        assert!(parts.iter().all(|part| said.contains(part)), "{words:?}: {said}");
    }
}

#[test]
fn what_is_missing_on_the_command_line_is_named() {
    let person = Person::new();
    for (words, part) in [
        (&["ws", "ls"][..], "add --org NAME"),
        (&["state", "ls"], "add --ws NAME"),
        (&["state", "ls", "--ws", "network"], "add --org NAME"),
        (&["ws", "ls", "--host", "ftp://nowhere"], "is no host"),
    ] {
        let said = person.fails(2, words);
        assert!(said.contains(part), "{words:?}: {said}");
    }
    assert!(person.fails(1, &["org", "create", "no name"]).contains("couldn't save organization no name"));
}

#[test]
fn a_server_that_is_away_is_named() {
    let person = Person::new();
    // Nobody listens on port 1.
    let said = person.fails(5, &["org", "ls", "--host", "127.0.0.1:1"]);
    assert!(said.starts_with("error: 127.0.0.1:1 cannot be reached\n"), "{said}");
    assert!(said.contains("refused") && said.contains("--host"), "{said}");
}

#[test]
fn http_and_https_mixed_up_are_told_apart() {
    let person = Person::new();
    let address = &person.server.address;
    let said = person.fails(5, &["org", "ls", "--host", &format!("https://{address}")]);
    assert!(said.starts_with(&format!("error: {address} speaks plain http, but was asked over https\n")), "{said}");
    assert!(said.contains(&format!("--host http://{address}")), "{said}");
    let person = Person::with_tls();
    let address = &person.server.address;
    let said = person.fails(5, &["org", "ls", "--host", &format!("http://{address}")]);
    assert!(said.starts_with(&format!("error: {address} speaks https, but was asked over plain http\n")), "{said}");
    assert!(said.contains(&format!("--host https://{address}")), "{said}");
}

#[test]
fn misspelt_names_are_recognized() {
    let person = Person::with_workspace();
    person.succeeds(&["pool", "create", "rack-1", "--org", "acme"]);
    person.succeeds(&["varset", "set", "aws", "--org", "acme"]);
    person.succeeds(&["project", "create", "platform", "--org", "acme"]);
    person.succeeds(&["team", "create", "operators", "--org", "acme"]);
    for (words, name) in [
        (&["ws", "show", "acme/netwrk"][..], "network"),
        (&["state", "ls", "--ws", "acme/networks"], "network"),
        (&["ws", "show", "acmee/network"], "acme"),
        (&["org", "show", "acmee"], "acme"),
        (&["agent", "ls", "--pool", "rakc-1", "--org", "acme"], "rack-1"),
        (&["varset", "ls", "asw", "--org", "acme"], "aws"),
        (&["project", "show", "platfrom", "--org", "acme"], "platform"),
        (&["team", "show", "operator", "--org", "acme"], "operators"),
    ] {
        let said = person.fails(3, words);
        assert!(said.contains(&format!("did you mean {name}?")), "{words:?}: {said}");
    }
    assert!(!person.fails(3, &["ws", "show", "acme/database"]).contains("did you mean"));
}

#[test]
fn a_name_that_is_taken_is_a_conflict() {
    let person = Person::with_workspace();
    let taken = person.fails(4, &["ws", "create", "acme/network"]);
    assert!(taken.starts_with("error: workspace acme/network already exists\n"), "{taken}");
    assert!(taken.contains("taco ws show acme/network"), "{taken}");
}

#[test]
fn requests_are_told_without_tokens() {
    let person = Person::with_workspace();
    let state = r#"{"version":4,"serial":1,"lineage":"l","outputs":{},"resources":[]}"#;
    std::fs::write(person.home.path().join("it.tfstate"), state).expect("it is written");
    let done = person.does(&["state", "push", "it.tfstate", "--ws", "acme/network", "--debug"]);
    assert_eq!(done.code, 0, "{done:?}");
    assert!(
        done.stderr.contains(&format!("> POST http://{}/api/v2/workspaces/ws-", person.server.address)),
        "{done:?}"
    );
    assert!(done.stderr.contains("< 201 Created (request "), "{done:?}");
    let signed = done.stderr.lines().find(|line| line.contains("/signed/state/sv-")).expect("it is told");
    assert!(signed.ends_with("/…") && !done.stderr.contains(TOKEN), "{done:?}");
}

#[test]
fn help_tells_the_exit_codes() {
    let person = Person::new();
    for words in [
        &["org", "--help"][..],
        &["ws", "--help"],
        &["state", "--help"],
        &["var", "--help"],
        &["varset", "--help"],
        &["run", "--help"],
        &["queue", "--help"],
        &["graph", "--help"],
        &["why", "--help"],
        &["outputs", "--help"],
        &["deps", "--help"],
        &["pool", "--help"],
        &["agent", "--help"],
        &["login", "--help"],
        &["auth", "--help"],
        &["init", "-h"],
        &["team", "--help"],
        &["user", "--help"],
        &["token", "--help"],
        &["audit", "ls", "--help"],
        &["version", "--help"],
    ] {
        let help = person.succeeds(words).stdout;
        assert!(help.contains("Examples:") || words.contains(&"-h"), "{help}");
        for code in ["5  the server can't be reached", "124  ", "130  stopped by Ctrl-C"] {
            assert!(help.contains(code), "{code:?} is missing in:\n{help}");
        }
        assert!(help.lines().all(|line| line.chars().count() <= 120), "a line is too long:\n{help}");
    }
}
