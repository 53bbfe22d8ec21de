//! What the graph of states costs: to ask for all of it, to ask why, to look at it, to keep it up with each state, and to
//! make it from a bucket that had none.

use std::collections::BTreeSet;
use std::hint::black_box;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use axum::Router;
use axum::body::{Body, to_bytes};
use axum::http::header::HOST;
use axum::http::{Request, StatusCode};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use futures::StreamExt as _;
use harness::graph_states::{reading, state};
use harness::large_site::LargeSite;
use md5::{Digest as _, Md5};
use serde_json::{Value, json};
use taco_bench::{Sample, Table, ratio, time};
use taco_graph_picture::{Graph, sample};
use taco_ledger::Location;
use tower::ServiceExt as _;
use url::Url;

const UNITS: usize = 1_000;
const EDGES: usize = 3_000;
const TIMES: usize = 100;
const PUSHES: u64 = 40;
const OLD_WORKSPACES: usize = 200;
const OLD_VERSIONS: u64 = 50;
const HOST_NAME: &str = "taco.test";

#[tokio::main]
async fn main() {
    let mut table = Table::new("The graph of states, on a local directory");
    let home = tempfile::tempdir().expect("a directory");
    let bucket = Location::directory(home.path()).open().expect("a bucket");
    let site = LargeSite::on(std::sync::Arc::new(bucket)).await;
    let estate = sample::estate(UNITS, EDGES);
    let begun = Instant::now();
    let consumer = fill(&site, &estate).await;
    table.note(&format!("{UNITS} states that read {EDGES} others, pushed"), time(begun.elapsed()));

    let graph = "/api/v2/organizations/acme/graph";
    let begun = Instant::now();
    let first: Value = site.api.admin().get(graph).await.expect(StatusCode::OK).json();
    table.note("the graph, asked for the first time", time(begun.elapsed()));
    assert_eq!(first["data"]["attributes"]["units"].as_array().map(Vec::len), Some(UNITS));
    // A question examines only some of the units before it is answered; what follows is about all of them.
    let begun = Instant::now();
    while site.api.control_plane.examine_graphs().await.expect("examined") {}
    table.note("the rest of them, examined in the background", time(begun.elapsed()));
    let whole: Value = site.api.admin().get(graph).await.expect(StatusCode::OK).json();
    let attributes = &whole["data"]["attributes"];
    let count = |name: &str| attributes[name].as_array().map_or(0, Vec::len);
    assert_eq!(count("units"), UNITS);
    let pairs: BTreeSet<_> = estate.edges.iter().map(|edge| (&edge.consumer, &edge.producer)).collect();
    assert!(count("edges") >= pairs.len(), "{} of {} edges", count("edges"), pairs.len());
    table.note("its edges", count("edges"));
    compute_status(&site, &mut table).await;
    let why = format!("/api/v2/workspaces/{consumer}/why");
    for (what, path, limit) in [("status of all units and edges, by the API", graph, 50), ("why, of one unit", &why, 5)]
    {
        let mut taken = Vec::with_capacity(TIMES);
        for _ in 0..TIMES {
            let begun = Instant::now();
            site.api.admin().get(path).await.expect(StatusCode::OK);
            taken.push(begun.elapsed());
        }
        row(&mut table, what, Sample::of(taken).median(), limit);
    }

    let origin: Url = format!("http://{HOST_NAME}").parse().expect("an address");
    let pages = site.pages(&origin);
    for (what, path) in [
        ("page of the graph", "/app/acme/graph"),
        ("the same with a box for each unit", "/app/acme/graph?group=workspaces"),
        ("page of one unit's dependencies", &format!("/app/acme/workspaces/{}/dependencies", estate.edges[0].consumer)),
    ] {
        let mut taken = Vec::with_capacity(TIMES);
        let mut size = 0;
        for _ in 0..TIMES {
            let begun = Instant::now();
            size = get(&pages, path).await;
            taken.push(begun.elapsed());
        }
        row(&mut table, what, Sample::of(taken).median(), 100);
        table.row("  its size", format!("{} KB", size / 1000), "500 KB", size < 500_000);
    }
    push_states(&site, &mut table).await;
    take_in(&mut table).await;
    table.close();
}

