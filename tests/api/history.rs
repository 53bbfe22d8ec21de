//! Finished runs that left memory: those who read or change them notice nothing.

use std::collections::{BTreeMap, BTreeSet};
use std::convert::Infallible;

use axum::http::StatusCode;
use harness::api_server::{ApiServer, Client};
use harness::held_bucket::HeldBucket;
use jiff::SignedDuration;
use serde_json::{Value, json};
use taco_control_plane::PhaseOutcome;
use taco_domain::history::{HistoryRules, HistorySegment};
use taco_ledger::{Bucket, Intent, layout};

use crate::configuration_versions::given_configuration;
use crate::run_phases::{applied, execute, planned};
use crate::runs::{act, read_run, run_body, start_run, status};
use crate::states::{described, given_member, state};

/// Rules by which every record that may leave memory leaves, three at a time.
const AT_ONCE: HistoryRules = HistoryRules { keep: 0, batch: 3, settled_after: SignedDuration::ZERO };

/// Server with some activity.
struct Scene {
    server: ApiServer,
    admin: Client,
    /// Sees one of the workspaces only.
    member: Client,
    workspaces: [String; 2],
    runs: Vec<String>,
    configurations: Vec<String>,
    states: Vec<String>,
    comments: Vec<String>,
}

impl Scene {
    async fn new() -> Self {
        Self::on(ApiServer::with_history(AT_ONCE).await).await
    }

    async fn on(server: ApiServer) -> Self {
        let admin = server.admin();
        server.given_organization("acme").await;
        let workspaces = [server.given_workspace("acme", "web").await, server.given_workspace("acme", "api").await];
        let member = given_member(&server, "jane", &workspaces[1], "read").await;
        let (runs, configurations, states, comments) = Default::default();
        let mut scene = Self { server, admin, member, workspaces, runs, configurations, states, comments };
        for round in 0..6_u64 {
            for workspace in scene.workspaces.clone() {
                scene.round(&workspace, round).await;
            }
        }
        scene
    }

    /// A run of each kind, with what people and engines leave behind.
    async fn round(&mut self, workspace: &str, round: u64) {
        let minute = SignedDuration::from_mins(1);
        self.server.pass(minute);
        if round.is_multiple_of(2) {
            self.configurations.push(given_configuration(&self.server, workspace).await);
        }
        let options = [
            json!({ "message": format!("Apply {round}") }),
            json!({ "message": "Only a plan", "plan-only": true }),
            json!({ "message": "Take it down", "is-destroy": true, "variables": [{ "key": "a", "value": "\"b\"" }] }),
        ];
        for (kind, options) in options.into_iter().enumerate() {
            self.server.pass(minute);
            let run = start_run(&self.admin, workspace, options).await.expect(StatusCode::CREATED).id();
            self.runs.push(run.clone());
            match kind {
                0 => {
                    execute(&self.server, planned(true)).await;
                    act(&self.admin, &run, "apply").await.expect(StatusCode::ACCEPTED);
                    execute(&self.server, applied()).await;
                    self.state_of(workspace, Some(&run), 2 * round + 1).await;
                    let body =
                        json!({ "data": { "type": "comments", "attributes": { "body": format!("Done {round}") } } });
                    let comment = self.admin.post(&format!("/api/v2/runs/{run}/comments"), &body).await;
                    self.comments.push(comment.expect(StatusCode::CREATED).id());
                }
                1 => execute(&self.server, planned(false)).await,
                _ => execute(&self.server, failed()).await,
            }
        }
        self.state_of(workspace, None, 2 * round + 2).await;
    }

