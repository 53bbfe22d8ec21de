//! The graph, output commits and walks with what is too large, odd or wrong: clear errors, and nothing is lost.

use axum::http::StatusCode;
use harness::api_server::{ApiServer, Client};
use harness::graph_states::{reading, state};
use harness::permission_site::attributes;
use serde_json::{Map, Value, json};

use crate::configuration_versions::given_configuration;
use crate::states::path_of;

const WALKS: &str = "/api/v2/organizations/acme/walks";

async fn why(admin: &Client, workspace: &str) -> Value {
    let why = admin.get(&format!("/api/v2/workspaces/{workspace}/why")).await.expect(StatusCode::OK);
    why.data()["attributes"].clone()
}

async fn graph(admin: &Client) -> Value {
    admin.get("/api/v2/organizations/acme/graph").await.expect(StatusCode::OK).data()["attributes"].clone()
}

async fn refused_walk(admin: &Client, wanted: Value) -> String {
    let refused = admin.post(WALKS, &attributes("walks", wanted)).await;
    assert!(refused.status.is_client_error(), "{}", refused.status);
    refused.error().0
}

/// A state with this one output more.
fn with_output(mut state: Value, name: &str, value: Value, kind: Value) -> Value {
    state["outputs"][name] = json!({ "value": value, "type": kind });
    state
}

#[tokio::test]
async fn a_walk_names_the_units_that_are_not_there() {
    let server = ApiServer::start().await;
    let admin = server.admin();
    for organization in ["acme", "globex"] {
        server.given_organization(organization).await;
    }
    server.given_workspace("acme", "network").await;
    let elsewhere = server.given_workspace("globex", "database").await;
    for (wanted, named) in [
        (json!({ "from": ["network", "databse"] }), "databse"),
        (json!({ "from": ["network", "database"] }), "database"),
        (json!({ "from": ["network", "globex/database"] }), "globex/database"),
        (json!({ "from": ["network", elsewhere] }), elsewhere.as_str()),
        (json!({ "from": ["network"], "to": ["database"] }), "database"),
        (json!({ "kind": "destroy", "from": ["database"] }), "database"),
    ] {
        let refused = refused_walk(&admin, wanted.clone()).await;
        let expected = format!("There is no workspace {named} in this organization, or you may not see it");
        assert_eq!(refused, expected, "{wanted}");
    }
    let none = admin.get(WALKS).await.json()["meta"]["pagination"]["total-count"].clone();
    assert_eq!(none, 0, "what is refused leaves nothing");
    for path in ["why", "output-commits", "dependencies"] {
        let unknown = format!("{}1111", &elsewhere[..elsewhere.len() - 4]);
        admin.get(&format!("/api/v2/workspaces/{unknown}/{path}")).await.expect(StatusCode::NOT_FOUND);
    }
    for wanted in ["nothing", "globex/database", elsewhere.as_str(), ""] {
        let network = admin.get("/api/v2/organizations/acme/workspaces/network").await.id();
        let body = attributes("dependencies", json!({ "producer": wanted }));
        let path = format!("/api/v2/workspaces/{network}/dependencies");
        let refused = admin.post(&path, &body).await.expect(StatusCode::UNPROCESSABLE_ENTITY).error();
        assert_eq!(refused.1.as_deref(), Some("/data/attributes/producer"), "{wanted:?}: {}", refused.0);
    }
    assert_eq!(graph(&admin).await["edges"], json!([]));
}

