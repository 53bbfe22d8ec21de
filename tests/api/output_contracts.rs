//! Output contracts: a plan that breaks outputs which others use says so, names them, and stops where that is wanted.

use axum::http::StatusCode;
use harness::api_server::{Answer, ApiServer, Client};
use harness::graph_states::{reading, state};
use harness::permission_site::attributes;
use serde_json::{Value, json};
use taco_control_plane::PlanForm;

use crate::configuration_versions::given_configuration;
use crate::run_phases::{applied, execute, planned, take};
use crate::runs::{read_run, start_run, status};
use crate::states::{given_member, path_of};

const OUTPUTS: [(&str, &str); 2] = [("vpc_id", "vpc-0123456789"), ("zone", "zone-9876543210")];

/// `network` with two outputs, and `app` that somebody says to use `vpc_id`.
struct Scene {
    server: ApiServer,
    admin: Client,
    network: String,
    app: String,
}

fn change(action: &str, kind: Option<Value>) -> (Value, Option<Value>) {
    let after = kind.as_ref().map_or(Value::Null, |_| json!("new"));
    (json!({ "actions": [action], "before": "old", "after": after, "after_unknown": false }), kind)
}

/// The plan's JSON with these changes of outputs.
fn plan(changes: &[(&str, (Value, Option<Value>))]) -> String {
    let outputs: Value = changes.iter().map(|(name, (change, _))| ((*name).to_owned(), change.clone())).collect();
    let typed = changes.iter().filter_map(|(name, (_, kind))| Some(((*name).to_owned(), kind.clone()?)));
    let planned: Value =
        typed.map(|(name, kind)| (name, json!({ "sensitive": false, "type": kind, "value": "new" }))).collect();
    json!({ "format_version": "1.2", "output_changes": outputs, "planned_values": { "outputs": planned } }).to_string()
}

fn removes(name: &str) -> String {
    plan(&[(name, change("delete", None))])
}

impl Scene {
    async fn new() -> Self {
        let server = ApiServer::start().await;
        server.given_organization("acme").await;
        let admin = server.admin();
        let network = server.given_workspace("acme", "network").await;
        let app = server.given_workspace("acme", "app").await;
        given_configuration(&server, &network).await;
        server.given_state(&network, &state(1, &OUTPUTS)).await;
        let scene = Self { server, admin, network, app };
        scene.declare(&scene.app, json!(["vpc_id"])).await;
        scene
    }

    async fn declare(&self, consumer: &str, outputs: Value) -> String {
        let body = attributes("dependencies", json!({ "producer": "network", "outputs": outputs }));
        let path = format!("/api/v2/workspaces/{consumer}/dependencies");
        self.admin.post(&path, &body).await.expect(StatusCode::CREATED).id()
    }

    async fn set(&self, path: &str, kind: &str, policy: Value) -> Answer {
        self.admin.patch(path, &attributes(kind, json!({ "taco-output-contract": policy }))).await
    }

    async fn policy(&self, policy: &str) {
        let path = format!("/api/v2/workspaces/{}", self.network);
        self.set(&path, "workspaces", json!(policy)).await.expect(StatusCode::OK);
    }

    /// A run of `network` whose plan is this one.
    async fn planned(&self, options: Value, plan: &str) -> String {
        let run = start_run(&self.admin, &self.network, options).await.expect(StatusCode::CREATED).id();
        let phase = take(&self.server).await;
        let plane = &self.server.control_plane;
        let bytes = bytes::Bytes::from(plan.to_owned());
        let body = futures::stream::iter([Ok::<_, std::io::Error>(bytes)]);
        plane.upload_plan(&phase, PlanForm::Json, body).await.expect("stored");
        plane.append_log(&phase, 0, "\u{2}planned\n\u{3}".into()).await.expect("appended");
        plane.finish_phase(&phase, planned(true)).await.expect("the plan ends");
        run
    }

    async fn contract(&self, run: &str) -> Value {
        read_run(&self.admin, run).await.attribute("taco-output-contract")
    }

    async fn confirm(&self, run: &str, body: Value) -> Answer {
        self.admin.post(&format!("/api/v2/runs/{run}/actions/apply"), &body).await
    }

