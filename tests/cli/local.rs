//! Local mode: a bucket and the commands, and no server.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use harness::bucket_servers::{BucketServer, variables_of};
use harness::home::Home;
use harness::process::Process;
use harness::request_counter::RequestCounter;
use harness::stand_in_engine::{StandInEngine, Step};
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use serde_json::Value;

use crate::person::Done;

/// Someone with a directory tree and a bucket.
struct Laptop {
    home: Home,
    variables: Vec<(String, String)>,
}

impl Laptop {
    /// On a bucket that is a directory, with the real terraform.
    fn new() -> Self {
        let laptop = Self::with(Vec::new());
        let programs = laptop.home.path().join("bin");
        fs::create_dir(&programs).expect("it is made");
        let terraform = std::env::var_os("TACO_TEST_TERRAFORM").unwrap_or_else(|| {
            panic!(r#"TACO_TEST_TERRAFORM is not set: run `cargo xtask test`, or eval "$(cargo xtask tools)" first"#)
        });
        std::os::unix::fs::symlink(terraform, programs.join("terraform")).expect("it is linked");
        let path = format!("{}:/usr/bin:/bin", programs.display());
        let bucket = format!("file://{}", laptop.home.path().join("bucket").display());
        laptop.and("PATH", &path).and("TACO_BUCKET", &bucket)
    }

    fn with(variables: Vec<(&str, String)>) -> Self {
        let variables = variables.into_iter().map(|(name, value)| (name.to_owned(), value)).collect();
        // Nobody listens on port 1.
        Self { home: Home::default(), variables }
            .and("TACO_ENGINE_MIRROR", "http://127.0.0.1:1")
            .and("GIT_AUTHOR_EMAIL", "ana@acme.example")
    }

    fn and(mut self, name: &str, value: &str) -> Self {
        self.variables.push((name.to_owned(), value.to_owned()));
        self
    }

    /// A directory with a configuration.
    fn given(&self, path: &str, text: &str) -> PathBuf {
        let directory = self.home.path().join(path);
        fs::create_dir_all(&directory).expect("it is made");
        fs::write(directory.join("main.tf"), text).expect("it is written");
        directory
    }

    fn taco(&self, words: &[&str]) -> Command {
        let mut command = self.home.taco(words);
        command.envs(self.variables.iter().map(|(name, value)| (name, value)));
        command
    }

    fn does(&self, words: &[&str]) -> Done {
        Done::of(&mut self.taco(words), "")
    }

    fn ends_with(&self, code: i32, words: &[&str]) -> Done {
        let done = self.does(words);
        assert_eq!(done.code, code, "taco {}: {done:?}", words.join(" "));
        done
    }

    fn json(&self, words: &[&str]) -> Value {
        let words: Vec<&str> = words.iter().chain(&["--json"]).copied().collect();
        serde_json::from_str(&self.ends_with(0, &words).stdout).expect("it is JSON")
    }
}

/// Command lines of processes that have to do with a directory.
fn processes_about(directory: &Path) -> Vec<String> {
    let name = directory.display().to_string();
    let processes = fs::read_dir("/proc").expect("a directory").flatten();
    let lines = processes.filter_map(|process| fs::read(process.path().join("cmdline")).ok());
    lines.map(|line| String::from_utf8_lossy(&line).replace('\0', " ")).filter(|line| line.contains(&name)).collect()
}

const ONE: &str = r#"resource "terraform_data" "one" { input = "one" }
output "one" { value = terraform_data.one.output }
"#;

#[test]
fn a_directory_and_a_bucket_are_enough_to_plan_apply_and_destroy() {
    let laptop = Laptop::new();
    laptop.given("network", ONE);
    let planned = laptop.ends_with(2, &["plan", "network"]);
    assert!(planned.stderr.contains("Created organization main."), "{planned:?}");
    assert!(planned.stderr.contains("Created workspace main/network"), "{planned:?}");
    assert!(planned.stdout.contains("terraform_data.one"), "{planned:?}");
    let refused = laptop.ends_with(2, &["apply", "network"]);
    assert!(refused.stderr.contains("--auto-approve"), "{refused:?}");
    let applied = laptop.ends_with(0, &["apply", "network", "--auto-approve"]);
    assert!(!applied.stderr.contains("Created"), "{applied:?}");
    laptop.ends_with(0, &["plan", "network"]);
    let outputs = laptop.json(&["outputs", "show", "main/network"]);
    assert!(outputs.to_string().contains("\"one\""), "{outputs}");
    let runs = laptop.ends_with(0, &["run", "ls", "--org", "main"]);
    assert!(runs.rows().iter().all(|row| row[4] == "ana-claimed"), "nobody has verified who it is: {runs:?}");
    laptop.ends_with(0, &["destroy", "network", "--auto-approve"]);
    assert_eq!(processes_about(laptop.home.path()), Vec::<String>::new(), "no server is left behind");
}

#[test]
fn runs_find_what_belongs_to_the_user_and_each_other_under_one_name() {
    let laptop =
        Laptop::new().and("AWS_PROFILE", "staging").and("KUBECONFIG", "/kube").and("TACO_SECRET_KEY", &"k".repeat(40));
    let place = laptop.home.path().join("seen");
    let seen = format!(
        "resource \"terraform_data\" \"x\" {{\n  input = \"x\"\n  provisioner \"local-exec\" {{\n    command = \"echo $AWS_PROFILE $KUBECONFIG $HOME [$TACO_SECRET_KEY] > {}\"\n  }}\n}}\noutput \"x\" {{ value = terraform_data.x.output }}\n",
        place.display()
    );
    laptop.given("first", &seen);
    laptop.ends_with(0, &["apply", "first", "--auto-approve"]);
    let expected = format!("staging /kube {} []\n", laptop.home.path().display());
    assert_eq!(fs::read_to_string(&place).expect("it was written"), expected);
    laptop.given(
        "second",
        r#"data "terraform_remote_state" "first" {
  backend = "remote"
  config = { hostname = "taco.local", organization = "main", workspaces = { name = "first" } }
}
resource "terraform_data" "y" { input = data.terraform_remote_state.first.outputs.x }
"#,
    );
    laptop.ends_with(0, &["apply", "second", "--auto-approve"]);
    // Another process, and another port.
    laptop.ends_with(0, &["plan", "second"]);
    let why = laptop.json(&["deps", "ls", "--org", "main", "--ws", "second"]);
    assert!(why.to_string().contains("first"), "the edge is known: {why}");
}

