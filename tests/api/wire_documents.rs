//! Documents as they go over the wire: what every route of the table answers a site admin, as snapshots. An attribute,
//! relationship or link that gets another name fails here, and a new route has no snapshot until one is accepted:
//! `INSTA_UPDATE=always cargo test --workspace --test api wire_documents` writes them, `git diff` shows what changed.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use axum::http::StatusCode;
use axum::http::header::CONTENT_TYPE;
use harness::api_server::Answer;
use serde_json::{Value, json};
use taco_tfc_api::routes::{self, Route};

use crate::permissions::Fixture;

/// Related resources that can be asked for, by the last segments of a path.
const INCLUDES: &[(&str, &str)] = &[
    ("/workspaces", WITH_WORKSPACE),
    ("/workspaces/{workspace}", WITH_WORKSPACE),
    ("/runs", WITH_RUN),
    ("/runs/{run}", WITH_RUN),
    ("/runs/queue", WITH_RUN),
    ("/run-events", "actor,comment"),
    ("/run-events/{run_event}", "actor,comment"),
    ("/run-triggers", "workspace,sourceable"),
    ("/run-triggers/{run_trigger}", "workspace,sourceable"),
    ("/teams", "users,organization-memberships"),
    ("/teams/{team}", "users,organization-memberships"),
    ("/organization-memberships", "user"),
    ("/organization-memberships/{membership}", "user,teams"),
    ("/projects", "effective_tag_bindings"),
    ("/projects/{project}", "effective_tag_bindings"),
    ("/varsets", "vars,workspaces,projects"),
    ("/varsets/{variable_set}", "vars,workspaces,projects"),
    ("/current-state-version", "outputs,created_by"),
    ("/state-versions/{state_version}", "outputs,created_by"),
];
const WITH_WORKSPACE: &str = "organization,project,readme,current_run.plan,current_run.configuration_version,locked_by,\
                              current_state_version,outputs,effective_tag_bindings,current_configuration_version";
const WITH_RUN: &str = "plan,apply,cost_estimate,workspace,configuration_version,created_by,x";

/// A site in which every relationship of every resource leads somewhere.
async fn site() -> Fixture {
    let fixture = Fixture::new().await;
    let admin = fixture.server.admin();
    let named = |word: &str| fixture.names[word].clone();
    let list = |kind: &str, id: String| json!({ "data": [{ "type": kind, "id": id }] });
    let set = format!("/api/v2/varsets/{}/relationships", named("variable_set"));
    for (path, body) in [
        (format!("{set}/workspaces"), list("workspaces", named("workspace"))),
        (format!("{set}/projects"), list("projects", named("project"))),
        (format!("/api/v2/teams/{}/relationships/users", named("team")), list("users", named("username"))),
        (
            format!("/api/v2/workspaces/{}/relationships/remote-state-consumers", named("workspace")),
            list("workspaces", named("source")),
        ),
    ] {
        admin.post(&path, &body).await.expect(StatusCode::NO_CONTENT);
    }
    let tags = json!({ "data": [{ "type": "tag-bindings", "attributes": { "key": "region", "value": "eu" } }] });
    let path = format!("/api/v2/projects/{}/tag-bindings", named("project"));
    admin.patch(&path, &tags).await.expect(StatusCode::OK);
    let pool = json!({ "data": { "type": "agent-pools", "relationships": {
        "allowed-workspaces": list("workspaces", named("workspace")),
        "allowed-projects": list("projects", named("project")),
        "excluded-workspaces": list("workspaces", named("source")),
    } } });
    admin.patch(&format!("/api/v2/agent-pools/{}", named("pool")), &pool).await.expect(StatusCode::OK);
    fixture
}

/// Ids and secrets differ from site to site: those that the fixture knows get its names, others their prefix. So do the
/// ports of receivers.
fn redacted(fixture: &Fixture, text: &str) -> String {
    const RECEIVER: &str = "http://127.0.0.1:";
    let mut places = text.split(RECEIVER);
    let first = redacted_words(fixture, places.next().unwrap_or_default());
    places.fold(first, |before, place| {
        let after = place.trim_start_matches(|character: char| character.is_ascii_digit());
        before + RECEIVER + "{port}" + &redacted_words(fixture, after)
    })
}

fn redacted_words(fixture: &Fixture, text: &str) -> String {
    let is_part = |character: char| character.is_ascii_alphanumeric() || character == '-' || character == '_';
    let mut redacted = String::new();
    let mut rest = text;
    while !rest.is_empty() {
        let length = rest.find(|character| !is_part(character)).unwrap_or(rest.len());
        let (word, further) = rest.split_at(length);
        redacted.push_str(&redacted_word(fixture, word));
        let next = further.find(is_part).unwrap_or(further.len());
        redacted.push_str(&further[..next]);
        rest = &further[next..];
    }
    redacted
}