    async fn end(&self, run: &str) {
        let path = format!("/api/v2/runs/{run}/actions/discard");
        self.admin.post(&path, &json!({})).await.expect(StatusCode::ACCEPTED);
    }

    /// Takes the steps of walks that can be taken, as any server does.
    async fn advance_walks(&self) {
        for org in self.server.control_plane.all_organizations().await.expect("organizations") {
            self.server.control_plane.advance_walks(&org).await.expect("steps");
        }
    }

    /// The log of a run's plan, as someone reads it.
    async fn log(&self, reader: &Client, run: &str) -> String {
        let shown = reader.get(&format!("/api/v2/runs/{run}/plan")).await.expect(StatusCode::OK);
        let address = path_of(&shown.attribute("log-read-url"));
        let read = self.server.with_authorization(None).get(&format!("{address}?limit=65536&offset=0")).await;
        String::from_utf8(read.expect(StatusCode::OK).bytes.to_vec()).expect("text")
    }
}

#[tokio::test]
async fn the_nearest_policy_counts() {
    let scene = Scene::new().await;
    let workspace = format!("/api/v2/workspaces/{}", scene.network);
    let shown = scene.admin.get(&workspace).await.expect(StatusCode::OK);
    let project = shown.data()["relationships"]["project"]["data"]["id"].as_str().expect("an id").to_owned();
    let project = format!("/api/v2/projects/{project}");
    let effective = async || {
        let (workspace, project) = (scene.admin.get(&workspace).await, scene.admin.get(&project).await);
        let organization = scene.admin.get("/api/v2/organizations/acme").await;
        let word = "taco-effective-output-contract";
        [workspace.attribute(word), project.attribute(word), organization.attribute("taco-output-contract")]
    };
    assert_eq!(effective().await, ["warn", "warn", "warn"]);
    for (path, kind, policy, expected) in [
        ("/api/v2/organizations/acme", "organizations", json!("off"), ["off", "off", "off"]),
        (project.as_str(), "projects", json!("stop"), ["stop", "stop", "off"]),
        (workspace.as_str(), "workspaces", json!("warn"), ["warn", "stop", "off"]),
        (project.as_str(), "projects", Value::Null, ["warn", "off", "off"]),
        (workspace.as_str(), "workspaces", Value::Null, ["off", "off", "off"]),
        ("/api/v2/organizations/acme", "organizations", Value::Null, ["warn", "warn", "warn"]),
    ] {
        let set = scene.set(path, kind, policy.clone()).await.expect(StatusCode::OK);
        let own = if kind == "organizations" && policy.is_null() { json!("warn") } else { policy.clone() };
        assert_eq!(set.attribute("taco-output-contract"), own, "{kind}");
        assert_eq!(effective().await, expected, "{kind} {policy}");
        let refused = scene.set(path, kind, json!("loudly")).await.expect(StatusCode::UNPROCESSABLE_ENTITY).error();
        assert_eq!(refused.0, "Output contract is one of off, warn, stop; it is \"loudly\"");
        assert_eq!(refused.1.as_deref(), Some("/data/attributes/taco-output-contract"));
    }
}