    /// A state with an output, perhaps of a run.
    async fn state_of(&mut self, workspace: &str, run: Option<&str>, serial: u64) {
        let path = format!("/api/v2/workspaces/{workspace}");
        let bytes = state(serial, workspace, "content");
        let mut body = described(serial, workspace, &bytes);
        if let Some(run) = run {
            body["data"]["relationships"] = json!({ "run": { "data": { "type": "runs", "id": run } } });
        }
        self.admin.act(&format!("{path}/actions/lock")).await.expect(StatusCode::OK);
        let made = self.admin.post(&format!("{path}/state-versions"), &body).await.expect(StatusCode::CREATED);
        self.states.push(made.id());
        self.admin.act(&format!("{path}/actions/unlock")).await.expect(StatusCode::OK);
    }

    /// Moves into history what may go there.
    async fn archive(&self) -> usize {
        let mut moved = 0;
        loop {
            let archived = self.server.control_plane.archive_finished().await.expect("a bucket");
            moved += archived.bundles;
            if !archived.more {
                return moved;
            }
        }
    }

    async fn runs_in_memory(&self) -> usize {
        let plane = &self.server.control_plane;
        plane.state(&plane.all_organizations().await.expect("organizations")[0]).runs.len()
    }

    /// Everything that can be asked about what may be in history, and the answers.
    async fn everything(&self, server: &ApiServer) -> BTreeMap<String, Value> {
        let mut paths = Vec::new();
        let pages = ["page[size]=5", "page[size]=5&page[number]=2", "page[size]=100", "page[size]=7&page[number]=99"];
        let filters = [
            "",
            "filter[status]=applied",
            "filter[status]=errored,planned_and_finished",
            "filter[status_group]=final",
            "filter[status_group]=non_final",
            "filter[operation]=plan_only",
            "filter[operation]=destroy",
            "filter[operation]=plan_and_apply",
            "filter[source]=tfe-api",
            "filter[source]=tfe-ui",
            "filter[timeframe]=2026",
            "filter[timeframe]=2025",
            "search[basic]=apply%203",
            "search[basic]=take",
            "search[user]=adm",
            "search[user]=nobody",
            "search[commit]=abc",
        ];
        for filter in filters {
            for page in pages {
                paths.push(format!("/api/v2/organizations/acme/runs?{filter}&{page}"));
                let of_workspace = |workspace| format!("/api/v2/workspaces/{workspace}/runs?{filter}&{page}");
                paths.extend(self.workspaces.iter().map(of_workspace));
            }
        }
        paths.push("/api/v2/organizations/acme/runs?filter[workspace_names]=api&page[size]=100".to_owned());
        for workspace in &self.workspaces {
            for page in pages {
                paths.push(format!("/api/v2/workspaces/{workspace}/configuration-versions?{page}"));
                paths.push(format!("/api/v2/workspaces/{workspace}/state-versions?{page}"));
            }
            paths.push(format!("/api/v2/workspaces/{workspace}"));
        }
        paths.push("/api/v2/organizations/acme/workspaces".to_owned());
        for run in &self.runs {
            let include = "include=plan,apply,workspace,created_by,configuration_version,comments,run_events";
            paths.push(format!("/api/v2/runs/{run}?{include}"));
            for part in ["plan", "apply", "run-events", "comments", "cost-estimate"] {
                paths.push(format!("/api/v2/runs/{run}/{part}"));
            }
            let events = self.admin.get(&format!("/api/v2/runs/{run}/run-events")).await.data();
            let events =
                events.as_array().expect("a list").iter().map(|event| event["id"].as_str().expect("an id").to_owned());
            paths.extend(events.map(|event| format!("/api/v2/run-events/{event}?include=comment")));
        }
        paths.extend(self.configurations.iter().map(|id| format!("/api/v2/configuration-versions/{id}")));
        paths.extend(self.comments.iter().map(|id| format!("/api/v2/comments/{id}")));
        for id in &self.states {
            paths.push(format!("/api/v2/state-versions/{id}?include=run,outputs"));
            paths.push(format!("/api/v2/state-versions/{id}/outputs"));
            let outputs = self.admin.get(&format!("/api/v2/state-versions/{id}/outputs")).await.data();
            let outputs = outputs.as_array().expect("a list").iter();
            paths.extend(
                outputs.map(|one| format!("/api/v2/state-version-outputs/{}", one["id"].as_str().expect("an id"))),
            );
        }
        let mut answers = BTreeMap::new();
        for path in paths {
            for client in [server.admin(), self.member_at(server)] {
                let answer = client.get(&path).await;
                assert!(answer.status.as_u16() < 500, "{path}: {}", answer.status);
                let who = if answers.contains_key(&path) { "member " } else { "" };
                answers.insert(format!("{who}{path}"), json!([answer.status.as_u16(), answer.json()]));
            }
        }
        answers
    }

