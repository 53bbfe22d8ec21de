//! `kill -9` of servers, one after another, while a walk goes over 50 units. It ends as if nothing had happened: every
//! unit is applied once, after all that it uses, and what nothing reaches is cut off.

use std::collections::BTreeMap;
use std::time::Duration;

use harness::cuttable_proxy::CuttableProxy;
use harness::estate::{Estate, EstateOptions};
use harness::home::ServerProcess;
use harness::process::Process;
use harness::run_site::{RunSite, admin_of, configuration_of, text};
use harness::stand_in_engine::{Step, unit_configuration};
use reqwest::{Method, StatusCode};
use serde_json::{Value, json};
use tokio::time::{Instant, sleep};

use crate::balanced_site::BalancedSite;

/// In seconds: no agent is given up here.
const LEASE: u16 = 60;
const UNITS: usize = 50;
/// Long enough for a machine that is busy with other tests.
const WALK_TIMEOUT: Duration = Duration::from_secs(420);

/// State of each unit in a walk, and the number of its runs.
type Outcome = BTreeMap<String, (String, usize)>;

/// An estate in a site of two servers, each with an agent that comes back to its successor.
struct Walked {
    site: RunSite,
    servers: BalancedSite,
    ways: [CuttableProxy; 2],
    _agents: [Process; 2],
    estate: Estate,
    /// Workspaces of the units.
    workspaces: BTreeMap<String, String>,
    kills: usize,
}

impl Walked {
    async fn new() -> Self {
        let (site, first) = RunSite::with_lease(LEASE).await;
        site.engine.makes_units();
        let second = site.server();
        let admin = admin_of(&first.address);
        let estate = Estate::new(EstateOptions::new(UNITS, 5, 7));
        let mut workspaces = BTreeMap::new();
        for unit in &estate.units {
            let body = site.workspace_for_agents(&unit.name);
            let made = admin.post("/api/v2/organizations/acme/workspaces", body).await;
            let id = text(&made["data"]["id"]);
            admin.given_configuration(&id, configuration_of(&unit_configuration(unit))).await;
            // Nothing was applied yet that could tell what it uses.
            for edge in &unit.depends {
                let attributes = json!({ "producer": edge.producer, "outputs": edge.uses });
                let body = json!({ "data": { "type": "dependencies", "attributes": attributes } });
                admin.post(&format!("/api/v2/workspaces/{id}/dependencies"), body).await;
            }
            workspaces.insert(unit.name.clone(), id);
        }
        let ways = [CuttableProxy::to(&first.address).await, CuttableProxy::to(&second.address).await];
        let agents = [0, 1].map(|number| site.agent(&format!("agent-{number}"), &ways[number].address()));
        let servers = BalancedSite::of(vec![first, second]);
        Self { site, servers, ways, _agents: agents, estate, workspaces, kills: 0 }
    }

    /// Asks one server after the other until one answers.
    async fn ask(&self, method: Method, path: &str, body: Option<&Value>) -> Value {
        let deadline = Instant::now() + WALK_TIMEOUT;
        loop {
            match self.servers.ask(method.clone(), path, body).await {
                Some((status, document)) if status.is_success() => return document,
                Some((StatusCode::SERVICE_UNAVAILABLE, _)) | None => {}
                Some((status, document)) => panic!("{method} {path} is answered with {status}: {document}"),
            }
            assert!(Instant::now() < deadline, "{path} is never answered");
            sleep(Duration::from_millis(50)).await;
        }
    }

    async fn given_change_of(&mut self, unit: &str) {
        self.estate.touch(unit);
        let configuration = configuration_of(&unit_configuration(self.estate.unit(unit)));
        let address = self.servers.servers.read().await[0].address.clone();
        admin_of(&address).given_configuration(&self.workspaces[unit], configuration).await;
    }

    /// Kills one server, the other one the next time; its successor takes its place and its agent.
    async fn kill(&mut self) {
        let place = self.kills % 2;
        self.kills += 1;
        let next: ServerProcess = tokio::task::block_in_place(|| self.site.server());
        self.ways[place].redirect_to(&next.address);
        drop(std::mem::replace(&mut self.servers.servers.write().await[place], next));
    }

    fn applied(&self) -> Vec<String> {
        self.site.engine.units_at(Step::ApplyEnds)
    }

    /// Walks over all units; a server is killed whenever so many more of them were applied.
    async fn walk(&mut self, applies_before_kill: Option<usize>) -> Outcome {
        let attributes =
            json!({ "kind": "apply", "all": true, "approval": "auto", "on-fail": "continue", "parallel": 6 });
        let body = json!({ "data": { "type": "walks", "attributes": attributes } });
        let begun = self.ask(Method::POST, "/api/v2/organizations/acme/walks", Some(&body)).await;
        let walk = format!("/api/v2/walks/{}", text(&begun["data"]["id"]));
        let mut next_kill = applies_before_kill.map(|applies| self.applied().len() + applies);
        let deadline = Instant::now() + WALK_TIMEOUT;
        loop {
            let shown = self.ask(Method::GET, &walk, None).await["data"]["attributes"]["state"].clone();
            match shown.as_str() {
                Some("done") => return self.outcome(&walk).await,
                Some("failed") => self.resume(&walk).await,
                _ => {}
            }
            if next_kill.is_some_and(|next| self.applied().len() >= next) {
                self.kill().await;
                next_kill = applies_before_kill.map(|applies| self.applied().len() + applies);
            }
            assert!(Instant::now() < deadline, "the walk is {shown}: {:?}", self.outcome(&walk).await);
            sleep(Duration::from_millis(100)).await;
        }
    }

