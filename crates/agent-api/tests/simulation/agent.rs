//! Agents, by the rules of `taco-agent`: they stay connected, take phases, and let them go on regardless of the
//! connection. They may be paused, and killed.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use taco_agent::lease::{Deadline, Lease};
use taco_agent_protocol::{FromAgent, FromServer, Job, PROTOCOL, PhaseAttempt};
use taco_control_plane::RequestInfo;
use taco_domain::id::AgentId;
use tokio::task::JoinSet;
use tokio::time::{Instant, sleep, sleep_until, timeout};

use crate::network::{AgentEnd, Down, Place, connect};
use crate::phase::{self, End, Entry};
use crate::requests::{Control, Stop};
use crate::sabotage::Sabotage;
use crate::signal::Signal;
use crate::stage::Stage;

const GREETING_TIMEOUT: Duration = Duration::from_secs(15);
const FAR_FUTURE: Duration = Duration::from_secs(86_400);

/// Journal on the agent's disk: phases that were begun and not reported.
pub(crate) type Journal = Arc<Mutex<BTreeMap<PhaseAttempt, Entry>>>;

/// A process that is killed now and then, and started again.
pub(crate) async fn lives_of_an_agent(stage: Arc<Stage>, index: usize) {
    let journal = Journal::default();
    sleep(stage.seconds(0.0, 5.0)).await;
    loop {
        let life = tokio::spawn(Agent::new(Arc::clone(&stage), index, Arc::clone(&journal)).live());
        stage.kills[index].notified().await;
        life.abort();
        sleep(stage.seconds(1.0, 8.0)).await;
    }
}

enum Link {
    Down { retry_at: Instant },
    Connecting,
    Up { wire: AgentEnd, heard_at: Instant },
}

struct Greeted {
    wire: AgentEnd,
    agent: AgentId,
    lease: Duration,
    heartbeat: Duration,
    lost: Vec<PhaseAttempt>,
    greeted_at: Instant,
}

enum Happened {
    Heard(Option<Down>),
    PhaseEnded(PhaseAttempt, End),
    Greeted(Option<Box<Greeted>>),
    Nothing,
}

struct Agent {
    stage: Arc<Stage>,
    index: usize,
    journal: Journal,
    link: Link,
    id: Option<AgentId>,
    lease: Lease,
    deadline: Signal<Option<Deadline>>,
    heartbeats: u64,
    heartbeat_every: Duration,
    next_heartbeat_at: Instant,
    waiting: Vec<Job>,
    running: BTreeMap<PhaseAttempt, Signal<Stop>>,
    phases: JoinSet<(PhaseAttempt, End)>,
    resending: JoinSet<()>,
    connecting: JoinSet<Option<Box<Greeted>>>,
}

impl Agent {
    fn new(stage: Arc<Stage>, index: usize, journal: Journal) -> Self {
        Self {
            stage,
            index,
            journal,
            link: Link::Down { retry_at: Instant::now() },
            id: None,
            lease: Lease::default(),
            deadline: Signal::new(None),
            heartbeats: 0,
            heartbeat_every: Duration::from_secs(5),
            next_heartbeat_at: Instant::now(),
            waiting: Vec::new(),
            running: BTreeMap::new(),
            phases: JoinSet::new(),
            resending: JoinSet::new(),
            connecting: JoinSet::new(),
        }
    }

    async fn live(mut self) {
        let left: Vec<Entry> = self.journal.lock().expect("no panic").values().cloned().collect();
        left.into_iter().for_each(|entry| self.resend(entry));
        loop {
            let wake_at = self.wake_at();
            let happened = tokio::select! {
                biased;
                heard = hear(&mut self.link) => Happened::Heard(heard),
                Some(Ok((phase, end))) = self.phases.join_next() => Happened::PhaseEnded(phase, end),
                Some(greeted) = self.connecting.join_next() => Happened::Greeted(greeted.ok().flatten()),
                Some(_) = self.resending.join_next() => Happened::Nothing,
                () = sleep_until(wake_at) => Happened::Nothing,
            };
            self.stage.awake(self.index).await;
            self.handle(happened);
        }
    }

