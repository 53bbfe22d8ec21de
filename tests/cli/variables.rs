use std::fs;
use std::path::Path;

use serde_json::{Value, json};

use crate::person::{Done, Person};

const NETWORK: [&str; 2] = ["--ws", "acme/network"];

fn words<'a>(words: &[&'a str]) -> Vec<&'a str> {
    words.iter().chain(&NETWORK).copied().collect()
}

/// Everything in a directory, at any depth.
fn contents(directory: &Path) -> Vec<u8> {
    let entries = fs::read_dir(directory).expect("it is a directory").map(|entry| entry.expect("it is read").path());
    entries.flat_map(|path| if path.is_dir() { contents(&path) } else { fs::read(&path).unwrap_or_default() }).collect()
}

fn holds(bytes: &[u8], text: &str) -> bool {
    bytes.windows(text.len()).any(|window| window == text.as_bytes())
}

#[test]
fn variables_are_set_listed_and_deleted() {
    let person = Person::with_workspace();
    let made = person.succeeds(&words(&["var", "set", "region=eu", "--description", "where"])).stdout;
    assert_eq!(made, "Created variable region of acme/network.\n");
    person.succeeds(&words(&["var", "set", "region=us=2"]));
    let same = person.succeeds(&words(&["var", "set", "region=us=2"])).stdout;
    assert_eq!(same, "Variable region of acme/network is unchanged.\n");
    person.succeeds(&words(&["var", "set", "zones=[\"a\"]", "--hcl"]));
    let set = person.json(&words(&["var", "set", "region=other", "--env"]));
    assert_eq!((&set["category"], &set["value"]), (&json!("env"), &json!("other")));

    let list = person.succeeds(&words(&["var", "ls"]));
    assert_eq!(list.stdout.lines().next(), Some("KEY\tVALUE\tCATEGORY\tHCL\tDESCRIPTION"));
    assert_eq!(
        list.rows(),
        [
            ["region", "us=2", "terraform", "no", "where"],
            ["region", "other", "env", "no", ""],
            ["zones", "[\"a\"]", "terraform", "yes", ""],
        ]
    );
    let wrong = person.fails(1, &words(&["var", "set", "zones=[", "--hcl"]));
    assert!(wrong.contains("not a valid HCL expression"), "{wrong}");

    let unsure = person.fails(2, &words(&["var", "rm", "region"]));
    assert!(unsure.contains("--yes"), "{unsure}");
    assert_eq!(person.json(&words(&["var", "rm", "region", "--env", "--yes"]))["deleted"], true);
    let gone = person.fails(3, &words(&["var", "rm", "region", "--env", "--yes"]));
    assert!(gone.contains("taco var ls --ws acme/network"), "{gone}");
    assert_eq!(person.json(&words(&["var", "ls"])).as_array().map(Vec::len), Some(2));
}

#[test]
fn a_secret_comes_by_standard_input_and_is_nowhere_in_clear_text() {
    let person = Person::with_workspace();
    let (secret, plain) = ("s3cr3t-8d1c5a40-marker", "pl4in-8d1c5a40-marker");
    let set = |words_of_set: &[&str], value: &str| {
        let done = Done::of(&mut person.taco(&words(words_of_set)), value);
        assert_eq!((done.code, done.stderr.as_str()), (0, ""), "{done:?}");
        assert!(!done.stdout.contains(secret), "{done:?}");
    };
    set(&["var", "set", "TOKEN", "--env", "--sensitive"], &format!("{secret}\n"));
    set(&["var", "set", "later"], &format!("{plain}\n"));
    set(&["var", "set", "TOKEN", "--env"], secret);
    let list = person.succeeds(&words(&["var", "ls"]));
    assert_eq!(list.rows()[0][..3], ["TOKEN", "(sensitive)", "env"], "it stays sensitive");
    assert_eq!(list.rows()[1][1], plain, "without the end of the line");
    assert_eq!(person.json(&words(&["var", "ls", "--all"]))[0]["value"], Value::Null);

    let bucket = contents(&person.home.bucket());
    assert!(holds(&bucket, plain), "what is not sensitive can be found, so the search works");
    assert!(!holds(&bucket, secret));
    let process = &person.server.process;
    assert!(!process.stdout().contains(secret) && !process.stderr().contains(secret));
}

