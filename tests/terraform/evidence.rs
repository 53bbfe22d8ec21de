//! What states and plans of the real programs tell about each other. No server has a part in it.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use harness::engine::Engine;
use harness::estate::{Estate, EstateBackend, EstateOptions};
use serde_json::value::RawValue;
use taco_domain::graph::echo::{EchoState, ambient_tokens, echo_edges, used_by_echo};
use taco_domain::graph::local_references::LocalReferences;
use taco_domain::graph::output_commit::UsedOutputs;
use taco_domain::graph::plan_evidence::{OutputAction, PlanEvidence, PlanRead, Unknown};
use taco_domain::graph::state_evidence::StateEvidence;
use taco_domain::graph::token::{TokenKey, ValueTokens};
use tempfile::TempDir;

fn key() -> TokenKey {
    TokenKey::of(&[7; 32])
}

/// A directory with units that keep their states in files beside them.
struct Units {
    engine: Engine,
    directory: TempDir,
}

impl Units {
    fn new(engine: Engine) -> Self {
        Self { engine, directory: tempfile::tempdir().expect("a directory") }
    }

    fn path(&self) -> &Path {
        self.directory.path()
    }

    fn write(&self, file: &str, text: &str) {
        let path = self.path().join(file);
        fs::create_dir_all(path.parent().expect("a directory")).expect("made");
        fs::write(path, text).expect("written");
    }

    /// Backend of a unit, and how others read it.
    fn backend(&self, unit: &str) -> String {
        format!("terraform {{\n  backend \"local\" {{\n    path = \"{}\"\n  }}\n}}\n", self.state_path(unit).display())
    }

    fn read(&self, name: &str, unit: &str) -> String {
        let path = self.state_path(unit);
        format!(
            "data \"terraform_remote_state\" \"{name}\" {{\n  backend = \"local\"\n  config = {{ path = \"{}\" }}\n}}\n",
            path.display()
        )
    }

    fn state_path(&self, unit: &str) -> PathBuf {
        self.path().join(format!("{unit}.tfstate"))
    }

    fn run(&self, unit: &str, arguments: &[&str]) -> Vec<u8> {
        let output = Command::new(self.engine.program())
            .args(arguments)
            .current_dir(self.path().join(unit))
            .env_clear()
            .env("HOME", self.path())
            .env("CHECKPOINT_DISABLE", "1")
            .env("PATH", "/usr/bin:/bin")
            .output()
            .expect("the engine starts");
        let said = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "{} {arguments:?} in {unit}: {said}", self.engine.word());
        output.stdout
    }

    fn apply(&self, unit: &str, arguments: &[&str]) {
        self.run(unit, &["init", "-input=false"]);
        self.run(unit, &[&["apply", "-input=false", "-auto-approve"], arguments].concat());
    }

    fn state(&self, unit: &str) -> StateEvidence {
        let file = fs::File::open(self.state_path(unit)).expect("a state");
        StateEvidence::read(file, &key()).expect("a state")
    }

    fn plan_with(&self, unit: &str, arguments: &[&str], locals: &LocalReferences) -> PlanEvidence {
        self.run(unit, &["init", "-input=false"]);
        self.run(unit, &[&["plan", "-input=false", "-out=plan"], arguments].concat());
        let shown = self.run(unit, &["show", "-json", "plan"]);
        PlanEvidence::read(shown.as_slice(), locals).expect("a plan")
    }

    fn plan(&self, unit: &str, arguments: &[&str]) -> PlanEvidence {
        self.plan_with(unit, arguments, &LocalReferences::default())
    }
}

fn used(read: &PlanRead) -> String {
    match &read.used {
        UsedOutputs::All => "*".to_owned(),
        UsedOutputs::Names(names) => names.iter().map(String::as_str).collect::<Vec<_>>().join(" "),
    }
}

fn tokens(text: &str) -> ValueTokens {
    key().of_value(&RawValue::from_string(format!("{text:?}")).expect("JSON"))
}

