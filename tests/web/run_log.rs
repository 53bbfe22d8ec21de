//! Logs: as text, in parts, as they grow, and whatever is in them.

use std::sync::Arc;
use std::time::Duration;

use axum::http::StatusCode;
use harness::api_server::ApiServer;
use harness::browser::Page;
use harness::held_bucket::HeldBucket;
use harness::page_server::PageServer;
use serde_json::json;
use taco_ledger::{Bucket, ObjectBucket, layout};

use crate::run_scene::{NASTY, RunScene, applied, errored, is_harmless, planned};

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
    for part in ["3</a><span class=\"f1\">red</span>\n</div>", "4</a><span class=\"f1\">still</span>\n</div>"] {
        assert!(page.text.contains(part), "{part}: {}", page.text);
    }
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
    let page = look_until(&scene, &RunScene::address(&run), "<div id=\"p-L200000\">").await;
    assert!(page.text.len() < 1_000_000, "{} bytes", page.text.len());
    assert_eq!(page.text.matches("<div id=\"p-L").count(), 2000, "the page holds the last lines alone");
    assert!(page.text.contains("Refreshed 2000 resources"));
    assert!(page.text.contains("i-00199999") && page.text.contains("i-00198000") && !page.text.contains("i-00197999"));

    let earlier = page.text.split("hx-get=\"").nth(1).and_then(|rest| rest.split('"').next()).expect("a link");
    let part = scene.admin.get(&earlier.replace("&#38;", "&")).await;
    assert!(part.text.contains("i-00197999") && part.text.contains("i-00196000") && !part.text.contains("i-00198000"));
    assert!(part.text.contains("Load earlier lines"));
    let first = scene.admin.get(&format!("{}/log/plan/part?before=100", RunScene::address(&run))).await;
    assert!(first.text.contains("i-00000000") && !first.text.contains("Load earlier lines"), "{}", first.text);
    assert!(first.text.contains("<div id=\"p-L1\">"), "{}", first.text);

    let linked = scene.admin.get(&format!("{}?view=console&line=p-L120", RunScene::address(&run))).await;
    assert!(linked.text.contains("<div id=\"p-L120\"><a href=\"#p-L120\" tabindex=\"-1\">120</a>"), "{}", linked.text);
    assert!(linked.text.contains("i-00000119") && !linked.text.contains("i-00199999"));
    assert!(linked.text.contains("Show the log's last lines"));
    assert!(linked.text.contains(&format!("{:.1} MiB", offset as f64 / 1024.0 / 1024.0)), "as large as all of it");
    for anchor in ["p-L999999", "a-L1", "p-L", "p-L-1", "nonsense"] {
        let page = scene.admin.get(&format!("{}?line={anchor}", RunScene::address(&run))).await;
        assert!(page.text.contains("i-00199999"), "{anchor} is no line, so the end is shown");
    }
}

#[tokio::test]
async fn a_log_that_was_altered_in_the_bucket_is_not_shown_and_the_page_says_so() {
    let bucket: Arc<dyn Bucket> = Arc::new(ObjectBucket::in_memory());
    let scene = RunScene::on(PageServer::with(ApiServer::start_on(Arc::clone(&bucket)).await).await).await;
    let run = scene.given_run(json!({})).await;
    let phase = scene.take().await;
    scene.log(&phase, 0, "\u{2}what the engine said\n\u{3}").await;
    scene.finish(&phase, planned()).await;
    assert!(scene.look(&run).await.text.contains("what the engine said"));

    let org = scene.server.api.control_plane.all_organizations().await.expect("organizations").remove(0);
    let ledger = org.id().to_string().parse().expect("a legal name");
    let pieces = bucket.list(&layout::blobs(&ledger), None).await.expect("a listing");
    let pieces: Vec<_> = pieces.into_iter().filter(|key| key.as_str().starts_with(&layout::logs(&ledger))).collect();
    assert!(!pieces.is_empty());
    for key in &pieces {
        let sound = bucket.get(key).await.expect("read").expect("a piece").bytes;
        let mut altered = sound.to_vec();
        let last = altered.len() - 3;
        altered[last] ^= 1;
        bucket.put(key, altered.into()).await.expect("written");
    }
    // A server that has nothing of it in its memory.
    let other = PageServer::with(scene.server.api.another().await).await;
    let browser = other.browser();
    browser.cookie.replace(scene.admin.cookie.borrow().clone());
    let page = browser.get(&RunScene::address(&run)).await;
    assert_eq!(page.status, StatusCode::OK, "the rest of the page is as good as ever");
    assert!(page.text.contains("This log is damaged in the storage"), "{}", page.text);
    assert!(!page.text.contains("what the engine"), "{}", page.text);
}