#[test]
fn files_are_imported() {
    let person = Person::with_workspace();
    let write = |name: &str, text: &str| fs::write(person.home.path().join(name), text).expect("it is written");
    write("prod.tfvars", "region = \"eu\"\nzones = [\n  \"a\",\n]\ncount = 3\nmotto = <<EOT\nslow\nEOT\n");
    write(".env", "# keys\nexport TOKEN='a b'\nPLAIN=x\n");
    let imported = person.succeeds(&words(&["var", "import", "prod.tfvars"]));
    assert_eq!(imported.stdout.lines().next(), Some("KEY\tCATEGORY\tRESULT"));
    let rows =
        |result: &'static str| ["region", "zones", "count", "motto"].map(|key| vec![key, "terraform", result]).to_vec();
    assert_eq!(imported.rows(), rows("created"));
    assert_eq!(person.succeeds(&words(&["var", "import", "prod.tfvars"])).rows(), rows("unchanged"));
    person.succeeds(&words(&["var", "import", ".env", "--sensitive"]));
    let list = person.succeeds(&words(&["var", "ls"]));
    let found: Vec<_> = list.rows().iter().map(|row| row[..4].to_vec()).collect();
    assert_eq!(
        found,
        [
            ["PLAIN", "(sensitive)", "env", "no"],
            ["TOKEN", "(sensitive)", "env", "no"],
            ["count", "3", "terraform", "yes"],
            ["motto", "<<EOT slow EOT", "terraform", "yes"],
            ["region", "eu", "terraform", "no"],
            ["zones", "[   \"a\", ]", "terraform", "yes"],
        ]
    );
    write("broken.tfvars", "a = 1\nb = s3cr3t {\n");
    let broken = person.fails(1, &words(&["var", "import", "broken.tfvars"]));
    assert!(broken.contains("line 2") && !broken.contains("s3cr3t"), "{broken}");
    let unclear = person.fails(2, &words(&["var", "import", "variables.txt"]));
    assert!(unclear.contains("--format"), "{unclear}");
    person.fails(1, &words(&["var", "import", "missing.tfvars"]));
}

#[test]
fn variable_sets_are_made_filled_applied_and_deleted() {
    let person = Person::with_workspace();
    let on_acme =
        |words: &[&'static str]| -> Vec<&'static str> { words.iter().chain(&["--org", "acme"]).copied().collect() };
    let made =
        person.succeeds(&on_acme(&["varset", "set", "aws keys", "--description", "for all", "--workspace", "network"]));
    assert_eq!(made.stdout, "Created variable set aws keys.\n");
    person.succeeds(&on_acme(&["varset", "set", "aws keys", "REGION=eu", "--env"]));
    fs::write(person.home.path().join("more.env"), "A=1\nREGION=us\n").expect("it is written");
    let imported = person.succeeds(&on_acme(&["varset", "import", "aws keys", "more.env"]));
    assert_eq!(imported.rows(), [["A", "env", "created"], ["REGION", "env", "updated"]]);
    let list = person.succeeds(&on_acme(&["varset", "ls"]));
    assert_eq!(
        list.stdout,
        "NAME\tGLOBAL\tPRIORITY\tVARIABLES\tWORKSPACES\tPROJECTS\tDESCRIPTION\naws keys\tno\tno\t2\t1\t0\tfor all\n"
    );
    let variables = person.succeeds(&on_acme(&["varset", "ls", "aws keys"]));
    assert_eq!(variables.rows()[1][..3], ["REGION", "us", "env"]);
    let effective = person.succeeds(&words(&["var", "ls", "--all"]));
    assert_eq!(effective.rows().len(), 2, "{effective:?}");
    assert_eq!(effective.rows()[1][..5], ["REGION", "us", "env", "no", "aws keys"]);
    assert_eq!(person.json(&words(&["var", "ls", "--all"]))[0]["from"], "aws keys");
    assert_eq!(person.succeeds(&words(&["var", "ls"])).rows().len(), 0);

    let changed = person.json(&on_acme(&["varset", "set", "aws keys", "--global", "--priority", "--nowhere"]));
    assert_eq!(
        (&changed["global"], &changed["priority"], &changed["workspace-count"]),
        (&json!(true), &json!(true), &json!(0))
    );
    let alone = person.fails(2, &on_acme(&["varset", "set", "aws keys", "--sensitive"]));
    assert!(alone.contains("KEY=VALUE"), "{alone}");
    person.succeeds(&on_acme(&["varset", "rm", "aws keys", "A", "--env", "--yes"]));
    person.fails(2, &on_acme(&["varset", "rm", "aws keys"]));
    person.succeeds(&on_acme(&["varset", "rm", "aws keys", "--yes"]));
    let gone = person.fails(3, &on_acme(&["varset", "ls", "aws keys"]));
    assert!(gone.contains("taco varset ls --org acme"), "{gone}");
}
