//! Policies with real engines and the real `opa`: whoever plans reads in the client's own output what they say, a mandatory
//! one stops the run, and somebody who may lets it go on.

use flate2::Compression;
use flate2::write::GzEncoder;
use serde_json::{Value, json};

use crate::remote_scene::{ended, told_on_an_agent};
use crate::scene::{Scene, says, until};

told_on_an_agent!(
    a_mandatory_policy_stops_a_run(Cloud),
    who_may_overrides_a_policy(Cloud),
    what_cannot_be_evaluated_has_not_passed(Cloud),
    a_log_of_plain_text_tells_of_policies(Remote),
);

const TWO_POLICIES: &str = r#"
policy "sizes" {
  query             = "data.sizes.deny"
  enforcement_level = "mandatory"
  description       = "Nothing is huge"
}
policy "names" {
  query = "data.names.warn"
}
"#;

/// Rego of before 1.0: as most of what there is.
const SIZES: &str = r#"package sizes

deny[msg] {
    change := input.plan.resource_changes[_]
    change.change.after.input == "huge"
    msg := sprintf("%s is huge in %s", [change.address, input.run.workspace.name])
}
"#;

const NAMES: &str = r#"package names

warn[msg] {
    change := input.plan.resource_changes[_]
    not startswith(change.name, input.parameters.prefix)
    msg := sprintf("%s does not begin with %s", [change.address, input.parameters.prefix])
}
"#;

fn resource(size: &str) -> String {
    format!("resource \"terraform_data\" \"web\" {{ input = \"{size}\" }}\n")
}

fn archive(files: &[(&str, &str)]) -> Vec<u8> {
    let mut archive = tar::Builder::new(GzEncoder::new(Vec::new(), Compression::fast()));
    for (path, text) in files {
        let mut header = tar::Header::new_gnu();
        header.set_size(text.len() as u64);
        header.set_mode(0o644);
        archive.append_data(&mut header, path, text.as_bytes()).expect("room");
    }
    archive.into_inner().and_then(GzEncoder::finish).expect("room")
}

impl Scene {
    /// A set that applies to everything, with what was uploaded.
    async fn given_policies(&self, attributes: Value, files: &[(&str, &str)]) -> String {
        let mut wanted = json!({ "name": "all", "kind": "opa", "global": true });
        for (key, value) in attributes.as_object().expect("an object") {
            wanted[key] = value.clone();
        }
        let body = json!({ "data": { "type": "policy-sets", "attributes": wanted } });
        let set = self.admin.post("/api/v2/organizations/acme/policy-sets", body).await["data"]["id"].clone();
        let set = set.as_str().expect("an id").to_owned();
        let parameter = json!({ "data": { "type": "vars", "attributes":
            { "key": "prefix", "value": "db", "category": "policy-set" } } });
        self.admin.post(&format!("/api/v2/policy-sets/{set}/parameters"), parameter).await;
        self.upload_policies(&set, files).await;
        set
    }

    async fn upload_policies(&self, set: &str, files: &[(&str, &str)]) {
        let version = self.admin.post(&format!("/api/v2/policy-sets/{set}/versions"), json!({})).await;
        let address = version["data"]["links"]["upload"].as_str().expect("an address").to_owned();
        let sent = self.admin.client.put(address).body(archive(files)).send().await.expect("an answer");
        assert_eq!(sent.status(), 200, "{:?}", sent.text().await);
    }

    async fn outcomes_of(&self, run: &str) -> Value {
        let stages = self.admin.get(&format!("/api/v2/runs/{run}/task-stages")).await;
        let stage = stages["data"][0]["id"].as_str().expect("a stage").to_owned();
        let evaluations = self.admin.get(&format!("/api/v2/task-stages/{stage}/policy-evaluations")).await;
        let evaluation = evaluations["data"][0]["id"].as_str().expect("an evaluation").to_owned();
        self.admin.get(&format!("/api/v2/policy-evaluations/{evaluation}/policy-set-outcomes")).await["data"].clone()
    }
}

const FILES: &[(&str, &str)] = &[("policies.hcl", TWO_POLICIES), ("sizes.rego", SIZES), ("deep/names.rego", NAMES)];

