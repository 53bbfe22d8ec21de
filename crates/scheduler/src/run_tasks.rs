//! Run tasks are asked, and given up when they say nothing: whoever sees that something is due does it, if no other living
//! server comes first.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use taco_control_plane::{AttendedTask, DueTask, Error, OrganizationSnapshot};
use taco_domain::id::OrganizationId;
use taco_domain::task_result::TaskResultId;
use tokio::task::JoinSet;
use tokio::time::{Instant, timeout};

use crate::scheduler::Scheduler;

/// Interval of looking without a signal: timeouts only wait for time to pass.
const TICK_INTERVAL: Duration = Duration::from_secs(2);

/// Requests at a time, of all organizations and of one. Each takes a socket and a few kilobytes.
const MAX_REQUESTS: usize = 64;
const MAX_REQUESTS_OF_ORGANIZATION: usize = 16;

/// Pause for a task after what came of its request could not be noted: the bucket has trouble, and what is sent meanwhile
/// is sent again.
const TROUBLE_DELAY: Duration = Duration::from_secs(10);

/// Delay after which a server does what was another's: that one may be dead, which its beacon shows later. It is longer
/// than a request takes.
const TAKEOVER_DELAY: Duration = Duration::from_secs(15);

/// Something that was done about a task.
struct Attended {
    organization: OrganizationId,
    result: TaskResultId,
    outcome: Result<AttendedTask, Error>,
}

/// Requests in progress on this server. One task of a run has one at a time.
#[derive(Default)]
struct Requests {
    tasks: JoinSet<Attended>,
    busy: BTreeSet<TaskResultId>,
    of_organization: BTreeMap<OrganizationId, usize>,
    /// Since when this server has seen that something is due.
    due_since: BTreeMap<(TaskResultId, u32), Instant>,
    /// Tasks that are left alone for a while.
    paused: BTreeMap<TaskResultId, Instant>,
}

impl Requests {
    fn begin(&mut self, scheduler: &Scheduler, org: &OrganizationSnapshot, due: DueTask) {
        let organization = org.id();
        let in_progress = self.of_organization.entry(organization).or_default();
        let is_full = self.tasks.len() >= MAX_REQUESTS || *in_progress >= MAX_REQUESTS_OF_ORGANIZATION;
        if is_full || self.paused.contains_key(&due.id) || !self.busy.insert(due.id) {
            return;
        }
        *in_progress += 1;
        let (control_plane, org) = (scheduler.control_plane.clone(), org.clone());
        self.tasks.spawn(async move {
            let outcome = control_plane.attend_task(&org, due).await;
            Attended { organization, result: due.id, outcome }
        });
    }

    /// Begins with what is this server's turn, or what nobody has done in time.
    fn begin_due(&mut self, scheduler: &Scheduler) {
        self.paused.retain(|_, since| since.elapsed() < TROUBLE_DELAY);
        let before = std::mem::take(&mut self.due_since);
        for org in scheduler.served() {
            for due in scheduler.control_plane.due_tasks(&org) {
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

    fn end(&mut self, attended: Attended) {
        self.busy.remove(&attended.result);
        if let Some(in_progress) = self.of_organization.get_mut(&attended.organization) {
            *in_progress -= 1;
            if *in_progress == 0 {
                self.of_organization.remove(&attended.organization);
            }
        }
        if let Err(error) = attended.outcome {
            tracing::warn!(
                event = "run_task_not_noted", result = %attended.result, %error,
                "what came of a request to a run task could not be noted; it will be sent again, with the same id"
            );
            self.paused.insert(attended.result, Instant::now());
        }
    }
}

impl Scheduler {
    pub(crate) async fn ask_tasks_for_ever(&self) {
        let mut requests = Requests::default();
        loop {
            requests.begin_due(self);
            tokio::select! {
                _ = timeout(TICK_INTERVAL, self.tasks_changed.notified()) => {}
                Some(ended) = requests.tasks.join_next() => {
                    match ended {
                        Ok(attended) => requests.end(attended),
                        // It panicked, and nobody knows which it was: what is in progress on this server is forgotten.
                        Err(_) => requests = Requests::default(),
                    }
                }
            }
        }
    }
}
