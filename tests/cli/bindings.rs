use std::fs;

use harness::api_client::ApiClient;
use serde_json::json;

use crate::person::{Person, TOKEN};

/// `acme/network` with an output, shared with all, and `acme/web`.
async fn person() -> Person {
    let person = Person::with_workspace();
    person.succeeds(&["ws", "create", "acme/web"]);
    let origin = format!("http://{}", person.server.address);
    let api = ApiClient { origin, client: reqwest::Client::new(), token: TOKEN.to_owned() };
    let body = json!({ "data": { "type": "workspaces", "attributes": { "global-remote-state": true } } });
    api.patch("/api/v2/organizations/acme/workspaces/network", body).await;
    let state = json!({ "version": 4, "terraform_version": "1.11.4", "serial": 1, "lineage": "one", "resources": [],
        "outputs": { "vpc_id": { "value": "vpc-1", "type": "string" } } });
    fs::write(person.home.path().join("it.tfstate"), state.to_string()).expect("it is written");
    person.succeeds(&["state", "push", "it.tfstate", "--ws", "acme/network"]);
    person
}

#[tokio::test(flavor = "multi_thread")]
async fn a_variable_is_bound_listed_and_let_go() {
    let person = person().await;
    let made = person.succeeds(&["bind", "acme/web", "vpc", "network", "vpc_id"]).stdout;
    assert_eq!(made, "Bound variable vpc of acme/web to vpc_id of network.\n");
    let env = person.json(&["bind", "add", "acme/web", "VPC", "acme/network", "vpc_id", "--env"]);
    assert_eq!((&env["key"], &env["category"], &env["producer"]), (&json!("VPC"), &json!("env"), &json!("network")));

    let list = person.succeeds(&["bind", "ls", "acme/web"]);
    assert_eq!(list.stdout.lines().next(), Some("KEY\tCATEGORY\tPRODUCER\tOUTPUT\tPROBLEM"));
    assert_eq!(list.rows(), [["VPC", "env", "network", "vpc_id", ""], ["vpc", "terraform", "network", "vpc_id", ""]]);
    let variables = person.succeeds(&["var", "ls", "--ws", "acme/web"]);
    assert_eq!(variables.rows()[1][..3], ["vpc", "from network → vpc_id", "terraform"]);
    let all = person.succeeds(&["var", "ls", "--all", "--ws", "acme/web"]);
    assert_eq!(all.rows()[0][1], "from network → vpc_id");
    let why = person.succeeds(&["deps", "ls", "acme/web"]);
    assert_eq!(why.rows()[0][..2], ["web", "network"]);
    assert!(why.stdout.contains("binding"), "{}", why.stdout);

    let unsure = person.fails(2, &["bind", "rm", "acme/web", "vpc"]);
    assert!(unsure.contains("--yes"), "{unsure}");
    person.succeeds(&["bind", "rm", "acme/web", "vpc", "--yes"]);
    assert_eq!(person.json(&["bind", "rm", "acme/web", "VPC", "--env", "--yes"])["deleted"], true);
    let gone = person.fails(3, &["bind", "rm", "acme/web", "vpc", "--yes"]);
    assert!(gone.contains("taco bind ls acme/web"), "{gone}");
    assert_eq!(person.json(&["bind", "ls", "acme/web"]), json!([]));
}

#[tokio::test(flavor = "multi_thread")]
async fn what_cannot_be_bound_is_told() {
    let person = person().await;
    let missing = person.fails(1, &["bind", "acme/web", "vpc", "network", "vpcid"]);
    assert!(missing.contains("network has no output \"vpcid\". It has vpc_id"), "{missing}");
    let elsewhere = person.fails(2, &["bind", "acme/web", "vpc", "other/network", "vpc_id"]);
    assert!(elsewhere.contains("bindings are within one organization"), "{elsewhere}");
    person.succeeds(&["var", "set", "vpc=mine", "--ws", "acme/web"]);
    let taken = person.fails(1, &["bind", "acme/web", "vpc", "network", "vpc_id"]);
    assert!(taken.contains("web has a variable vpc of its own"), "{taken}");
    let unfinished = person.does(&["bind", "acme/web", "vpc", "network"]);
    assert!(unfinished.code == 2 && unfinished.stderr.contains("<OUTPUT>"), "{unfinished:?}");
}
