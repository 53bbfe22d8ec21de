use std::collections::BTreeMap;
use std::future::Future;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use taco_control_plane::{Attempt, ControlPlane, LedgerName, OpenOrganization};
use taco_domain::id::{AgentId, OrganizationId};
use tokio::task::JoinSet;
use tokio::time::{Instant, sleep, timeout};

use crate::agents::{AgentLink, Agents, Greeting, NewAgent};
use crate::leases::{Leases, Watch};
use crate::neighbours::Neighbours;

/// A look without a signal, for signals that got lost.
const TICK: Duration = Duration::from_secs(5);

/// After trouble with the bucket it waits this long before it tries again.
const PAUSE: Duration = Duration::from_millis(500);

/// How long a server that stops waits for phases that are being handed out.
const HAND_OUT_PATIENCE: Duration = Duration::from_secs(2);

/// The part of a server that gives phases to agents. Cheap to clone; clones share everything.
#[derive(Clone)]
pub struct Scheduler {
    pub(crate) control_plane: ControlPlane,
    pub(crate) agents: Agents,
    pub(crate) leases: Leases,
    pub(crate) neighbours: Arc<dyn Neighbours>,
    /// The organizations that this server has to do with, and that it follows.
    organizations: Arc<Mutex<BTreeMap<OrganizationId, OpenOrganization>>>,
}

/// Says "look", from outside.
#[derive(Clone)]
pub struct Wake(Scheduler);

impl Wake {
    /// Another server has changed something: looks at every ledger that this one follows.
    pub async fn look(&self) {
        if let Err(error) = self.0.look_everywhere().await {
            tracing::debug!(%error, "could not look for changes of other servers");
        }
    }
}

impl Wake {
    /// Another server has committed in these ledgers, up to these numbers: looks at those that this one follows.
    pub async fn look_at(&self, ledgers: Vec<(LedgerName, u64)>) {
        self.0.look_at(ledgers).await;
    }
}

impl Scheduler {
    pub fn new(control_plane: ControlPlane, leases: Leases, neighbours: Arc<dyn Neighbours>) -> Self {
        Self { control_plane, agents: Agents::default(), leases, neighbours, organizations: Arc::default() }
    }

    pub fn leases(&self) -> Leases {
        self.leases
    }

    pub fn wake(&self) -> Wake {
        Wake(self.clone())
    }

    /// An agent comes back: until what this returns is dropped, it is given nothing. Nothing is on its way to it either.
    pub async fn greet(&self, id: AgentId) -> Greeting {
        self.agents.greet(id).await
    }

    /// The server is stopping: hands out nothing more, and sends away all agents but the server's own, so that they are
    /// with another server, or with this one's successor, before their leases end.
    pub async fn dismiss_agents(&self) {
        self.agents.give_no_more();
        // What is being handed out should arrive first. A bucket that hangs is not waited for.
        let _ = timeout(HAND_OUT_PATIENCE, self.agents.turn.lock()).await;
        self.agents.dismiss();
    }

    /// Takes an agent in.
    pub fn connect(&self, new: NewAgent) -> AgentLink {
        self.agents.connect(new, self.control_plane.now())
    }

    /// A phase is over.
    pub fn finished(&self, attempt: &Attempt) {
        self.agents.finished(attempt);
    }

    /// Works until `shutdown` is ready.
    pub async fn run(&self, shutdown: impl Future<Output = ()>) {
        tokio::select! {
            biased;
            () = shutdown => {}
            () = self.follow_organizations() => {}
            () = self.reconcile_for_ever() => {}
            () = self.publish_for_ever() => {}
            () = self.note_waits_for_ever() => {}
        }
    }

    /// How many organizations this server follows.
    pub fn following(&self) -> usize {
        self.organizations.lock().unwrap_or_else(PoisonError::into_inner).len()
    }

    pub(crate) fn followed(&self) -> Vec<OpenOrganization> {
        self.organizations.lock().unwrap_or_else(PoisonError::into_inner).values().cloned().collect()
    }