fn redacted_word(fixture: &Fixture, word: &str) -> String {
    let known = fixture.names.iter().find(|(name, id)| id.as_str() == word && !["log", "pass"].contains(*name));
    if let Some((name, _)) = known.filter(|_| word.len() > 16) {
        return format!("{{{name}}}");
    }
    let alphanumeric = |text: &str| text.bytes().all(|byte| byte.is_ascii_alphanumeric());
    // The end of a signed address: until when, for whom, and the signature.
    let signature = word.rsplit_once('_').map(|(_, signature)| signature).filter(|_| !word.starts_with("taco_"));
    if signature.is_some_and(|signature| signature.len() >= 32 && alphanumeric(signature)) {
        return "{signature}".to_owned();
    }
    match word.rsplit_once('-') {
        Some((kind, id)) if id.len() == 16 && alphanumeric(id) => format!("{{{kind}}}"),
        // An event of an audit trail.
        Some((commit, _)) if commit.len() >= 32 && alphanumeric(commit) => "{event}".to_owned(),
        _ if word.starts_with("taco_") && word.len() > 20 => "{secret}".to_owned(),
        _ if word.len() >= 32 && alphanumeric(word) => "{digest}".to_owned(),
        _ => word.to_owned(),
    }
}

/// The first few items of a list represent all of them.
fn shortened(mut document: Value) -> Value {
    const SHOWN: usize = 3;
    let document_is_trail = document.get("pagination").is_some();
    if let Some(items) = document.get_mut("data").and_then(Value::as_array_mut)
        && items.len() > SHOWN
    {
        let more = items.len() - SHOWN;
        items.truncate(SHOWN);
        let more = if document_is_trail { "and more".to_owned() } else { format!("and {more} more") };
        items.push(more.into());
    }
    document
}

/// Commits of several requests may go together, so that an audit trail's commits are not always as many.
fn without_commits(mut document: Value) -> Value {
    if let Some(total) = document.pointer_mut("/pagination/total_count") {
        *total = "{commits}".into();
    }
    for event in document.get_mut("data").and_then(Value::as_array_mut).into_iter().flatten() {
        if let Some(commit) = event.pointer_mut("/resource/meta/commit") {
            *commit = "{commit}".into();
        }
    }
    document
}

fn told(fixture: &Fixture, answer: &Answer) -> String {
    let document = match serde_json::from_slice::<Value>(&answer.bytes) {
        Ok(document) => serde_json::to_string_pretty(&without_commits(shortened(document))).expect("JSON"),
        Err(_) if answer.bytes.is_empty() => return format!("{}\n", answer.status),
        Err(_) => "(no JSON)".to_owned(),
    };
    let kind = answer.headers.get(CONTENT_TYPE).and_then(|value| value.to_str().ok()).unwrap_or("no content type");
    format!("{} {kind}\n{}\n", answer.status, redacted(fixture, &document))
}

/// The noun that a path is about: each has one snapshot.
fn noun(route: &Route) -> &'static str {
    let path = route.path.trim_start_matches('/').trim_start_matches("api/v2/");
    let within = path.strip_prefix("organizations/{organization}/").unwrap_or(path);
    within.split('/').next().unwrap_or(within)
}

async fn answers(method_is: impl Fn(&str) -> bool) -> BTreeMap<&'static str, String> {
    let mut told_by_noun: BTreeMap<&'static str, String> = BTreeMap::new();
    let mut fixture = site().await;
    for route in routes::all() {
        for method in route.methods.iter().filter(|method| method_is(method)) {
            for number in 0..fixture.requests(&route).len() {
                let path = fixture.requests(&route).swap_remove(number).path;
                let include = INCLUDES.iter().find(|(end, _)| *method == "GET" && route.path.ends_with(end));
                let separator = if path.contains('?') { '&' } else { '?' };
                let with_include = include.map(|(_, names)| format!("{path}{separator}include={names}"));
                for path in [Some(path), with_include].into_iter().flatten() {
                    let answer = fixture.send(&fixture.server.admin(), &route, method, &path).await;
                    let section = told_by_noun.entry(noun(&route)).or_default();
                    writeln!(section, "{method} {}", redacted(&fixture, &path)).expect("a text takes everything");
                    section.push_str(&told(&fixture, &answer));
                    section.push('\n');
                    if *method != "GET" && answer.status.is_success() {
                        fixture = site().await;
                    }
                }
            }
        }
    }
    told_by_noun
}

fn check(kind: &str, told_by_noun: BTreeMap<&'static str, String>) {
    let mut settings = insta::Settings::clone_current();
    settings.set_snapshot_path("wire_documents");
    settings.set_prepend_module_to_snapshot(false);
    settings.set_omit_expression(true);
    settings.bind(|| {
        for (noun, told) in told_by_noun {
            insta::assert_snapshot!(format!("{noun}-{kind}"), told);
        }
    });
}

#[tokio::test(flavor = "multi_thread")]
async fn documents_that_are_read_look_as_they_always_did() {
    check("read", answers(|method| method == "GET").await);
}

#[tokio::test(flavor = "multi_thread")]
async fn answers_to_writes_look_as_they_always_did() {
    check("write", answers(|method| method != "GET").await);
}
