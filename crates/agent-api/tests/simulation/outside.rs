//! World outside taco: engines that plan and apply, and a ledger of what they really did.

use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Duration;

use bytes::Bytes;
use taco_agent_protocol::{PhaseAttempt, PhaseKind};
use taco_domain::id::WorkspaceId;
use taco_ledger::SharedRng;
use tokio::sync::watch;
use tokio::task::JoinHandle;
use tokio::time::{Instant, sleep_until};

use crate::walks::Made;

const STX: u8 = 2;
const ETX: u8 = 3;

/// Grace period for an engine whose agent died to write its state.
const ORPHAN_GRACE_PERIOD: Duration = Duration::from_secs(3);

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Deed {
    Started,
    Stopped,
}

/// Something that an engine really did.
#[derive(Clone, Debug)]
pub(crate) struct Event {
    pub(crate) at: Instant,
    pub(crate) phase: PhaseAttempt,
    pub(crate) workspace: WorkspaceId,
    /// The agent that started it.
    pub(crate) agent: usize,
    pub(crate) deed: Deed,
}

/// The ledger of deeds, in order.
#[derive(Default)]
pub(crate) struct Outside {
    events: Mutex<Vec<Event>>,
    made: Mutex<Made>,
}

impl Outside {
    pub(crate) fn events(&self) -> Vec<Event> {
        self.events.lock().expect("no panic").clone()
    }

    pub(crate) fn made(&self) -> MutexGuard<'_, Made> {
        self.made.lock().expect("no panic")
    }
}

/// Files of a phase on its agent's disk, which outlives the agent's process.
#[derive(Default)]
pub(crate) struct Files {
    log: Mutex<Vec<u8>>,
    state: Mutex<Option<Bytes>>,
    engine_lives: Mutex<bool>,
    /// Length of the log that the server is known to have.
    pub(crate) sent_log: Mutex<u64>,
    pub(crate) sent_state: Mutex<Option<Bytes>>,
}

impl Files {
    pub(crate) fn new() -> Arc<Self> {
        let files = Self::default();
        files.log().push(STX);
        Arc::new(files)
    }

    pub(crate) fn log(&self) -> MutexGuard<'_, Vec<u8>> {
        self.log.lock().expect("no panic")
    }

    pub(crate) fn say(&self, line: &str) {
        self.log().extend_from_slice(format!("{line}\n").as_bytes());
    }

    /// A log ends once.
    pub(crate) fn end_log(&self) {
        if self.log().last() != Some(&ETX) {
            self.log().push(ETX);
        }
    }

    pub(crate) fn state(&self) -> Option<Bytes> {
        self.state.lock().expect("no panic").clone()
    }

    pub(crate) fn engine_lives(&self) -> bool {
        *self.engine_lives.lock().expect("no panic")
    }
}

/// Deadline of an engine, unless it hears of a later one.
#[derive(Clone, Copy, Default, Debug)]
pub(crate) struct Orders {
    pub(crate) interrupt_at: Option<Instant>,
    pub(crate) kill_at: Option<Instant>,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Exit {
    Succeeded,
    Failed,
    Interrupted,
    Killed,
}

/// One call of terraform, with the process that watches it: that one keeps the orders even while the agent is paused,
/// and ends the engine when the agent dies.
pub(crate) struct Engine {
    pub(crate) outside: Arc<Outside>,
    pub(crate) files: Arc<Files>,
    pub(crate) orders: watch::Receiver<Orders>,
    pub(crate) rng: SharedRng,
    pub(crate) phase: PhaseAttempt,
    pub(crate) workspace: WorkspaceId,
    pub(crate) agent: usize,
    pub(crate) steps: u32,
    pub(crate) pace: Duration,
    /// Serial of the state that it begins with.
    pub(crate) serial: u64,
}

enum Woken {
    Time,
    Interrupt,
    Kill,
}

impl Engine {
    /// Starts it as a process of its own: dropping the handle does not end it.
    pub(crate) fn start(mut self) -> JoinHandle<Exit> {
        *self.files.engine_lives.lock().expect("no panic") = true;
        self.note(Deed::Started);
        tokio::spawn(async move {
            let exit = self.work().await;
            self.note(Deed::Stopped);
            *self.files.engine_lives.lock().expect("no panic") = false;
            exit
        })
    }

