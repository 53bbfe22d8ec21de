//! Promises of tables, indexes and set-aside records.

use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use taco_tables::{
    Change, LooseRecords, OnDelete, Record, RecordKey, Records, Reference, State, Table, fields_of, indexes,
    references, tables,
};

#[derive(Clone, Serialize, Deserialize)]
struct Run {
    id: String,
    workspace: String,
    status: String,
}

impl Record for Run {
    const KIND: &'static str = "run";
    const PART_OF: &'static [&'static str] = &["workspace"];
    const UNIQUE: &'static [&'static str] = &["name"];
    type Id = String;
    type Indexes = RunIndexes;

    fn id(&self) -> &String {
        &self.id
    }
}

indexes! {
    struct RunIndexes for Run {
        workspace: String => |run| [run.workspace.clone()];
        status: (String, String) => |run| [(run.workspace.clone(), run.status.clone())];
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
        state.runs.by().workspace.get(&workspace.to_owned()).map(|run| run.id.clone()).collect()
    };
    assert_eq!(by(&state, "a"), ["run-1", "run-3"]);
    let newest_first: Vec<_> = state.runs.by().workspace.get(&"a".to_owned()).rev().map(|run| &run.id).collect();
    assert_eq!(newest_first, ["run-3", "run-1"]);

    let before = state.clone();
    state.runs.put(&run("run-1", "b", "applied")).expect("put");
    state.runs.remove(&"run-3".to_owned());
    assert_eq!(by(&state, "a"), Vec::<String>::new());
    assert_eq!(by(&state, "b"), ["run-1", "run-2"]);
    assert_eq!(state.runs.by().unfinished.first(&"b".to_owned()).map(|run| &*run.id), Some("run-2"));
    assert_eq!(state.runs.by().unfinished.len(), 2);
    assert_eq!(by(&before, "a"), ["run-1", "run-3"], "a clone is a value of its own");
}

