//! Bindings: variables that take their values from other workspaces' outputs when a plan begins.

use axum::http::StatusCode;
use harness::api_server::{Answer, ApiServer, Client};
use harness::permission_site::{attributes, next_phase};
use jiff::SignedDuration;
use serde_json::{Value, json};
use taco_agent_protocol::phase_path;
use taco_control_plane::{RequestInfo, TakenPhase};
use taco_domain::variable_precedence::JobVariable;

use crate::configuration_versions::given_configuration;
use crate::run_phases::{applied, planned};
use crate::runs::start_run;
use crate::states::given_member;

/// Outputs of every type, one of them secret.
fn outputs(vpc: &str) -> Value {
    json!({
        "vpc_id": { "value": vpc, "type": "string" },
        "zones": { "value": ["a", "${b}"], "type": ["list", "string"] },
        "settings": { "value": { "size": 3, "tags": { "team": "core" } }, "type": ["object", { "size": "number", "tags": ["map", "string"] }] },
        "count": { "value": 12345678901234567890_u64, "type": "number" },
        "password": { "value": "hunter2-of-network", "type": "string", "sensitive": true },
    })
}

fn state(serial: u64, outputs: Value) -> Value {
    json!({ "version": 4, "terraform_version": "1.11.4", "serial": serial, "lineage": "one", "outputs": outputs,
        "resources": [] })
}

struct Scene {
    server: ApiServer,
    admin: Client,
    network: String,
    web: String,
}

/// A network whose state is shared with all, and `web` with a configuration and an old state.
async fn scene() -> Scene {
    let server = ApiServer::start().await;
    server.given_organization("acme").await;
    let admin = server.admin();
    let network = server.given_workspace("acme", "network").await;
    let web = server.given_workspace("acme", "web").await;
    given_configuration(&server, &network).await;
    given_configuration(&server, &web).await;
    server.given_state(&web, &state(1, json!({}))).await;
    let scene = Scene { server, admin, network, web };
    scene.shares(&scene.network, true).await;
    scene
}

impl Scene {
    async fn shares(&self, workspace: &str, shares: bool) {
        let body = attributes("workspaces", json!({ "global-remote-state": shares }));
        self.admin.patch(&format!("/api/v2/workspaces/{workspace}"), &body).await.expect(StatusCode::OK);
    }

    async fn apply_network(&self, serial: u64, outputs: Value) {
        self.server.given_state(&self.network, &state(serial, outputs)).await;
    }

    async fn try_to_bind(&self, client: &Client, key: &str, producer: &str, output: &str) -> Answer {
        let body = json!({ "key": key, "producer": producer, "output": output });
        client.post(&format!("/api/v2/workspaces/{}/bindings", self.web), &attributes("bindings", body)).await
    }

    async fn bind(&self, key: &str, output: &str) -> String {
        self.try_to_bind(&self.admin, key, "network", output).await.expect(StatusCode::CREATED).id()
    }

    async fn bind_env(&self, key: &str, output: &str) -> String {
        let body = json!({ "key": key, "category": "env", "producer": self.network, "output": output });
        let path = format!("/api/v2/workspaces/{}/bindings", self.web);
        self.admin.post(&path, &attributes("bindings", body)).await.expect(StatusCode::CREATED).id()
    }

    async fn listed(&self) -> Vec<Value> {
        let listed = self.admin.get(&format!("/api/v2/workspaces/{}/bindings", self.web)).await.expect(StatusCode::OK);
        listed.data().as_array().expect("a list").iter().map(|binding| binding["attributes"].clone()).collect()
    }

    /// Lets time pass, so that what ends now ended after what ended before.
    fn later(&self) {
        self.server.pass(SignedDuration::from_secs(1));
    }

    async fn take(&self) -> TakenPhase {
        next_phase(&self.server, "acme").await
    }