    fn silence(&self) -> Duration {
        self.heartbeat_every * 3 + Duration::from_secs(2)
    }

    fn wake_at(&self) -> Instant {
        match &self.link {
            Link::Down { retry_at } => *retry_at,
            Link::Connecting => Instant::now() + FAR_FUTURE,
            Link::Up { heard_at, .. } => self.next_heartbeat_at.min(*heard_at + self.silence()),
        }
    }

    fn handle(&mut self, happened: Happened) {
        match happened {
            Happened::Heard(None) => self.hang_up(),
            Happened::Heard(Some(down)) => {
                if let Link::Up { heard_at, .. } = &mut self.link {
                    *heard_at = Instant::now();
                }
                if let Down::Message(message) = down {
                    self.hear(*message);
                }
            }
            Happened::PhaseEnded(phase, end) => {
                self.running.remove(&phase);
                if let End::Unsent(entry) = end {
                    self.resend(entry);
                }
                self.begin_waiting();
                self.heartbeat();
            }
            Happened::Greeted(Some(greeted)) => self.welcomed(*greeted),
            Happened::Greeted(None) => self.hang_up(),
            Happened::Nothing => {}
        }
        let now = Instant::now();
        match &self.link {
            Link::Down { retry_at } if now >= *retry_at => self.connect(),
            Link::Up { heard_at, .. } if now >= *heard_at + self.silence() => self.hang_up(),
            Link::Up { .. } if now >= self.next_heartbeat_at => self.heartbeat(),
            _ => {}
        }
    }

    fn hang_up(&mut self) {
        self.link = Link::Down { retry_at: Instant::now() + self.stage.seconds(0.2, 3.0) };
    }

    fn connect(&mut self) {
        self.link = Link::Connecting;
        let hello = FromAgent::Hello {
            protocol: PROTOCOL,
            version: "0".to_owned(),
            name: agent_name(self.index),
            agent: self.id,
            instance: Some(agent_name(self.index)),
            concurrency: 1 + self.index as u32 % 2,
            engines: Vec::new(),
            running: self.phase_references(),
            once: false,
        };
        let (stage, index) = (Arc::clone(&self.stage), self.index);
        self.connecting
            .spawn(async move { timeout(GREETING_TIMEOUT, greet(stage, index, hello)).await.ok().flatten() });
    }

    fn welcomed(&mut self, greeted: Greeted) {
        self.id = Some(greeted.agent);
        self.heartbeat_every = greeted.heartbeat;
        let is_idle = self.phase_references().is_empty();
        self.lease.begin(greeted.lease, greeted.greeted_at, is_idle);
        self.tell_deadline();
        self.link = Link::Up { wire: greeted.wire, heard_at: Instant::now() };
        for phase in &greeted.lost {
            self.stop(phase, Stop::Lost);
        }
        self.heartbeat();
    }

    fn tell_deadline(&self) {
        if self.stage.sabotage != Sabotage::NoSelfKill {
            let now = self.lease.deadline();
            self.deadline.modify(|deadline| *deadline = now);
        }
    }

    fn heartbeat(&mut self) {
        self.heartbeats += 1;
        self.lease.sent(self.heartbeats, Instant::now());
        let message =
            FromAgent::Heartbeat { number: self.heartbeats, running: self.phase_references(), draining: false };
        if let Link::Up { wire, .. } = &self.link {
            let _ = wire.sender.send(message);
        }
        self.next_heartbeat_at = Instant::now() + self.heartbeat_every;
    }

    fn phase_references(&self) -> Vec<PhaseAttempt> {
        self.running.keys().copied().chain(self.waiting.iter().map(|job| job.phase)).collect()
    }