#[tokio::test]
async fn units_in_a_circle_have_a_status_and_no_order() {
    let server = ApiServer::start().await;
    let admin = server.admin();
    server.given_organization("acme").await;
    let mut ids = Vec::new();
    let units = ["one", "two", "three"];
    for name in units {
        let id = server.given_workspace("acme", name).await;
        given_configuration(&server, &id).await;
        ids.push(id);
    }
    let of = |name: &'static str| [("id", name)].map(|(key, name)| (key, format!("value-of-{name}-0123456789")));
    for (position, name) in units.iter().enumerate() {
        let [(key, own)] = of(name);
        let producer = units[(position + 1) % units.len()];
        let [(read_key, read)] = of(producer);
        let own = state(1, &[(key, own.as_str())]);
        server.given_state(&ids[position], &reading(own, producer, &[(read_key, read.as_str())])).await;
    }
    let document = graph(&admin).await;
    assert_eq!(document["edges"].as_array().map(Vec::len), Some(3), "{document:#}");
    for id in &ids {
        assert_eq!(why(&admin, id).await["freshness"], "clean");
    }
    for kind in ["plan", "apply", "destroy"] {
        for selection in [json!({ "from": ["one"] }), json!({ "all": true })] {
            let mut wanted = selection;
            wanted["kind"] = json!(kind);
            let refused = refused_walk(&admin, wanted).await;
            assert!(refused.starts_with("These workspaces use each other in a circle"), "{kind}: {refused}");
            assert!(refused.contains(" uses two") && refused.contains(" uses three"), "{refused}");
            assert!(refused.contains("Mute one of these dependencies"), "it says what to do: {refused}");
        }
    }
    // As it says: without one of the edges there is an order.
    let edge = admin.get(&format!("/api/v2/workspaces/{}/dependencies", ids[2])).await.data()[0]["id"].clone();
    let path = format!("/api/v2/dependencies/{}", edge.as_str().expect("an id"));
    admin.patch(&path, &attributes("dependencies", json!({ "muted": true }))).await.expect(StatusCode::OK);
    let walk = attributes("walks", json!({ "kind": "plan", "all": true }));
    let walk = admin.post(WALKS, &walk).await.expect(StatusCode::CREATED).id();
    let nodes = admin.get(&format!("/api/v2/walks/{walk}/nodes")).await.data();
    let order: Vec<_> = nodes.as_array().expect("nodes").iter().map(|node| &node["attributes"]["unit"]).collect();
    assert_eq!(order, ["three", "two", "one"]);
}

#[tokio::test]
async fn an_output_of_five_megabytes_is_compared_and_shown() {
    let server = ApiServer::start().await;
    let admin = server.admin();
    server.given_organization("acme").await;
    let network = server.given_workspace("acme", "network").await;
    let app = server.given_workspace("acme", "app").await;
    let large = |letter: &str| letter.repeat(5 * 1024 * 1024);
    let small = [("vpc_id", "vpc-0123456789")];
    let mut states = Vec::new();
    for (serial, letter) in [(1, "a"), (2, "b"), (3, "b")] {
        let state = with_output(state(serial, &small), "large", json!(large(letter)), json!("string"));
        states.push(server.given_state(&network, &state).await);
    }
    let commits = format!("/api/v2/workspaces/{network}/output-commits");
    assert_eq!(admin.get(&commits).await.data().as_array().map(Vec::len), Some(2), "the third state changed nothing");
    let comparison = format!("/api/v2/workspaces/{network}/output-comparison?from=1&to=2");
    let compared = admin.get(&comparison).await.expect(StatusCode::OK);
    let changes = compared.attribute("changes");
    assert_eq!(
        (&changes[0]["name"], &changes[0]["change"], changes[1].is_null()),
        (&json!("large"), &json!("value"), true)
    );
    assert_eq!(changes[0]["before"].as_str().map(str::len), Some(5 * 1024 * 1024), "no value is cut");

    let read = reading(state(1, &[]), "network", &small);
    server.given_state(&app, &read).await;
    assert_eq!(why(&admin, &app).await["freshness"], "clean");
    assert_eq!(graph(&admin).await["edges"][0]["outputs"], json!(["vpc_id"]));
    for state in states {
        let shown = admin.get(&format!("/api/v2/state-versions/{state}")).await.expect(StatusCode::OK);
        let bytes =
            admin.get(&path_of(&shown.attribute("hosted-state-download-url"))).await.expect(StatusCode::OK).bytes;
        assert!(bytes.len() > 5 * 1024 * 1024, "nothing of it is lost");
    }
}

#[tokio::test]
async fn ten_thousand_outputs_are_compared_as_a_whole() {
    let server = ApiServer::start().await;
    let admin = server.admin();
    server.given_organization("acme").await;
    let network = server.given_workspace("acme", "network").await;
    let app = server.given_workspace("acme", "app").await;
    let many = |serial: u64, changed: &str| {
        let outputs: Map<String, Value> = (0..10_000)
            .map(|number| {
                let value = if number == 5_000 { changed } else { "the same" };
                (format!("output_{number}"), json!({ "value": value, "type": "string" }))
            })
            .collect();
        let mut state = state(serial, &[]);
        state["outputs"] = outputs.into();
        state
    };
    for (serial, changed) in [(1, "a"), (2, "a"), (3, "b")] {
        server.given_state(&network, &many(serial, changed)).await;
    }
    let commits = admin.get(&format!("/api/v2/workspaces/{network}/output-commits")).await.expect(StatusCode::OK);
    assert_eq!(commits.data().as_array().map(Vec::len), Some(2), "the second state changed nothing");
    let compared = admin.get(&format!("/api/v2/workspaces/{network}/output-comparison?from=1&to=2")).await;
    assert_eq!(compared.expect(StatusCode::OK).attribute("changed"), true);

    let body = attributes("dependencies", json!({ "producer": "network", "outputs": ["output_5000"] }));
    admin.post(&format!("/api/v2/workspaces/{app}/dependencies"), &body).await.expect(StatusCode::CREATED);
    server.given_state(&app, &state(1, &[("own", "x")])).await;
    let told = why(&admin, &app).await;
    assert_eq!((&told["freshness"], &told["reasons"][0]["status"]), (&json!("unknown"), &json!("opaque")), "{told:#}");
    assert_eq!(graph(&admin).await["edges"][0]["status"], "opaque");
    let current = admin.get(&format!("/api/v2/workspaces/{network}/current-state-version")).await;
    assert_eq!(current.expect(StatusCode::OK).attribute("serial"), 3, "the state is kept as it is");
    // Fewer outputs can be read one by one again.
    server.given_state(&network, &state(4, &[("output_5000", "c")])).await;
    let newest = admin.get(&format!("/api/v2/workspaces/{network}/output-commits/newest")).await.expect(StatusCode::OK);
    assert_eq!(newest.attribute("outputs")[0]["value"], "c");
}