#[tokio::test]
async fn a_warning_is_in_the_log_and_in_the_api_and_stops_nothing() {
    let scene = Scene::new().await;
    let run = scene.planned(json!({ "auto-apply": true }), &removes("vpc_id")).await;
    assert_eq!(status(&scene.admin, &run).await, "apply_queued");
    let contract = scene.contract(&run).await;
    let consumer = json!({ "id": scene.app, "name": "app", "use": "uses" });
    let broken = json!({ "output": "vpc_id", "change": "removed", "certain": true, "consumers": [consumer],
        "more-consumers": 0 });
    assert_eq!(
        contract,
        json!({ "policy": "warn", "stops": false, "consumer-count": 1, "broken": [broken], "more-outputs": 0,
            "sentences": ["vpc_id is removed: app uses it"], "accepted-by": null, "accepted-at": null })
    );
    let log = scene.log(&scene.admin, &run).await;
    let lines: Vec<&str> = log.lines().collect();
    assert_eq!((lines[0], lines.last()), ("\u{2}planned", Some(&"\u{3}")), "{log}");
    let line: Value = serde_json::from_str(lines[1]).expect("a line of JSON, as the engine writes them");
    assert_eq!((&line["type"], &line["diagnostic"]["severity"]), (&json!("diagnostic"), &json!("warning")));
    assert_eq!(line["diagnostic"]["detail"], "vpc_id is removed: app uses it");
    execute(&scene.server, applied()).await;

    // What changes only its value, or is used by nobody, breaks nothing; and where nobody wants to know, nobody is told.
    for (policy, changes) in [
        ("stop", plan(&[("vpc_id", change("update", Some(json!("string"))))])),
        ("stop", removes("zone")),
        ("off", removes("vpc_id")),
    ] {
        scene.policy(policy).await;
        let run = scene.planned(json!({ "auto-apply": true }), &changes).await;
        assert_eq!(
            (scene.contract(&run).await, status(&scene.admin, &run).await),
            (Value::Null, json!("apply_queued"))
        );
        assert_eq!(scene.log(&scene.admin, &run).await, "\u{2}planned\n\u{3}");
        execute(&scene.server, applied()).await;
    }
}

#[tokio::test]
async fn the_end_of_a_log_is_known_when_its_plan_has_ended() {
    let scene = Scene::new().await;
    let run = start_run(&scene.admin, &scene.network, json!({})).await.id();
    let phase = take(&scene.server).await;
    let plane = &scene.server.control_plane;
    plane.append_log(&phase, 0, "\u{2}planned\n\u{3}".into()).await.expect("appended");
    assert_eq!(scene.log(&scene.admin, &run).await, "\u{2}planned\n", "more may follow");
    let body = futures::stream::iter([Ok::<_, std::io::Error>(bytes::Bytes::from(removes("vpc_id")))]);
    plane.upload_plan(&phase, PlanForm::Json, body).await.expect("stored");
    let shown = scene.admin.get(&format!("/api/v2/runs/{run}/plan")).await;
    let address = path_of(&shown.attribute("log-read-url"));
    let anyone = scene.server.with_authorization(None);
    let path = format!("{address}?limit=65536&offset=9");
    let (late, ended) = tokio::join!(anyone.get(&path), plane.finish_phase(&phase, planned(true)));
    ended.expect("the plan ends");
    let whole = scene.log(&scene.admin, &run).await;
    let late = late.expect(StatusCode::OK).bytes;
    assert!(late.starts_with(b"{") && late.ends_with(b"\n\x03"), "{late:?}");
    assert_eq!([b"\x02planned\n", &late[..]].concat(), whole.as_bytes(), "no byte was shown that is another one now");
    for (offset, limit) in [(0, 3), (7, 5), (9, 4), (whole.len() - 1, 9), (whole.len(), 9)] {
        let part = anyone.get(&format!("{address}?limit={limit}&offset={offset}")).await.expect(StatusCode::OK).bytes;
        assert_eq!(part, whole.as_bytes()[offset..whole.len().min(offset + limit)], "{offset} {limit}");
    }
}