    async fn end(&self, phase: &TakenPhase, outcome: taco_control_plane::PhaseOutcome) {
        let plane = &self.server.control_plane;
        let caller = plane.phase_caller(&phase.token, RequestInfo::default()).await.expect("a phase's token");
        plane.finish_phase(&caller, outcome).await.expect("the phase ends");
        self.later();
    }

    /// A run of `web` that finds nothing to change, which proves what the unit holds.
    async fn verified(&self) -> String {
        let run = start_run(&self.admin, &self.web, json!({})).await.id();
        let phase = self.take().await;
        assert_eq!(phase.run.id.to_string(), run);
        self.end(&phase, planned(false)).await;
        run
    }

    async fn why(&self) -> Value {
        let why = self.admin.get(&format!("/api/v2/workspaces/{}/why", self.web)).await.expect(StatusCode::OK);
        why.data()["attributes"].clone()
    }

    async fn freshness(&self, expected: &str) -> Value {
        let why = self.why().await;
        assert_eq!(why["freshness"], expected, "{why:#}");
        why
    }

    async fn run(&self, run: &str) -> Answer {
        self.admin.get(&format!("/api/v2/runs/{run}")).await.expect(StatusCode::OK)
    }

    async fn error_of_plan(&self, run: &str) -> String {
        let plan = self.admin.get(&format!("/api/v2/runs/{run}/plan")).await.expect(StatusCode::OK);
        plan.attribute("taco-error").as_str().unwrap_or_default().to_owned()
    }

    /// A run that fails before an agent has its plan: the reason.
    async fn fails_to_begin(&self) -> String {
        let run = start_run(&self.admin, &self.web, json!({})).await.id();
        let plane = &self.server.control_plane;
        let org = plane.all_organizations().await.expect("organizations").remove(0);
        let taker = taco_control_plane::PhaseRequest::within(plane.id_for_agent_within(), "within");
        assert!(plane.take_phase(&org, taker).await.expect("a bucket").is_none(), "nobody gets it");
        assert_eq!(self.run(&run).await.attribute("status"), "errored");
        self.error_of_plan(&run).await
    }

    /// Takes the steps of walks that can be taken, as any server does.
    async fn advance(&self) {
        for org in self.server.control_plane.all_organizations().await.expect("organizations") {
            self.server.control_plane.advance_walks(&org).await.expect("steps");
        }
    }

    async fn begin_walk(&self, values: Value) -> String {
        let path = "/api/v2/organizations/acme/walks";
        self.admin.post(path, &attributes("walks", values)).await.expect(StatusCode::CREATED).id()
    }

    /// State and reason of each unit's node.
    async fn nodes(&self, walk: &str) -> Vec<(String, String, String)> {
        let nodes = self.admin.get(&format!("/api/v2/walks/{walk}/nodes")).await.expect(StatusCode::OK).data();
        let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
        let node = |node: &Value| {
            let node = &node["attributes"];
            (text(&node["unit"]), text(&node["state"]), text(&node["reason"]))
        };
        nodes.as_array().expect("a list").iter().map(node).collect()
    }
}

fn named<'a>(phase: &'a TakenPhase, key: &str) -> &'a JobVariable {
    phase.variables.iter().find(|variable| variable.key == key).unwrap_or_else(|| panic!("{key}"))
}

fn refused(answer: &Answer, attribute: &str, words: &str) {
    assert_eq!(answer.status, StatusCode::UNPROCESSABLE_ENTITY, "{answer:?}");
    let (detail, pointer) = answer.error();
    assert!(detail.contains(words), "{detail}");
    assert_eq!(pointer, Some(format!("/data/attributes/{attribute}")), "{detail}");
}

