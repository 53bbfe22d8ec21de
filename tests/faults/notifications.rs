//! `kill -9` of a server while it delivers notifications. Every one arrives, those that arrive twice carry the same id, and
//! nothing is told that did not happen.

use std::collections::{BTreeMap, BTreeSet};
use std::process::Command;

use harness::cuttable_proxy::CuttableProxy;
use harness::home::ServerProcess;
use harness::run_site::{RunSite, admin_of, run_that_applies_itself, text};
use harness::webhook_receiver::{Received, WebhookReceiver};
use serde_json::json;

/// In seconds: no agent is given up here.
const LEASE: u16 = 60;
const TOLD: [&str; 4] = ["run:created", "run:planning", "run:applying", "run:completed"];
const RUNS: usize = 2;

fn reaching_the_receiver(mut command: Command) -> ServerProcess {
    ServerProcess::start(command.env("TACO_OUTBOUND_ALLOW", "127.0.0.0/8"))
}

/// What came about runs: for each run and trigger, the ids under which it came, and how often.
fn told(received: &[Received]) -> BTreeMap<(String, String), (BTreeSet<String>, usize)> {
    let mut told: BTreeMap<_, (BTreeSet<String>, usize)> = BTreeMap::new();
    for one in received.iter().filter(|one| one.trigger() != "verification") {
        let entry = told.entry((text(&one.json()["run_id"]), one.trigger())).or_default();
        entry.0.insert(one.delivery());
        entry.1 += 1;
    }
    told
}

/// The server dies while the receiver has a notification and has not answered it: nobody knows that it arrived.
#[tokio::test(flavor = "multi_thread")]
async fn a_server_can_be_killed_in_the_middle_of_every_delivery() {
    let receiver = WebhookReceiver::start().await;
    let start = |site: &RunSite| reaching_the_receiver(site.server_command(None));
    let (site, mut server) = RunSite::founded_by(None, LEASE, start).await;
    let proxy = CuttableProxy::to(&server.address).await;
    let admin = admin_of(proxy.address().trim_start_matches("http://"));
    let workspace = site.given_workspace(&admin, "web").await;
    let hook = json!({ "data": { "attributes": { "name": "hook", "destination-type": "generic", "enabled": true,
        "url": receiver.url(), "triggers": TOLD } } });
    admin.post(&format!("/api/v2/workspaces/{workspace}/notification-configurations"), hook).await;
    let agent = site.agent("one", &proxy.address());
    receiver.leaves_first_attempts_unanswered();
    let mut runs = Vec::new();
    for round in 0..RUNS {
        let run = text(&admin.post("/api/v2/runs", run_that_applies_itself(&workspace)).await["data"]["id"]);
        for trigger in TOLD {
            let times = |received: &[Received]| {
                told(received).get(&(run.clone(), trigger.to_owned())).map_or(0, |(_, times)| *times)
            };
            receiver.until(&format!("{trigger} of run {round}"), |received| times(received) > 0).await;
            let next = tokio::task::block_in_place(|| start(&site));
            proxy.redirect_to(&next.address);
            // Dropping the old process kills it with SIGKILL.
            drop(std::mem::replace(&mut server, next));
            receiver.until(&format!("{trigger} of run {round}, again"), |received| times(received) > 1).await;
        }
        assert_eq!(admin.end_of(&run).await, "applied");
        runs.push(run);
    }
    let all = |received: &[Received]| told(received).len() == RUNS * TOLD.len();
    let told = told(&receiver.until("all of them", all).await);
    let expected: BTreeSet<_> =
        runs.iter().flat_map(|run| TOLD.iter().map(move |trigger| (run.clone(), (*trigger).to_owned()))).collect();
    assert_eq!(told.keys().cloned().collect::<BTreeSet<_>>(), expected, "nothing else is told");
    for (what, (ids, times)) in &told {
        assert_eq!(ids.len(), 1, "{what:?} came {times} times under several ids");
    }
    let different: BTreeSet<_> = told.values().flat_map(|(ids, _)| ids.clone()).collect();
    assert_eq!(different.len(), expected.len(), "two things never share an id");
    drop(agent);
    site.is_sound();
}