#[tokio::test]
async fn a_stopped_run_is_applied_with_a_word_that_this_is_meant() {
    let scene = Scene::new().await;
    scene.policy("stop").await;
    let run = scene.planned(json!({ "auto-apply": true }), &removes("vpc_id")).await;
    let shown = read_run(&scene.admin, &run).await;
    assert_eq!(
        (shown.attribute("status"), shown.attribute("taco-output-contract")["stops"].clone()),
        (json!("planned"), json!(true))
    );
    assert_eq!(shown.attribute("actions")["is-confirmable"], true);
    let log = scene.log(&scene.admin, &run).await;
    assert!(log.contains(&format!("taco run apply {run} --accept-output-changes")), "{log}");
    let refused = scene.confirm(&run, json!({ "comment": "go" })).await.expect(StatusCode::CONFLICT).error();
    assert_eq!(
        refused.0,
        "The plan removes vpc_id, which 1 workspace uses, so the run is not auto-applied: apply it with \
         accept-output-changes, or discard it and plan again"
    );
    assert_eq!(status(&scene.admin, &run).await, "planned");
    scene.confirm(&run, json!({ "accept-output-changes": true })).await.expect(StatusCode::ACCEPTED);
    let contract = scene.contract(&run).await;
    assert_eq!((&contract["accepted-by"], contract["accepted-at"].is_string()), (&json!("admin"), true));
    assert_eq!(status(&scene.admin, &run).await, "apply_queued");
    execute(&scene.server, applied()).await;
    let again = scene.confirm(&run, json!({ "accept-output-changes": true })).await.expect(StatusCode::CONFLICT);
    assert!(again.error().0.contains("applied"), "what is over is over, whatever it broke");

    // Who confirms a run that applies nothing by itself decides, also about this.
    let run = scene.planned(json!({}), &removes("vpc_id")).await;
    assert!(scene.log(&scene.admin, &run).await.contains("Approve this run only if that is meant."));
    scene.confirm(&run, json!({})).await.expect(StatusCode::ACCEPTED);
    assert_eq!(scene.contract(&run).await["accepted-by"], "admin");
    execute(&scene.server, applied()).await;

    // A plan that nobody can apply tells, and has nothing to wait for.
    let run = scene.planned(json!({ "plan-only": true }), &removes("vpc_id")).await;
    assert_eq!(status(&scene.admin, &run).await, "planned_and_finished");
    assert_eq!(scene.contract(&run).await["consumer-count"], 1);
}

#[tokio::test]
async fn another_type_breaks_what_a_wider_one_does_not() {
    let scene = Scene::new().await;
    scene.policy("stop").await;
    for (kind, expected) in [
        (json!("number"), "planned"),
        (json!(["list", "string"]), "planned"),
        (json!("string"), "apply_queued"),
        (json!("dynamic"), "apply_queued"),
    ] {
        let changes = plan(&[("vpc_id", change("update", Some(kind.clone())))]);
        let run = scene.planned(json!({ "auto-apply": true }), &changes).await;
        assert_eq!(status(&scene.admin, &run).await, expected, "{kind}");
        if expected == "planned" {
            assert_eq!(scene.contract(&run).await["sentences"], json!(["vpc_id gets another type: app uses it"]));
            scene.end(&run).await;
        } else {
            execute(&scene.server, applied()).await;
        }
    }
}

#[tokio::test]
async fn a_destroy_removes_every_output() {
    let scene = Scene::new().await;
    scene.policy("stop").await;
    // Its plan tells nothing of outputs.
    let run = scene.planned(json!({ "is-destroy": true, "auto-apply": true }), &plan(&[])).await;
    assert_eq!(status(&scene.admin, &run).await, "planned");
    assert_eq!(scene.contract(&run).await["sentences"], json!(["vpc_id is removed: app uses it"]));
    scene.end(&run).await;
    // A destroy of one resource removes what its plan says.
    let options = json!({ "is-destroy": true, "auto-apply": true, "target-addrs": ["terraform_data.x"] });
    let run = scene.planned(options, &plan(&[])).await;
    assert_eq!((scene.contract(&run).await, status(&scene.admin, &run).await), (Value::Null, json!("apply_queued")));
    execute(&scene.server, applied()).await;
    // What was destroyed itself breaks no more.
    scene.server.given_state(&scene.app, &state(1, &[])).await;
    let run = scene.planned(json!({ "is-destroy": true, "auto-apply": true }), &plan(&[])).await;
    assert_eq!((scene.contract(&run).await, status(&scene.admin, &run).await), (Value::Null, json!("apply_queued")));
}