#[test]
fn providers_are_fetched_once_for_all_commands() {
    let mirror = harness::provider_mirror::with_null_provider();
    let laptop = Laptop::new().and("TACO_PROVIDER_MIRROR", &mirror.path().display().to_string());
    laptop.given("network", "resource \"null_resource\" \"one\" {}\n");
    laptop.ends_with(0, &["apply", "network", "--auto-approve"]);
    let providers = laptop.home.path().join(".cache/taco/providers/registry.terraform.io/hashicorp/null");
    assert!(providers.is_dir(), "the next run finds it there");
    laptop.ends_with(0, &["plan", "network"]);
    laptop.ends_with(0, &["destroy", "network", "--auto-approve"]);
}

#[test]
fn modules_beside_a_directory_come_along() {
    let laptop = Laptop::new();
    laptop.given("estate/modules/x", ONE);
    laptop.given("estate/envs/prod", "module \"x\" {\n  source = \"../../modules/x\"\n}\n");
    fs::write(laptop.home.path().join("estate/.taco.toml"), "organization = \"acme\"\nbucket = \"../bucket\"\n")
        .expect("written");
    let planned = laptop.ends_with(2, &["plan", "estate/envs/prod"]);
    assert!(planned.stderr.contains("Created workspace acme/envs-prod for envs/prod"), "{planned:?}");
    assert!(planned.stdout.contains("module.x.terraform_data.one"), "{planned:?}");
    laptop.ends_with(2, &["plan", "estate/envs/prod"]);
}

