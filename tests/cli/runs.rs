//! Runs on a server whose own agent has the real terraform.

use std::fs;

use harness::process::Process;
use nix::sys::signal::Signal;
use serde_json::Value;

use crate::person::{Done, Person};

const NETWORK: [&str; 2] = ["--ws", "acme/network"];

/// Needs no provider. The variable fails the plan if someone wants that.
const CONFIGURATION: &str = r#"
variable "colour" {
  default = "red"
  validation {
    condition     = var.colour != "none"
    error_message = "A colour is needed."
  }
}
resource "terraform_data" "one" { input = var.colour }
output "colour" { value = terraform_data.one.output }
"#;

fn words<'a>(words: &[&'a str]) -> Vec<&'a str> {
    words.iter().chain(&NETWORK).copied().collect()
}

/// Someone with a workspace whose runs happen on the server, and a configuration in `app`.
pub(crate) fn person_with_configuration() -> Person {
    let person = Person::with_engine();
    person.succeeds(&["org", "create", "acme", "--email", "ops@acme.example"]);
    person.succeeds(&["ws", "create", "acme/network", "--execution-mode", "remote"]);
    let directory = person.home.path().join("app");
    fs::create_dir(&directory).expect("it is made");
    fs::write(directory.join("main.tf"), CONFIGURATION).expect("it is written");
    // It would break every run that gets it.
    fs::write(directory.join("broken.tf"), "resource {").expect("it is written");
    fs::write(directory.join(".terraformignore"), "broken.tf\n").expect("it is written");
    person
}

fn ends_with(code: i32, done: &Done) {
    assert_eq!(done.code, code, "{done:?}");
}

fn id(run: &Value) -> String {
    run["id"].as_str().expect("a run has an id").to_owned()
}

#[test]
fn a_directory_is_planned_applied_and_destroyed() {
    let person = person_with_configuration();
    let none = person.fails(3, &words(&["run", "show"]));
    assert!(none.contains("taco run start . --ws acme/network"), "{none}");
    let missing = person.fails(1, &words(&["run", "start"]));
    assert!(missing.contains("taco run start DIRECTORY"), "{missing}");

    let started = person.does(&words(&["run", "start", "app", "--message", "the first", "--watch"]));
    ends_with(2, &started);
    let plan = "  # terraform_data.one will be created\n  + resource \"terraform_data\" \"one\" {\n      + id     = (known after \
                apply)\n      + input  = \"red\"\n      + output = (known after apply)\n    }\n\nPlan: 1 to add, 0 to change, 0 \
                to destroy.\n\nChanges to Outputs:\n  + colour = (known after apply)\n";
    assert!(started.stdout.contains(plan), "{}", started.stdout);
    assert!(!started.stdout.contains("Plan to create"), "the plan says it better: {started:?}");
    assert!(started.stdout.contains("needs approval: +1 ~0 -0\n"), "{started:?}");
    let page = format!("{}/app/acme/workspaces/network/runs/run-", person.host());
    assert!(started.stdout.lines().any(|line| line.starts_with(&page)), "{started:?}");
    assert!(started.stderr.contains("taco run apply run-"), "{started:?}");

    let list = person.succeeds(&words(&["run", "ls"]));
    assert_eq!(list.stdout.lines().next(), Some("RUN\tWORKSPACE\tSTATUS\tCHANGES\tBY\tCREATED\tMESSAGE"));
    let row = list.rows()[0].clone();
    assert_eq!((&row[1..5], row[6]), (&["network", "planned", "+1 ~0 -0", "admin"][..], "the first"));
    assert_eq!(row[5].len(), "2026-11-17T09:48:15Z".len(), "a time has whole seconds: {row:?}");
    let run = row[0];
    let shown = person.succeeds(&["run", "show", run]);
    assert!(shown.stdout.contains("waits\tawaiting approval\n"), "{shown:?}");
    assert!(shown.rows().iter().any(|row| row[0] == "url" && row[1].starts_with(&page)), "{shown:?}");
    let of_plan = person.succeeds(&["run", "show", run, "--plan"]).stdout;
    assert!(of_plan.contains(plan), "{of_plan}");
    let in_colour = person.succeeds(&["run", "show", run, "--plan", "--color", "always"]).stdout;
    assert!(in_colour.contains("\u{1b}[32m  +\u{1b}[0m resource"), "{in_colour}");
    assert_eq!(person.json(&["run", "show", run])["status"], "planned");

    let unsure = person.fails(2, &["run", "apply", run]);
    assert!(unsure.contains("--yes") && unsure.contains("1 to add, 0 to change, 0 to destroy"), "{unsure}");
    let applied = person.does(&["run", "apply", run, "--yes", "--watch", "--comment", "go"]);
    ends_with(0, &applied);
    assert!(applied.stdout.contains("Apply complete!") && applied.stdout.contains("was applied"), "{applied:?}");
    let again = person.fails(4, &["run", "apply", run, "--yes"]);
    assert!(again.contains(&format!("taco run show {run}")), "{again}");
    let log = person.succeeds(&["run", "logs", run]).stdout;
    let (plan, apply) = (log.find("Plan: 1 to add"), log.find("Apply complete!"));
    assert!(plan.is_some() && plan < apply, "{log}");
    assert!(!log.contains(['\u{1b}', '\u{2}', '\u{3}']), "{log}");
    let plan = person.succeeds(&["run", "logs", run, "--phase", "plan", "--json"]).stdout;
    let lines: Vec<Value> = plan.lines().map(|line| serde_json::from_str(line).expect("each is JSON")).collect();
    assert!(!lines.is_empty() && lines.iter().all(|line| line["@message"].is_string()), "{plan}");

    let nothing = person.does(&words(&["run", "start", "-w"]));
    ends_with(0, &nothing);
    assert!(
        nothing.stdout.contains("No changes.") && nothing.stdout.contains(" is planned: +0 ~0 -0\n"),
        "{nothing:?}"
    );
    let destroyed = person.does(&words(&["run", "start", "-destroy", "-auto-apply", "-w", "--json"]));
    ends_with(0, &destroyed);
    let last: Value = destroyed.stdout.lines().last().and_then(|line| serde_json::from_str(line).ok()).expect("JSON");
    assert_eq!((&last["status"], &last["is-destroy"]), (&"applied".into(), &true.into()));
}

