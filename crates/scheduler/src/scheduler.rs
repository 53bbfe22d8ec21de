use std::collections::{BTreeMap, HashMap};
use std::future::Future;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use taco_control_plane::{Changes, Error, LedgerName, OrganizationSnapshot, OrganizationSurvey, Privileged};
use taco_domain::Site;
use taco_domain::id::{AgentId, OrganizationId};
use taco_domain::phase_attempt::PhaseAttempt;
use tokio::sync::Notify;
use tokio::task::JoinSet;
use tokio::time::{Instant, sleep, timeout};

use crate::agents::{AgentLink, Agents, NewAgent, ReconnectGuard};
use crate::leases::{Leases, Watch};
use crate::peers::PeerDirectory;

/// Interval of looking without a signal, for signals that got lost.
const TICK_INTERVAL: Duration = Duration::from_secs(5);

/// Delay before a retry after trouble with the bucket.
const RETRY_DELAY: Duration = Duration::from_millis(500);

/// Interval of trying organizations that cannot be read again: somebody may have put back what was damaged.
const UNREADABLE_RETRY_INTERVAL: Duration = Duration::from_secs(10);

/// Pause in handing out phases of an organization after that failed: the others come first.
const FAILED_ORGANIZATION_DELAY: Duration = Duration::from_secs(2);

/// Timeout for phases that are being handed out when a server stops.
const HAND_OUT_TIMEOUT: Duration = Duration::from_secs(2);

/// The part of a server that gives phases to agents. Cheap to clone; clones share everything.
#[derive(Clone)]
pub struct Scheduler {
    pub(crate) control_plane: Privileged,
    pub(crate) agents: Agents,
    pub(crate) leases: Leases,
    pub(crate) peers: Arc<dyn PeerDirectory>,
    /// The organizations that this server has to do with, and that it follows.
    organizations: Arc<Mutex<BTreeMap<OrganizationId, OrganizationSnapshot>>>,
    /// Time when handing out a phase of an organization last failed.
    failed: Arc<Mutex<HashMap<OrganizationId, Instant>>>,
    /// Something changed from which steps of walks may follow.
    pub(crate) walks_changed: Arc<Notify>,
    /// Something changed that may be told.
    pub(crate) notifications_changed: Arc<Notify>,
    /// It lives for one command: nothing is published before its agent has come, or after it has left.
    is_brief: bool,
    /// Something changed about which tasks may have to be asked.
    pub(crate) tasks_changed: Arc<Notify>,
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
    pub fn new(control_plane: Privileged, leases: Leases, peers: Arc<dyn PeerDirectory>) -> Self {
        Self {
            control_plane,
            agents: Agents::default(),
            leases,
            peers,
            organizations: Arc::default(),
            failed: Arc::default(),
            walks_changed: Arc::default(),
            notifications_changed: Arc::default(),
            is_brief: false,
            tasks_changed: Arc::default(),
        }
    }

    /// The same for a server that lives no longer than a command: with fewer requests to the bucket.
    #[must_use]
    pub fn briefly(self) -> Self {
        Self { is_brief: true, ..self }
    }

    pub fn leases(&self) -> Leases {
        self.leases
    }

    pub fn wake(&self) -> Wake {
        Wake(self.clone())
    }

    /// An agent comes back: until what this returns is dropped, it is given nothing. Nothing is on its way to it either.
    pub async fn begin_reconnect(&self, id: AgentId) -> ReconnectGuard {
        self.agents.begin_reconnect(id).await
    }

    /// The server is stopping: hands out nothing more, and sends away all agents but the server's own, so that they are
    /// with another server, or with this one's successor, before their leases end.
    pub async fn dismiss_agents(&self) {
        self.agents.stop_handing_out();
        // What is being handed out should arrive first. A bucket that hangs is not waited for.
        let _ = timeout(HAND_OUT_TIMEOUT, self.agents.turn.lock()).await;
        self.agents.disconnect_all();
    }