fn an_estate_is_as_its_states_and_plans_say(engine: Engine) {
    let units = Units::new(engine);
    let backend = EstateBackend::Local { directory: units.path().display().to_string() };
    let estate = Estate::new(EstateOptions::new(12, 3, 5).hard().backend(backend));
    estate.write(units.path()).expect("written");
    let (mut by_plan, mut by_state, mut states) = (BTreeMap::new(), BTreeMap::new(), BTreeMap::new());
    let unit_at = |path: String| {
        let name =
            Path::new(path.strip_prefix("local:").expect("a local state")).file_stem().expect("a name").to_owned();
        name.into_string().expect("text")
    };
    for unit in &estate.units {
        let plan = units.plan(&unit.name, &[]);
        for read in &plan.reads {
            let UsedOutputs::Names(names) = &read.used else { panic!("the configuration names what it uses") };
            let producer = unit_at(read.producer.as_ref().expect("an address").to_string());
            by_plan.insert((unit.name.clone(), producer), names.clone());
            assert_eq!(read.values.len(), 9, "all outputs are read");
        }
        assert!(plan.outputs.values().all(|output| output.action == OutputAction::Created));
        assert_eq!(plan.outputs["handle"].unknown, Unknown::Whole);
        units.run(&unit.name, &["apply", "-input=false", "plan"]);
        states.insert(unit.name.clone(), units.state(&unit.name));
    }
    let echoes: Vec<_> = states.iter().map(|(unit, state)| EchoState { unit, tokens: &state.tokens }).collect();
    let ambient = ambient_tokens(&echoes);
    let mut cannot_tell = BTreeSet::new();
    for (unit, state) in &states {
        for (index, read) in state.reads.iter().enumerate() {
            let echo = used_by_echo(state, &[index], &key(), |token| ambient.contains(&token));
            let producer = unit_at(read.producer.as_ref().expect("an address").to_string());
            assert_eq!(read.users.len(), 3, "all resources use what their module is given");
            assert!(read.values.values().all(|value| value.detailed_type.is_some()));
            by_state.insert((unit.clone(), producer), echo.sure);
            cannot_tell.extend(echo.cannot_tell);
        }
    }
    let expected = estate.edges();
    assert_eq!(by_plan, expected);
    assert_eq!(by_state.keys().collect::<Vec<_>>(), expected.keys().collect::<Vec<_>>());
    for (edge, uses) in &expected {
        let shown = &by_state[edge];
        assert!(shown.is_subset(uses), "{edge:?}: {shown:?}");
        assert!(uses.iter().all(|name| shown.contains(name) || cannot_tell.contains(name)), "{edge:?}: {shown:?}");
    }
    let by_echo: BTreeSet<_> =
        echo_edges(&echoes).into_iter().map(|edge| (edge.consumer.clone(), edge.producer.clone())).collect();
    assert!(by_echo.iter().all(|edge| expected.contains_key(edge)), "{by_echo:?}");
    assert!(by_echo.len() * 100 >= expected.len() * 70, "{} of {}", by_echo.len(), expected.len());
}

const PRODUCER: &str = r#"
variable "salt" {
  default = "0"
}
resource "terraform_data" "made" {}
output "id" {
  value = terraform_data.made.id
}
output "vpc_id" {
  value = "vpc-of-salt-${var.salt}"
}
output "unused" {
  value = "unused-of-salt-${var.salt}"
}
output "we-ird_é" {
  value = { "key with \"quotes\"" = toset(["x"]), n = 123456789012345678901234567890 }
}
"#;

fn expressions_of_every_kind_name_what_they_use(engine: Engine) {
    let units = Units::new(engine);
    units.write("a/main.tf", &(units.backend("a") + PRODUCER));
    units.apply("a", &[]);
    let expressions = [
        ("attribute", "data.terraform_remote_state.NAME.outputs.vpc_id", "vpc_id"),
        ("index", "data.terraform_remote_state.NAME.outputs[\"we-ird_é\"].n", "we-ird_é"),
        ("text", "\"x/${data.terraform_remote_state.NAME.outputs.id}\"", "id"),
        (
            "call",
            "try(data.terraform_remote_state.NAME.outputs.missing, data.terraform_remote_state.NAME.outputs.id)",
            "id missing",
        ),
        ("whole", "data.terraform_remote_state.NAME.outputs", "*"),
        ("block", "data.terraform_remote_state.NAME", "*"),
        ("loop", "[for name, value in data.terraform_remote_state.NAME.outputs : name]", "*"),
        ("nothing", "1", ""),
    ];
    let mut text = units.backend("b");
    for (name, expression, _) in &expressions {
        text += &units.read(name, "a");
        let expression = expression.replace("NAME", name);
        text += &format!("resource \"terraform_data\" \"{name}\" {{\n  input = jsonencode({expression})\n}}\n");
    }
    units.write("b/main.tf", &text);
    let by_block = |plan: &PlanEvidence| {
        let name = |read: &PlanRead| read.data.replace("data.terraform_remote_state.", "");
        plan.reads.iter().map(|read| (name(read), used(read))).collect::<BTreeMap<_, _>>()
    };
    let expected: BTreeMap<_, _> =
        expressions.iter().map(|(name, _, used)| ((*name).to_owned(), (*used).to_owned())).collect();
    assert_eq!(by_block(&units.plan("b", &[])), expected);
    units.apply("b", &[]);
    let again = units.plan("b", &[]);
    assert_eq!(by_block(&again), expected, "a plan without changes names the same");
    assert_eq!(again.changed_instances, 0);
    let users = |name: &str| {
        let block = format!("data.terraform_remote_state.{name}");
        again.reads.iter().find(|read| read.data == block).expect("a read").users.clone()
    };
    assert_eq!(users("whole"), ["terraform_data.whole"]);
    assert_eq!(users("nothing"), Vec::<String>::new());
    assert_eq!(
        units.state("b").reads.iter().map(|read| read.user_count).sum::<u64>(),
        expressions.len() as u64 - 1,
        "the state says the same"
    );
}