    fn member_at(&self, server: &ApiServer) -> Client {
        server.with_authorization(self.member.authorization())
    }
}

fn failed() -> PhaseOutcome {
    PhaseOutcome::Errored { message: "it broke".to_owned(), engine: None }
}

#[track_caller]
fn assert_same(before: &BTreeMap<String, Value>, after: &BTreeMap<String, Value>) {
    assert_eq!(before.len(), after.len());
    for (path, answer) in before {
        if let Some(difference) = difference(answer, &after[path]) {
            panic!("{path}: {difference}");
        }
    }
}

/// First difference between two documents.
fn difference(before: &Value, after: &Value) -> Option<String> {
    let within = |key: &dyn std::fmt::Display, inner: Option<String>| inner.map(|inner| format!("/{key}{inner}"));
    match (before, after) {
        (Value::Object(one), Value::Object(other)) if one.keys().eq(other.keys()) => {
            one.iter().find_map(|(key, value)| within(key, difference(value, &other[key])))
        }
        (Value::Array(one), Value::Array(other)) if one.len() == other.len() => {
            let mut pairs = one.iter().zip(other).enumerate();
            pairs.find_map(|(index, (one, other))| within(&index, difference(one, other)))
        }
        _ if before == after => None,
        _ => Some(format!(" was {before}, is {after}")),
    }
}

#[tokio::test]
async fn what_left_memory_reads_as_before() {
    let scene = Scene::new().await;
    let before = scene.everything(&scene.server).await;
    let in_memory = scene.runs_in_memory().await;
    let moved = scene.archive().await;
    assert!(moved > 30, "{moved} bundles left");
    assert!(scene.runs_in_memory().await <= in_memory - 20);
    assert_same(&before, &scene.everything(&scene.server).await);
    let another = scene.server.another().await;
    assert_same(&before, &scene.everything(&another).await);
}

#[tokio::test]
async fn what_left_memory_can_still_be_changed() {
    let scene = Scene::new().await;
    let (admin, run) = (&scene.admin, &scene.runs[0]);
    scene.archive().await;
    let in_memory = scene.runs_in_memory().await;

    let body = json!({ "data": { "type": "comments", "attributes": { "body": "Much later" } } });
    let refused = scene.member.post(&format!("/api/v2/runs/{}/comments", scene.runs[3]), &body).await;
    assert!(refused.status.is_client_error());
    assert_eq!(scene.runs_in_memory().await, in_memory, "who may not change it brings nothing back");
    admin.post(&format!("/api/v2/runs/{run}/comments"), &body).await.expect(StatusCode::CREATED);
    let listed = admin.get(&format!("/api/v2/runs/{run}/comments")).await;
    assert_eq!(listed.data().as_array().map(Vec::len), Some(2));
    assert_eq!(scene.runs_in_memory().await, in_memory + 1);
    act(admin, &scene.runs[1], "cancel").await.expect(StatusCode::CONFLICT);

    let again = run_body(&scene.workspaces[0], Some(&scene.configurations[0]), json!({ "message": "Once more" }));
    let again = admin.post("/api/v2/runs", &again).await.expect(StatusCode::CREATED);
    assert_eq!(again.data()["relationships"]["configuration-version"]["data"]["id"], scene.configurations[0].as_str());
    execute(&scene.server, planned(false)).await;
    assert_eq!(status(admin, &again.id()).await, "planned_and_finished");

    let old = &scene.states[0];
    let data = format!("/api/v2/state-versions/{old}/actions");
    admin.act(&format!("{data}/soft_delete_backing_data")).await.expect(StatusCode::NO_CONTENT);
    let read = admin.get(&format!("/api/v2/state-versions/{old}")).await;
    assert_eq!(read.attribute("status"), "backing_data_soft_deleted");
    admin.act(&format!("{data}/restore_backing_data")).await.expect(StatusCode::NO_CONTENT);

    // All of it leaves again, and nothing is listed twice.
    let before = scene.everything(&scene.server).await;
    assert!(scene.archive().await > 0);
    assert_same(&before, &scene.everything(&scene.server).await);
}