#[tokio::test]
async fn what_is_muted_does_not_count_and_what_may_be_used_does() {
    let scene = Scene::new().await;
    scene.policy("stop").await;
    let other = scene.server.given_workspace("acme", "other").await;
    let any = scene.declare(&other, Value::Null).await;
    let run = scene.planned(json!({ "auto-apply": true }), &removes("zone")).await;
    let contract = scene.contract(&run).await;
    assert_eq!(contract["sentences"], json!(["zone is removed: other may use it"]));
    assert_eq!((&contract["broken"][0]["certain"], &contract["stops"]), (&json!(false), &json!(true)));
    scene.end(&run).await;
    for changes in [json!({ "muted": true }), json!({ "muted": false, "policy": "ignore" })] {
        let body = attributes("dependencies", changes);
        scene.admin.patch(&format!("/api/v2/dependencies/{any}"), &body).await.expect(StatusCode::OK);
        let run = scene.planned(json!({ "auto-apply": true }), &removes("zone")).await;
        assert_eq!(
            (scene.contract(&run).await, status(&scene.admin, &run).await),
            (Value::Null, json!("apply_queued"))
        );
        execute(&scene.server, applied()).await;
    }
    // A state that read the output proves it.
    let reader = scene.server.given_workspace("acme", "reader").await;
    let read = reading(state(1, &[]), "network", &OUTPUTS);
    scene.server.given_state(&reader, &read).await;
    scene.admin.get("/api/v2/organizations/acme/graph").await.expect(StatusCode::OK);
    let run = scene.planned(json!({ "auto-apply": true }), &removes("zone")).await;
    assert_eq!(scene.contract(&run).await["sentences"], json!(["zone is removed: reader uses it"]));
}

#[tokio::test]
async fn consumers_have_names_for_those_who_may_see_them() {
    let scene = Scene::new().await;
    scene.policy("stop").await;
    let other = scene.server.given_workspace("acme", "secret-acquisition").await;
    scene.declare(&other, json!(["vpc_id"])).await;
    let bob = given_member(&scene.server, "bob", &scene.network, "write").await;
    let run = scene.planned(json!({ "auto-apply": true }), &removes("vpc_id")).await;
    let contract = scene.contract(&run).await;
    assert_eq!(contract["sentences"], json!(["vpc_id is removed: app and secret-acquisition use it"]));
    let seen = read_run(&bob, &run).await;
    assert!(!seen.bytes.windows(11).any(|part| part == b"acquisition"), "{:?}", seen.bytes);
    let contract = seen.attribute("taco-output-contract");
    assert_eq!(contract["sentences"], json!(["vpc_id is removed: 2 units you may not see use it"]));
    assert_eq!(
        contract["broken"][0]["consumers"][0],
        json!({ "id": null, "name": "a unit you may not see", "use": "uses" })
    );
    assert_eq!(contract["consumer-count"], 2);
    let log = scene.log(&bob, &run).await;
    assert!(log.contains("2 units you may not see use it") && !log.contains("acquisition"), "{log}");
    assert!(scene.log(&scene.admin, &run).await.contains("app and secret-acquisition use it"));
    let refused = bob.post(&format!("/api/v2/runs/{run}/actions/apply"), &json!({})).await.expect(StatusCode::CONFLICT);
    assert!(refused.error().0.contains("which 2 workspaces use"), "who applies it may see how many there are");
    let accepted = json!({ "accept-output-changes": true });
    bob.post(&format!("/api/v2/runs/{run}/actions/apply"), &accepted).await.expect(StatusCode::ACCEPTED);
    assert_eq!(scene.contract(&run).await["accepted-by"], "bob");
}

#[tokio::test]
async fn a_walk_waits_where_a_plan_breaks_what_others_use() {
    for approval in ["auto", "once"] {
        let scene = Scene::new().await;
        scene.policy("stop").await;
        let advance = async || scene.advance_walks().await;
        let walk = json!({ "kind": "apply", "from": ["network"], "to": ["network"], "approval": approval });
        let walk = attributes("walks", walk);
        let walk = scene.admin.post("/api/v2/organizations/acme/walks", &walk).await.expect(StatusCode::CREATED).id();
        let approve = format!("/api/v2/walks/{walk}/actions/approve");
        if approval == "once" {
            scene.admin.post(&approve, &json!({})).await.expect(StatusCode::OK);
        }
        advance().await;
        advance().await;
        let phase = take(&scene.server).await;
        let plane = &scene.server.control_plane;
        let body = futures::stream::iter([Ok::<_, std::io::Error>(bytes::Bytes::from(removes("vpc_id")))]);
        plane.upload_plan(&phase, PlanForm::Json, body).await.expect("stored");
        plane.finish_phase(&phase, planned(true)).await.expect("the plan ends");
        advance().await;
        let nodes = scene.admin.get(&format!("/api/v2/walks/{walk}/nodes")).await.data();
        let node = &nodes[0]["attributes"];
        assert_eq!(node["state"], "needs_approval", "{approval}: {node}");
        assert_eq!(
            node["reason"], "its plan waits for approval: it removes vpc_id, which 1 workspace uses",
            "nobody knew of that when the walk was approved"
        );
        scene.admin.post(&approve, &json!({})).await.expect(StatusCode::OK);
        let nodes = scene.admin.get(&format!("/api/v2/walks/{walk}/nodes")).await.data();
        assert_eq!(nodes[0]["attributes"]["state"], "applying", "{approval}");
        execute(&scene.server, applied()).await;
        advance().await;
        let shown = scene.admin.get(&format!("/api/v2/walks/{walk}")).await;
        assert_eq!(shown.attribute("state"), "done");
    }
}