/// Status as the rules compute it, without a door.
async fn compute_status(site: &LargeSite, table: &mut Table) {
    let plane = &site.api.control_plane;
    let org = plane.all_organizations().await.expect("organizations").remove(0);
    let state = plane.state(&org);
    let (mut all, mut one) = (Vec::with_capacity(TIMES), Vec::with_capacity(TIMES * UNITS));
    for _ in 0..TIMES {
        let begun = Instant::now();
        for workspace in state.workspaces.iter() {
            let begun = Instant::now();
            black_box(state.unit_status(workspace));
            one.push(begun.elapsed());
        }
        all.push(begun.elapsed());
    }
    row(table, "status of all units, as the rules compute it", Sample::of(all).median(), 50);
    row(table, "status of one unit (slowest of a hundred)", Sample::of(one).at(0.99), 1);
}

/// States of 1 MB whose outputs all change, and that read others; and states of the same size without any of it.
async fn push_states(site: &LargeSite, table: &mut Table) {
    let (mut taken, mut examining) = ([Vec::new(), Vec::new()], Vec::new());
    let mut ids = Vec::new();
    for name in ["pushed-without-outputs", "pushed-with-outputs"] {
        let id = site.api.given_workspace("acme", name).await;
        site.api.admin().act(&format!("/api/v2/workspaces/{id}/actions/lock")).await.expect(StatusCode::OK);
        ids.push(id);
    }
    for serial in 1..=PUSHES {
        for (kind, id) in ids.iter().enumerate() {
            let body = push_of(&large_state(serial, kind == 1));
            let path = format!("/api/v2/workspaces/{id}/state-versions");
            let begun = Instant::now();
            let pushed = site.api.admin().send("POST", &path, Some("application/vnd.api+json"), body).await;
            taken[kind].push(begun.elapsed());
            pushed.expect(StatusCode::CREATED);
            let begun = Instant::now();
            while site.api.control_plane.examine_graphs().await.expect("examined") {}
            if kind == 1 {
                examining.push(begun.elapsed());
            }
        }
    }
    let [without, with] = taken.map(|taken| Sample::of(taken).median());
    table.note("push of a state of 1 MB without outputs and reads", time(without));
    table.note("the same with 20 outputs that change and 3 reads", time(with));
    let added = (ratio(with, without) - 1.0) * 100.0;
    table.row("  what the output commit adds", format!("{added:.1} %"), "10 %", added < 10.0);
    table.note("  its evidence, in the background", time(Sample::of(examining).median()));
}

fn large_state(serial: u64, has_outputs: bool) -> Value {
    let outputs: Vec<(String, String)> =
        (0..20).map(|number| (format!("output-{number}"), format!("value-{serial:06}-{number:04}-4711"))).collect();
    let outputs: Vec<(&str, &str)> = outputs.iter().map(|(name, value)| (name.as_str(), value.as_str())).collect();
    let mut text = state(serial, if has_outputs { &outputs } else { &[] });
    let resources = (0..1_000).map(|number| {
        json!({ "mode": "managed", "type": "terraform_data", "name": format!("r{number}"),
            "provider": "provider[\"terraform.io/builtin/terraform\"]",
            "instances": [{ "schema_version": 0, "attributes": { "id": format!("{number:08}-2222-3333-4444-555555555555"),
                "input": { "value": format!("{number:08}-{}", "x".repeat(700)), "type": "string" } } }] })
    });
    text["resources"].as_array_mut().expect("a list").extend(resources);
    if has_outputs {
        for producer in 0..3 {
            text = reading(text, &format!("unit-{producer}"), &[("id", &format!("value-of-{producer:06}-4711"))]);
        }
    }
    text
}

fn push_of(state: &Value) -> String {
    let bytes = state.to_string();
    let attributes = json!({ "serial": state["serial"], "lineage": state["lineage"],
        "md5": hex::encode(Md5::digest(&bytes)), "state": STANDARD.encode(&bytes) });
    json!({ "data": { "type": "state-versions", "attributes": attributes } }).to_string()
}

