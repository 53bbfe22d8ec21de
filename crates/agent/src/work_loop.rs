//! The agent's loop: stay connected, take phases, and let them go on regardless of the connection.

use std::collections::HashMap;
use std::io;
use std::sync::Arc;
use std::time::Duration;

use futures::future::join_all;
use taco_agent_protocol::{FromAgent, FromServer, Job, PROTOCOL, PhaseAttempt, PhaseKind, Refusal};
use taco_words::id::AgentId;
use tokio::sync::{mpsc, watch};
use tokio::task::{JoinError, JoinHandle, JoinSet};
use tokio::time::Instant;

use crate::connection::{self, ConnectError, GreetedConnection};
use crate::context::Context;
use crate::control::{Control, Stop};
use crate::dial::Dial;
use crate::lease::{Deadline, Lease};
use crate::options::Options;
use crate::phase::{self, PhaseEnd};
use crate::platform;
use crate::resend;
use crate::retry::Backoff;
use crate::shutdown::Shutdown;

/// Reason why an agent gives up.
#[derive(thiserror::Error, Debug)]
pub enum Error {
    #[error("the server refuses this agent: {0}")]
    Refused(String),
    #[error(transparent)]
    WorkDir(#[from] io::Error),
}

/// Runs an agent until `shutdown` says so, or, if it is to take one phase only, until that is done. Processes become this
/// one's that runs leave behind; those that it did not start itself may be ended.
pub async fn run(options: Options, dial: Dial, shutdown: watch::Receiver<Shutdown>) -> Result<(), Error> {
    // What a run leaves behind whose supervisor it has killed comes to this process.
    if !options.portable {
        platform::adopt_orphans();
    }
    let context = Arc::new(Context::new(options, dial)?);
    let (sender, events) = mpsc::unbounded_channel();
    let mut agent = Agent {
        sender,
        link: Link::Down { retry_at: Instant::now() },
        backoff: Backoff::new(),
        id: None,
        instance: hex::encode(rand::random::<[u8; 16]>()),
        lease: Lease::default(),
        deadline: watch::Sender::new(None),
        heartbeats: 0,
        heartbeat_every: Duration::from_secs(5),
        next_heartbeat_at: Instant::now(),
        waiting: Vec::new(),
        running: HashMap::new(),
        phases: JoinSet::new(),
        resending: JoinSet::new(),
        shutdown,
        has_taken_one: false,
        context,
    };
    agent.work(events).await
}

enum Event {
    Greeted(Box<Result<GreetedConnection, ConnectError>>),
    Heard(FromServer),
    Broken,
}

enum Link {
    Down { retry_at: Instant },
    Connecting,
    Up { outgoing: mpsc::UnboundedSender<FromAgent>, carrying: JoinHandle<()> },
}

struct Agent {
    context: Arc<Context>,
    sender: mpsc::UnboundedSender<Event>,
    link: Link,
    backoff: Backoff,
    /// Id given by the server.
    id: Option<AgentId>,
    /// Shows the server that a connection is this process's, and not of another that knows the id.
    instance: String,
    lease: Lease,
    deadline: watch::Sender<Option<Deadline>>,
    heartbeats: u64,
    heartbeat_every: Duration,
    next_heartbeat_at: Instant,
    /// Jobs that begin when the lease is known to hold, and no earlier phase of their run is still being stopped.
    waiting: Vec<Job>,
    running: HashMap<PhaseAttempt, watch::Sender<Stop>>,
    phases: JoinSet<(PhaseAttempt, PhaseEnd)>,
    resending: JoinSet<()>,
    shutdown: watch::Receiver<Shutdown>,
    has_taken_one: bool,
}

impl Agent {
    async fn work(&mut self, mut events: mpsc::UnboundedReceiver<Event>) -> Result<(), Error> {
        let left_over = self.context.left_over()?;
        // Before anything new can begin, because it may be the next phase of the same run.
        join_all(left_over.iter().map(resend::wait_for_supervisor)).await;
        for entry in left_over {
            let record = self.context.journal.begin(entry)?;
            self.resend(record);
        }
        if let Some(id) = self.context.kept_id() {
            // What the dead process has left is sent first: when the server hears that this agent is back, it takes the rest
            // away.
            while self.resending.join_next().await.is_some() {}
            self.id = Some(id);
        }
        loop {
            if self.is_done() {
                self.say_goodbye().await;
                return Ok(());
            }
            let retry_at = match self.link {
                Link::Down { retry_at } => Some(retry_at),
                Link::Connecting | Link::Up { .. } => None,
            };
            let is_up = matches!(self.link, Link::Up { .. });
            tokio::select! {
                Some(event) = events.recv() => self.handle(event)?,
                Some(done) = self.phases.join_next() => self.phase_ended(done),
                Some(_) = self.resending.join_next() => {}
                () = tokio::time::sleep_until(self.next_heartbeat_at), if is_up => self.heartbeat(),
                () = tokio::time::sleep_until(retry_at.unwrap_or_else(Instant::now)), if retry_at.is_some() => {
                    self.connect();
                }
                Ok(()) = self.shutdown.changed() => self.shut_down(),
            }
        }
    }

