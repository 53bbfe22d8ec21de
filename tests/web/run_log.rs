//! Logs: as text, in parts, as they grow, and whatever is in them.

use std::time::{Duration, Instant};

use axum::http::StatusCode;
use harness::browser::Page;
use serde_json::json;

use crate::run_scene::{NASTY, RunScene, applied, is_harmless, planned};

#[tokio::test]
async fn whatever_a_log_holds_stays_text() {
    let scene = RunScene::start().await;
    let run = scene.given_run(json!({})).await;
    let phase = scene.take().await;
    let log = format!(
        "\u{2}{NASTY}\n\u{1b}]8;;javascript:alert(1)\u{7}link\u{1b}]8;;\u{7}\u{202e}\n\u{1b}[31mred\nstill\u{1b}[0m\n\u{3}"
    );
    scene.log(&phase, 0, log.clone()).await;
    scene.finish(&phase, planned()).await;
    let page = scene.look(&run).await;
    is_harmless(&page);
    assert!(!page.text.contains("javascript:") && !page.text.contains('\u{202e}') && !page.text.contains('\u{1b}'));
    assert!(page.text.contains("<span class=\"f1\">red</span>\n<span class=\"f1\">still</span>"), "{}", page.text);
    let raw = scene.admin.get(&format!("{}/log/plan", RunScene::address(&run))).await;
    assert_eq!(raw.header("content-type"), "text/plain; charset=utf-8");
    assert_eq!(raw.header("x-content-type-options"), "nosniff");
    assert_eq!(raw.text, log.trim_matches(['\u{2}', '\u{3}']), "but for the marks at its ends");
    let apply = scene.admin.get(&format!("{}/log/apply", RunScene::address(&run))).await;
    assert_eq!((apply.status, apply.text.as_str()), (StatusCode::OK, ""));
    let nonsense = scene.admin.get(&format!("{}/log/nonsense", RunScene::address(&run))).await;
    assert_eq!(nonsense.status, StatusCode::NOT_FOUND);
}

#[tokio::test]
async fn a_log_of_200_000_lines_is_shown_in_parts() {
    let scene = RunScene::start().await;
    let run = scene.given_run(json!({})).await;
    let phase = scene.take().await;
    let mut offset = 0;
    for piece in 0..200 {
        let lines: String = (0..1000)
            .map(|line| {
                let number = piece * 1000 + line;
                format!("\u{1b}[32maws_instance.web[{number}]\u{1b}[0m: Refreshing state... [id=i-{number:08}]\n")
            })
            .collect();
        scene.log(&phase, offset, lines.clone()).await;
        offset += lines.len();
    }
    scene.finish(&phase, planned()).await;
    let begun = Instant::now();
    let page = scene.look(&run).await;
    let took = begun.elapsed();
    println!("a log of {offset} bytes: {} bytes in {took:?}", page.text.len());
    assert!(page.text.len() < 5_000_000, "{} bytes", page.text.len());
    assert!(took < Duration::from_secs(30), "{took:?}");
    assert!(page.text.contains("i-00199999") && page.text.contains("i-00198000") && !page.text.contains("i-00197999"));

    let earlier = page.text.split("hx-get=\"").nth(1).and_then(|rest| rest.split('"').next()).expect("a link");
    let part = scene.admin.get(&earlier.replace("&#38;", "&")).await;
    assert!(part.text.contains("i-00197999") && part.text.contains("i-00196000") && !part.text.contains("i-00198000"));
    assert!(part.text.contains("Load earlier lines"));
    let first = scene.admin.get(&format!("{}/log/plan/part?before=100", RunScene::address(&run))).await;
    assert!(first.text.contains("i-00000000") && !first.text.contains("Load earlier lines"), "{}", first.text);
}

