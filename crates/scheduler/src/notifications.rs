//! Notifications go out: whoever sees that one waits makes the attempt, if no other living server comes first.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use taco_control_plane::{AttemptOutcome, DueDelivery, Error, OrganizationSnapshot};
use taco_domain::delivery::NotificationDeliveryId;
use taco_domain::id::OrganizationId;
use taco_domain::notification_configuration::NotificationConfigurationId;
use tokio::task::JoinSet;
use tokio::time::{Instant, timeout};

use crate::scheduler::Scheduler;

/// Interval of looking without a signal: most of what waits only waits for time to pass.
const TICK_INTERVAL: Duration = Duration::from_secs(5);

/// Deliveries at a time, of all organizations and of one. Each takes a socket and a few kilobytes.
const MAX_DELIVERIES: usize = 32;
const MAX_DELIVERIES_OF_ORGANIZATION: usize = 8;

/// Pause for a destination after its outcome could not be noted: the bucket has trouble, and what is sent meanwhile is
/// sent again.
const TROUBLE_DELAY: Duration = Duration::from_secs(10);

/// Delay after which a server makes an attempt that was another's: that one may be dead, which its beacon shows later. It is
/// longer than an attempt takes.
const TAKEOVER_DELAY: Duration = Duration::from_secs(15);

/// An attempt that has ended.
struct Attempt {
    organization: OrganizationId,
    configuration: NotificationConfigurationId,
    outcome: Result<AttemptOutcome, Error>,
}

/// Deliveries under way on this server. One destination has one at a time.
#[derive(Default)]
struct Deliveries {
    tasks: JoinSet<Attempt>,
    busy: BTreeSet<NotificationConfigurationId>,
    of_organization: BTreeMap<OrganizationId, usize>,
    /// Since when this server has seen that an attempt is due.
    due_since: BTreeMap<(NotificationDeliveryId, u32), Instant>,
    /// Destinations that are left alone for a while.
    paused: BTreeMap<NotificationConfigurationId, Instant>,
}

impl Deliveries {
    fn begin(&mut self, scheduler: &Scheduler, org: &OrganizationSnapshot, due: DueDelivery) {
        let organization = org.id();
        let under_way = self.of_organization.entry(organization).or_default();
        let is_full = self.tasks.len() >= MAX_DELIVERIES || *under_way >= MAX_DELIVERIES_OF_ORGANIZATION;
        if is_full || self.paused.contains_key(&due.configuration) || !self.busy.insert(due.configuration) {
            return;
        }
        *under_way += 1;
        let (control_plane, org) = (scheduler.control_plane.clone(), org.clone());
        self.tasks.spawn(async move {
            let outcome = control_plane.deliver(&org, due).await;
            Attempt { organization, configuration: due.configuration, outcome }
        });
    }

    /// Begins those of the due attempts that are this server's, or that nobody has made in time.
    fn begin_due(&mut self, scheduler: &Scheduler) {
        self.paused.retain(|_, since| since.elapsed() < TROUBLE_DELAY);
        let before = std::mem::take(&mut self.due_since);
        for org in scheduler.served() {
            for due in scheduler.control_plane.due_deliveries(&org) {
                let attempt = (due.id, due.attempts);
                let since = before.get(&attempt).copied().unwrap_or_else(Instant::now);
                self.due_since.insert(attempt, since);
                let before_us = u32::try_from(due.rank).unwrap_or(u32::MAX);
                if since.elapsed() >= TAKEOVER_DELAY.saturating_mul(before_us) {
                    self.begin(scheduler, &org, due);
                }
            }
        }
    }

    fn end(&mut self, attempt: Attempt) {
        self.busy.remove(&attempt.configuration);
        if let Some(under_way) = self.of_organization.get_mut(&attempt.organization) {
            *under_way -= 1;
            if *under_way == 0 {
                self.of_organization.remove(&attempt.organization);
            }
        }
        if let Err(error) = attempt.outcome {
            tracing::warn!(
                event = "notification_not_noted", configuration = %attempt.configuration, %error,
                "what came of a notification could not be noted; it will be sent again, with the same id"
            );
            self.paused.insert(attempt.configuration, Instant::now());
        }
    }
}

impl Scheduler {
    pub(crate) async fn deliver_notifications_for_ever(&self) {
        let mut deliveries = Deliveries::default();
        loop {
            deliveries.begin_due(self);
            tokio::select! {
                _ = timeout(TICK_INTERVAL, self.notifications_changed.notified()) => {}
                Some(ended) = deliveries.tasks.join_next() => {
                    match ended {
                        Ok(attempt) => deliveries.end(attempt),
                        // It panicked, and nobody knows which it was: what is under way on this server is forgotten.
                        Err(_) => deliveries = Deliveries::default(),
                    }
                }
            }
        }
    }
}