    fn urgency(&self) -> Shutdown {
        *self.shutdown.borrow()
    }

    fn is_done(&self) -> bool {
        let takes_no_more = self.urgency() > Shutdown::Stay || (self.context.options.once && self.has_taken_one);
        let is_idle = self.running.is_empty() && self.waiting.is_empty();
        // What is left to send is on disk, but a machine that is made for one phase is not there tomorrow.
        takes_no_more && is_idle && (self.resending.is_empty() || self.urgency() == Shutdown::Stop)
    }

    fn shut_down(&mut self) {
        let how = if self.urgency() == Shutdown::Stop { "stopping" } else { "draining" };
        tracing::info!(running = self.running.len(), "shutting down ({how})");
        self.send_message(FromAgent::Draining);
        if self.urgency() == Shutdown::Stop {
            // A plan that has not begun goes to another agent. An apply does not, so that it has to be reported.
            for job in std::mem::take(&mut self.waiting) {
                if job.phase.phase == PhaseKind::Apply {
                    self.begin(job);
                }
            }
            for stop in self.running.values() {
                raise(stop, Stop::Leave);
            }
        }
    }

    async fn say_goodbye(&mut self) {
        let link = std::mem::replace(&mut self.link, Link::Connecting);
        if let Link::Up { outgoing, carrying } = link {
            let _ = outgoing.send(FromAgent::Goodbye);
            drop(outgoing);
            let _ = tokio::time::timeout(Duration::from_secs(3), carrying).await;
        }
    }

    fn connect(&mut self) {
        self.link = Link::Connecting;
        let (context, sender) = (self.context.clone(), self.sender.clone());
        let (id, instance, running) = (self.id, Some(self.instance.clone()), self.phase_references());
        tokio::spawn(async move {
            let options = &context.options;
            let hello = FromAgent::Hello {
                protocol: PROTOCOL,
                version: env!("CARGO_PKG_VERSION").to_owned(),
                name: options.name.clone(),
                agent: id,
                instance,
                concurrency: options.concurrency,
                engines: context
                    .engines
                    .installed()
                    .await
                    .iter()
                    .map(crate::engine::InstalledEngine::request)
                    .collect(),
                running,
                once: options.once,
            };
            let greeted = connection::connect(&context.dial, &options.token, &hello).await;
            let _ = sender.send(Event::Greeted(Box::new(greeted)));
        });
    }

    fn handle(&mut self, event: Event) -> Result<(), Error> {
        match event {
            Event::Greeted(greeted) => match *greeted {
                Ok(greeted) => self.welcomed(greeted),
                Err(error) => self.not_connected(error)?,
            },
            Event::Heard(message) => self.handle_message(message),
            Event::Broken => {
                tracing::warn!(event = "connection_lost", "the connection to the server broke");
                self.link = Link::Down { retry_at: Instant::now() + self.backoff.next() };
            }
        }
        Ok(())
    }

    fn not_connected(&mut self, error: ConnectError) -> Result<(), Error> {
        if let ConnectError::Refused { reason, detail } = &error {
            let may_change = match reason {
                Refusal::Stopping => true,
                // Phases belong to the id. Without any, this agent can as well be a new one.
                Refusal::AlreadyConnected if self.phase_references().is_empty() => self.id.take().is_some(),
                Refusal::AlreadyConnected => true,
                Refusal::Unauthorized | Refusal::ProtocolTooOld => false,
            };
            // Phases have tokens of their own, and an end of their own: the lease's.
            if !may_change && self.running.is_empty() {
                return Err(Error::Refused(detail.clone()));
            }
        }
        let wait = self.backoff.next();
        tracing::warn!(event = "connection_failed", %error, "not connected; trying again in {wait:?}");
        self.link = Link::Down { retry_at: Instant::now() + wait };
        Ok(())
    }