    /// Takes an agent in.
    pub fn connect(&self, new: NewAgent) -> AgentLink {
        self.agents.connect(new, self.control_plane.now())
    }

    /// A phase is over.
    pub fn finished(&self, attempt: &PhaseAttempt) {
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
            () = self.advance_walks_for_ever() => {}
            () = self.deliver_notifications_for_ever() => {}
            () = self.ask_tasks_for_ever() => {}
        }
    }

    /// Number of organizations this server follows.
    pub fn following(&self) -> usize {
        self.organizations.lock().unwrap_or_else(PoisonError::into_inner).len()
    }

    /// All that exist, as they were last seen; also those that cannot be read at the moment.
    pub(crate) fn followed(&self) -> Vec<OrganizationSnapshot> {
        self.organizations.lock().unwrap_or_else(PoisonError::into_inner).values().cloned().collect()
    }

    /// Organizations in which something can be changed. To try it in one that is damaged would only cost the others
    /// time.
    pub(crate) fn served(&self) -> Vec<OrganizationSnapshot> {
        let mut followed = self.followed();
        followed.retain(|org| self.control_plane.is_readable(org.id()));
        followed
    }

    /// Organizations whose phases can be handed out now.
    pub(crate) fn handing_out(&self) -> Vec<OrganizationSnapshot> {
        let mut failed = self.failed.lock().unwrap_or_else(PoisonError::into_inner);
        failed.retain(|_, at| at.elapsed() < FAILED_ORGANIZATION_DELAY);
        let mut served = self.served();
        served.retain(|org| !failed.contains_key(&org.id()));
        served
    }

    pub(crate) fn delay_after_failure(&self, organization: OrganizationId) {
        self.failed.lock().unwrap_or_else(PoisonError::into_inner).insert(organization, Instant::now());
    }

    /// Opens every organization, and lets its changes wake the rest.
    async fn follow_organizations(&self) {
        let mut site = self.control_plane.site_changes();
        let mut watchers = JoinSet::new();
        let mut told = String::new();
        loop {
            // Those that are followed tell of their changes by themselves.
            let survey = self.control_plane.survey_organizations_as_seen().await;
            let failure = match &survey {
                Ok(survey) => survey.transient_failure(),
                Err(error) => Some(error),
            };
            let trouble = failure.map(in_full).unwrap_or_default();
            if !trouble.is_empty() && trouble != told {
                tracing::warn!(
                    event = "scheduler_read_failed",
                    error = trouble,
                    "the scheduler cannot see all organizations; trying again"
                );
            }
            told = trouble;
            let mut missing = Vec::new();
            if let Ok(survey) = survey {
                missing.extend(survey.failed.iter().map(|(id, _)| *id));
                self.follow(survey, &mut watchers);
                self.agents.changed.notify_one();
            }
            if !told.is_empty() {
                sleep(RETRY_DELAY).await;
                continue;
            }
            if !self.site_changed_or_mended(&mut site, &missing).await {
                return;
            }
        }
    }

    /// Follows what was found. What could not be opened and was followed before stays as it was last seen: its agents
    /// are at work.
    fn follow(&self, survey: OrganizationSurvey, watchers: &mut JoinSet<()>) {
        let mut organizations = self.organizations.lock().unwrap_or_else(PoisonError::into_inner);
        let mut before = std::mem::take(&mut *organizations);
        for (id, _) in survey.failed {
            if let Some(org) = before.remove(&id) {
                organizations.insert(id, org);
            }
        }
        for org in survey.readable {
            if !before.contains_key(&org.id()) && !organizations.contains_key(&org.id()) {
                let (mut changes, changed) = (org.changes(), Arc::clone(&self.agents.changed));
                let (walks, notifications) = (Arc::clone(&self.walks_changed), Arc::clone(&self.notifications_changed));
                let tasks = Arc::clone(&self.tasks_changed);
                watchers.spawn(async move {
                    while changes.next().await {
                        changed.notify_one();
                        walks.notify_one();
                        notifications.notify_one();
                        tasks.notify_one();
                    }
                });
            }
            organizations.insert(org.id(), org);
        }
    }

    /// Waits until organizations may have come or gone, or one of those `missing` can be read; `false` when the site is
    /// closed.
    async fn site_changed_or_mended(&self, site: &mut Changes<Site>, missing: &[OrganizationId]) -> bool {
        loop {
            if let Ok(is_open) = timeout(UNREADABLE_RETRY_INTERVAL, site.next()).await {
                return is_open;
            }
            // Where all can be read this costs nothing. Someone's request may have found out before.
            let is_mended = self.control_plane.look_at_unreadable().await;
            if is_mended || missing.iter().any(|id| self.control_plane.is_readable(*id)) {
                return true;
            }
        }
    }

    async fn look_everywhere(&self) -> Result<(), Error> {
        // Opening them reads the site and each of them.
        self.control_plane.survey_organizations().await?;
        Ok(())
    }

    /// Looks where a peer has announced a commit that this server has not seen: the message to look may get lost.
    async fn look_if_behind(&self) {
        let newest = |(ledger, seen): (LedgerName, u64)| {
            // What cannot be read is looked at in its own time.
            let is_readable = ledger.as_str().parse().map_or(true, |id| self.control_plane.is_readable(id));
            let newest = self.peers.newest_commit(&ledger).filter(|newest| is_readable && *newest > seen)?;
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
            let _ = timeout(TICK_INTERVAL, self.agents.changed.notified()).await;
            self.deliver_cancels();
            self.reconcile_agents(Instant::now()).await;
            self.forget_what_ended_elsewhere();
            self.disconnect_revoked();
            self.control_plane.sample_load(&self.followed());
            if let Err(error) = self.hand_out().await {
                tracing::warn!(
                    event = "phase_assignment_failed", %error,
                    "a phase could not be given to an agent; trying again"
                );
                sleep(RETRY_DELAY).await;
                self.agents.changed.notify_one();
            }
        }
    }

    /// Lets all servers know of the heartbeats, tells the agents so, and gives up on those who are silent.
    async fn publish_for_ever(&self) {
        let mut watch = Watch::default();
        loop {
            if self.is_brief && self.agents.ids().is_empty() {
                let _ = timeout(self.leases.heartbeat(), self.agents.publish.notified()).await;
                if self.agents.ids().is_empty() && self.agents.is_leaving() {
                    continue;
                }
            }
            let presence = self.agents.presence();
            let asked_at = Instant::now();
            if self.peers.publish(&presence).await {
                self.agents.published(&presence);
                let heard = self.peers.heard();
                watch.note(presence.iter().chain(&heard), Instant::now());
                self.control_plane.presence().set(presence.into_iter().chain(heard).collect());
                self.look_if_behind().await;
                // What was published after the question may not be in the answer.
                self.expire_silent_agents(&mut watch, asked_at).await;
                watch.forget_old(&self.leases, asked_at);
            }
            let round = if self.anything_executes() { self.leases.heartbeat() } else { self.leases.idle_round() };
            let _ = timeout(round, self.agents.publish.notified()).await;
        }
    }

    /// Phases under way may be another server's: its agents' leases are watched here too.
    fn anything_executes(&self) -> bool {
        self.agents.any_busy()
            || self
                .followed()
                .iter()
                .any(|org| self.control_plane.last_seen(org).runs.by().executing.iter().next().is_some())
    }

    /// Lets the others know soon.
    pub(crate) fn publish_soon(&self) {
        self.agents.publish.notify_one();
    }
}

/// An error with its cause, which is for the log and not for callers.
fn in_full(error: &Error) -> String {
    match error {
        Error::Unavailable(cause) | Error::Corrupt(cause) => cause.to_string(),
        other => other.to_string(),
    }
}