#[test]
fn what_terraform_can_be_told_reaches_it() {
    let person = person_with_configuration();
    let flags = ["run", "start", "app", "-plan-only", "-var", "colour=${green}", "-target=terraform_data.one", "-w"];
    let planned = person.does(&words(&flags));
    ends_with(2, &planned);
    let run = person.json(&words(&["run", "show"]));
    assert_eq!((&run["status"], &run["plan-only"]), (&"planned_and_finished".into(), &true.into()));
    assert_eq!(run["target-addrs"], serde_json::json!(["terraform_data.one"]));
    assert!(run["variables"][0]["value"].as_str().is_some_and(|value| value.contains("green")), "{run}");

    let failed = person.does(&words(&["run", "start", "app", "-var=colour=none", "--watch"]));
    ends_with(1, &failed);
    assert!(failed.stdout.contains("A colour is needed."), "{failed:?}");
    assert!(failed.stderr.contains(" failed\n") && failed.stderr.contains("taco run logs run-"), "{failed:?}");
    let watched = person.does(&words(&["run", "watch", "--quiet"]));
    ends_with(1, &watched);
    assert!(!watched.stdout.contains("A colour is needed."), "{watched:?}");
    let wrong = person.fails(2, &words(&["run", "start", "app", "--var", "colour"]));
    assert!(wrong.contains("--var KEY=VALUE"), "{wrong}");
    person.fails(1, &words(&["run", "start", "nowhere"]));
}