    fn welcomed(&mut self, greeted: GreetedConnection) {
        let GreetedConnection { socket, welcome, greeted_at } = greeted;
        let FromServer::Welcome { agent, lease_milliseconds, heartbeat_milliseconds, lost } = welcome else { return };
        self.id = Some(agent);
        self.context.keep_id(agent);
        self.backoff = Backoff::new();
        self.heartbeat_every = Duration::from_millis(heartbeat_milliseconds.max(50));
        let is_idle = self.phase_references().is_empty();
        self.lease.begin(Duration::from_millis(lease_milliseconds), greeted_at, is_idle);
        self.deadline.send_replace(self.lease.deadline());
        let (outgoing, messages) = mpsc::unbounded_channel();
        let (heard, broken) = (self.sender.clone(), self.sender.clone());
        let silence = self.heartbeat_every * 3 + Duration::from_secs(2);
        let carrying = tokio::spawn(async move {
            let incoming = |message| {
                let _ = heard.send(Event::Heard(message));
            };
            connection::carry(socket, messages, incoming, silence).await;
            let _ = broken.send(Event::Broken);
        });
        self.link = Link::Up { outgoing, carrying };
        tracing::info!(%agent, name = self.context.options.name, "connected");
        for phase in &lost {
            self.stop(phase, Stop::Lost);
        }
        if self.urgency() > Shutdown::Stay {
            self.send_message(FromAgent::Draining);
        }
        self.heartbeat();
    }

    fn heartbeat(&mut self) {
        self.heartbeats += 1;
        let number = self.heartbeats;
        self.lease.sent(number, Instant::now());
        let draining = self.urgency() > Shutdown::Stay;
        self.send_message(FromAgent::Heartbeat { number, running: self.phase_references(), draining });
        self.next_heartbeat_at = Instant::now() + self.heartbeat_every;
    }

    fn send_message(&self, message: FromAgent) {
        if let Link::Up { outgoing, .. } = &self.link {
            let _ = outgoing.send(message);
        }
    }

    fn phase_references(&self) -> Vec<PhaseAttempt> {
        self.running.keys().copied().chain(self.waiting.iter().map(|job| job.phase)).collect()
    }

    fn handle_message(&mut self, message: FromServer) {
        match message {
            FromServer::Published { number } => {
                self.lease.published(number);
                self.deadline.send_replace(self.lease.deadline());
                self.begin_waiting();
            }
            FromServer::Execute(job) => {
                let is_known = self.phase_references().contains(&job.phase);
                if !is_known {
                    self.has_taken_one = true;
                    self.waiting.push(*job);
                    self.begin_waiting();
                }
                if !self.waiting.is_empty() {
                    self.heartbeat();
                }
            }
            FromServer::Cancel { phase, force } => self.stop(&phase, if force { Stop::Kill } else { Stop::Cancel }),
            FromServer::Lost { phase } => self.stop(&phase, Stop::Lost),
            FromServer::Refused { detail, .. } => {
                tracing::warn!(event = "connection_closed_by_server", detail, "the server ends the connection");
            }
            FromServer::Welcome { .. } => {}
        }
    }

    fn stop(&mut self, phase: &PhaseAttempt, how: Stop) {
        // One that has not begun has nothing to report but that, which beginning it does.
        if how == Stop::Lost {
            self.waiting.retain(|job| job.phase != *phase);
        } else if let Some(position) = self.waiting.iter().position(|job| job.phase == *phase) {
            let job = self.waiting.remove(position);
            self.begin(job);
        }
        if let Some(stop) = self.running.get(phase) {
            raise(stop, how);
        }
    }

    fn begin_waiting(&mut self) {
        let holds = self.lease.holds(Instant::now());
        for job in std::mem::take(&mut self.waiting) {
            match holds && !self.running.keys().any(|running| running.run == job.phase.run) {
                true => self.begin(job),
                false => self.waiting.push(job),
            }
        }
    }

    fn begin(&mut self, job: Job) {
        let phase = job.phase;
        let (stop, stopping) = watch::channel(Stop::Run);
        let control = Control::new(stopping, self.deadline.subscribe(), Duration::from_secs(job.timeout_seconds));
        self.running.insert(phase, stop);
        let context = self.context.clone();
        self.phases.spawn(async move {
            // A phase that panics must not stay in the list for ever.
            let phase_task = tokio::spawn(phase::run(context, job, control));
            (phase, phase_task.await.unwrap_or(PhaseEnd::Reported))
        });
    }

    fn phase_ended(&mut self, ended: Result<(PhaseAttempt, PhaseEnd), JoinError>) {
        let Ok((phase, end)) = ended else { return };
        self.running.remove(&phase);
        if let PhaseEnd::Unsent(record) = end {
            self.resend(record);
        }
        self.begin_waiting();
        // The server sees from it that there is room again.
        self.heartbeat();
    }

    fn resend(&mut self, record: crate::journal::JournalRecord) {
        if let Err(error) = record.set_aside(&self.context.unsent) {
            tracing::warn!(
                event = "journal_set_aside_failed", phase = %record.entry().phase, %error,
                "what is left of a phase cannot be set aside"
            );
        }
        self.resending.spawn(resend::resend(self.context.clone(), record));
    }
}

/// A stop is never taken back.
fn raise(stop: &watch::Sender<Stop>, how: Stop) {
    stop.send_if_modified(|now| {
        let raised = *now < how;
        *now = how.max(*now);
        raised
    });
}
