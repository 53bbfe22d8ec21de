//! Response times of pages, the transfer size of a first visit, and what dashboards cost that are open while nothing happens.

use std::collections::BTreeSet;
use std::time::{Duration, Instant};

use axum::Router;
use axum::body::{Body, to_bytes};
use axum::http::header::{ACCEPT_ENCODING, HOST};
use axum::http::{Request, StatusCode};
use bytes::Bytes;
use harness::browser::Browser;
use harness::home::{Home, ServerProcess};
use harness::large_site::LargeSite;
use reqwest::Client;
use taco_bench::{Sample, Table, time};
use taco_ledger::Location;
use taco_server::http;
use tokio::time::sleep_until;
use tower::ServiceExt as _;
use url::Url;

const TIMES: usize = 300;
const HOST_NAME: &str = "taco.test";

#[tokio::main]
async fn main() {
    let mut table = Table::new("Pages, on a local directory");
    let home = tempfile::tempdir().expect("a directory");
    let location = Location::directory(home.path());
    let site = LargeSite::on(std::sync::Arc::new(location.open().expect("a bucket"))).await;
    site.add_workspaces(5_000).await;
    let short = site.add_run("short", 300, 100).await;
    let long = site.add_run("long", 200_000, 100).await;
    let origin: Url = format!("http://{HOST_NAME}").parse().expect("an address");
    let bare = site.pages(&origin);
    let pages = http::packed(bare.clone());

    for (what, path, limit) in [
        ("dashboard, 5,000 workspaces", "/app/acme", 5),
        ("list of 5,000 workspaces", "/app/acme/workspaces", 5),
        ("search in 5,000 workspaces", "/app/acme/search?q=work+04", 5),
        ("list of 5,000 workspaces, filtered", "/app/acme/workspaces?search=042", 5),
        ("run page, plan of 100 resources", short.as_str(), 5),
        ("run page, log of 200,000 lines", long.as_str(), 1_000),
        ("the same as the console shows it", &format!("{long}?view=console"), 1_000),
    ] {
        let limit = Duration::from_millis(limit);
        let median = median(&bare, path).await;
        table.row(&format!("{what}: median"), time(median), format!("{} ms", limit.as_millis()), median < limit);
        let whole = get(&bare, path, false).await.len();
        table.row(&format!("{what}: whole page"), kilobytes(whole), "5000 KB", whole < 5_000_000);
        let transferred = first_visit(&pages, path).await;
        table.row(&format!("{what}: first visit"), kilobytes(transferred), "120 KB", transferred < 120_000);
    }
    let share = share_of_a_core(OPEN_DASHBOARDS).await;
    let what = format!("{OPEN_DASHBOARDS} open dashboards while nothing happens: share of a core");
    table.row(&what, format!("{:.1} %", share * 100.0), "5 %", share < 0.05);
    table.close();
}

const OPEN_DASHBOARDS: u32 = 200;

/// How often `static/live.js` asks for a dashboard that is open, and for how long that is measured.
const LIVE_INTERVAL: Duration = Duration::from_secs(5);
const ROUNDS: u32 = 6;

/// CPU time of a server, as a share of the time that passes, while so many browsers have a dashboard open and ask whether
/// it is as they know it.
async fn share_of_a_core(dashboards: u32) -> f64 {
    let home = Home::default();
    let server = ServerProcess::start(home.taco(&["server"]).env("TACO_LISTEN", "127.0.0.1:0"));
    let browser = Browser::at(format!("http://{}", server.address), Client::builder());
    browser.set_password(&home.setup_link(&[])).await;
    let form = browser.get("/app").await.form("/app/organizations");
    browser.send(&form, &[("name", "acme"), ("email", "ops@acme.test")]).await;
    let cookie = browser.cookie.borrow().clone().expect("a session");
    let path = format!("http://{}/app/acme", server.address);

    // Each has a connection of its own, as browsers do.
    let clients: Vec<Client> =
        (0..dashboards).map(|_| Client::builder().no_proxy().build().expect("a client")).collect();
    let ask = |client: &Client, version: &str| {
        let request = client.get(&path).header("cookie", &cookie).header("hx-request", "true");
        let asked = request.header("if-none-match", version).send();
        async move { asked.await.expect("the server answers") }
    };
    let first = ask(&clients[0], "").await;
    let version = first.headers().get("etag").expect("a version").to_str().expect("text").to_owned();
    // Connections are made before the clock runs.
    futures::future::join_all(clients.iter().map(|client| ask(client, &version))).await;

    let (before, begun) = (cpu_time(server.process.id()), Instant::now());
    let asking = clients.iter().zip(0..).map(|(client, number)| {
        let (ask, version) = (&ask, &version);
        async move {
            // Nobody opens all of them at the same moment.
            let first = begun + LIVE_INTERVAL * number / dashboards;
            for round in 0..ROUNDS {
                sleep_until((first + LIVE_INTERVAL * round).into()).await;
                assert_eq!(ask(client, version).await.status().as_u16(), 304, "nothing has happened");
            }
        }
    });
    futures::future::join_all(asking).await;
    let cpu = cpu_time(server.process.id()) - before;
    cpu.as_secs_f64() / begun.elapsed().as_secs_f64()
}

/// CPU time that a process has taken, in user and kernel mode.
fn cpu_time(process: u32) -> Duration {
    let stat = std::fs::read_to_string(format!("/proc/{process}/stat")).expect("it runs");
    // The name, which is in parentheses, may have spaces.
    let fields: Vec<&str> = stat.rsplit(')').next().expect("a last part").split_whitespace().collect();
    let ticks: u64 = [11, 12].map(|at| fields[at].parse::<u64>().expect("a number")).iter().sum();
    // The kernel counts in hundredths of a second wherever Linux runs.
    Duration::from_millis(ticks * 10)
}

async fn median(pages: &Router, path: &str) -> Duration {
    let mut taken = Vec::with_capacity(TIMES);
    for _ in 0..TIMES {
        let begun = Instant::now();
        get(pages, path, false).await;
        taken.push(begun.elapsed());
    }
    Sample::of(taken).median()
}

async fn get(pages: &Router, path: &str, packed: bool) -> Bytes {
    let encoding = if packed { "gzip" } else { "identity" };
    let request = Request::get(path).header(HOST, HOST_NAME).header(ACCEPT_ENCODING, encoding);
    let request = request.body(Body::empty()).expect("a request");
    let response = pages.clone().oneshot(request).await.expect("a router never fails");
    assert_eq!(response.status(), StatusCode::OK, "{path}");
    to_bytes(response.into_body(), usize::MAX).await.expect("a whole body")
}

/// The bytes of a page and of all files that it names, as they are packed on their way.
async fn first_visit(pages: &Router, path: &str) -> usize {
    let page = get(pages, path, false).await;
    let page = String::from_utf8_lossy(&page);
    let files: BTreeSet<&str> = page.split('"').filter(|text| text.starts_with("/static/")).collect();
    let mut transferred = get(pages, path, true).await.len();
    for file in files {
        transferred += get(pages, file, true).await.len();
    }
    transferred
}

fn kilobytes(bytes: usize) -> String {
    format!("{:.1} KB", bytes as f64 / 1000.0)
}