#[test]
fn records_are_found_by_the_beginning_of_a_key() {
    let mut state = Everything::default();
    for (id, workspace, status) in [("1", "a", "z"), ("2", "b", "x"), ("3", "a", "y"), ("4", "ab", "x")] {
        state.runs.put(&run(id, workspace, status)).expect("put");
    }
    let status = &state.runs.by().status;
    let ids = |runs: Records<'_, Run>| runs.map(|run| run.id.clone()).collect::<Vec<_>>();
    assert_eq!(ids(status.under(&"a".to_owned())), ["3", "1"]);
    assert_eq!(ids(status.iter()), ["3", "1", "4", "2"]);
    // A record that is put again is the new one in every index.
    state.runs.put(&run("1", "a", "a")).expect("put");
    let by_workspace = state.runs.by().workspace.first(&"a".to_owned()).map(|run| &*run.status);
    assert_eq!(by_workspace, Some("a"));
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

#[test]
fn loose_records_are_met_like_those_of_a_state_and_leave_it_as_it_is() {
    let mut state = Everything::default();
    for (id, workspace) in [("run-2", "a"), ("run-4", "a"), ("run-6", "b")] {
        state.runs.put(&run(id, workspace, "planning")).expect("put");
    }
    let mut loose = LooseRecords::default();
    let mut read = |kind: &str, id: &str, json: &str| {
        let value = RawValue::from_string(json.to_owned()).expect("JSON");
        Everything::read_loose(&mut loose, &RecordKey { kind: kind.into(), id: id.into() }, &value);
    };
    read("run", "run-3", r#"{"id":"run-3","workspace":"a","status":"applied","color":1}"#);
    read("run", "run-5", r#"{"id":"run-5","workspace":"b","status":"planning"}"#);
    read("run", "run-6", r#"{"id":"run-6","workspace":"a","status":"applied"}"#);
    read("run", "run-7", r#"{"id":"run-7","workspace":7}"#);
    read("comet", "c-1", "[1]");
    assert!(loose.weight() > 5 * 40);

    let before = json_of(&state);
    let mut both = state.clone();
    both.lay_over(&loose);
    both.lay_over(&loose);
    let ids = |runs: Records<'_, Run>| runs.map(|run| run.id.clone()).collect::<Vec<_>>();
    let by = both.runs.by();
    assert_eq!(ids(both.runs.iter()), ["run-2", "run-3", "run-4", "run-5", "run-6"]);
    assert_eq!(ids(by.workspace.get(&"a".to_owned())), ["run-2", "run-3", "run-4"]);
    assert_eq!(ids(by.status.under(&"b".to_owned())), ["run-5", "run-6"], "the state's own is the newer one");
    assert_eq!(ids(by.unfinished.iter()), ["run-2", "run-4", "run-5", "run-6"]);
    assert_eq!((both.runs.len(), by.unfinished.len(), both.record_count()), (5, 4, 7));
    assert_eq!(both.runs.get(&"run-3".to_owned()).map(|run| &*run.status), Some("applied"));
    let color = both.runs.json_of(&"run-3".to_owned()).expect("JSON");
    assert!(color.get().contains("color"), "fields of a newer version are there, too");
    assert_eq!(both.set_aside().len(), 2);
    assert_eq!(json_of(&state), before);
}

#[test]
fn nothing_is_decided_around_what_cannot_be_read() {
    let mut state = Everything::default();
    // A newer server has given it a status that is no text, and a name.
    state.apply(&put("run-1", r#"{"id":"run-1","workspace":"a","status":{"new":1},"name":"Deploy","by":"user-1"}"#));
    let key = |kind: &str, id: &str| RecordKey { kind: kind.into(), id: id.into() };
    let stopped = |kind: &str, id: &str, json: &str, is_deleted| {
        let value = RawValue::from_string(json.to_owned()).expect("JSON");
        let by = state.set_aside().in_the_way_of(&key(kind, id), &value, fields_of::<Run>(), is_deleted);
        by.map(|key| key.id.as_str())
    };
    let in_the_way = Some("run-1");
    assert_eq!(stopped("run", "run-1", r#"{"workspace":"b"}"#, false), in_the_way, "it is the very record");
    assert_eq!(stopped("run", "run-2", r#"{"workspace":"a"}"#, false), in_the_way, "it is of the same workspace");
    assert_eq!(stopped("workspace", "a", "{}", false), in_the_way, "it is what the record is a part of");
    assert_eq!(stopped("comment", "c-1", r#"{"workspace":{"run":"run-1"}}"#, false), in_the_way, "it is a part of it");
    assert_eq!(stopped("run", "run-2", r#"{"name":"deploy"}"#, false), in_the_way, "the name is taken");
    assert_eq!(stopped("team", "team-1", r#"{"name":"deploy"}"#, false), None, "by a run, and not by a team");
    assert_eq!(stopped("run", "run-2", r#"{"workspace":"b"}"#, false), None);
    assert_eq!(stopped("user", "user-1", "{}", false), None, "it is not about them");
    assert_eq!(stopped("user", "user-1", "{}", true), in_the_way, "but it names them");
    assert_eq!(state.set_aside().unreadable().count(), 1);
}

#[derive(Clone, Serialize, Deserialize)]
struct Member {
    id: String,
    name: String,
    teams: Vec<u32>,
    leads: Option<u32>,
}

impl Record for Member {
    const KIND: &'static str = "member";
    type Id = String;
    type Indexes = MemberIndexes;

    fn id(&self) -> &String {
        &self.id
    }

    references! {
        "teams": u32, unlink(|members, id| members.by().team.get(id), |member| member.teams.retain(|team| team != id));
        "leads": u32, restrict(|members, id| members.by().leads.get(id));
        "leads": u32, cascade(|members, id| members.by().leads.get(id));
        "id": String, keep("it is its own");
    }
}

indexes! {
    struct MemberIndexes for Member {
        name: String, unique "name" => |member| [member.name.to_lowercase()];
        team: u32 => |member| member.teams.clone();
        leads: u32 => |member| member.leads;
    }
}

fn member(id: &str, name: &str, teams: &[u32], leads: Option<u32>) -> Member {
    Member { id: id.into(), name: name.into(), teams: teams.to_vec(), leads }
}

#[test]
fn another_record_with_a_unique_key_is_noticed() {
    let mut members = Table::default();
    members.put(&member("1", "Jane", &[], None)).expect("put");
    assert_eq!(members.unique_conflict(&member("2", "jane", &[], None)), Some("name"));
    assert_eq!(members.unique_conflict(&member("1", "jane", &[], None)), None, "it is the same one");
    assert_eq!(members.unique_conflict(&member("2", "Joe", &[], None)), None);
}

#[test]
fn references_find_those_who_name_an_id_of_their_kind() {
    let mut members = Table::default();
    members.put(&member("1", "Jane", &[7, 8], Some(7))).expect("put");
    members.put(&member("2", "Joe", &[8], None)).expect("put");
    let references = Member::references();
    let [teams, leads, cascade, own] = references.as_slice() else { panic!("there are four") };
    assert_eq!((teams.field, teams.to, own.to), ("teams", "u32", std::any::type_name::<String>()));
    let OnDelete::Unlink(unlinked) = teams.on_delete else { panic!("teams are taken away") };
    let left: Vec<_> = unlinked(&members, &8_u32).into_iter().map(|member| member.teams).collect();
    assert_eq!(left, [vec![7], vec![]]);
    assert!(unlinked(&members, &8_u64).is_empty(), "another kind of id is none of its own");
    let Reference { on_delete: OnDelete::Restrict(is_named), .. } = leads else { panic!("leaders keep their teams") };
    assert!(is_named(&members, &7_u32) && !is_named(&members, &8_u32) && !is_named(&members, &7_u64));
    let OnDelete::Cascade(found) = cascade.on_delete else { panic!("leaders go") };
    assert_eq!(found(&members, &7_u32), ["1"]);
    assert!(matches!(own.on_delete, OnDelete::Keep("it is its own")));
}
