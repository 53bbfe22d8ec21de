//! Reasons why runs wait, noted for their logs.

use std::collections::BTreeMap;

use jiff::Timestamp;
use taco_boxed::boxed;
use taco_domain::id::RunId;
use taco_domain::phase::PhaseKind;
use taco_domain::run::Run;
use taco_domain::wait_note::subject;
use taco_domain::wait_reason::{WaitReason, waiting_runs};

use crate::control_plane::{ControlPlane, OrganizationSnapshot};
use crate::error::Error;
use crate::log_id::log_id;
use crate::privileged::Privileged;

/// A run that waits, and what for.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Wait {
    pub run: RunId,
    pub kind: PhaseKind,
    /// Subject of its reasons.
    pub subject: String,
    /// Its log does not say so yet.
    pub is_new: bool,
}

/// A wait that is to be noted.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct DueWait {
    pub wait: Wait,
    /// Time when it was first seen.
    pub since: Timestamp,
}

/// Verbs without permission checks, for the server itself.
#[boxed]
impl Privileged {
    /// Notes what runs wait for, all in one commit. One that waits for something else by now, or no more, is left
    /// alone; so is one that another server has noted.
    pub async fn note_waits(&self, org: &OrganizationSnapshot, due: Vec<DueWait>) -> Result<(), Error> {
        let agents = self.presence().agents();
        let due: BTreeMap<RunId, DueWait> = due.into_iter().map(|due| (due.wait.run, due)).collect();
        let noted = org.commit(ControlPlane::own_intent("run.wait"), move |tx| {
            let mut noted = Vec::new();
            let waiting = waiting_runs(tx.state(), &agents).into_iter();
            for (run, kind, reasons) in waiting {
                let subject = subject(&reasons);
                let due = due.get(&run.id).filter(|due| due.wait.subject == subject);
                if let Some(due) = due.filter(|_| run.should_note(kind, &subject)) {
                    noted.push((kind, run.noted(kind, &reasons, due.since)));
                }
            }
            for (_, run) in &noted {
                tx.put(run);
            }
            Ok::<_, Error>(noted.into_iter().map(|(kind, run)| log_id(run.id, kind)).collect::<Vec<_>>())
        });
        for log in noted.await? {
            self.shared.log_signals.raise(&log);
        }
        Ok(())
    }

    /// The runs of an organization that wait, as far as this server has seen. It asks the bucket for nothing.
    pub fn waits_last_seen(&self, org: &OrganizationSnapshot) -> Vec<Wait> {
        let state = org.last_seen();
        let waiting = waiting_runs(&state, &self.presence().agents()).into_iter();
        let wait = |(run, kind, reasons): (&Run, PhaseKind, Vec<WaitReason>)| {
            let subject = subject(&reasons);
            Wait { run: run.id, kind, is_new: run.should_note(kind, &subject), subject }
        };
        waiting.map(wait).collect()
    }
}