#[tokio::test]
async fn a_destroy_walk_breaks_nobody_who_is_destroyed_with_it() {
    let scene = Scene::new().await;
    scene.policy("stop").await;
    given_configuration(&scene.server, &scene.app).await;
    let walk = attributes("walks", json!({ "kind": "destroy", "from": ["network"], "approval": "auto" }));
    let walk = scene.admin.post("/api/v2/organizations/acme/walks", &walk).await.expect(StatusCode::CREATED).id();
    for _ in 0..3 {
        scene.advance_walks().await;
    }
    execute(&scene.server, planned(true)).await;
    scene.advance_walks().await;
    let nodes = scene.admin.get(&format!("/api/v2/walks/{walk}/nodes")).await.data();
    let states: Vec<_> = nodes.as_array().expect("nodes").iter().map(|node| &node["attributes"]["state"]).collect();
    assert_eq!(states, ["cut_off", "applying"], "app has nothing to destroy, and is in the walk: {nodes}");
}

#[tokio::test]
async fn a_proven_dependency_proposes_a_run_trigger() {
    let scene = Scene::new().await;
    let reader = scene.server.given_workspace("acme", "reader").await;
    scene.server.given_state(&reader, &reading(state(1, &[]), "network", &OUTPUTS)).await;
    let proposes = async |client: &Client, workspace: &str| {
        let listed = client.get(&format!("/api/v2/workspaces/{workspace}/dependencies")).await.expect(StatusCode::OK);
        listed.data()[0]["attributes"]["proposes_trigger"] == true
    };
    assert!(proposes(&scene.admin, &reader).await);
    assert!(!proposes(&scene.admin, &scene.app).await, "nobody has seen that it is so");
    let bob = given_member(&scene.server, "bob", &reader, "write").await;
    assert!(!proposes(&bob, &reader).await, "whoever may not see the producer cannot name it");
    let mut body = attributes("run-triggers", json!({ "taco-only-when-outputs-changed": true }));
    body["data"]["relationships"] = json!({ "sourceable": { "data": { "type": "workspaces", "id": scene.network } } });
    let triggers = format!("/api/v2/workspaces/{reader}/run-triggers");
    let listed = async || scene.admin.get(&triggers).await.data().as_array().map(Vec::len);
    assert_eq!(listed().await, Some(0), "none is made by itself");
    assert_ne!(bob.post(&triggers, &body).await.status, StatusCode::CREATED);
    let made = scene.admin.post(&triggers, &body).await.expect(StatusCode::CREATED).id();
    assert!(!proposes(&scene.admin, &reader).await, "there is one");
    scene.admin.delete(&format!("/api/v2/run-triggers/{made}")).await.expect(StatusCode::NO_CONTENT);
    assert!(proposes(&scene.admin, &reader).await);
    let edge = scene.admin.get(&format!("/api/v2/workspaces/{reader}/dependencies")).await.data()[0]["id"].clone();
    let path = format!("/api/v2/dependencies/{}", edge.as_str().expect("an id"));
    for changes in [json!({ "policy": "auto" }), json!({ "policy": "notify", "muted": true })] {
        scene.admin.patch(&path, &attributes("dependencies", changes)).await.expect(StatusCode::OK);
        assert!(!proposes(&scene.admin, &reader).await, "it starts runs by itself, or does not count");
    }
}