/// A bucket of 10,000 state versions from before there was a graph, while the server serves.
async fn take_in(table: &mut Table) {
    let home = tempfile::tempdir().expect("a directory");
    let bucket = Location::directory(home.path()).open().expect("a bucket");
    let site = LargeSite::on(std::sync::Arc::new(bucket)).await;
    let mut ids = Vec::new();
    for number in 0..OLD_WORKSPACES {
        ids.push(site.api.given_workspace("acme", &format!("old-{number:04}")).await);
    }
    let write = |number: usize| {
        let (api, id) = (&site.api, &ids[number]);
        async move {
            for serial in 1..=OLD_VERSIONS {
                let mut text = state(serial, &[("id", &format!("value-of-{number:06}-{serial}"))]);
                if let Some(producer) = number.checked_sub(10) {
                    let read = format!("value-of-{producer:06}-{OLD_VERSIONS}");
                    text = reading(text, &format!("old-{producer:04}"), &[("id", &read)]);
                }
                api.given_state(id, &text).await;
            }
        }
    };
    futures::stream::iter((0..OLD_WORKSPACES).map(write)).buffer_unordered(16).collect::<Vec<()>>().await;
    site.api.forget_graph().await;
    let api = site.api.another().await;
    api.admin().get("/api/v2/organizations/acme/workspaces").await.expect(StatusCode::OK);
    let is_over = AtomicBool::new(false);
    let taking_in = async {
        let begun = Instant::now();
        while api.control_plane.examine_graphs().await.expect("examined") {
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
        is_over.store(true, Ordering::Relaxed);
        begun.elapsed()
    };
    let serving = async {
        let mut taken = Vec::new();
        while !is_over.load(Ordering::Relaxed) {
            let begun = Instant::now();
            api.admin().get(&format!("/api/v2/workspaces/{}", ids[0])).await.expect(StatusCode::OK);
            taken.push(begun.elapsed());
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
        Sample::of(taken)
    };
    let (taken, served) = tokio::join!(taking_in, serving);
    let what = format!("{} state versions from before, taken in", OLD_WORKSPACES as u64 * OLD_VERSIONS);
    table.row(&what, time(taken), "60 s", taken < Duration::from_secs(60));
    table.note("  a request for a workspace meanwhile (median)", time(served.median()));
    table.note("  the same (slowest of a hundred)", time(served.at(0.99)));
    let commits = api.admin().get(&format!("/api/v2/workspaces/{}/output-commits", ids[0])).await;
    let newest = commits.expect(StatusCode::OK).data()[0]["attributes"]["number"].as_u64();
    assert_eq!(newest, Some(OLD_VERSIONS), "each of them changed an output");
}

fn row(table: &mut Table, what: &str, median: Duration, milliseconds: u64) {
    table.row(what, time(median), format!("{milliseconds} ms"), median < Duration::from_millis(milliseconds));
}

/// Pushes a state for each unit, which has read those that it uses. The id of a unit that uses others.
async fn fill(site: &LargeSite, estate: &Graph) -> String {
    let mut one = String::new();
    for (number, unit) in estate.units.iter().enumerate() {
        let id = site.api.given_workspace("acme", &unit.name).await;
        let mut uses: Vec<&str> =
            estate.edges.iter().filter(|edge| edge.consumer == unit.name).map(|edge| edge.producer.as_str()).collect();
        uses.sort_unstable();
        uses.dedup();
        let value = format!("value-of-{number:06}-4711");
        let mut text = state(1, &[("id", &value), ("address", &format!("{value}.acme.test"))]);
        for producer in uses {
            let place = estate.units.iter().position(|unit| unit.name == producer).expect("a unit");
            text = reading(text, producer, &[("id", &format!("value-of-{place:06}-4711"))]);
            one.clone_from(&id);
        }
        site.api.given_state(&id, &text).await;
    }
    one
}

async fn get(pages: &Router, path: &str) -> usize {
    let request = Request::get(path).header(HOST, HOST_NAME).body(Body::empty()).expect("a request");
    let response = pages.clone().oneshot(request).await.expect("a router never fails");
    assert_eq!(response.status(), StatusCode::OK, "{path}");
    to_bytes(response.into_body(), usize::MAX).await.expect("a whole body").len()
}