    fn hear(&mut self, message: FromServer) {
        match message {
            FromServer::Published { number } => {
                self.lease.published(number);
                self.tell_deadline();
                self.begin_waiting();
            }
            FromServer::Execute(job) => {
                self.stage.remember_token(job.phase, &job.token);
                if !self.phase_references().contains(&job.phase) {
                    self.waiting.push(*job);
                    self.begin_waiting();
                }
                if !self.waiting.is_empty() {
                    self.heartbeat();
                }
            }
            FromServer::Cancel { phase, force } => self.stop(&phase, if force { Stop::Kill } else { Stop::Cancel }),
            FromServer::Lost { phase } => self.stop(&phase, Stop::Lost),
            FromServer::Refused { .. } | FromServer::Welcome { .. } => {}
        }
    }

    fn stop(&mut self, phase: &PhaseAttempt, how: Stop) {
        if how == Stop::Lost {
            self.waiting.retain(|job| job.phase != *phase);
        } else if let Some(position) = self.waiting.iter().position(|job| job.phase == *phase) {
            let job = self.waiting.remove(position);
            self.begin(job);
        }
        if let Some(stop) = self.running.get(phase) {
            stop.modify(|now| *now = how.max(*now));
        }
    }

    fn begin_waiting(&mut self) {
        let holds = self.lease.holds(Instant::now()) || self.stage.sabotage == Sabotage::NoSelfKill;
        for job in std::mem::take(&mut self.waiting) {
            match holds && !self.running.keys().any(|running| running.run == job.phase.run) {
                true => self.begin(job),
                false => self.waiting.push(job),
            }
        }
    }

    fn begin(&mut self, job: Job) {
        let (phase, token) = (job.phase, job.token.clone());
        let stop = Signal::new(Stop::Run);
        self.running.insert(phase, stop.clone());
        let control = Control { stop, lease: self.deadline.clone() };
        let entry = Entry::new(&job, token);
        self.journal.lock().expect("no panic").insert(phase, entry.clone());
        let (stage, index, journal) = (Arc::clone(&self.stage), self.index, Arc::clone(&self.journal));
        self.phases.spawn(async move { (phase, phase::run(stage, index, journal, job, entry, control).await) });
    }

    fn resend(&mut self, entry: Entry) {
        let (stage, index, journal) = (Arc::clone(&self.stage), self.index, Arc::clone(&self.journal));
        self.resending.spawn(phase::resend(stage, index, journal, entry));
    }
}

pub(crate) fn agent_name(index: usize) -> String {
    format!("agent-{index}")
}

async fn hear(link: &mut Link) -> Option<Down> {
    match link {
        Link::Up { wire, .. } => wire.receiver.recv().await,
        Link::Down { .. } | Link::Connecting => std::future::pending().await,
    }
}

/// Connects to some server, says hello and hears the answer.
async fn greet(stage: Arc<Stage>, index: usize, hello: FromAgent) -> Option<Box<Greeted>> {
    let number = stage.below(2);
    let (from, to) = (Place::Agent(index), Place::Server(number));
    stage.network.travel(from, to).await;
    let server = stage.server(number)?;
    let (mut wire, conversation) = connect(&stage.network, from, to);
    let (serving, token) = (Arc::clone(&server), stage.pool_token.clone());
    let api = serving.api.clone();
    tokio::spawn(async move {
        let serve = async move {
            let caller = serving.plane.recognise_agent(&token, RequestInfo::default()).await.ok()?;
            api.run_session(caller, conversation).await;
            Some(())
        };
        server.spawn(serve).await
    });
    let greeted_at = Instant::now();
    wire.sender.send(hello).ok()?;
    loop {
        match wire.receiver.recv().await? {
            Down::Message(message) => match *message {
                FromServer::Welcome { agent, lease_milliseconds, heartbeat_milliseconds, lost } => {
                    let lease = Duration::from_millis(lease_milliseconds);
                    let heartbeat = Duration::from_millis(heartbeat_milliseconds);
                    return Some(Box::new(Greeted { wire, agent, lease, heartbeat, lost, greeted_at }));
                }
                FromServer::Refused { .. } => return None,
                _ => {}
            },
            Down::Pong => {}
        }
    }
}
