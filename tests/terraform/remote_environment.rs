//! Environment of a run: variables, its directory, its workspace's name, other states, its engine.

use harness::engine::Engine;
use serde_json::{Value, json};

use crate::remote_scene::{ended, told_on_an_agent};
use crate::scene::{Scene, says, until};

told_on_an_agent!(
    variables_reach_the_run(Cloud),
    a_run_happens_in_its_working_directory(Cloud),
    a_run_reads_states_that_are_shared(Cloud),
    a_run_asks_for_outputs_as_the_tfe_provider_does(Cloud),
    a_workspace_has_an_engine_of_its_own(Cloud),
    what_init_makes_has_the_engine_that_made_it(Cloud),
    an_apply_starts_a_run_elsewhere(Cloud),
);

fn variable(kind: &str, key: &str, value: &str, category: &str, hcl: bool, sensitive: bool) -> Value {
    let attributes = json!({ "key": key, "value": value, "category": category, "hcl": hcl, "sensitive": sensitive });
    json!({ "type": kind, "attributes": attributes })
}

async fn variables_reach_the_run(scene: Scene) {
    let id = scene.workspace().await["id"].as_str().expect("an id").to_owned();
    for one in [
        variable("vars", "greeting", "say \"${hello}\"", "terraform", false, false),
        variable("vars", "list", r#"["a", "b"]"#, "terraform", true, false),
        variable("vars", "password", "open-sesame", "terraform", false, true),
        variable("vars", "TOKEN", "hush-hush-token", "env", false, true),
        variable("vars", "PLAIN", "a plain word", "env", false, false),
    ] {
        scene.admin.post(&format!("/api/v2/workspaces/{id}/vars"), json!({ "data": one })).await;
    }
    let set = json!({ "data": {
        "type": "varsets",
        "attributes": { "name": "everywhere", "global": true },
        "relationships": { "vars": { "data": [
            variable("vars", "greeting", "not this one", "terraform", false, false),
            variable("vars", "region", "north", "terraform", false, false),
        ] } },
    } });
    scene.admin.post("/api/v2/organizations/acme/varsets", set).await;
    let resources = r#"
        variable "greeting" {}
        variable "list" {}
        variable "region" {}
        variable "password" {}
        resource "terraform_data" "web" {
          input = nonsensitive(var.password)
          provisioner "local-exec" { command = "echo the token is $TOKEN and $PLAIN" }
        }
        output "greeting" { value = var.greeting }
        output "list" { value = var.list }
        output "region" { value = var.region }
        output "workspace" { value = terraform.workspace }
        output "password" {
          value     = var.password
          sensitive = true
        }
    "#;
    let here = scene.initialized(resources).await;
    let said = here.runs("apply -auto-approve").await;
    says(&said, "and a plain word");
    assert!(!said.contains("hush-hush") && !said.contains("open-sesame"), "{said}");
    for (output, value) in
        [("greeting", "say \"${hello}\""), ("region", "north"), ("workspace", "web"), ("password", "open-sesame")]
    {
        assert_eq!(here.runs(&format!("output -raw {output}")).await, value, "{output}");
    }
    let list: Value = serde_json::from_str(&here.runs("output -json list").await).expect("JSON");
    assert_eq!(list, json!(["a", "b"]));
    says(&here.runs("plan -var=region=south").await, r#"region = "north" -> "south""#);
}

async fn a_run_happens_in_its_working_directory(scene: Scene) {
    scene.given_remote_workspace("deep", json!({ "working-directory": "live/north" })).await;
    scene.user.directory("repository", "");
    scene.user.directory("repository/module", r#"output "word" { value = "beside" }"#);
    scene.user.directory("repository/live", "");
    let block = scene.cloud(r#"name = "deep""#);
    let resources = "module \"beside\" { source = \"../../module\" }\noutput \"word\" { value = module.beside.word }";
    let here = scene.user.directory("repository/live/north", &format!("{block}\n{resources}"));
    here.runs("init").await;
    here.runs("apply -auto-approve").await;
    assert_eq!(here.runs("output -raw word").await, "beside");
}

async fn a_run_reads_states_that_are_shared(scene: Scene) {
    let producer = scene.initialized(r#"output "greeting" { value = "hello" }"#).await;
    producer.runs("apply -auto-approve").await;
    scene.given_remote_workspace("consumer", json!({})).await;
    let host = scene.installation.host();
    let resources = format!(
        r#"
        data "terraform_remote_state" "web" {{
          backend = "remote"
          config = {{
            hostname     = "{host}"
            organization = "acme"
            workspaces   = {{ name = "web" }}
          }}
        }}
        output "greeting" {{ value = data.terraform_remote_state.web.outputs.greeting }}
        "#
    );
    let consumer = scene.initialized_in("consumer", &resources).await;
    let refused = ended(&consumer.does("apply -auto-approve", "").await, 1);
    says(&refused, "Error");

    share_with(&scene, "consumer").await;
    consumer.runs("apply -auto-approve").await;
    assert_eq!(consumer.runs("output -raw greeting").await, "hello");
}

/// Lets runs of another workspace read the state of the story's.
async fn share_with(scene: &Scene, other: &str) {
    let [web, other] = [&scene.name, other].map(|name| scene.admin.workspace("acme", name));
    let (web, other) = (web.await["id"].as_str().expect("an id").to_owned(), other.await["id"].clone());
    let consumers = json!({ "data": [{ "type": "workspaces", "id": other }] });
    let path = format!("/api/v2/workspaces/{web}/relationships/remote-state-consumers");
    scene.admin.done("POST", &path, Some(consumers)).await;
}

/// Requests of the data source `tfe_outputs`, with the credentials from the engine's configuration: the provider itself
/// is not available where these tests are built.
const TFE_OUTPUTS: &str = r#"
set -eu
setting() { sed -n "s/^ *$1 = \"\(.*\)\"$/\1/p" "$TF_CLI_CONFIG_FILE" | head -n 1; }
token=$(setting token)
api=$(setting '"tfe.v2"')
ask() { curl --fail --silent --show-error --header "Authorization: Bearer $token" "$api$1"; }
workspace=$(ask organizations/acme/workspaces/web)
workspace=$(echo "$workspace" | grep -o 'ws-[A-Za-z0-9]*' | head -n 1)
outputs=$(ask "workspaces/$workspace/current-state-version-outputs")
for output in $(echo "$outputs" | grep -o 'wsout-[A-Za-z0-9]*' | sort -u); do
  ask "state-version-outputs/$output" | grep -o '"value":"[^"]*"'
done
"#;

async fn a_run_asks_for_outputs_as_the_tfe_provider_does(scene: Scene) {
    let outputs =
        "output \"greeting\" { value = \"hello\" }\noutput \"word\" {\n value = \"hush\"\n sensitive = true\n}";
    scene.initialized(outputs).await.runs("apply -auto-approve").await;
    scene.given_remote_workspace("consumer", json!({})).await;
    let resources =
        "resource \"terraform_data\" \"read\" {\n provisioner \"local-exec\" { command = \"sh read.sh\" }\n}";
    let consumer = scene.initialized_in("consumer", resources).await;
    consumer.write("read.sh", TFE_OUTPUTS);
    says(&ended(&consumer.does("apply -auto-approve", "").await, 1), "error: 404");
    share_with(&scene, "consumer").await;
    let said = consumer.runs("apply -auto-approve").await;
    says(&said, r#""value":"hello""#);
    says(&said, r#""value":"hush""#);
}

/// First words of an engine's log.
fn greeting(engine: Engine) -> &'static str {
    match engine {
        Engine::Terraform => "Terraform v1.",
        Engine::Tofu => "OpenTofu v1.",
    }
}

async fn a_workspace_has_an_engine_of_its_own(scene: Scene) {
    let resources = r#"output "greeting" { value = "hello" }"#;
    let here = scene.initialized(resources).await;
    says(&here.runs("apply -auto-approve").await, greeting(scene.user.engine));
    let id = scene.given_remote_workspace("other", json!({})).await;
    let other = json!({ "data": { "type": "workspaces", "attributes": {
        "taco-engine": scene.user.engine.other().word(),
    } } });
    scene.admin.patch(&format!("/api/v2/workspaces/{id}"), other).await;
    let there = scene.initialized_in("other", resources).await;
    says(&there.runs("apply -auto-approve").await, greeting(scene.user.engine.other()));
    let run = scene.runs_of("other").await[0]["attributes"].clone();
    assert_eq!(run["taco-engine"], scene.user.engine.other().word());
}

async fn what_init_makes_has_the_engine_that_made_it(scene: Scene) {
    let remote = json!({ "data": { "type": "organizations", "attributes": { "default-execution-mode": "remote" } } });
    scene.admin.patch("/api/v2/organizations/acme", remote).await;
    let here = scene.initialized_in("made", r#"output "greeting" { value = "hello" }"#).await;
    says(&here.runs("apply -auto-approve").await, greeting(scene.user.engine));
    let run = scene.runs_of("made").await[0]["attributes"].clone();
    assert_eq!(run["taco-engine"], scene.user.engine.word());
}

async fn an_apply_starts_a_run_elsewhere(scene: Scene) {
    let first = scene.workspace().await["id"].clone();
    let id = scene.given_remote_workspace("follower", json!({ "auto-apply": true })).await;
    let follower = scene.initialized_in("follower", r#"output "when" { value = timestamp() }"#).await;
    follower.runs("apply -auto-approve").await;
    let before = follower.runs("output -raw when").await;
    let trigger = json!({ "data": { "type": "run-triggers", "relationships": {
        "sourceable": { "data": { "type": "workspaces", "id": first } },
    } } });
    scene.admin.post(&format!("/api/v2/workspaces/{id}/run-triggers"), trigger).await;
    let here = scene.initialized(r#"output "greeting" { value = "hello" }"#).await;
    here.runs("apply -auto-approve").await;
    until(async || scene.runs_of("follower").await.len() == 2).await;
    until(async || {
        let newest = scene.runs_of("follower").await[0]["attributes"].clone();
        newest["source"] == "tfe-run-trigger" && newest["status"] == "planned"
    })
    .await;
    assert_eq!(follower.runs("output -raw when").await, before, "someone has to confirm it");
}
