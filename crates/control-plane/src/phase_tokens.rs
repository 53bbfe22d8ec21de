//! The credential of one attempt at one phase: it names run, phase and epoch and is signed, so nothing is stored. It
//! opens what it names while the ledger says that this attempt is under way, and not a moment longer.
//!
//! ```text
//! taco_r_<run>_<p or a><epoch>_<end>_<signature>
//! ```

use jiff::{SignedDuration, Timestamp};
use subtle::ConstantTimeEq;
use taco_domain::id::RunId;
use taco_domain::phase::PhaseKind;
use taco_domain::run::Run;

use crate::control_plane::ControlPlane;
use crate::error::Error;

const PREFIX: &str = "taco_r_";

/// A phase may take this much longer than its timeout before its token ends.
const GRACE: SignedDuration = SignedDuration::from_mins(10);

/// One attempt at one phase.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Attempt {
    pub run: RunId,
    pub kind: PhaseKind,
    pub epoch: u64,
}

impl Attempt {
    /// Whether this attempt is under way in a run as the ledger has it.
    pub fn is_current_in(&self, run: &Run) -> bool {
        run.executing_phase() == Some(self.kind) && run.phase(self.kind).epoch == self.epoch
    }

    /// Whether this attempt was given up.
    pub fn is_lost_in(&self, run: &Run) -> bool {
        run.phase(self.kind).is_lost(self.epoch)
    }
}

impl ControlPlane {
    pub(crate) fn issue_phase_token(&self, attempt: Attempt, timeout: SignedDuration) -> String {
        let end = self.now().checked_add(timeout).and_then(|end| end.checked_add(GRACE)).unwrap_or(Timestamp::MAX);
        let body =
            format!("{}_{}{}_{}", attempt.run.characters(), letter(attempt.kind), attempt.epoch, end.as_second());
        format!("{PREFIX}{body}_{}", self.phase_signature(&body))
    }

    /// The attempt that a text speaks for; `None` if it is no phase's token at all. Whether the attempt is still under
    /// way, the ledger knows.
    pub(crate) fn read_phase_token(&self, text: &str) -> Option<Result<Attempt, Error>> {
        let (body, signature) = text.strip_prefix(PREFIX)?.rsplit_once('_')?;
        let genuine: bool = self.phase_signature(body).as_bytes().ct_eq(signature.as_bytes()).into();
        let attempt = genuine.then(|| parse(body)).flatten().filter(|(_, end)| *end > self.now().as_second());
        Some(attempt.map(|(attempt, _)| attempt).ok_or_else(over))
    }

    fn phase_signature(&self, body: &str) -> String {
        self.hash_key().hash("phase-token", body).to_string()
    }
}

pub(crate) fn over() -> Error {
    Error::Unauthorized("the run's token is not valid: the phase that it was made for is over".to_owned())
}

fn letter(kind: PhaseKind) -> char {
    match kind {
        PhaseKind::Plan => 'p',
        PhaseKind::Apply => 'a',
    }
}

fn parse(body: &str) -> Option<(Attempt, i64)> {
    let mut parts = body.split('_');
    let run = RunId::from_characters(parts.next()?).ok()?;
    let phase = parts.next()?;
    let kind = if phase.starts_with('p') { PhaseKind::Plan } else { PhaseKind::Apply };
    let epoch = phase.get(1..)?.parse().ok()?;
    Some((Attempt { run, kind, epoch }, parts.next()?.parse().ok()?))
}