/// Reads a stream of events until it has seen `wanted`, and returns all it read.
async fn events_until(scene: &RunScene, path: &str, last: Option<&str>, wanted: &str) -> String {
    let mut seen = String::new();
    let mut response = scene.admin.open(path, last).await;
    assert_eq!(response.headers()["content-type"], "text/event-stream");
    while !seen.contains(wanted) {
        let chunk = response.chunk().await.expect("the stream goes on");
        let Some(chunk) = chunk else { panic!("the stream ended before {wanted}: {seen}") };
        seen.push_str(std::str::from_utf8(&chunk).expect("text"));
    }
    seen
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_log_is_followed_and_goes_on_where_it_was_cut_off() {
    let scene = RunScene::start().await;
    let run = scene.given_run(json!({})).await;
    let phase = scene.take().await;
    scene.log(&phase, 0, "\u{2}one\ntw").await;
    let page = scene.look(&run).await;
    let value = |name: &str| {
        let text = page.text.split(&format!("{name}=\"")).nth(1).and_then(|rest| rest.split('"').next());
        text.unwrap_or_else(|| panic!("no {name}")).to_owned()
    };
    let path = format!("{}?from={}&seen={}", value("data-events"), value("data-from"), value("data-seen"));
    assert_eq!(value("data-from"), "plan:5", "the line that is not whole comes later");
    let (seen, ()) = tokio::join!(events_until(&scene, &path, None, "three"), async {
        scene.log(&phase, 7, "o\n\u{1b}[31mthree\n").await;
    });
    assert!(seen.contains("event: log") && seen.contains("data: two\ndata: <span class=\"f1\">three</span>"), "{seen}");
    assert!(!seen.contains("one"), "the page has it: {seen}");
    let id = seen.lines().filter_map(|line| line.strip_prefix("id: ")).next_back().expect("an id").to_owned();
    let (seen, ()) = tokio::join!(events_until(&scene, &path, Some(&id), "event: status"), async {
        scene.log(&phase, 20, "four\n\u{3}").await;
        scene.finish(&phase, planned()).await;
    });
    assert!(seen.contains("data: four") && !seen.contains("two"), "{seen}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn json_lines_are_read_as_sentences_and_as_progress() {
    let scene = RunScene::start().await;
    let run = scene.given_planned_run(json!({})).await;
    let confirm = scene.look(&run).await.form(&format!("{}/decisions/confirm", RunScene::address(&run)));
    scene.admin.send(&confirm, &[]).await;
    let phase = scene.take().await;
    let hook = |kind: &str, message: &str, seconds: u32| {
        let line = json!({
            "@level": "info", "@message": message, "type": kind,
            "hook": { "resource": { "addr": "web_server.<one>" }, "action": "create", "elapsed_seconds": seconds },
        });
        format!("{line}\n")
    };
    let first = format!("\u{2}Initializing...\n{}", hook("apply_start", "web_server.<one>: Creating...", 0));
    scene.log(&phase, 0, first.clone()).await;
    let page = scene.look(&run).await;
    for part in ["web_server.&#60;one&#62;: Creating...", "under way", "0 done, 1 under way, 0 failed"] {
        assert!(page.text.contains(part), "{part}: {}", page.text);
    }
    let path = format!("{}/events?from=apply:{}&seen=old", RunScene::address(&run), first.len());
    let (seen, ()) = tokio::join!(events_until(&scene, &path, None, "1 done"), async {
        scene.log(&phase, first.len(), hook("apply_complete", "web_server.<one>: Creation complete", 61)).await;
    });
    assert!(seen.contains("event: progress") && seen.contains("1:01"), "{seen}");
    let error = json!({
        "@level": "error", "@message": "Error: no", "type": "diagnostic",
        "diagnostic": { "severity": "error", "summary": NASTY, "detail": "because" },
    });
    let at = first.len() + hook("apply_complete", "web_server.<one>: Creation complete", 61).len();
    scene.log(&phase, at, format!("{error}\n\u{3}")).await;
    scene.finish(&phase, applied()).await;
    let page = scene.look(&run).await;
    assert!(page.text.contains("✗ Error") && page.text.contains("because"), "{}", page.text);
    is_harmless(&page);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_log_begins_with_why_the_run_waited_and_goes_on_with_what_the_agent_says() {
    let scene = RunScene::start().await;
    let run = scene.given_run(json!({})).await;
    let page = scene.look(&run).await;
    let events = |page: &Page| {
        let value = |name: &str| {
            let text = page.text.split(&format!("{name}=\"")).nth(1).and_then(|rest| rest.split('"').next());
            text.unwrap_or_else(|| panic!("no {name}")).to_owned()
        };
        format!("{}?from={}&seen={}", value("data-events"), value("data-from"), value("data-seen"))
    };
    assert!(page.text.contains("There is no log yet."), "{}", page.text);
    let path = events(&page);
    let (seen, ()) = tokio::join!(events_until(&scene, &path, None, "event: status"), scene.note_waits());
    assert!(seen.contains("UTC: no server has an agent within"), "{seen}");
    let page = scene.look(&run).await;
    let log = page.text.split("id=\"log-plan\"").nth(1).expect("a log");
    assert!(log.contains("Waiting since ") && log.contains("UTC: no server has an agent within"), "{log}");

    // Who has read so far goes on with the agent's first line.
    let (path, phase) = (events(&page), scene.take().await);
    let (seen, ()) = tokio::join!(events_until(&scene, &path, None, "data: one"), async {
        scene.log(&phase, 0, "\u{2}one\n").await;
    });
    assert!(!seen.contains("Waiting since") && !seen.contains('\u{2}'), "{seen}");
    scene.note_waits().await;
    scene.log(&phase, 5, "two\n\u{3}").await;
    scene.finish(&phase, planned()).await;
    let raw = scene.admin.get(&format!("{}/log/plan", RunScene::address(&run))).await.text;
    let lines: Vec<&str> = raw.lines().collect();
    assert!(lines[0].starts_with("Waiting since ") && lines[1..] == ["one", "two"], "{raw}");

    // An apply that nobody takes, until someone gives up on it.
    let confirm = scene.look(&run).await.form(&format!("{}/decisions/confirm", RunScene::address(&run)));
    scene.admin.send(&confirm, &[]).await;
    scene.note_waits().await;
    scene.note_waits().await;
    let apply = scene.admin.get(&format!("{}/log/apply", RunScene::address(&run))).await.text;
    assert_eq!(apply.matches("Waiting since ").count(), 1, "{apply}");
    assert!(scene.look(&run).await.text.contains("Why this apply did not begin at once:"));
}