fn locals_are_seen_through_with_the_configurations_files(engine: Engine) {
    let units = Units::new(engine);
    units.write("a/main.tf", &(units.backend("a") + PRODUCER));
    units.apply("a", &[]);
    let root = "
        locals {
          net  = data.terraform_remote_state.a.outputs
          tags = { owner = \"someone\" }
        }
        resource \"terraform_data\" \"one\" {
          input = [local.net.vpc_id, local.tags, data.terraform_remote_state.a.outputs.id]
        }
        module \"m\" {
          source = \"./m\"
          tags   = local.tags
        }
    ";
    let root = units.backend("b") + &units.read("a", "a") + root;
    let module = "
        variable \"tags\" {}
        locals {
          same = data.terraform_remote_state.inner.outputs[\"unused\"]
        }
        resource \"terraform_data\" \"two\" {
          input = [local.same, var.tags]
        }
    ";
    let module = units.read("inner", "a") + module;
    units.write("b/main.tf", &root);
    units.write("b/m/main.tf", &module);
    let by_block = |plan: &PlanEvidence| plan.reads.iter().map(used).collect::<Vec<_>>();
    let first = units.plan("b", &[]);
    assert_eq!(by_block(&first), ["*", "unused"], "where all is new, attributes that count are listed");
    units.apply("b", &[]);
    let unchanged = units.plan("b", &[]);
    assert_eq!(by_block(&unchanged), ["*", "*"]);
    assert!(unchanged.asks_for_files);
    let mut locals = LocalReferences::default();
    locals.add_file("main.tf", root.as_bytes());
    locals.add_file("m/main.tf", module.as_bytes());
    let known = units.plan_with("b", &[], &locals);
    assert_eq!(by_block(&known), ["id vpc_id", "unused"]);
    assert!(!known.asks_for_files);
}

/// A refresh takes the new value into the data block and leaves the resources as they are; so does a target elsewhere.
fn a_refresh_is_told_from_an_apply(engine: Engine) {
    let units = Units::new(engine);
    units.write("a/main.tf", &(units.backend("a") + PRODUCER));
    units.apply("a", &[]);
    let consumer = "
        resource \"terraform_data\" \"user\" {
          input = data.terraform_remote_state.a.outputs.vpc_id
        }
        resource \"terraform_data\" \"other\" {}
    ";
    units.write("b/main.tf", &(units.backend("b") + &units.read("a", "a") + consumer));
    units.apply("b", &[]);
    let holds = |value: &str| {
        let state = units.state("b");
        let token = tokens(value).distinctive[0];
        let read = state.reads[0].values["vpc_id"].value.get() == format!("{value:?}");
        (read, state.users[0].held.holds(token))
    };
    assert_eq!(holds("vpc-of-salt-0"), (true, true));
    units.apply("a", &["-var=salt=1"]);
    units.apply("b", &["-refresh-only"]);
    assert_eq!((holds("vpc-of-salt-1"), holds("vpc-of-salt-0")), ((true, false), (false, true)));
    let targeted = units.plan("b", &["-target=terraform_data.other"]);
    assert_ne!(targeted.complete, Some(true));
    units.apply("b", &["-target=terraform_data.other"]);
    assert!(holds("vpc-of-salt-0").1);
    let pending = units.plan("b", &[]);
    assert_eq!((pending.changed_instances, pending.only_deletes), (1, false));
    units.apply("b", &[]);
    assert_eq!((holds("vpc-of-salt-1"), holds("vpc-of-salt-0")), ((true, true), (false, false)));
    let destroy = units.plan("b", &["-destroy"]);
    assert_eq!((destroy.changed_instances, destroy.only_deletes), (2, true));
}

/// Stories that both programs tell.
macro_rules! of_both {
    ($($story:ident),* $(,)?) => {
        mod terraform {
            $(#[test]
            fn $story() {
                super::$story(harness::engine::Engine::Terraform);
            })*
        }

        mod tofu {
            $(#[test]
            fn $story() {
                super::$story(harness::engine::Engine::Tofu);
            })*
        }
    };
}

of_both![
    an_estate_is_as_its_states_and_plans_say,
    expressions_of_every_kind_name_what_they_use,
    locals_are_seen_through_with_the_configurations_files,
    a_refresh_is_told_from_an_apply,
];