#[test]
fn the_queue_says_what_runs_wait_for() {
    let person = person_with_configuration();
    ends_with(2, &person.does(&words(&["run", "start", "app", "--watch", "--json"])));
    let first = id(&person.json(&words(&["run", "show"])));
    let second = id(&person.json(&words(&["run", "start"])));
    let queue = person.succeeds(&["queue", "--org", "acme"]);
    assert_eq!(queue.stdout.lines().next(), Some("RUN\tWORKSPACE\tSTATUS\tCREATED\tWAITS"));
    let rows: Vec<_> = queue.rows().iter().map(|row| (row[0].to_owned(), row[2], row[4].to_owned())).collect();
    assert_eq!(rows[0], (first.clone(), "planned", "awaiting approval".to_owned()));
    assert_eq!(rows[1], (second.clone(), "pending", format!("waiting for 1 earlier run; {first} is planned")));
    let no_log = person.fails(3, &["run", "logs", &first, "--phase", "apply"]);
    assert!(no_log.contains("--follow"), "{no_log}");
    let mut following = Process::start(&mut person.taco(&["run", "logs", &second, "--follow"]));
    let why = following.line_of_stdout(|line| line.starts_with("Waiting since "));
    assert!(why.ends_with(&format!(" UTC: waiting for 1 earlier run; {first} is planned")), "{why}");
    assert_eq!(person.succeeds(&["run", "logs", &second]).stdout, format!("{why}\n"));

    let canceled = person.succeeds(&["run", "cancel", &second, "--comment", "not now"]).stdout;
    assert_eq!(canceled, format!("Canceled run {second}.\n"));
    assert_eq!(following.wait().code(), Some(0), "its log has an end");
    assert_eq!(person.succeeds(&["run", "logs", &second]).stdout, format!("{why}\n"), "it stays readable");
    let discarded = person.json(&["run", "discard", &first]);
    assert_eq!(discarded["status"], "discarded");
    let twice = person.fails(4, &["run", "discard", &first]);
    assert!(
        twice.contains("discarded") && !twice.contains("planned_and_saved") && !twice.contains("plan_queued"),
        "{twice}"
    );
    ends_with(1, &person.does(&["run", "watch", &first]));
    assert_eq!(person.json(&["queue", "--org", "acme"]), serde_json::json!([]));
    let of_organization = person.succeeds(&["run", "ls", "--org", "acme", "--status", "Canceled"]);
    assert_eq!(of_organization.rows().len(), 1, "{of_organization:?}");
    person.fails(3, &["run", "show", "run-0000000000000000"]);
}

#[test]
fn watching_can_end_before_the_run_does() {
    let person = person_with_configuration();
    person.succeeds(&["pool", "create", "rack-1", "--org", "acme"]);
    person.succeeds(&["ws", "edit", "acme/network", "--execution-mode", "agent", "--agent-pool", "rack-1"]);
    let started = person.succeeds(&words(&["run", "start", "app"])).stdout;
    assert!(started.contains("no agents online in pool rack-1"), "{started}");
    let run = id(&person.json(&words(&["run", "show"])));
    let mut watching = Process::start(&mut person.taco(&["run", "watch", &run]));
    watching.line_of_stdout(|line| line.contains("no agents online in pool rack-1"));
    watching.signal(Signal::SIGINT);
    let hint = watching.line_of_stderr(|line| line.contains("The run continues."));
    assert!(hint.contains(&format!("taco run cancel {run}")), "{hint}");
    assert_eq!(watching.wait().code(), Some(130));
    assert_eq!(person.json(&["run", "show", &run])["status"], "plan_queued");

    let late = person.does(&["run", "watch", &run, "--timeout", "1s"]);
    ends_with(124, &late);
    assert!(
        late.stderr.contains("the run continues") && late.stderr.contains(&format!("taco run cancel {run}")),
        "{late:?}"
    );
    let unused = person.fails(2, &words(&["run", "start", "app", "--timeout", "1s"]));
    assert!(unused.contains("--watch"), "{unused}");
    person.succeeds(&["run", "comment", "ask Jane first", "--run", &run]);
    assert_eq!(person.json(&words(&["run", "comment", "she agrees"]))["body"], "she agrees");

    let mut following = Process::start(&mut person.taco(&["run", "logs", &run, "--follow"]));
    person.succeeds(&["run", "cancel", &run]);
    assert_eq!(following.wait().code(), Some(0), "there is nothing more to come");
}

#[test]
fn a_workspace_with_local_execution_says_where_its_runs_happen() {
    let person = Person::with_workspace();
    let local = person.fails(2, &words(&["run", "start", "."]));
    assert!(local.contains("--execution-mode remote"), "{local}");
}