#[tokio::test]
async fn segments_are_merged_and_nobody_notices() {
    let scene = Scene::new().await;
    let before = scene.everything(&scene.server).await;
    for _ in 0..40 {
        scene.archive().await;
    }
    let organization = &scene.server.control_plane.all_organizations().await.expect("organizations")[0];
    let segments = scene.server.control_plane.state(organization).history_segments.len();
    assert!(segments < 16, "{segments} segments are left");
    assert_same(&before, &scene.everything(&scene.server).await);
}

/// Number of segments that say when their newest run was created, and of all.
async fn segments_with_newest_run(server: &ApiServer) -> (usize, usize) {
    let organization = &server.control_plane.all_organizations().await.expect("organizations")[0];
    let segments = &server.control_plane.state(organization).history_segments;
    (segments.iter().filter(|segment| segment.newest_run.is_some()).count(), segments.len())
}

#[tokio::test]
async fn segments_of_older_versions_learn_when_their_newest_run_was_created() {
    let scene = Scene::new().await;
    let newest = "/api/v2/organizations/acme/runs?page[size]=1";
    let before = scene.everything(&scene.server).await;
    let newest_before = scene.admin.get(newest).await.json();
    scene.archive().await;
    let (known, all) = segments_with_newest_run(&scene.server).await;
    assert!(all > 0 && known == all, "{known} of {all}");
    assert_eq!(scene.admin.get(newest).await.json(), newest_before, "from memory");

    let ledger = scene.server.keyed_ledger().await;
    let intent = Intent { actor: "taco".to_owned(), action: "history.archive", request: None };
    let forget = ledger.commit(intent, |tx| {
        let segments: Vec<HistorySegment> = tx.state().history_segments.iter().cloned().collect();
        segments.into_iter().for_each(|segment| tx.put(&HistorySegment { newest_run: None, ..segment }));
        Ok::<_, Infallible>(())
    });
    forget.await.expect("a bucket");
    assert_eq!(segments_with_newest_run(&scene.server).await.0, 0);
    assert_eq!(scene.admin.get(newest).await.json(), newest_before, "with a look into history");

    while scene.server.control_plane.archive_finished().await.expect("a bucket").more {}
    let (known, all) = segments_with_newest_run(&scene.server).await;
    assert_eq!(known, all);
    assert_same(&before, &scene.everything(&scene.server).await);
}

#[tokio::test]
async fn a_deleted_workspace_takes_its_history_along() {
    let scene = Scene::new().await;
    scene.archive().await;
    let gone = &scene.workspaces[0];
    let path = format!("/api/v2/workspaces/{gone}");
    scene.admin.delete(&path).await.expect(StatusCode::NO_CONTENT);
    for run in &scene.runs {
        let of_gone = scene.admin.get(&format!("/api/v2/runs/{run}")).await.status == StatusCode::NOT_FOUND;
        let number = scene.runs.iter().position(|other| other == run).expect("one of them");
        assert_eq!(of_gone, number % 6 < 3, "run {number}");
    }
    let listed = scene.admin.get("/api/v2/organizations/acme/runs?page[size]=100").await;
    assert_eq!(listed.json()["meta"]["pagination"]["total-count"], scene.runs.len() / 2);
    let runs = scene.member.get("/api/v2/organizations/acme/runs?page[size]=100").await;
    assert_eq!(runs.data().as_array().map(Vec::len), Some(scene.runs.len() / 2));
    assert!(read_run(&scene.admin, &scene.runs[3]).await.data().is_object());
}

