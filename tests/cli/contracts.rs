//! Output contracts and proposed run triggers at the command line, with the real terraform.

use std::fs;

use crate::person::Person;

const NETWORK: [&str; 2] = ["--ws", "acme/network"];
const VPC: &str = "resource \"terraform_data\" \"vpc\" { input = \"vpc-0123456789\" }\n";
const OUTPUT: &str = "output \"vpc_id\" { value = terraform_data.vpc.output }\n";

fn on_network<'a>(words: &[&'a str]) -> Vec<&'a str> {
    words.iter().chain(&NETWORK).copied().collect()
}

#[test]
fn a_person_decides_about_a_plan_that_breaks_others() {
    let person = Person::with_engine();
    person.succeeds(&["org", "create", "acme", "--email", "ops@acme.example"]);
    for workspace in ["acme/network", "acme/app"] {
        person.succeeds(&["ws", "create", workspace, "--execution-mode", "remote"]);
    }
    let directory = person.home.path().join("app");
    fs::create_dir(&directory).expect("it is made");
    let write = |text: &str| fs::write(directory.join("main.tf"), text).expect("it is written");
    write(&format!("{VPC}{OUTPUT}"));
    person.succeeds(&on_network(&["run", "start", "app", "--auto-apply", "--watch"]));
    person.succeeds(&["deps", "declare", "acme/app", "network", "--output", "vpc_id"]);

    // Policies of the three levels.
    let shown = |words: &[&str], line: &str| {
        let shown = person.succeeds(words).stdout;
        assert!(shown.contains(&format!("output contract\t{line}\n")), "{words:?}: {shown}");
    };
    person.succeeds(&["org", "edit", "acme", "--output-contract", "off"]);
    shown(&["org", "show", "acme"], "off");
    person.succeeds(&["project", "edit", "Default Project", "--org", "acme", "--output-contract", "warn"]);
    shown(&["project", "show", "Default Project", "--org", "acme"], "warn");
    person.succeeds(&["ws", "edit", "acme/network", "--output-contract", "stop"]);
    shown(&["ws", "show", "acme/network"], "stop");
    person.succeeds(&["ws", "edit", "acme/network", "--output-contract", "inherit"]);
    shown(&["ws", "show", "acme/network"], "warn");
    let wrong = person.fails(1, &["ws", "edit", "acme/network", "--output-contract", "loudly"]);
    assert!(wrong.contains("one of off, warn, stop"), "{wrong}");
    person.succeeds(&["ws", "edit", "acme/network", "--output-contract", "stop"]);

    write(VPC);
    let started = person.does(&on_network(&["run", "start", "app", "--auto-apply", "--watch"]));
    assert_eq!(started.code, 2, "it waits for somebody: {started:?}");
    let run = person.json(&on_network(&["run", "show"]));
    let (id, contract) = (run["id"].as_str().expect("an id"), &run["taco-output-contract"]);
    assert_eq!((&contract["stops"], &contract["broken"][0]["consumers"][0]["name"]), (&true.into(), &"app".into()));
    assert!(started.stdout.contains("Outputs that other workspaces use"), "the log says so: {started:?}");
    assert!(started.stderr.contains("vpc_id is removed: app uses it"), "{started:?}");
    assert!(
        started.stderr.contains(&format!("`taco run apply {id} --accept-output-changes` applies it")),
        "{started:?}"
    );
    let breaks = person.succeeds(&["run", "show", id]).stdout;
    assert!(breaks.contains("breaks\tvpc_id is removed: app uses it\n"), "{breaks}");

    let refused = person.fails(4, &["run", "apply", id, "--yes"]);
    assert!(refused.contains("which 1 workspace uses") && refused.contains("--accept-output-changes"), "{refused}");
    person.succeeds(&["run", "apply", id, "--yes", "--accept-output-changes", "--watch"]);
    let run = person.json(&["run", "show", id]);
    assert_eq!((&run["status"], &run["taco-output-contract"]["accepted-by"]), (&"applied".into(), &"admin".into()));

    // A run trigger for a dependency, which is then the same one.
    let made = person.json(&["deps", "trigger", "acme/app", "network"]);
    assert_eq!(made["taco-only-when-outputs-changed"], true);
    let again = person.json(&["deps", "trigger", "acme/app", "network"]);
    assert_eq!(made["id"], again["id"]);
    let unknown = person.fails(3, &["deps", "trigger", "acme/app", "nothing"]);
    assert!(unknown.contains("not known to use it"), "{unknown}");
}