#[test]
fn a_failed_run_is_started_again_with_its_options() {
    let person = person_with_configuration();
    ends_with(1, &person.does(&words(&["run", "start", "app", "-var=colour=none", "-m", "what now", "--watch"])));
    let failed = person.json(&words(&["run", "show"]));
    let retried = person.succeeds(&words(&["run", "again"])).stdout;
    assert!(
        retried.contains(" of acme/network is ") && retried.contains("/app/acme/workspaces/network/runs/"),
        "{retried}"
    );
    ends_with(1, &person.does(&words(&["run", "watch"])));
    let again = person.json(&words(&["run", "show"]));
    assert_ne!(again["id"], failed["id"]);
    for same in ["message", "variables", "configuration-version"] {
        assert_eq!(again[same], failed[same], "{same}");
    }
    let listed = person.succeeds(&words(&["run", "ls", "--status", "failed"]));
    assert_eq!(listed.rows().len(), 2, "{listed:?}");
    let latest = person.succeeds(&["ws", "ls", "--org", "acme"]);
    assert_eq!(latest.rows()[0][3], "errored");
}

#[test]
fn a_terminal_gets_words_colours_the_plan_and_a_question() {
    let person = person_with_configuration();
    ends_with(2, &person.does(&words(&["run", "start", "app", "--watch"])));
    let listed = on_terminal(&person, &words(&["run", "ls"]), "");
    assert!(listed.contains("\u{1b}[33mneeds approval\u{1b}[0m") && listed.contains("just now"), "{listed}");
    let plain = on_terminal(&person, &words(&["run", "ls", "--color", "never"]), "");
    assert!(plain.contains("needs approval") && !plain.contains('\u{1b}'), "{plain}");
    let shown = on_terminal(&person, &words(&["run", "show", "--color", "never"]), "");
    assert!(shown.contains("+ input  = \"red\"") && shown.contains("Plan: 1 to add"), "{shown}");

    let refused = on_terminal(&person, &words(&["run", "apply", "--color", "never"]), "n\n");
    let question = "Do you want to apply run-";
    let (plan, asked) = (refused.find("+ input  = \"red\""), refused.find(question));
    assert!(
        plan.is_some() && plan < asked && refused.contains("Canceled."),
        "the plan comes before the question: {refused}"
    );
    assert!(refused.contains("to acme/network (1 to add, 0 to change, 0 to destroy)? [y/N]"), "{refused}");

    ends_with(0, &person.does(&words(&["run", "apply", "--yes", "--watch"])));
    ends_with(2, &person.does(&words(&["run", "start", "-destroy", "--watch"])));
    let asked = on_terminal(&person, &words(&["run", "apply", "--color", "never"]), "n\n");
    assert!(asked.contains("DESTROY 1 resource of acme/network") && asked.contains("will be destroyed"), "{asked}");
}

#[test]
fn an_empty_list_on_a_terminal_says_what_to_do() {
    let person = Person::with_workspace();
    let pools = on_terminal(&person, &["pool", "ls", "--org", "acme"], "");
    assert_eq!(pools.trim(), "No agent pools. `taco pool create NAME` creates one.");
    assert_eq!(person.succeeds(&["pool", "ls", "--org", "acme"]).rows().len(), 0, "a pipe stays clean");
}

/// What a command shows on a terminal, which `script` makes.
fn on_terminal(person: &Person, words: &[&str], input: &str) -> String {
    let taco = person.taco(words);
    let line: Vec<String> = std::iter::once(taco.get_program())
        .chain(taco.get_args())
        .map(|word| format!("'{}'", word.to_string_lossy()))
        .collect();
    let mut script = std::process::Command::new("script");
    script.args(["-q", "-e", "-c", &line.join(" "), "/dev/null"]);
    script.env_clear().current_dir(person.home.path()).env("PATH", "/usr/bin:/bin").env("TERM", "xterm");
    for (name, value) in taco.get_envs() {
        if let Some(value) = value {
            script.env(name, value);
        }
    }
    Done::of(&mut script, input).stdout.replace('\r', "")
}
