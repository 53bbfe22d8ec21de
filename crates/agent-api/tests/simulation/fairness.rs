//! Fairness between organizations that share the agents within two servers, in histories of their own: one has far more
//! runs than there are agents, others have one now and then, and the bucket fails.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::body::Body;
use axum::http::{Request, header};
use futures::future::join_all;
use jiff::{SignedDuration, Timestamp};
use taco_agent_api::AgentApi;
use taco_agent_protocol::{Outcome, PhaseAttempt, phase_path};
use taco_control_plane::{Caller, Privileged, TakenPhase};
use taco_domain::OrganizationState;
use taco_domain::global_queue::AgentScope;
use taco_domain::id::WorkspaceId;
use taco_domain::run::RunSource;
use taco_domain::run_request::RunRequest;
use taco_ledger::beacon::{BEACON_INTERVAL, Beacons};
use taco_ledger::simulated::{Line, World};
use taco_ledger::{Environment, Ledger, Options, Retrying, SharedRng};
use taco_scheduler::{AgentLink, Leases, NewAgent, Scheduler, ToAgent, Wake};
use tokio::task::JoinSet;
use tokio::time::{Instant, sleep, timeout};
use tower::ServiceExt;

use crate::clock::WallClock;
use crate::server::{BeaconPeers, NOTIFY_INTERVAL};
use crate::stage::{LEASE, given_organization, given_workspace, open, quiet_environment};

const SERVERS: usize = 2;
/// Phases that the agent of each server executes at once.
const CONCURRENCY: u32 = 2;
const NOISY_RUNS: usize = 60;
const QUIET_ORGANIZATIONS: usize = 2;
const QUIET_RUNS: usize = 6;

/// Maximum age of the data by which a server decides: until then it may not have seen another's commit, or its own may
/// be under way to a bucket that fails.
const SLACK_OF_A_GOOD_BUCKET: SignedDuration = SignedDuration::from_secs(2);
const SLACK_OF_A_BAD_BUCKET: SignedDuration = SignedDuration::from_secs(15);

/// One phase's way through the queue.
#[derive(Clone, Debug)]
struct Stint {
    organization: usize,
    ready_at: Timestamp,
    started_at: Timestamp,
    ended_at: Timestamp,
}

/// The first phase that went out although another organization had less of the agents, and something ready, for longer
/// than the slack.
fn find_unfair(stints: &[Stint], slack: SignedDuration) -> Option<String> {
    let running = |organization: usize, at: Timestamp| {
        let its = stints.iter().filter(|stint| stint.organization == organization);
        its.filter(|stint| stint.started_at < at && at <= stint.ended_at).count()
    };
    let waits = |organization: usize, at: Timestamp| {
        let mut its = stints.iter().filter(|stint| stint.organization == organization);
        its.any(|stint| stint.ready_at <= at && at < stint.started_at)
    };
    let organizations: Vec<usize> = stints.iter().map(|stint| stint.organization).collect();
    for stint in stints {
        let from = stint.started_at - slack;
        // Between these moments nothing changes.
        let changes = stints.iter().flat_map(|stint| [stint.ready_at, stint.started_at, stint.ended_at]);
        let moments: Vec<_> = changes.chain([from]).filter(|at| (from..=stint.started_at).contains(at)).collect();
        for other in organizations.iter().filter(|other| **other != stint.organization) {
            let is_passed_over =
                |at: &Timestamp| waits(*other, *at) && running(*other, *at) < running(stint.organization, *at);
            if waits(*other, stint.started_at) && moments.iter().all(is_passed_over) {
                return Some(format!("{stint:?} went out, though organization {other} had less and waited"));
            }
        }
    }
    None
}

struct Tenant {
    caller: Caller,
    workspaces: Vec<WorkspaceId>,
    observer: Ledger<OrganizationState>,
}