    /// A server that dies between giving an apply out and telling the agent so leaves an apply of which nobody knows.
    /// Someone looks, frees the workspace, and lets the walk go on.
    async fn resume(&self, walk: &str) {
        let nodes = self.ask(Method::GET, &format!("{walk}/nodes"), None).await["data"].clone();
        for node in nodes.as_array().expect("a list") {
            let node = &node["attributes"];
            if node["state"] == "failed" {
                let reason = text(&node["reason"]);
                assert!(reason.starts_with("its apply failed: Apply outcome unknown"), "{node}");
                let workspace = &self.workspaces[&text(&node["unit"])];
                self.ask(Method::POST, &format!("/api/v2/workspaces/{workspace}/actions/force-unlock"), None).await;
            }
        }
        self.ask(Method::POST, &format!("{walk}/actions/resume"), Some(&json!({}))).await;
    }

    async fn outcome(&self, walk: &str) -> Outcome {
        let nodes = self.ask(Method::GET, &format!("{walk}/nodes"), None).await["data"].clone();
        let node = |node: &Value| {
            let node = &node["attributes"];
            assert!(node["reason"].as_str().is_some_and(|reason| reason.len() > 5), "{node}");
            (text(&node["unit"]), (text(&node["state"]), node["runs"].as_array().expect("a list").len()))
        };
        nodes.as_array().expect("a list").iter().map(node).collect()
    }

    /// The unit of the first layer whose change reaches most others, and all that it reaches.
    fn far_reaching(&self) -> (String, Vec<String>) {
        let first = self.estate.units.iter().filter(|unit| unit.layer == 0);
        let reached = first.map(|unit| (unit.name.clone(), self.estate.expect(&unit.name)));
        reached.max_by_key(|(_, reached)| reached.len()).expect("an estate has units")
    }
}

fn done(outcome: &Outcome) -> Vec<&String> {
    outcome.iter().filter(|(_, (state, _))| state == "done").map(|(unit, _)| unit).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_walk_over_fifty_units_ends_as_if_no_server_had_been_killed() {
    let mut walked = Walked::new().await;
    let outcome = walked.walk(Some(4)).await;
    assert_eq!((outcome.len(), done(&outcome).len()), (UNITS, UNITS), "{outcome:?}");
    assert!(walked.kills >= 8, "{} kills", walked.kills);
    let order = walked.applied();
    let mut once = order.clone();
    once.sort_unstable();
    once.dedup();
    assert_eq!((once.len(), order.len()), (UNITS, UNITS), "every unit is applied once: {order:?}");
    assert_eq!(walked.site.engine.units_at(Step::ApplyBegins).len(), UNITS, "no apply begins in vain");
    let place = |unit: &str| order.iter().position(|applied| applied == unit).expect("all are applied");
    for unit in &walked.estate.units {
        let late = unit.depends.iter().find(|edge| place(&edge.producer) > place(&unit.name));
        assert!(late.is_none(), "{} was applied before {late:?}", unit.name);
    }
    let unchanged = walked.walk(None).await;
    assert_eq!(done(&unchanged), Vec::<&String>::new(), "an unchanged estate costs no run");

    // The same change twice: once in peace, and once while servers die.
    let (changed, mut reached) = walked.far_reaching();
    reached.push(changed.clone());
    reached.sort_unstable();
    assert!(reached.len() > 4, "{reached:?}");
    let mut outcomes = Vec::new();
    for applies_before_kill in [None, Some(1)] {
        let (applied, kills) = (walked.applied().len(), walked.kills);
        walked.given_change_of(&changed).await;
        let outcome = walked.walk(applies_before_kill).await;
        let mut now_applied = walked.applied()[applied..].to_vec();
        now_applied.sort_unstable();
        assert_eq!(now_applied, reached, "what the change reaches, each once");
        assert_eq!(done(&outcome), reached.iter().collect::<Vec<_>>());
        assert!(applies_before_kill.is_none() || walked.kills > kills + 2, "{} kills", walked.kills);
        outcomes.push(outcome);
    }
    let cut_off = |outcome: &Outcome| -> Vec<String> {
        outcome.iter().filter(|(_, (state, _))| state == "cut_off").map(|(unit, _)| unit.clone()).collect()
    };
    assert_eq!(cut_off(&outcomes[0]), cut_off(&outcomes[1]));
    assert_eq!(cut_off(&outcomes[0]).len(), UNITS - reached.len());
    walked.site.is_sound();
}