#[test]
fn a_bucket_that_only_a_file_names_is_confirmed_first() {
    let laptop = Laptop::with(Vec::new());
    let directory = laptop.given("cloned", ONE);
    fs::write(directory.join(".taco.toml"), "bucket = \"../bucket\"\n").expect("it is written");
    for words in [["plan", "cloned"], ["up", "cloned"]] {
        let refused = laptop.ends_with(2, &words);
        assert!(refused.stderr.contains("never confirmed") && refused.stderr.contains("TACO_BUCKET="), "{refused:?}");
    }
    assert!(!laptop.home.path().join("bucket").exists(), "nothing was written");
    let bucket = format!("file://{}", laptop.home.path().join("bucket").display());
    let confirmed = laptop.and("TACO_BUCKET", &bucket);
    assert_eq!(confirmed.json(&["whoami"])["username"], "ana-claimed");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_start_costs_few_requests_once_a_bucket_has_proved_honest() {
    let bucket = BucketServer::gofakes3().await.expect("it starts");
    let counter = RequestCounter::to(bucket.location().s3_endpoint.as_deref().expect("an address")).await;
    let mut variables = variables_of(&bucket.location());
    variables.retain(|(name, _)| *name != "TACO_S3_ENDPOINT");
    variables.push(("TACO_S3_ENDPOINT", counter.address()));
    let laptop = Laptop::with(variables);
    let requests_of = |words: &[&str]| {
        counter.take_requests();
        laptop.ends_with(0, words);
        counter.take_requests()
    };
    let first = requests_of(&["whoami"]);
    assert!(first.len() > 100, "the first start asks whether the bucket is honest: {}", first.len());
    let next = requests_of(&["whoami"]);
    assert!(next.len() <= 20, "a start cost {} requests: {next:#?}", next.len());
    requests_of(&["org", "create", "acme"]);
    let next = requests_of(&["whoami"]);
    assert!(next.len() <= 28, "with an organization to read, a start cost {} requests: {next:#?}", next.len());
    // A teammate finds the key of the bucket in it.
    let teammate = Laptop { home: Home::default(), variables: laptop.variables.clone() };
    assert_eq!(teammate.json(&["whoami"])["username"], "ana-claimed");
}

/// Two commands of one person, one after the other: nothing waits for the lease of the first.
fn goes_on_at_once_after_a_kill(portable: bool) {
    let engine = StandInEngine::install();
    let laptop = Laptop::with(Vec::new())
        .and("TACO_AGENT_LEASE", "600")
        .and("TACO_AGENT_PORTABLE", if portable { "true" } else { "false" })
        .and("PATH", &engine.search_path().to_string_lossy());
    let bucket = format!("file://{}", laptop.home.path().join("bucket").display());
    let laptop = laptop.and("TACO_BUCKET", &bucket);
    laptop.given("network", ONE);
    engine.hold(Step::Plan);
    let mut killed = Process::start(&mut laptop.taco(&["apply", "network", "--auto-approve"]));
    engine.wait_for_number(Step::Plan, 1);
    killed.signal(Signal::SIGKILL);
    killed.wait();
    engine.wait_until_all_are_dead();
    engine.let_go(Step::Plan);
    laptop.ends_with(0, &["apply", "network", "--auto-approve"]);
    let runs = laptop.ends_with(0, &["run", "ls", "--org", "main"]);
    let statuses: Vec<&str> = runs.rows().iter().map(|row| row[2]).collect();
    assert_eq!(statuses, ["applied", "applied"], "the first was planned again: {runs:?}");
    assert_eq!(processes_about(laptop.home.path()), Vec::<String>::new());
}

#[test]
fn what_a_killed_command_has_left_is_gone_on_with_at_once() {
    goes_on_at_once_after_a_kill(false);
}

#[test]
fn so_it_is_where_nothing_of_linux_is_used() {
    goes_on_at_once_after_a_kill(true);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_walk_that_one_laptop_was_killed_in_is_gone_on_with_by_another() {
    let bucket = BucketServer::gofakes3().await.expect("it starts");
    let engine = StandInEngine::install();
    engine.makes_units();
    let laptop = |who: &str| {
        Laptop::with(variables_of(&bucket.location()))
            .and("GIT_AUTHOR_EMAIL", who)
            .and("TACO_ORG", "acme")
            .and("TACO_AGENT_LEASE", "15")
            .and("PATH", &engine.search_path().to_string_lossy())
    };
    let (ana, ben) = (laptop("ana@acme.example"), laptop("ben@acme.example"));
    for (unit, text) in
        [("net", "# salt 0\n"), ("app", "# salt 0\n# uses net digest\n"), ("web", "# salt 0\n# uses app digest\n")]
    {
        ana.given(unit, text);
        ana.ends_with(0, &["apply", unit, "--auto-approve"]);
    }
    ana.given("net", "# salt 1\n");
    ana.ends_with(0, &["apply", "net", "--auto-approve"]);
    engine.hold(Step::Plan);
    let before = engine.order_of(Step::Plan).len();
    let mut killed = Process::start(&mut ana.taco(&["walk", "apply", "--from", "net", "--auto-approve", "--watch"]));
    engine.wait_for_number(Step::Plan, before + 1);
    killed.signal(Signal::SIGKILL);
    killed.wait();
    engine.wait_until_all_are_dead();
    engine.let_go(Step::Plan);
    ben.ends_with(0, &["walk", "resume"]);
    let applied = engine.units_at(Step::ApplyEnds);
    assert_eq!(applied, ["net", "app", "web", "net", "app", "web"], "each once for each change");
    let runs = ben.ends_with(0, &["run", "ls"]);
    let last: Vec<&str> = runs.rows().iter().filter(|row| row[1] == "web").map(|row| row[4]).collect();
    assert_eq!(last, ["ben-claimed", "ana-claimed"], "{runs:?}");
    for laptop in [ana, ben] {
        assert_eq!(processes_about(laptop.home.path()), Vec::<String>::new(), "no server is left behind");
    }
}

#[test]
fn the_demo_runs_as_it_is_given_away() {
    let laptop = Laptop::new();
    let taco = laptop.taco(&[]).get_program().to_owned();
    std::os::unix::fs::symlink(taco, laptop.home.path().join("bin/taco")).expect("it is linked");
    let mut demo = Command::new("sh");
    demo.arg(concat!(env!("CARGO_MANIFEST_DIR"), "/../examples/local/demo.sh"));
    demo.env_clear().env("HOME", laptop.home.path());
    demo.envs(laptop.variables.iter().filter(|(name, _)| name != "TACO_BUCKET").map(|(name, value)| (name, value)));
    let done = Done::of(&mut demo, "");
    assert_eq!(done.code, 0, "{done:?}");
    for part in ["blue", "green", "== done"] {
        assert!(done.stdout.contains(part), "{part}: {done:?}");
    }
    assert_eq!(processes_about(laptop.home.path()), Vec::<String>::new());
}

#[test]
fn an_engine_does_not_outlive_what_watches_over_it_also_without_linux() {
    let engine = StandInEngine::install();
    let laptop = Laptop::with(Vec::new())
        .and("TACO_AGENT_PORTABLE", "true")
        .and("PATH", &engine.search_path().to_string_lossy());
    let bucket = format!("file://{}", laptop.home.path().join("bucket").display());
    let laptop = laptop.and("TACO_BUCKET", &bucket);
    laptop.given("network", ONE);
    engine.hold(Step::Plan);
    let mut command = Process::start(&mut laptop.taco(&["plan", "network"]));
    engine.wait_for_number(Step::Plan, 1);
    let stat = fs::read_to_string(format!("/proc/{}/stat", engine.newest_process())).expect("it lives");
    let parent = stat.rsplit(')').next().and_then(|rest| rest.split_whitespace().nth(1)).expect("it has a parent");
    kill(Pid::from_raw(parent.parse().expect("a number")), Signal::SIGKILL).expect("it lives");
    engine.wait_until_all_are_dead();
    engine.let_go(Step::Plan);
    assert_eq!(command.wait().code(), Some(1), "{command:?}");
}