/// Lives through the history of one seed: everybody's plans, from the moment at which they were ready.
async fn live_through(seed: u64) -> Vec<Stint> {
    let (world, begun) = (World::new(seed, 0.0), Instant::now());
    let quiet = quiet_environment(&world, begun, "preparation", SharedRng::from_seed(!seed));
    let plane = open(quiet.clone()).await.expect("a site");
    plane.first_start().await.expect("an admin");
    let mut tenants = Vec::new();
    for number in 0..=QUIET_ORGANIZATIONS {
        let name = format!("organization-{number}");
        let caller = given_organization(&plane, &name).await;
        let mut workspaces = Vec::new();
        for number in 0..if number == 0 { NOISY_RUNS } else { QUIET_RUNS } {
            let patch = serde_json::json!({ "name": format!("workspace-{number}"), "execution-mode": "remote" });
            workspaces.push(given_workspace(&plane, &caller, &name, patch).await);
        }
        let ledger = plane.organization(&caller, &name).await.expect("it is there").org.id().to_string();
        let ledger = ledger.parse().expect("a legal name");
        let observer = Ledger::open(quiet.clone(), ledger, Options::default()).await.expect("the truth");
        tenants.push(Tenant { caller, workspaces, observer });
    }
    world.set_fault_rate(fault_rate(seed));
    let mut servers = JoinSet::new();
    let wakes = start_servers(&world, begun, seed, &mut servers).await;
    let rng = SharedRng::from_seed(seed);
    // The noisy one comes first, with everything at once.
    for workspace in &tenants[0].workspaces {
        start_plan(&plane, &wakes, &tenants[0].caller, *workspace).await;
    }
    for number in 0..QUIET_RUNS {
        for tenant in &tenants[1..] {
            sleep(Duration::from_secs_f64(10.0 * rng.fraction())).await;
            start_plan(&plane, &wakes, &tenant.caller, tenant.workspaces[number]).await;
        }
    }
    let mut stints = Vec::new();
    for (number, tenant) in tenants.iter().enumerate() {
        stints.extend(all_stints(number, &tenant.observer).await);
    }
    servers.abort_all();
    stints
}

fn fault_rate(seed: u64) -> f64 {
    if seed.is_multiple_of(2) { 0.0 } else { 0.3 }
}

/// A plan that changes nothing, so that all are of one class. The server that takes a request tells the others to look.
async fn start_plan(plane: &Privileged, wakes: &[Wake], caller: &Caller, workspace: WorkspaceId) {
    let request = RunRequest { plan_only: Some(true), workspace: Some(workspace), ..RunRequest::default() };
    plane.create_run(caller, request, RunSource::Api).await.expect("a run");
    join_all(wakes.iter().map(Wake::look)).await;
}

/// Results of an organization's runs, once all have ended.
async fn all_stints(organization: usize, observer: &Ledger<OrganizationState>) -> Vec<Stint> {
    for _ in 0..1_000 {
        let truth = observer.read().await.expect("the truth");
        let ended = truth.runs.iter().filter(|run| run.status.is_final());
        let stints: Vec<_> = ended
            .filter_map(|run| {
                let (ready_at, started_at) = run.plan.queued_at.zip(run.plan.started_at)?;
                Some(Stint { organization, ready_at, started_at, ended_at: run.plan.ended_at? })
            })
            .collect();
        if stints.len() == truth.runs.len() {
            return stints;
        }
        drop(truth);
        sleep(Duration::from_secs(5)).await;
    }
    let truth = observer.read().await.expect("the truth");
    let runs = truth.runs.iter().map(|run| format!("{} {:?} {:?}", run.status, run.plan.queued_at, run.plan.ended_at));
    panic!("not all runs of organization {organization} ended: {:?}", runs.collect::<Vec<_>>());
}

async fn start_servers(world: &Arc<World>, begun: Instant, seed: u64, tasks: &mut JoinSet<()>) -> Vec<Wake> {
    let mut wakes = Vec::new();
    let mut commits = Vec::new();
    for number in 0..SERVERS {
        let name = format!("server-{number}");
        let rng = SharedRng::from_seed(seed << 8 | number as u64);
        let bucket = Arc::new(Retrying::new(Arc::new(Line::to(world)), rng.clone()));
        let clock = Arc::new(WallClock::new(begun));
        let beacons =
            Arc::new(Beacons::new(Arc::clone(&bucket) as _, Arc::clone(&clock) as _, &name, None, BEACON_INTERVAL));
        let peers = beacons.peers();
        let environment = Environment { bucket, clock, rng: rng.clone(), server: name, peers: peers.clone() };
        let plane = loop {
            if let Ok(plane) = open(environment.clone()).await {
                break plane;
            }
        };
        let scheduler = Scheduler::new(plane.clone(), Leases::of(LEASE), Arc::new(BeaconPeers(beacons)));
        let router = AgentApi::new(plane.clone(), scheduler.clone(), "https://taco.test").router_within();
        wakes.push(scheduler.wake());
        commits.push(peers);
        let agent = AgentWithin { plane, router, rng, running: BTreeSet::new() };
        let link = agent.connect(&scheduler, number);
        tasks.spawn(async move { scheduler.run(std::future::pending()).await });
        tasks.spawn(agent.live(link));
    }
    for (number, peers) in commits.into_iter().enumerate() {
        let other = wakes[1 - number].clone();
        tasks.spawn(async move {
            loop {
                peers.own_commits().notified().await;
                other.look().await;
                sleep(NOTIFY_INTERVAL).await;
            }
        });
    }
    wakes
}

