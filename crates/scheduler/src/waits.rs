//! Runs that wait longer than a moment: their logs say what for.

use std::collections::HashMap;
use std::time::Duration;

use jiff::Timestamp;
use taco_control_plane::{DueWait, Wait};
use taco_domain::id::{OrganizationId, RunId};
use taco_domain::phase::PhaseKind;
use tokio::time::{Instant, sleep};

use crate::scheduler::Scheduler;

/// Interval of looking for waits, in memory alone.
const POLL_INTERVAL: Duration = Duration::from_secs(1);

/// Minimum wait that is worth a note.
const MIN_NOTED_WAIT: Duration = Duration::from_secs(2);

/// Reasons that one server has seen runs wait for.
#[derive(Default)]
struct Waits {
    seen: HashMap<OrganizationId, HashMap<(RunId, PhaseKind), Seen>>,
}

struct Seen {
    subject: String,
    /// The site's time, for people, and this server's, to reckon with.
    since: Timestamp,
    from: Instant,
    /// This server has had its say. Servers that hear different agents may see different reasons for a while; none
    /// repeats itself because another disagrees.
    is_noted: bool,
}

impl Waits {
    /// Takes in what waits in an organization now; returns what is to be noted.
    fn see(
        &mut self,
        organization: OrganizationId,
        waiting: Vec<Wait>,
        since: Timestamp,
        now: Instant,
    ) -> Vec<DueWait> {
        let before = self.seen.entry(organization).or_default();
        let mut seen = HashMap::with_capacity(waiting.len());
        let mut due = Vec::new();
        for wait in waiting {
            let known = before.remove(&(wait.run, wait.kind)).filter(|known| known.subject == wait.subject);
            let fresh = || Seen { subject: wait.subject.clone(), since, from: now, is_noted: false };
            let known = known.unwrap_or_else(fresh);
            if wait.is_new && !known.is_noted && now >= known.from + MIN_NOTED_WAIT {
                due.push(DueWait { since: known.since, wait: wait.clone() });
            }
            seen.insert((wait.run, wait.kind), known);
        }
        *before = seen;
        due
    }

    fn noted(&mut self, organization: OrganizationId, due: &[DueWait]) {
        let Some(seen) = self.seen.get_mut(&organization) else { return };
        for due in due {
            if let Some(seen) = seen.get_mut(&(due.wait.run, due.wait.kind)) {
                seen.is_noted = true;
            }
        }
    }
}

impl Scheduler {
    pub(crate) async fn note_waits_for_ever(&self) {
        let mut waits = Waits::default();
        loop {
            sleep(POLL_INTERVAL).await;
            let followed = self.followed();
            waits.seen.retain(|id, _| followed.iter().any(|org| org.id() == *id));
            for org in followed {
                if !self.control_plane.is_readable(org.id()) {
                    continue;
                }
                let waiting = self.control_plane.waits_last_seen(&org);
                let due = waits.see(org.id(), waiting, self.control_plane.now(), Instant::now());
                if due.is_empty() {
                    continue;
                }
                match self.control_plane.note_waits(&org, due.clone()).await {
                    Ok(()) => waits.noted(org.id(), &due),
                    Err(error) => tracing::debug!(%error, "could not note what runs wait for; trying again"),
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn wait(subject: &str, is_new: bool) -> Wait {
        Wait { run: RunId::from_random([1; 16]), kind: PhaseKind::Plan, subject: subject.to_owned(), is_new }
    }

    #[test]
    fn what_lasts_is_noted_once() {
        let (organization, start) = (OrganizationId::from_random([1; 16]), Instant::now());
        let mut waits = Waits::default();
        let see = |waits: &mut Waits, waiting: Vec<Wait>, seconds: u64| {
            let since = Timestamp::from_second(seconds as i64).expect("a time");
            let due = waits.see(organization, waiting, since, start + Duration::from_secs(seconds));
            due.into_iter().map(|due| (due.wait.subject, due.since.as_second())).collect::<Vec<_>>()
        };
        let noted = |waits: &mut Waits, subject: &str| {
            let due = DueWait { wait: wait(subject, true), since: Timestamp::UNIX_EPOCH };
            waits.noted(organization, &[due]);
        };
        assert_eq!(see(&mut waits, vec![wait("busy", true)], 0), [], "it may be over in a moment");
        assert_eq!(see(&mut waits, vec![wait("nobody", true)], 1), [], "something else now");
        assert_eq!(see(&mut waits, vec![wait("nobody", true)], 3), [("nobody".to_owned(), 1)]);
        assert_eq!(see(&mut waits, vec![wait("nobody", true)], 4), [("nobody".to_owned(), 1)], "it failed");
        noted(&mut waits, "nobody");
        assert_eq!(see(&mut waits, vec![wait("nobody", false)], 5), []);
        assert_eq!(see(&mut waits, vec![wait("nobody", true)], 6), [], "another server sees it otherwise");
        let apply = || Wait { kind: PhaseKind::Apply, ..wait("nobody", true) };
        assert_eq!(see(&mut waits, vec![apply()], 7), [], "between two looks it was planned");
        assert_eq!(
            see(&mut waits, vec![apply()], 9),
            [("nobody".to_owned(), 7)],
            "another log, which says nothing yet"
        );
        assert_eq!(see(&mut waits, vec![wait("busy", true)], 10), []);
        assert_eq!(see(&mut waits, vec![wait("busy", true)], 12), [("busy".to_owned(), 10)]);
        assert_eq!(see(&mut waits, vec![], 13), []);
        assert_eq!(see(&mut waits, vec![wait("busy", true)], 14), [], "it waits again, since now");
    }
}
