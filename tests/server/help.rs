use harness::home::Home;

fn printed(words: &[&str]) -> String {
    let output = Home::default().taco(words).output().expect("it runs");
    assert!(output.status.success(), "{words:?}: {output:?}");
    String::from_utf8(output.stdout).expect("it is text")
}

#[test]
fn help_names_purpose_examples_and_variables() {
    for (words, expected) in [
        (
            &["--help"][..],
            &["Taco runs Terraform and OpenTofu for teams", "Without a command, taco runs the server."][..],
        ),
        (&["--help"], &["Getting started: login", "Daily work: run", "Administration: org", "Server: server"]),
        (&["server", "--help"], &["--listen <ADDRESS:PORT>", "[env: TACO_LISTEN]", "[default: 127.0.0.1:8080]"]),
        (&["server", "--help"], &["--secret-key-file <FILE>", "TACO_SECRET_KEY_FILE]", "SIGTERM"]),
        (&["server", "-h"], &["Run the server", "--bucket <URL>", "Agents:"]),
        (&["doctor", "--help"], &["Exits with 1 if a check failed", "--bucket <URL>", "--json"]),
        (&["rewrap", "--help"], &["Exits with 1 if something needs a key", "previous_secret_key", "--bucket <URL>"]),
        (&["config", "show", "--help"], &["secrets stay hidden", "--config <FILE>"]),
        (&["audit", "verify", "--help"], &["--ledger <NAME>", "Exits with 1 if a chain is broken"]),
    ] {
        let help = printed(words);
        let words_apart = help.split_whitespace().collect::<Vec<_>>().join(" ");
        for part in expected.iter().chain(&["Examples:", "Usage: taco"]) {
            assert!(words_apart.contains(part), "{part:?} is missing in `taco {}`:\n{help}", words.join(" "));
        }
        assert!(help.lines().all(|line| line.chars().count() <= 120), "a line is too long:\n{help}");
    }
    assert!(!printed(&["doctor", "--help"]).contains("--listen"), "doctor needs the bucket only");
}

/// Help with which people find their way; the rest is described flag by flag.
#[test]
fn help_of_groups_is_as_it_was() {
    for (name, words) in [
        ("taco", &["--help"][..]),
        ("ws", &["ws", "--help"]),
        ("ws-create", &["ws", "create", "--help"]),
        ("run", &["run", "--help"]),
        ("run-start", &["run", "start", "--help"]),
        ("team", &["team", "--help"]),
        ("audit-ls", &["audit", "ls", "--help"]),
    ] {
        insta::assert_snapshot!(name, printed(words));
    }
}

#[test]
fn global_flags_are_described_once() {
    let of_group = printed(&["ws", "--help"]);
    assert_eq!(of_group.matches("--no-input").count(), 1, "{of_group}");
    let of_verb = printed(&["ws", "ls", "--help"]);
    assert!(!of_verb.contains("--no-input") && of_verb.contains("see `taco ws --help`"), "{of_verb}");
    assert!(of_verb.lines().count() < 20, "{of_verb}");
    let script = printed(&["completion", "bash"]);
    assert!(script.contains("--no-input"), "shells complete them all the same");
}

#[test]
fn the_version_is_one_line() {
    assert_eq!(printed(&["--version"]), format!("taco {}\n", env!("CARGO_PKG_VERSION")));
}
