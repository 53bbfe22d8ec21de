//! Rights of a run's own token while real engines run: a configuration is somebody's code, and finds the token where
//! its engine does.

use std::fs;
use std::os::unix::fs::PermissionsExt;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use harness::engine::{Directory, User};
use harness::run_site::text;
use md5::{Digest, Md5};
use serde_json::{Value, json};

use crate::remote_scene::told_on_an_agent;
use crate::scene::{Scene, says};

told_on_an_agent!(what_a_plan_executes_cannot_change_the_state(Cloud), what_an_apply_executes_cannot_either(Cloud));

/// Tries all that changes a state with the run's own token, and prints the answers on one line.
fn attempt(scene: &Scene, workspace: &str) -> String {
    let state = json!({ "version": 4, "terraform_version": "1.11.4", "serial": 77, "lineage": "smuggled",
        "outputs": { "pwned": { "value": "by a run", "type": "string" } }, "resources": [] })
    .to_string();
    let attributes = json!({ "serial": 77, "lineage": "smuggled", "force": true,
        "md5": hex::encode(Md5::digest(&state)), "state": STANDARD.encode(&state) });
    let body = json!({ "data": { "type": "state-versions", "attributes": attributes } });
    let backend = scene.http_address(&scene.name);
    format!(
        r#"#!/bin/sh
setting() {{ sed -n "s/^ *$1 = \"\(.*\)\"$/\1/p" "$TF_CLI_CONFIG_FILE" | head -n 1; }}
token=$(setting token)
api=$(setting '"tfe.v2"')
ask() {{
  curl --silent --output /dev/null --write-out '%{{http_code}}' --header "Authorization: Bearer $token" \
    --header 'Content-Type: application/vnd.api+json' "$@"
}}
echo "$(ask "${{api}}workspaces/{workspace}")-read" \
  "$(ask --request POST --data '{{}}' "${{api}}workspaces/{workspace}/actions/lock")-lock" \
  "$(ask --request POST --data '{body}' "${{api}}workspaces/{workspace}/state-versions")-write" \
  "$(ask --request LOCK --data '{{"ID":"one"}}' "{backend}/lock")-backend-lock" \
  "$(ask --request POST --data '{state}' "{backend}")-backend-write" \
  "$(ask --request POST --data '{{}}' "${{api}}workspaces/{workspace}/actions/unlock")-unlock"
exit 1
"#
    )
}

/// Output if the token can read, and do nothing else.
const REFUSED: &str = "200-read 404-lock 404-write 404-backend-lock 404-backend-write 404-unlock";

/// A directory of someone who may plan in the story's workspace, with a provider that is a script.
fn with_provider<'a>(scene: &Scene, user: &'a User, script: &str) -> Directory<'a> {
    let configuration = r#"
        terraform {
          required_providers {
            evil = { source = "registry.terraform.io/evil/evil" }
          }
        }
        provider "evil" {}
        data "evil_thing" "one" {}
    "#;
    let here = user.directory("planner", &format!("{}\n{configuration}", scene.block()));
    let machine = match std::env::consts::ARCH {
        "x86_64" => "linux_amd64",
        "aarch64" => "linux_arm64",
        other => panic!("say here how engines call {other}"),
    };
    let place = here.path.join("terraform.d/plugins/registry.terraform.io/evil/evil/1.0.0").join(machine);
    fs::create_dir_all(&place).expect("made");
    let provider = place.join("terraform-provider-evil");
    fs::write(&provider, script).expect("written");
    fs::set_permissions(&provider, fs::Permissions::from_mode(0o755)).expect("executable");
    here
}

/// Someone with the token of a team that has this access to the story's workspace, and nothing else.
async fn someone_with(scene: &Scene, access: &str, workspace: &str) -> User {
    let team = json!({ "data": { "type": "teams", "attributes": { "name": "some" } } });
    let team = text(&scene.admin.post("/api/v2/organizations/acme/teams", team).await["data"]["id"]);
    let given = json!({ "data": { "type": "team-workspaces", "attributes": { "access": access }, "relationships": {
        "team": { "data": { "type": "teams", "id": team } },
        "workspace": { "data": { "type": "workspaces", "id": workspace } },
    } } });
    scene.admin.post("/api/v2/team-workspaces", given).await;
    let token = scene.admin.post(&format!("/api/v2/teams/{team}/authentication-token"), json!({})).await;
    let token = text(&token["data"]["attributes"]["token"]);
    User::new(scene.user.engine, &scene.installation).holds(scene.installation.host(), &token)
}

/// Serials of the workspace's states, newest first.
async fn serials(scene: &Scene) -> Vec<Value> {
    scene.versions().await.iter().map(|version| version["attributes"]["serial"].clone()).collect()
}

async fn what_a_plan_executes_cannot_change_the_state(scene: Scene) {
    let owners = scene.initialized(r#"output "kept" { value = "as it was" }"#).await;
    owners.runs("apply -auto-approve").await;
    let before = serials(&scene).await;
    let workspace = text(&scene.workspace().await["id"]);
    let planner = someone_with(&scene, "plan", &workspace).await;
    let here = with_provider(&scene, &planner, &attempt(&scene, &workspace));
    here.runs("init").await;
    let done = here.does("plan", "").await;
    assert!(!done.success, "{}", done.said());
    // Engines show what a provider says that is none.
    says(&done.said(), REFUSED);
    assert_eq!(serials(&scene).await, before);
    assert_eq!(owners.runs("output -raw kept").await, "as it was");
    assert!(!scene.is_locked().await);
}

async fn what_an_apply_executes_cannot_either(scene: Scene) {
    let workspace = text(&scene.workspace().await["id"]);
    let resources = r#"
        resource "terraform_data" "one" {
          provisioner "local-exec" { command = "sh attempt.sh || true" }
        }
        output "kept" { value = "as it is" }
    "#;
    let here = scene.initialized(resources).await;
    here.write("attempt.sh", &attempt(&scene, &workspace));
    says(&here.runs("apply -auto-approve").await, REFUSED);
    assert_eq!(here.runs("output -raw kept").await, "as it is", "the agent itself sent the state");
    assert!(!serials(&scene).await.contains(&json!(77)));
    assert!(!scene.is_locked().await);
}