async fn a_mandatory_policy_stops_a_run(scene: Scene) {
    scene.given_policies(json!({}), FILES).await;
    let here = scene.initialized(&resource("huge")).await;
    let block = scene.block_for("web");

    let refused = ended(&here.does("apply -auto-approve", "").await, 1);
    says(&refused, "terraform_data.web is huge in web");
    says(&refused, "terraform_data.web does not begin with db");
    let run = scene.runs_of("web").await[0].clone();
    assert_eq!(run["attributes"]["status"], "errored", "{refused}");
    assert_eq!(run["attributes"]["taco-policies"]["stopping"], json!(["all/sizes"]));
    let outcomes = scene.outcomes_of(run["id"].as_str().expect("an id")).await;
    let attributes = &outcomes[0]["attributes"];
    assert_eq!(attributes["result_count"]["mandatory-failed"], 1, "{attributes}");
    assert_eq!(attributes["result_count"]["advisory-failed"], 1, "{attributes}");
    assert_eq!(attributes["outcomes"][0]["output"], json!([{ "print": "terraform_data.web is huge in web" }]));
    assert!(attributes["policy-tool-version"].as_str().is_some_and(|version| version.starts_with("1.")));
    // A plan that is never applied is judged, too.
    ended(&here.does("plan", "").await, 1);

    // What is good passes, and what is advisory is told.
    here.write("main.tf", &format!("{block}\n{}", resource("small")));
    let applied = here.runs("apply -auto-approve").await;
    says(&applied, "passed sizes (mandatory)");
    says(&applied, "failed names (advisory)");
    says(&applied, "Apply complete!");
    // Nothing would be applied, so that nothing is judged.
    let again = here.runs("apply -auto-approve").await;
    says(&again, "No changes.");
    assert!(!again.contains("Policies:"), "{again}");
}

async fn who_may_overrides_a_policy(scene: Scene) {
    scene.given_policies(json!({ "overridable": true }), FILES).await;
    let here = scene.initialized(&resource("huge")).await;
    // The client asks, and its user does not want to; or the server is not asked at all.
    let said = here.does_answered("apply", &["no"]).await.said();
    says(&said, "terraform_data.web is huge in web");
    let run = scene.runs_of("web").await[0].clone();
    let id = run["id"].as_str().expect("an id").to_owned();
    if run["attributes"]["status"] == "policy_override" {
        scene.admin.post(&format!("/api/v2/runs/{id}/actions/discard"), json!({})).await;
    }
    until(async || scene.newest("status").await == "discarded").await;

    let configuration = run["relationships"]["configuration-version"]["data"].clone();
    let workspace = scene.admin.workspace("acme", "web").await["id"].clone();
    let body = json!({ "data": { "type": "runs", "attributes": { "auto-apply": true }, "relationships": {
        "workspace": { "data": { "type": "workspaces", "id": workspace } },
        "configuration-version": { "data": configuration },
    } } });
    scene.admin.post("/api/v2/runs", body).await;
    scene.until_newest(2, "policy_override").await;
    let id = scene.runs_of("web").await[0]["id"].as_str().expect("an id").to_owned();
    let stages = scene.admin.get(&format!("/api/v2/runs/{id}/task-stages")).await["data"].clone();
    assert_eq!(stages[0]["attributes"]["status"], "awaiting_override", "{stages}");
    let stage = stages[0]["id"].as_str().expect("an id").to_owned();
    let said = json!({ "comment": "It has to be" });
    scene.admin.post(&format!("/api/v2/task-stages/{stage}/actions/override"), said).await;
    scene.until_newest(2, "applied").await;
    let shown = scene.admin.get(&format!("/api/v2/task-stages/{stage}")).await;
    assert_eq!(shown["data"]["attributes"]["status"], "passed", "{shown}");
}

async fn what_cannot_be_evaluated_has_not_passed(scene: Scene) {
    // No agent has this version, and none can be downloaded.
    scene.given_policies(json!({ "policy-tool-version": "1.4.0" }), FILES).await;
    let here = scene.initialized(&resource("small")).await;
    let refused = ended(&here.does("apply -auto-approve", "").await, 1);
    says(&refused, "opa 1.4.0 is not installed on this agent");
    let run = scene.runs_of("web").await[0].clone();
    assert_eq!(run["attributes"]["taco-policies"]["status"], "errored");
    let outcomes = scene.outcomes_of(run["id"].as_str().expect("an id")).await;
    assert!(outcomes[0]["attributes"]["error"].as_str().is_some_and(|error| error.contains("1.4.0")), "{outcomes}");
}

async fn a_log_of_plain_text_tells_of_policies(scene: Scene) {
    let misses = [("policies.hcl", "policy \"a\" {\n query = \"data.nothing.deny\"\n}\n"), ("sizes.rego", SIZES)];
    let set = scene.given_policies(json!({}), &misses).await;
    let here = scene.initialized(&resource("small")).await;
    let said = here.runs("apply -auto-approve").await;
    says(&said, "errored a (advisory)");
    says(&said, "the query is undefined");
    scene.upload_policies(&set, FILES).await;
    let block = scene.block_for("web");
    here.write("main.tf", &format!("{block}\n{}", resource("huge")));
    says(&ended(&here.does("apply -auto-approve", "").await, 1), "terraform_data.web is huge in web");
}