    fn note(&self, deed: Deed) {
        let Self { phase, workspace, agent, .. } = *self;
        let event = Event { at: Instant::now(), phase, workspace, agent, deed };
        self.outside.events.lock().expect("no panic").push(event);
    }

    async fn work(&mut self) -> Exit {
        let mut orders = Following { receiver: Some(self.orders.clone()), orders: Orders::default() };
        for step in 1..=self.steps {
            let until = Instant::now() + self.pace.mul_f64(0.5 + self.rng.fraction());
            match orders.wait(until).await {
                Woken::Time => self.make_progress(step),
                Woken::Kill => return Exit::Killed,
                Woken::Interrupt => {
                    orders.orders.interrupt_at = None;
                    let until = Instant::now() + Duration::from_secs_f64(1.2 * self.rng.fraction());
                    if !matches!(orders.wait_for_death(until).await, Woken::Time) {
                        return Exit::Killed;
                    }
                    self.make_progress(step);
                    return Exit::Interrupted;
                }
            }
        }
        if self.rng.fraction() < 0.05 { Exit::Failed } else { Exit::Succeeded }
    }

    fn make_progress(&mut self, step: u32) {
        self.files.say(&format!("{}: step {step}", self.phase));
        if self.phase.phase == PhaseKind::Apply {
            self.serial += 1;
            let (serial, lineage) = (self.serial, self.workspace);
            let value = format!("{} {step}", self.phase);
            let state = format!(
                r#"{{"version":4,"terraform_version":"1.11.4","serial":{serial},"lineage":"{lineage}","outputs":{{"by":{{"value":"{value}","type":"string"}}}},"resources":[]}}"#
            );
            self.outside.made().note_state(state.as_bytes(), value);
            *self.files.state.lock().expect("no panic") = Some(state.into());
        }
    }
}

/// The watching process' ear.
struct Following {
    /// `None` when the agent is dead.
    receiver: Option<watch::Receiver<Orders>>,
    orders: Orders,
}

impl Following {
    async fn wait(&mut self, until: Instant) -> Woken {
        loop {
            if let Some(receiver) = &mut self.receiver {
                self.orders = *receiver.borrow_and_update();
            }
            let now = Instant::now();
            let is_due = |at: Option<Instant>| at.is_some_and(|at| now >= at);
            if is_due(self.orders.kill_at) {
                return Woken::Kill;
            }
            if is_due(self.orders.interrupt_at) {
                return Woken::Interrupt;
            }
            if now >= until {
                return Woken::Time;
            }
            let next = [self.orders.kill_at, self.orders.interrupt_at].into_iter().flatten().fold(until, Instant::min);
            self.change_or(next).await;
        }
    }

    /// The same for an engine that was interrupted already.
    async fn wait_for_death(&mut self, until: Instant) -> Woken {
        loop {
            if let Some(receiver) = &mut self.receiver {
                self.orders = *receiver.borrow_and_update();
            }
            let now = Instant::now();
            match self.orders.kill_at {
                Some(at) if now >= at => return Woken::Kill,
                _ if now >= until => return Woken::Time,
                kill_at => self.change_or(kill_at.unwrap_or(until).min(until)).await,
            }
        }
    }

    async fn change_or(&mut self, next: Instant) {
        let Some(receiver) = &mut self.receiver else { return sleep_until(next).await };
        tokio::select! {
            biased;
            changed = receiver.changed() => if changed.is_err() {
                let now = Instant::now();
                self.receiver = None;
                self.orders.interrupt_at = Some(now);
                self.orders.kill_at = Some(self.orders.kill_at.unwrap_or(now + ORPHAN_GRACE_PERIOD).min(now + ORPHAN_GRACE_PERIOD));
            },
            () = sleep_until(next) => {}
        }
    }
}