/// Clocks of servers may differ: that a run is over counts, and not when.
#[tokio::test]
async fn a_run_that_ends_by_a_clock_that_is_hours_slow_is_examined_all_the_same() {
    let scene = scene().await;
    scene.apply_network(1, outputs("vpc-1")).await;
    scene.bind("vpc", "vpc_id").await;
    scene.verified().await;
    scene.freshness("clean").await;
    for serial in 2..4 {
        scene.apply_network(serial, outputs(&format!("vpc-{serial}"))).await;
        scene.freshness("stale").await;
        scene.server.pass(SignedDuration::from_hours(-3));
        scene.verified().await;
        scene.freshness("clean").await;
        // Nothing that comes later takes it back.
        start_run(&scene.admin, &scene.web, json!({ "plan-only": true })).await;
        let phase = scene.take().await;
        scene.end(&phase, planned(true)).await;
        scene.freshness("clean").await;
    }
}

#[tokio::test]
async fn a_run_gets_the_outputs_of_its_producers_and_remembers_them() {
    let scene = scene().await;
    scene.apply_network(1, outputs("vpc-1")).await;
    for (key, output) in
        [("vpc", "vpc_id"), ("zones", "zones"), ("settings", "settings"), ("count", "count"), ("password", "password")]
    {
        scene.bind(key, output).await;
    }
    scene.bind_env("VPC", "vpc_id").await;
    let run = start_run(&scene.admin, &scene.web, json!({})).await.id();
    let phase = scene.take().await;
    for (key, value, hcl, sensitive) in [
        ("vpc", "vpc-1", false, false),
        ("VPC", "vpc-1", false, false),
        ("zones", r#"["a", "$${b}"]"#, true, false),
        ("settings", r#"{"size" = 3, "tags" = {"team" = "core"}}"#, true, false),
        ("count", "12345678901234567890", true, false),
        ("password", "hunter2-of-network", false, true),
    ] {
        let variable = named(&phase, key);
        assert_eq!((variable.value.as_str(), variable.hcl, variable.sensitive), (value, hcl, sensitive), "{key}");
    }
    // The producer moves on; the apply has what the plan had.
    scene.apply_network(2, outputs("vpc-2")).await;
    scene.end(&phase, planned(true)).await;
    let confirm = format!("/api/v2/runs/{run}/actions/apply");
    scene.admin.post(&confirm, &json!({})).await.expect(StatusCode::ACCEPTED);
    let phase = scene.take().await;
    for key in ["vpc", "VPC"] {
        assert_eq!(named(&phase, key).value, "vpc-1");
    }
    assert!(named(&phase, "password").sensitive);
    scene.end(&phase, applied()).await;

    let shown = scene.run(&run).await;
    let bound = shown.attribute("taco-bound-variables");
    let bound = bound.as_array().expect("a list");
    assert_eq!(bound.len(), 6);
    let vpc = bound.iter().find(|bound| bound["variable"] == "vpc").expect("the variable");
    assert_eq!(
        (&vpc["producer"], &vpc["output"], &vpc["commit"], &vpc["category"], &vpc["sensitive"]),
        (&json!("network"), &json!("vpc_id"), &json!(1), &json!("terraform"), &json!(false))
    );
    assert_eq!(vpc["digest"].as_str().map(str::len), Some(32));
    let whole = shown.json().to_string();
    assert!(!whole.contains("hunter2") && !whole.contains("vpc-1"), "no values: {whole}");

    // The reader of the secret is in the audit trail.
    let trail = scene.admin.get("/api/v2/organizations/acme/audit-trail?page[size]=100").await.expect(StatusCode::OK);
    let trail = trail.data();
    let reads = trail.as_array().expect("a list").iter().filter(|event| event["resource"]["action"] == "output.read");
    let readers: Vec<&Value> = reads.map(|event| &event["auth"]["accessor_id"]).collect();
    assert_eq!(readers, [&json!(run)]);
    let of_bindings = trail.as_array().expect("a list").iter().filter(|event| event["resource"]["type"] == "binding");
    assert!(of_bindings.clone().all(|event| event["resource"]["action"] == "create"));
    assert_eq!(of_bindings.count(), 6);
}

#[tokio::test]
async fn what_cannot_be_bound_is_refused_in_words() {
    let scene = scene().await;
    scene.apply_network(1, outputs("vpc-1")).await;
    let hidden = scene.server.given_workspace("acme", "hidden").await;
    let bind =
        async |key: &str, producer: &str, output: &str| scene.try_to_bind(&scene.admin, key, producer, output).await;
    refused(&bind("", "network", "vpc_id").await, "key", "can't be blank");
    refused(&bind("a b", "network", "vpc_id").await, "key", "may only contain");
    refused(&bind("vpc", "", "vpc_id").await, "producer", "no workspace");
    refused(&bind("vpc", "nothing", "vpc_id").await, "producer", "no workspace \"nothing\"");
    refused(&bind("vpc", "web", "vpc_id").await, "producer", "its own workspace");
    refused(&bind("vpc", "network", "").await, "output", "can't be blank");
    refused(
        &bind("vpc", "network", "vpcid").await,
        "output",
        "network has no output \"vpcid\". It has count, password, settings, vpc_id, zones",
    );
    refused(&bind("vpc", "hidden", "x").await, "producer", "does not share its state with web");
    scene.shares(&hidden, true).await;
    let early = bind("early", "hidden", "x").await.expect(StatusCode::CREATED);
    assert!(
        early.attribute("problem").as_str().is_some_and(|problem| problem.contains("never applied")),
        "bound before there is anything: {:?}",
        early.json()
    );
    let category = json!({ "key": "k", "category": "policy", "producer": "network", "output": "vpc_id" });
    let path = format!("/api/v2/workspaces/{}/bindings", scene.web);
    refused(&scene.admin.post(&path, &attributes("bindings", category)).await, "category", "must be");

    // Repeated it is the same; with another output it is not.
    let first = bind("vpc", "network", "vpc_id").await.expect(StatusCode::CREATED);
    assert_eq!(bind("vpc", &scene.network, "vpc_id").await.expect(StatusCode::CREATED).id(), first.id());
    refused(&bind("vpc", "network", "zones").await, "key", "vpc is bound to the output vpc_id of network already");
    scene.bind_env("vpc", "vpc_id").await;

    // A variable has one value, from either side.
    let vars = format!("/api/v2/workspaces/{}/vars", scene.web);
    let variable = |key: &str| attributes("vars", json!({ "key": key, "value": "x", "category": "terraform" }));
    refused(&scene.admin.post(&vars, &variable("vpc")).await, "key", "vpc is bound to the output vpc_id of network");
    let own = scene.admin.post(&vars, &variable("region")).await.expect(StatusCode::CREATED).id();
    refused(&scene.admin.patch(&format!("{vars}/{own}"), &variable("vpc")).await, "key", "remove the binding first");
    refused(&bind("region", "network", "vpc_id").await, "key", "web has a variable region of its own");

    // Bindings go in no circle.
    scene.shares(&scene.web, true).await;
    let back = json!({ "key": "back", "producer": "web", "output": "url" });
    let answer = scene
        .admin
        .post(&format!("/api/v2/workspaces/{}/bindings", scene.network), &attributes("bindings", back))
        .await;
    refused(&answer, "producer", "network uses web uses network");
}

#[tokio::test]
async fn who_binds_has_to_be_one_who_may_read() {
    let scene = scene().await;
    scene.apply_network(1, outputs("vpc-1")).await;
    let writer = given_member(&scene.server, "writer", &scene.web, "write").await;
    refused(&scene.try_to_bind(&writer, "vpc", "network", "vpc_id").await, "producer", "no workspace \"network\"");
    let reader = given_member(&scene.server, "reader", &scene.web, "read").await;
    scene.try_to_bind(&reader, "vpc", "network", "vpc_id").await.expect(StatusCode::NOT_FOUND);
    let binding = scene.bind("vpc", "vpc_id").await;
    // Who does not know of the producer sees that there is a binding.
    let listed = writer.get(&format!("/api/v2/bindings/{binding}")).await.expect(StatusCode::OK);
    assert_eq!(listed.attribute("producer"), "a unit you may not see");
    assert_eq!(listed.data()["relationships"]["producer"]["data"], Value::Null);
    reader.delete(&format!("/api/v2/bindings/{binding}")).await.expect(StatusCode::NOT_FOUND);
    writer.delete(&format!("/api/v2/bindings/{binding}")).await.expect(StatusCode::NO_CONTENT);
    assert_eq!(scene.listed().await, Vec::<Value>::new());
}

#[tokio::test]
async fn a_run_without_a_value_fails_with_a_sentence() {
    let scene = scene().await;
    scene.bind("vpc", "vpc_id").await;
    let why = scene.fails_to_begin().await;
    assert_eq!(
        why,
        "The plan was not begun: the variable vpc is bound to the output vpc_id of network, which was never applied \
         and has no outputs yet: apply network first, or remove the binding"
    );
    scene.apply_network(1, outputs("vpc-1")).await;
    scene.verified().await;
    scene.apply_network(2, json!({ "other": { "value": "x", "type": "string" } })).await;
    let why = scene.fails_to_begin().await;
    assert!(why.contains("which has no such output: it has other. Add it to network"), "{why}");
    scene.apply_network(3, outputs("vpc-1")).await;
    scene.shares(&scene.network, false).await;
    let why = scene.fails_to_begin().await;
    assert!(why.contains("which does not share its state with this workspace"), "{why}");
    assert!(scene.listed().await[0]["problem"].as_str().is_some_and(|problem| problem.contains("does not share")));
    scene.shares(&scene.network, true).await;
    scene.bind_env("ZONES", "zones").await;
    let why = scene.fails_to_begin().await;
    assert!(why.contains("environment variable ZONES") && why.contains("only a string, a number or a bool"), "{why}");
    assert_eq!(scene.listed().await.len(), 2);
}

#[tokio::test]
async fn a_binding_wins_over_sets_and_gives_way_to_priority_and_the_run() {
    let scene = scene().await;
    scene.apply_network(1, outputs("vpc-1")).await;
    scene.bind("vpc", "vpc_id").await;
    let set = async |name: &str, priority: bool| {
        let body = json!({ "name": name, "global": true, "priority": priority });
        let path = "/api/v2/organizations/acme/varsets";
        let set = scene.admin.post(path, &attributes("varsets", body)).await.expect(StatusCode::CREATED).id();
        let variable = json!({ "key": "vpc", "value": name, "category": "terraform" });
        let path = format!("/api/v2/varsets/{set}/relationships/vars");
        scene.admin.post(&path, &attributes("vars", variable)).await.expect(StatusCode::CREATED);
        set
    };
    let given = async |options: Value| {
        start_run(&scene.admin, &scene.web, options).await.expect(StatusCode::CREATED);
        let phase = scene.take().await;
        let value = named(&phase, "vpc").value.clone();
        scene.end(&phase, planned(false)).await;
        value
    };
    set("defaults", false).await;
    assert_eq!(given(json!({})).await, "vpc-1");
    assert_eq!(given(json!({ "variables": [{ "key": "vpc", "value": "\"typed\"" }] })).await, "\"typed\"");
    let effective = scene.admin.get(&format!("/api/v2/workspaces/{}/all-vars", scene.web)).await.expect(StatusCode::OK);
    assert_eq!(effective.data(), json!([]), "the set's variable does not count");
    set("enforced", true).await;
    assert_eq!(given(json!({})).await, "enforced");
    assert_eq!(scene.listed().await[0]["overridden"], true);
}

#[tokio::test]
async fn a_bound_unit_is_stale_when_its_output_changes_and_says_why() {
    let scene = scene().await;
    scene.apply_network(1, outputs("vpc-1")).await;
    scene.freshness("clean").await;
    let binding = scene.bind("vpc", "vpc_id").await;
    let unproven = scene.freshness("unknown").await;
    let sentence = unproven["reasons"][0]["sentence"].as_str().expect("a sentence");
    assert!(
        sentence.contains("(var.vpc) are bound to outputs of network, and no run has applied them yet"),
        "{sentence}"
    );
    scene.verified().await;
    scene.freshness("clean").await;
    let graph = scene.admin.get("/api/v2/organizations/acme/graph").await.expect(StatusCode::OK);
    let edge = graph.data()["attributes"]["edges"][0].clone();
    assert_eq!(
        (&edge["consumer"], &edge["producer"], &edge["grades"], &edge["outputs"], &edge["status"]),
        (&json!("web"), &json!("network"), &json!(["binding"]), &json!(["vpc_id"]), &json!("fresh"))
    );
    assert_eq!((&edge["users"], &edge["certain"]), (&json!(["var.vpc"]), &json!(true)));

    let mut changed = outputs("vpc-1");
    changed["zones"]["value"] = json!(["c"]);
    scene.apply_network(2, changed.clone()).await;
    scene.freshness("clean").await;
    changed["vpc_id"]["value"] = json!("vpc-2");
    scene.apply_network(3, changed).await;
    let stale = scene.freshness("stale").await;
    let output = &stale["reasons"][0]["outputs"][0];
    assert_eq!(
        (&output["name"], &output["change"], &output["to_commit"]),
        (&json!("vpc_id"), &json!("value"), &json!(3))
    );
    assert_eq!(stale["reasons"][0]["certain"], true);
    scene.verified().await;
    scene.freshness("clean").await;

    scene.admin.delete(&format!("/api/v2/bindings/{binding}")).await.expect(StatusCode::NO_CONTENT);
    scene.freshness("clean").await;
    let graph = scene.admin.get("/api/v2/organizations/acme/graph").await.expect(StatusCode::OK);
    assert_eq!(graph.data()["attributes"]["edges"], json!([]));
}

#[tokio::test]
async fn a_walk_runs_what_a_bound_output_reaches_and_cuts_off_the_rest() {
    let scene = scene().await;
    scene.apply_network(1, outputs("vpc-1")).await;
    scene.bind("vpc", "vpc_id").await;
    scene.verified().await;
    let apply = || json!({ "kind": "apply", "from": ["web"], "approval": "auto" });
    let only = async |walk: &str| scene.nodes(walk).await.remove(0);
    let walk = scene.begin_walk(apply()).await;
    scene.advance().await;
    let (_, state, reason) = only(&walk).await;
    assert_eq!(
        (state.as_str(), reason.as_str()),
        ("cut_off", "it has no change of its own, and what it uses of network is unchanged")
    );
    // Another output, and another value of the bound one: the producer's changes, and not its own.
    let mut changed = outputs("vpc-1");
    changed["zones"]["value"] = json!(["c"]);
    scene.apply_network(2, changed).await;
    let walk = scene.begin_walk(apply()).await;
    scene.advance().await;
    assert_eq!(only(&walk).await.1, "cut_off");
    scene.apply_network(3, outputs("vpc-3")).await;
    let walk = scene.begin_walk(apply()).await;
    scene.advance().await;
    assert_eq!(only(&walk).await, ("web".to_owned(), "planning".to_owned(), "vpc_id of network changed".to_owned()));

    // A plan whose bound output has moved on is not applied.
    let phase = scene.take().await;
    assert_eq!(named(&phase, "vpc").value, "vpc-3");
    scene.apply_network(4, outputs("vpc-4")).await;
    scene.end(&phase, planned(true)).await;
    scene.advance().await;
    scene.advance().await;
    assert_eq!(only(&walk).await.1, "planning", "again");
    let phase = scene.take().await;
    assert_eq!(named(&phase, "vpc").value, "vpc-4");
    scene.end(&phase, planned(false)).await;
    scene.advance().await;
    assert_eq!(only(&walk).await.1, "done");

    // One more binding is a change of its own.
    scene.bind("zones", "zones").await;
    let walk = scene.begin_walk(apply()).await;
    scene.advance().await;
    assert_eq!(only(&walk).await.1, "planning");
}

/// A plan of the network, as `show -json` prints it, that does this to its outputs: name, value before and after.
fn plan_json(changes: &[(&str, Option<&str>, Option<&str>)]) -> String {
    let change = |(name, before, after): &(&str, Option<&str>, Option<&str>)| {
        let action = if before.is_some() { "update" } else { "create" };
        let change = json!({ "actions": [action], "before": before, "after": after, "after_unknown": after.is_none(),
            "before_sensitive": false, "after_sensitive": false });
        ((*name).to_owned(), change)
    };
    let planned = |(name, _, after): &(&str, Option<&str>, Option<&str>)| {
        let mut output = json!({ "sensitive": false });
        if let Some(after) = after {
            (output["type"], output["value"]) = (json!("string"), json!(after));
        }
        ((*name).to_owned(), output)
    };
    let (changed, outputs): (serde_json::Map<String, Value>, serde_json::Map<String, Value>) =
        (changes.iter().map(change).collect(), changes.iter().map(planned).collect());
    json!({ "format_version": "1.2", "terraform_version": "1.11.4", "planned_values": { "outputs": outputs },
        "resource_changes": [], "output_changes": changed, "configuration": {}, "complete": true, "applyable": true })
    .to_string()
}

impl Scene {
    /// Ends a phase as an agent does that has this plan.
    async fn end_with_plan(&self, phase: &TakenPhase, plan: String) {
        let agent = self.server.agent_with_token(&phase.token);
        let outcome = json!({ "outcome": "planned", "has_changes": true, "counts": { "additions": 1 },
            "generated_configuration": false, "engine": { "engine": "terraform", "version": "1.11.4" } });
        let files = [("plan", "{}".to_owned()), ("json-plan", plan), ("redacted-plan", "{}".to_owned())];
        for (word, body) in files.into_iter().chain([("outcome", outcome.to_string())]) {
            let path = format!("{}/{word}", phase_path(&phase.attempt));
            agent.send("PUT", &path, None, body).await.expect(StatusCode::NO_CONTENT);
        }
        self.later();
    }
}

#[tokio::test]
async fn a_preview_is_given_what_its_producers_plan_announces() {
    let scene = scene().await;
    scene.apply_network(1, outputs("vpc-1")).await;
    scene.bind("vpc", "vpc_id").await;
    scene.bind("zone", "zones").await;
    scene.verified().await;
    let walk = scene.begin_walk(json!({ "kind": "plan", "from": ["network"] })).await;
    scene.advance().await;
    let phase = scene.take().await;
    let plan = plan_json(&[("vpc_id", Some("vpc-1"), Some("vpc-2")), ("zones", Some("a"), None)]);
    scene.end_with_plan(&phase, plan).await;
    scene.advance().await;
    let phase = scene.take().await;
    assert_eq!(phase.workspace.name.as_str(), "web");
    assert_eq!(named(&phase, "vpc").value, "vpc-2", "what the plan announces");
    assert_eq!(named(&phase, "zone").value, r#"["a", "$${b}"]"#, "what it does not know stays as it is");
    let reason = scene.nodes(&walk).await.remove(1).2;
    assert_eq!(reason, "the plan of network changes vpc_id, and may change zones");
    let shown = scene.run(&phase.run.id.to_string()).await.attribute("taco-bound-variables");
    let announced: Vec<bool> =
        shown.as_array().expect("a list").iter().map(|bound| bound["announced-by"].is_string()).collect();
    assert_eq!(announced, [true, false]);
    scene.end(&phase, planned(false)).await;
    scene.freshness("clean").await;
}

#[tokio::test]
async fn a_preview_that_would_have_no_value_is_blocked_and_says_so() {
    let scene = scene().await;
    scene.bind("vpc", "vpc_id").await;
    let planned_network = async |plan: String| {
        let walk = scene.begin_walk(json!({ "kind": "plan", "from": ["network"] })).await;
        scene.advance().await;
        let phase = scene.take().await;
        scene.end_with_plan(&phase, plan).await;
        scene.advance().await;
        scene.nodes(&walk).await.remove(1)
    };
    let (_, state, reason) = planned_network(plan_json(&[("vpc_id", None, None)])).await;
    assert_eq!(state, "blocked");
    assert!(
        reason.starts_with("it cannot be planned before network is applied: the variable vpc is bound"),
        "{reason}"
    );
    // A value that is known before anything was ever applied is as good as any.
    let (_, state, _) = planned_network(plan_json(&[("vpc_id", None, Some("vpc-1"))])).await;
    assert_eq!(state, "planning");
    let phase = scene.take().await;
    assert_eq!(named(&phase, "vpc").value, "vpc-1");
}

#[tokio::test]
async fn a_workspace_that_others_are_bound_to_is_deleted_with_care() {
    let scene = scene().await;
    scene.apply_network(1, outputs("vpc-1")).await;
    scene.bind("vpc", "vpc_id").await;
    let safe = format!("/api/v2/workspaces/{}/actions/safe-delete", scene.network);
    let answer = scene.admin.post(&safe, &json!({})).await.expect(StatusCode::CONFLICT);
    assert!(answer.error().0.contains("variables of web are bound to its outputs"), "{answer:?}");
    scene.admin.delete(&format!("/api/v2/workspaces/{}", scene.network)).await.expect(StatusCode::NO_CONTENT);
    let why = scene.fails_to_begin().await;
    assert!(why.contains("of a workspace that was deleted: remove the binding"), "{why}");
    assert_eq!(scene.listed().await[0]["producer"], "a workspace that was deleted");
    // The consumer takes its bindings with it.
    scene.admin.delete(&format!("/api/v2/workspaces/{}", scene.web)).await.expect(StatusCode::NO_CONTENT);
}

#[tokio::test]
async fn a_repeated_request_binds_once_and_two_servers_agree() {
    let scene = scene().await;
    scene.apply_network(1, outputs("vpc-1")).await;
    let other = scene.server.another().await;
    let path = format!("/api/v2/workspaces/{}/bindings", scene.web);
    let body = attributes("bindings", json!({ "key": "vpc", "producer": "network", "output": "vpc_id" }));
    let first = scene.admin.with_key("once").post(&path, &body).await.expect(StatusCode::CREATED).id();
    assert_eq!(other.admin().with_key("once").post(&path, &body).await.expect(StatusCode::CREATED).id(), first);
    let gone = format!("/api/v2/bindings/{first}");
    other.admin().with_key("gone").delete(&gone).await.expect(StatusCode::NO_CONTENT);
    scene.admin.with_key("gone").delete(&gone).await.expect(StatusCode::NO_CONTENT);
    scene.admin.delete(&gone).await.expect(StatusCode::NOT_FOUND);
    // The first answer again, and nothing more happens.
    assert_eq!(scene.admin.with_key("once").post(&path, &body).await.id(), first);
    assert_eq!(scene.listed().await, Vec::<Value>::new());
}

#[tokio::test]
async fn a_workspace_has_so_many_bindings_and_no_more() {
    let scene = scene().await;
    scene.apply_network(1, outputs("vpc-1")).await;
    for number in 0..100 {
        scene.bind(&format!("v{number}"), "vpc_id").await;
    }
    let one_more = scene.try_to_bind(&scene.admin, "more", "network", "vpc_id").await;
    refused(&one_more, "key", "at most 100 bindings");
    let phase = async {
        start_run(&scene.admin, &scene.web, json!({})).await.expect(StatusCode::CREATED);
        scene.take().await
    };
    assert_eq!(phase.await.variables.len(), 100);
}