/// Looks at a page until it says this.
async fn look_until(scene: &RunScene, address: &str, wanted: &str) -> Page {
    for _ in 0..1_200 {
        let page = scene.admin.get(address).await;
        if page.text.contains(wanted) {
            return page;
        }
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    panic!("{address} never says {wanted}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_page_waits_for_its_log_and_not_for_the_numbers_of_its_lines() {
    let bucket = HeldBucket::in_memory();
    let scene = RunScene::on(PageServer::with(ApiServer::start_on(bucket.clone()).await).await).await;
    let run = scene.given_run(json!({})).await;
    let phase = scene.take().await;
    let lines = |from: usize| (from..from + 10_000).map(|line| format!("this is line {line:09}\n")).collect::<String>();
    let mut offset = 0;
    for piece in 0..4 {
        let text = lines(piece * 10_000 + 1);
        scene.log(&phase, offset, text.clone()).await;
        offset += text.len();
    }
    // The log's first piece; the page needs the last ones.
    bucket.hold("/0000000001/00000000000000000000");
    let address = RunScene::address(&run);
    let page = scene.look(&run).await;
    let last = "<div>this is line 000040000\n</div>";
    assert!(page.text.contains(last) && page.text.contains("<div>this is line 000038001"), "{}", page.text);
    assert!(!page.text.contains("id=\"p-L"));
    let path = format!("{address}/events?from=plan:{offset}&seen=old");
    let (seen, ()) = tokio::join!(events_until(&scene, &path, None, "event: log"), async {
        scene.log(&phase, offset, "and one more\n").await;
    });
    assert!(seen.contains("<div>and one more") && !seen.contains("id=\"p-L"), "{seen}");
    let linked = scene.admin.get(&format!("{address}?view=console&line=p-L120")).await;
    assert!(linked.text.contains("still being counted") && linked.text.contains("and one more"), "{}", linked.text);

    // The counting goes on without further requests.
    bucket.let_go();
    let page = look_until(&scene, &address, "<div id=\"p-L40001\">").await;
    assert!(page.text.contains("40000</a>this is line 000040000\n"), "{}", page.text);
    let linked = scene.admin.get(&format!("{address}?view=console&line=p-L120")).await;
    assert!(linked.text.contains("120</a>this is line 000000120\n"), "{}", linked.text);
    assert!(!linked.text.contains("still being counted"));
}

#[tokio::test]
async fn a_link_finds_its_line_among_long_ones() {
    let scene = RunScene::start().await;
    let run = scene.given_run(json!({})).await;
    let phase = scene.take().await;
    // 400 lines of 20 kB, with two of 1 MB among them.
    let length = |number: usize| if matches!(number, 150 | 151) { 1_000_000 } else { 20_000 };
    let mut offset = 0;
    for number in 1..=400 {
        let line = format!("line {number:04} {}\n", "x".repeat(length(number) - 11));
        scene.log(&phase, offset, line.clone()).await;
        offset += line.len();
    }
    scene.finish(&phase, planned()).await;
    for number in [1, 2, 99, 100, 101, 120, 149, 150, 151, 152, 201, 374, 375, 399, 400] {
        let address = format!("{}?view=console&line=p-L{number}", RunScene::address(&run));
        let line =
            format!("<div id=\"p-L{number}\"><a href=\"#p-L{number}\" tabindex=\"-1\">{number}</a>line {number:04} ");
        let page = look_until(&scene, &address, &line).await;
        assert!(page.text.len() < 700_000, "{} bytes", page.text.len());
        assert_eq!(page.text.contains("Show the log's last lines"), number < 375, "{number}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_link_to_a_line_of_a_log_that_grows_does_not_bring_all_that_follows() {
    let scene = RunScene::start().await;
    let run = scene.given_run(json!({})).await;
    let phase = scene.take().await;
    let log: String = (1..=30_000).map(|line| format!("this is line {line:09}\n")).collect();
    scene.log(&phase, 0, log.clone()).await;
    let address = format!("{}?view=console&line=p-L120", RunScene::address(&run));
    let linked = look_until(&scene, &address, "120</a>this is line 000000120\n").await;
    assert!(linked.text.contains(&format!("data-from=\"plan:{}\"", log.len())), "{}", linked.text);
    assert!(!linked.text.contains("id=\"log-plan\"") && linked.text.contains("id=\"part-of-log-plan\""));
    assert!(linked.text.contains("Show the log's last lines"));
    let last = scene.look(&run).await;
    assert!(last.text.contains("id=\"log-plan\"") && !last.text.contains("Show the log's last lines"));
}

#[tokio::test]
async fn the_first_error_can_be_jumped_to_and_what_was_only_read_is_folded() {
    let scene = RunScene::start().await;
    let run = scene.given_run(json!({})).await;
    let phase = scene.take().await;
    let refreshed: String = (0..5).map(|number| format!("a.b[{number}]: Refreshing state... [id=1]\n")).collect();
    let error = "\u{1b}[31m╷\u{1b}[0m\n\u{1b}[31m│\u{1b}[0m \u{1b}[1m\u{1b}[31mError: \u{1b}[0mno such zone\n";
    scene.log(&phase, 0, format!("\u{2}Initializing...\n{refreshed}{error}\u{3}")).await;
    scene.finish(&phase, errored("exit status 1")).await;
    let page = scene.look(&run).await;
    assert!(page.text.contains("<details><summary>Refreshed 5 resources</summary><div id=\"p-L2\">"), "{}", page.text);
    assert!(page.text.contains("<a href=\"#p-L8\">First error</a>"), "{}", page.text);
    let line = page.text.split("<div id=\"p-L8\">").nth(1).expect("the line");
    assert!(line.split("</div>").next().is_some_and(|line| line.contains("no such zone")), "{line}");
    assert!(!page.text.contains("p-L9"), "the mark at the end is no line");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_is_planned_is_told_while_it_is_planned() {
    let scene = RunScene::start().await;
    let run = scene.given_run(json!({})).await;
    let phase = scene.take().await;
    let change = |address: &str| {
        let line = json!({
            "@level": "info", "@message": format!("{address}: Plan to create"), "type": "planned_change",
            "change": { "resource": { "addr": address }, "action": "create" },
        });
        format!("{line}\n")
    };
    let first = format!("\u{2}Initializing...\n{}", change("web_server.<one>"));
    scene.log(&phase, 0, first.clone()).await;
    let page = scene.look(&run).await;
    for part in ["1 planned so far", "create <code>web_server.&#60;one&#62;</code>"] {
        assert!(page.text.contains(part), "{part}: {}", page.text);
    }
    let path = format!("{}/events?from=plan:{}&seen=old", RunScene::address(&run), first.len());
    let (seen, ()) = tokio::join!(events_until(&scene, &path, None, "2 planned so far"), async {
        scene.log(&phase, first.len(), change("web_server.two")).await;
    });
    assert!(seen.contains("event: progress") && seen.contains("<code>web_server.two</code>"), "{seen}");
    assert!(seen.contains("<div id=\"p-L3\">"), "lines that come go on counting: {seen}");
    scene.finish(&phase, planned()).await;
    assert!(!scene.look(&run).await.text.contains("planned so far"), "now the plan itself is there");
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
    assert!(seen.contains("event: log") && seen.contains("<div id=\"p-L2\">"), "{seen}");
    assert!(seen.contains("2</a>two\n") && seen.contains("3</a><span class=\"f1\">three</span>"), "{seen}");
    assert!(!seen.contains("one"), "the page has it: {seen}");
    let id = seen.lines().filter_map(|line| line.strip_prefix("id: ")).next_back().expect("an id").to_owned();
    let (seen, ()) = tokio::join!(events_until(&scene, &path, Some(&id), "event: status"), async {
        scene.log(&phase, 20, "four\n\u{3}").await;
        scene.finish(&phase, planned()).await;
    });
    assert!(seen.contains("4</a>four") && !seen.contains("two"), "{seen}");
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
    for part in ["web_server.&#60;one&#62;: Creating...", "data-elapsed=\"0\"", "0 done, 1 running, 0 failed"] {
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
    assert!(seen.contains("UTC: no built-in agent is running"), "{seen}");
    let page = scene.look(&run).await;
    let log = page.text.split("id=\"log-plan\"").nth(1).expect("a log");
    assert!(log.contains("Waiting since ") && log.contains("UTC: no built-in agent is running"), "{log}");

    // Who has read so far goes on with the agent's first line.
    let (path, phase) = (events(&page), scene.take().await);
    let (seen, ()) = tokio::join!(events_until(&scene, &path, None, "2</a>one"), async {
        scene.log(&phase, 0, "\u{2}one\n").await;
    });
    assert!(!seen.contains("Waiting since") && !seen.contains('\u{2}'), "{seen}");
    scene.note_waits().await;
    scene.log(&phase, 5, "two\n\u{3}").await;
    scene.finish(&phase, planned()).await;
    let raw = scene.admin.get(&format!("{}/log/plan", RunScene::address(&run))).await.text;
    let lines: Vec<&str> = raw.lines().collect();
    assert!(lines[0].starts_with("Waiting since ") && lines[1..] == ["one", "two"], "{raw}");

    // An apply that no agent takes, until someone gives up on it.
    let confirm = scene.look(&run).await.form(&format!("{}/decisions/confirm", RunScene::address(&run)));
    scene.admin.send(&confirm, &[]).await;
    scene.note_waits().await;
    scene.note_waits().await;
    let apply = scene.admin.get(&format!("{}/log/apply", RunScene::address(&run))).await.text;
    assert_eq!(apply.matches("Waiting since ").count(), 1, "{apply}");
    assert!(scene.look(&run).await.text.contains("Why this apply did not begin at once:"));
}