#[tokio::test]
async fn two_servers_that_move_at_once_move_nothing_twice() {
    let scene = Scene::new().await;
    let before = scene.everything(&scene.server).await;
    let another = scene.server.another().await;
    another.control_plane.all_organizations().await.expect("organizations");
    for _ in 0..40 {
        let (here, there) =
            tokio::join!(scene.server.control_plane.archive_finished(), another.control_plane.archive_finished());
        let (here, there) = (here.expect("a bucket"), there.expect("a bucket"));
        if here.bundles + there.bundles == 0 && !here.more && !there.more {
            break;
        }
    }
    assert_same(&before, &scene.everything(&scene.server).await);
    assert_same(&before, &scene.everything(&another).await);
}

#[tokio::test]
async fn a_move_that_breaks_off_anywhere_loses_nothing() {
    let bucket = HeldBucket::in_memory();
    let scene = Scene::on(ApiServer::with_history_on(bucket.clone(), AT_ONCE).await).await;
    let before = scene.everything(&scene.server).await;
    let mut interrupted = 0;
    // A batch takes a page, up to six parts, a commit and a head.
    for writes in 0..12 {
        let server = scene.server.another_numbered(100 + writes as u64).await;
        server.control_plane.all_organizations().await.expect("organizations");
        bucket.take_writes(writes);
        let archived = server.control_plane.archive_finished().await;
        bucket.take_writes(usize::MAX);
        interrupted += usize::from(archived.is_err());
        assert_same(&before, &scene.everything(&scene.server.another().await).await);
    }
    assert!(interrupted > 5, "{interrupted} moves were interrupted");
    scene.archive().await;
    assert_same(&before, &scene.everything(&scene.server).await);
}

/// The objects of history that there are.
async fn objects_of_history(bucket: &dyn Bucket, server: &ApiServer) -> BTreeSet<String> {
    let open = server.control_plane.all_organizations().await.expect("organizations").remove(0);
    let ledger = open.id().to_string().parse().expect("a legal name");
    let listed = bucket.list(&layout::history(&ledger), None).await.expect("a bucket");
    listed.iter().map(|key| key.as_str().to_owned()).collect()
}

#[tokio::test]
async fn what_broken_moves_and_merges_left_behind_is_removed_after_a_while() {
    let bucket = HeldBucket::in_memory();
    let scene = Scene::on(ApiServer::with_history_on(bucket.clone(), AT_ONCE).await).await;
    // A batch takes up to six parts, a page and a commit.
    let mut left = BTreeSet::new();
    for writes in 0..8 {
        let server = scene.server.another_numbered(100 + writes as u64).await;
        server.control_plane.all_organizations().await.expect("organizations");
        bucket.take_writes(writes);
        let archived = server.control_plane.archive_finished().await;
        bucket.take_writes(usize::MAX);
        if archived.is_ok() {
            break;
        }
        left = objects_of_history(&*bucket, &scene.server).await;
    }
    assert!(left.iter().any(|key| key.contains("/pages/")), "a page was left: {left:?}");
    for _ in 0..40 {
        scene.archive().await;
    }
    let found = objects_of_history(&*bucket, &scene.server).await;
    assert!(found.is_superset(&left), "nothing is removed at once");

    scene.server.pass(SignedDuration::from_mins(61));
    scene.archive().await;
    scene.server.pass(SignedDuration::from_mins(61));
    // Signed addresses tell the time.
    let before = scene.everything(&scene.server).await;
    scene.archive().await;
    let kept = objects_of_history(&*bucket, &scene.server).await;
    assert!(kept.is_disjoint(&left), "{:?}", kept.intersection(&left).collect::<Vec<_>>());
    let organization = scene.server.control_plane.all_organizations().await.expect("organizations").remove(0);
    let state = scene.server.control_plane.state(&organization);
    let parts: usize = state.history_segments.iter().map(|segment| segment.parts.len()).sum();
    let pages: usize = state.history_segments.iter().map(|segment| segment.pages.len()).sum();
    assert_eq!(kept.len(), parts + pages, "what a merge has replaced is gone, too");
    assert_same(&before, &scene.everything(&scene.server.another().await).await);
}