/// The agent within a server: its plans take some seconds and fail, which is the shortest way to end a run.
struct AgentWithin {
    plane: Privileged,
    router: Router,
    rng: SharedRng,
    running: BTreeSet<PhaseAttempt>,
}

impl AgentWithin {
    fn connect(&self, scheduler: &Scheduler, number: usize) -> AgentLink {
        scheduler.connect(NewAgent {
            id: self.plane.id_for_agent_within(),
            name: format!("agent-{number}"),
            version: "0".to_owned(),
            reach: AgentScope::WithinServer,
            organization: None,
            token: None,
            concurrency: CONCURRENCY,
            engines: Vec::new(),
            once: false,
            running: Vec::new(),
        })
    }

    async fn live(mut self, mut link: AgentLink) {
        let mut phases = JoinSet::new();
        for heartbeat in 1.. {
            link.heard(heartbeat, self.running.iter().copied(), false, self.plane.now());
            let next = async {
                tokio::select! {
                    biased;
                    Some(Ok(ended)) = phases.join_next() => Some(Err(ended)),
                    message = link.receiver.recv() => message.map(Ok),
                }
            };
            match timeout(Duration::from_secs(5), next).await {
                Ok(Some(Ok(ToAgent::Execute(taken)))) => {
                    let phase = taken.attempt;
                    self.running.insert(phase);
                    let takes = Duration::from_secs_f64(1.0 + 4.0 * self.rng.fraction());
                    phases.spawn(execute(self.router.clone(), phase, *taken, takes));
                }
                Ok(Some(Ok(ToAgent::Lost { attempt }))) => panic!("{} was given up", attempt.run),
                Ok(Some(Err(ended))) => {
                    self.running.remove(&ended);
                }
                Ok(None) => return,
                Ok(Some(Ok(_))) | Err(_) => {}
            }
        }
    }
}

async fn execute(router: Router, phase: PhaseAttempt, taken: TakenPhase, takes: Duration) -> PhaseAttempt {
    sleep(takes).await;
    let outcome = Outcome::Errored { message: "as wanted".to_owned(), engine: None, incomplete: false };
    let outcome = serde_json::to_vec(&outcome).expect("plain data");
    loop {
        let request = Request::put(format!("{}/outcome", phase_path(&phase)))
            .header(header::AUTHORIZATION, format!("Bearer {}", taken.token))
            .body(Body::from(outcome.clone()))
            .expect("a request");
        let response = router.clone().oneshot(request).await.expect("an answer");
        if response.status().is_success() {
            return phase;
        }
        assert!(response.status().is_server_error(), "{phase}: {}", response.status());
        sleep(Duration::from_secs(1)).await;
    }
}

#[test]
fn no_organization_is_passed_over_by_one_that_has_more() {
    for seed in 0..crate::setting("TACO_SIM_FAIR_HISTORIES").unwrap_or(6) {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_time().start_paused(true).build();
        let stints = runtime.expect("a runtime without I/O").block_on(live_through(seed));
        assert_eq!(stints.len(), NOISY_RUNS + QUIET_ORGANIZATIONS * QUIET_RUNS, "seed {seed}");
        let slack = if fault_rate(seed) == 0.0 { SLACK_OF_A_GOOD_BUCKET } else { SLACK_OF_A_BAD_BUCKET };
        assert_eq!(find_unfair(&stints, slack), None, "seed {seed}");
    }
}

/// The check has to find what a queue without turns does: the same runs, the oldest first.
#[test]
fn a_queue_that_hands_out_the_oldest_first_is_found_unfair() {
    let second = |second: usize| Timestamp::from_second(second as i64).expect("near");
    let mut free_at = [0; SERVERS * CONCURRENCY as usize];
    let mut ready: Vec<(usize, usize)> = (0..NOISY_RUNS).map(|_| (0, 0)).collect();
    ready.extend((0..QUIET_RUNS).map(|number| (5 * (number + 1), 1)));
    let stints: Vec<_> = (ready.into_iter())
        .map(|(ready_at, organization)| {
            let agent = free_at.iter_mut().min().expect("there are agents");
            let started_at = ready_at.max(*agent);
            *agent = started_at + 3;
            let [ready_at, started_at, ended_at] = [ready_at, started_at, started_at + 3].map(second);
            Stint { organization, ready_at, started_at, ended_at }
        })
        .collect();
    assert!(find_unfair(&stints, SLACK_OF_A_BAD_BUCKET).is_some());
}
