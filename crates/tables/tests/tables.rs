//! What tables, indexes and set-aside records promise.

use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use taco_tables::{Change, Record, RecordKey, State, indexes, tables};

#[derive(Clone, Serialize, Deserialize)]
struct Run {
    id: String,
    workspace: String,
    status: String,
}

impl Record for Run {
    const KIND: &'static str = "run";
    type Id = String;
    type Indexes = RunIndexes;

    fn id(&self) -> &String {
        &self.id
    }
}

indexes! {
    struct RunIndexes for Run {
        workspace: String => |run| [run.workspace.clone()];
        unfinished: String => |run| (run.status != "applied").then(|| run.workspace.clone());
    }
}

tables! {
    struct Everything {
        runs: Run;
    }
}

fn put(id: &str, json: &str) -> Change {
    let value = RawValue::from_string(json.to_owned()).expect("JSON");
    Change::Put(RecordKey { kind: "run".into(), id: id.into() }, value)
}

fn json_of(state: &Everything) -> Vec<String> {
    let mut lines = Vec::new();
    state.for_each_json(&mut |kind, id, value| lines.push(format!("{kind} {id} {}", value.get()))).expect("JSON");
    lines
}

fn run(id: &str, workspace: &str, status: &str) -> Run {
    Run { id: id.into(), workspace: workspace.into(), status: status.into() }
}

#[test]
fn indexes_follow_their_records() {
    let mut state = Everything::default();
    for (id, workspace) in [("run-1", "a"), ("run-2", "b"), ("run-3", "a"), ("run-4", "ab")] {
        state.runs.put(&run(id, workspace, "planning")).expect("put");
    }
    let by = |state: &Everything, workspace: &str| -> Vec<String> {
        state.runs.by().workspace.get(&workspace.to_owned()).cloned().collect()
    };
    assert_eq!(by(&state, "a"), ["run-1", "run-3"]);
    let newest_first: Vec<_> = state.runs.by().workspace.get(&"a".to_owned()).rev().cloned().collect();
    assert_eq!(newest_first, ["run-3", "run-1"]);

    let before = state.clone();
    state.runs.put(&run("run-1", "b", "applied")).expect("put");
    state.runs.remove(&"run-3".to_owned());
    assert_eq!(by(&state, "a"), Vec::<String>::new());
    assert_eq!(by(&state, "b"), ["run-1", "run-2"]);
    assert_eq!(state.runs.by().unfinished.first(&"b".to_owned()), Some(&"run-2".to_owned()));
    assert_eq!(state.runs.by().unfinished.len(), 2);
    assert_eq!(by(&before, "a"), ["run-1", "run-3"], "a clone is a value of its own");
}

#[test]
fn a_field_of_a_newer_version_survives_a_change_by_this_one() {
    let mut state = Everything::default();
    state.apply(&put("run-1", r#"{"id":"run-1","workspace":"a","status":"pending","color":{"deep":[1]}}"#));
    state.runs.put(&run("run-1", "a", "planning")).expect("put");
    assert_eq!(
        json_of(&state),
        [r#"run run-1 {"color":{"deep":[1]},"id":"run-1","status":"planning","workspace":"a"}"#]
    );
}

#[test]
fn what_cannot_be_read_is_set_aside_and_carried_along() {
    let mut state = Everything::default();
    state.apply(&put("run-1", r#"{"id":"run-1","workspace":"a","status":"x"}"#));
    state.apply(&put("run-1", r#"{"id":"run-1","workspace":7}"#));
    state.apply(&put("run-2", r#"{"id":"run-3","workspace":"a","status":"x"}"#));
    let unknown = RawValue::from_string("[1]".into()).expect("JSON");
    state.apply(&Change::Put(RecordKey { kind: "comet".into(), id: "c-1".into() }, unknown));
    assert_eq!(state.runs.len(), 0);
    assert_eq!(state.set_aside().len(), 3);
    assert_eq!(json_of(&state).len(), 3);

    state.apply(&put("run-1", r#"{"id":"run-1","workspace":"a","status":"x"}"#));
    state.apply(&Change::Delete(RecordKey { kind: "comet".into(), id: "c-1".into() }));
    assert_eq!((state.runs.len(), state.set_aside().len()), (1, 1));
}