#[tokio::test]
async fn a_move_that_stalls_until_its_objects_were_removed_is_refused() {
    let bucket = HeldBucket::in_memory();
    let scene = Scene::on(ApiServer::with_history_on(bucket.clone(), AT_ONCE).await).await;
    let before = scene.everything(&scene.server).await;
    let nothing = HistoryRules { keep: usize::MAX, ..AT_ONCE };
    let sweeper = scene.server.on_copy_with_history(bucket.for_others(), nothing).await;
    sweeper.control_plane.all_organizations().await.expect("organizations");

    bucket.hold_creates("/log/");
    let control_plane = scene.server.control_plane.clone();
    let moved = tokio::spawn(async move { control_plane.archive_finished().await });
    bucket.someone_creates().await;
    assert!(!objects_of_history(&*bucket, &sweeper).await.is_empty());
    for _ in 0..2 {
        sweeper.control_plane.archive_finished().await.expect("a bucket");
        sweeper.pass(SignedDuration::from_mins(61));
    }
    sweeper.control_plane.archive_finished().await.expect("a bucket");
    assert_eq!(objects_of_history(&*bucket, &sweeper).await, BTreeSet::new());
    bucket.let_creates_go();
    let moved = moved.await.expect("it ends").expect("a bucket");
    assert_eq!(moved.bundles, 0);
    assert_same(&before, &scene.everything(&scene.server).await);
    assert!(scene.archive().await > 0);
    assert_same(&before, &scene.everything(&scene.server).await);
}

#[tokio::test]
async fn a_verb_that_meets_a_record_on_its_way_out_finds_it_in_history() {
    let body = json!({ "data": { "type": "comments", "attributes": { "body": "Just in time" } } });
    for case in ["comment", "configuration", "state"] {
        let bucket = HeldBucket::in_memory();
        let scene = Scene::on(ApiServer::with_history_on(bucket.clone(), AT_ONCE).await).await;
        let other = scene.server.on_copy(bucket.for_others()).await;
        other.control_plane.all_organizations().await.expect("organizations");

        let (path, body, done) = match case {
            "comment" => (format!("/api/v2/runs/{}/comments", scene.runs[0]), body.clone(), StatusCode::CREATED),
            "configuration" => {
                let run = run_body(&scene.workspaces[0], Some(&scene.configurations[0]), json!({}));
                ("/api/v2/runs".to_owned(), run, StatusCode::CREATED)
            }
            _ => {
                let path = format!("/api/v2/state-versions/{}/actions/soft_delete_backing_data", scene.states[0]);
                (path, json!({}), StatusCode::NO_CONTENT)
            }
        };
        bucket.hold_creates("/log/");
        let admin = scene.admin.clone();
        let answer = tokio::spawn(async move { admin.post(&path, &body).await });
        // It has decided, on a state in which the record is in memory.
        bucket.someone_creates().await;
        while other.control_plane.archive_finished().await.expect("a bucket").more {}
        bucket.let_creates_go();
        answer.await.expect("it is answered").expect(done);
    }
}