    /// Opens every organization, and lets its changes wake the rest.
    async fn follow_organizations(&self) {
        let mut site = self.control_plane.site_changes();
        let mut watchers = JoinSet::new();
        loop {
            // Those that are followed tell of their changes by themselves.
            match self.control_plane.all_organizations_as_seen().await {
                Ok(all) => {
                    let mut organizations = self.organizations.lock().unwrap_or_else(PoisonError::into_inner);
                    let before = std::mem::take(&mut *organizations);
                    for open in all {
                        if !before.contains_key(&open.id()) {
                            let (mut changes, changed) = (open.changes(), Arc::clone(&self.agents.changed));
                            watchers.spawn(async move {
                                while changes.next().await {
                                    changed.notify_one();
                                }
                            });
                        }
                        organizations.insert(open.id(), open);
                    }
                    drop(organizations);
                    self.agents.changed.notify_one();
                }
                Err(error) => {
                    tracing::warn!(%error, "the scheduler cannot see the organizations");
                    sleep(PAUSE).await;
                    continue;
                }
            }
            if !site.next().await {
                return;
            }
        }
    }

    async fn look_everywhere(&self) -> Result<(), taco_control_plane::Error> {
        // Opening them reads the site and each of them.
        self.control_plane.all_organizations().await?;
        Ok(())
    }

    /// Looks where another server has told of a commit that this one has not seen: the word to look may get lost.
    async fn look_if_behind(&self) {
        let newest = |(ledger, seen): (LedgerName, u64)| {
            let newest = self.neighbours.newest_commit(&ledger).filter(|newest| *newest > seen)?;
            Some((ledger, newest))
        };
        self.look_at(self.control_plane.ledgers_seen().into_iter().filter_map(newest).collect()).await;
    }

    async fn look_at(&self, ledgers: Vec<(LedgerName, u64)>) {
        for (ledger, newest) in ledgers {
            if let Err(error) = self.control_plane.look_at(&ledger, newest).await {
                tracing::debug!(%error, %ledger, "could not look for changes of other servers");
            }
        }
    }

    async fn reconcile_for_ever(&self) {
        loop {
            let _ = timeout(TICK, self.agents.changed.notified()).await;
            self.deliver_cancels();
            self.settle_disagreements(Instant::now()).await;
            self.forget_what_ended_elsewhere();
            self.let_the_refused_go();
            if let Err(error) = self.hand_out().await {
                tracing::warn!(%error, "a phase could not be given to an agent; trying again");
                sleep(PAUSE).await;
                self.agents.changed.notify_one();
            }
        }
    }

    /// Lets all servers know of the heartbeats, tells the agents so, and gives up on those who are silent.
    async fn publish_for_ever(&self) {
        let mut watch = Watch::default();
        loop {
            let presence = self.agents.presence();
            let asked_at = Instant::now();
            if self.neighbours.publish(&presence).await {
                self.agents.published(&presence);
                let heard = self.neighbours.heard();
                watch.note(presence.iter().chain(&heard), Instant::now());
                self.control_plane.presence().set(presence.into_iter().chain(heard).collect());
                self.look_if_behind().await;
                // What was published after the question may not be in the answer.
                self.give_up_on_the_silent(&mut watch, asked_at).await;
                watch.forget_old(&self.leases, asked_at);
            }
            let round = if self.anything_executes() { self.leases.heartbeat() } else { self.leases.idle_round() };
            let _ = timeout(round, self.agents.publish.notified()).await;
        }
    }

    /// Phases under way may be another server's: its agents' leases are watched here too.
    fn anything_executes(&self) -> bool {
        self.agents.any_busy()
            || self.followed().iter().any(|open| open.last_seen().runs.by().executing.iter().next().is_some())
    }

    /// Lets the others know soon.
    pub(crate) fn publish_soon(&self) {
        self.agents.publish.notify_one();
    }
}