#[tokio::test]
async fn outputs_have_any_name_that_terraform_allows() {
    let server = ApiServer::start().await;
    let admin = server.admin();
    server.given_organization("acme").await;
    let network = server.given_workspace("acme", "network").await;
    let app = server.given_workspace("acme", "app").await;
    let long = "x".repeat(500);
    // Identifiers of HCL: letters of any script, digits, `_` and `-`, also composed of several characters.
    let names = [
        "a",
        "_",
        "_9",
        "a-b_c-9-",
        "A-",
        "größe",
        "вывод",
        "名前",
        "é",
        "e\u{301}",
        "क\u{94d}ष",
        "𝒳1",
        "ª",
        long.as_str(),
    ];
    let old: Vec<(String, String)> =
        names.iter().enumerate().map(|(number, name)| ((*name).to_owned(), format!("old-value-{number:04}"))).collect();
    let new: Vec<(String, String)> =
        old.iter().map(|(name, value)| (name.clone(), value.replace("old", "new"))).collect();
    let as_texts = |list: &[(String, String)]| -> Value {
        let mut made = state(1, &[]);
        for (name, value) in list {
            made["outputs"][name] = json!({ "value": value, "type": "string" });
        }
        made
    };
    let with_serial = |mut state: Value, serial: u64| {
        state["serial"] = json!(serial);
        state
    };
    server.given_state(&network, &with_serial(as_texts(&old), 1)).await;
    let read: Vec<(&str, &str)> = old.iter().map(|(name, value)| (name.as_str(), value.as_str())).collect();
    server.given_state(&app, &reading(state(1, &[]), "network", &read)).await;
    assert_eq!(why(&admin, &app).await["freshness"], "clean");
    server.given_state(&network, &with_serial(as_texts(&new), 2)).await;

    let mut expected: Vec<String> = names.iter().map(|name| (*name).to_owned()).collect();
    expected.sort_unstable();
    let listed = |list: &Value| -> Vec<String> {
        let mut names: Vec<String> = list
            .as_array()
            .expect("a list")
            .iter()
            .map(|one| one["name"].as_str().expect("a name").to_owned())
            .collect();
        names.sort_unstable();
        names
    };
    let comparison = format!("/api/v2/workspaces/{network}/output-comparison?from=1&to=2");
    assert_eq!(listed(&admin.get(&comparison).await.expect(StatusCode::OK).attribute("changes")), expected);
    let told = why(&admin, &app).await;
    assert_eq!(told["freshness"], "stale", "{told:#}");
    assert_eq!(listed(&told["reasons"][0]["outputs"]), expected);
    assert_eq!(graph(&admin).await["edges"][0]["outputs"], json!(expected));
    let svg = admin.get("/api/v2/organizations/acme/graph?format=svg").await;
    assert!(!svg.status.is_server_error(), "{}", svg.status);

    // Declared by name, one by one.
    let path = format!("/api/v2/workspaces/{app}/dependencies");
    for name in &names {
        let body = attributes("dependencies", json!({ "producer": "network", "outputs": [name] }));
        let made = admin.post(&path, &body).await.expect(StatusCode::CREATED);
        assert!(made.attribute("outputs").as_array().is_some_and(|outputs| outputs.contains(&json!(name))), "{name}");
    }
    let removed = with_serial(state(3, &[]), 3);
    server.given_state(&network, &removed).await;
    let told = why(&admin, &app).await;
    assert_eq!(told["freshness"], "broken", "{told:#}");
    assert_eq!(listed(&told["reasons"][0]["outputs"]), expected);
}
