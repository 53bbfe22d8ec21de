//! The credentials of one attempt at one phase: they name run, phase and epoch and are signed, so nothing is stored. They
//! open what they name while the ledger says that this attempt is under way, and not a moment longer.
//!
//! ```text
//! taco_r_<run>_<p or a><epoch>_<end>_<signature>    the agent's: it also sends plan, log, state and outcome
//! taco_run_<run>_<p or a><epoch>_<end>_<signature>  the run's own: it reads what runs may read through the API
//! ```
//!
//! Code in a phase is a stranger's, and can read its own token. It must not be able to replace the plan that people
//! look at, or to say how the phase ended, or to lock the workspace or change its state: so through the API both kinds
//! only read. Agents that are older than the second kind give a run their own.

use jiff::{SignedDuration, Timestamp};
use subtle::ConstantTimeEq;
use taco_domain::id::RunId;
use taco_domain::phase::PhaseKind;
use taco_domain::phase_attempt::PhaseAttempt;

use crate::control_plane::ControlPlane;
use crate::error::Error;

/// A kind of token: how its texts begin, and what its signatures are made for.
struct Kind {
    prefix: &'static str,
    purpose: &'static str,
}

const AGENT: Kind = Kind { prefix: "taco_r_", purpose: "phase-token" };
const RUN: Kind = Kind { prefix: "taco_run_", purpose: "run-token" };

/// A phase may take this much longer than its timeout before its token ends.
const GRACE: SignedDuration = SignedDuration::from_mins(10);

impl ControlPlane {
    /// For the agent that executes the attempt.
    pub(crate) fn issue_phase_token(&self, attempt: PhaseAttempt, timeout: SignedDuration) -> String {
        self.issue(&AGENT, attempt, timeout)
    }

    /// For what runs in the attempt.
    pub(crate) fn issue_run_token(&self, attempt: PhaseAttempt, timeout: SignedDuration) -> String {
        self.issue(&RUN, attempt, timeout)
    }

    fn issue(&self, kind: &Kind, attempt: PhaseAttempt, timeout: SignedDuration) -> String {
        let end = self.now().checked_add(timeout).and_then(|end| end.checked_add(GRACE)).unwrap_or(Timestamp::MAX);
        let body =
            format!("{}_{}{}_{}", attempt.run.characters(), letter(attempt.phase), attempt.epoch, end.as_second());
        format!("{}{body}_{}", kind.prefix, self.sign_token(kind, &body))
    }

    /// The attempt that a text speaks for, as its agent or as what runs in it; `None` if it is neither's token. Whether
    /// the attempt is still under way, the ledger knows.
    pub(crate) fn read_phase_token(&self, text: &str) -> Option<Result<PhaseAttempt, Error>> {
        self.read_token(&AGENT, text).or_else(|| self.read_token(&RUN, text))
    }

    /// The attempt that a text speaks for as its agent.
    pub(crate) fn read_agents_token(&self, text: &str) -> Result<PhaseAttempt, Error> {
        if self.read_token(&RUN, text).is_some() {
            return Err(Error::Unauthorized("a run's own token is not its agent's: it sends nothing here".to_owned()));
        }
        self.read_token(&AGENT, text).unwrap_or_else(|| Err(attempt_over_error()))
    }

    fn read_token(&self, kind: &Kind, text: &str) -> Option<Result<PhaseAttempt, Error>> {
        let (body, signature) = text.strip_prefix(kind.prefix)?.rsplit_once('_')?;
        let genuine: bool = self.sign_token(kind, body).as_bytes().ct_eq(signature.as_bytes()).into();
        let attempt = genuine.then(|| parse(body)).flatten().filter(|(_, end)| *end > self.now().as_second());
        Some(attempt.map(|(attempt, _)| attempt).ok_or_else(attempt_over_error))
    }

    fn sign_token(&self, kind: &Kind, body: &str) -> String {
        self.hash_key().hash(kind.purpose, body).to_string()
    }
}

pub(crate) fn attempt_over_error() -> Error {
    Error::Unauthorized("the run's token is not valid: the phase that it was made for is over".to_owned())
}

fn letter(kind: PhaseKind) -> char {
    match kind {
        PhaseKind::Plan => 'p',
        PhaseKind::Apply => 'a',
    }
}

fn parse(body: &str) -> Option<(PhaseAttempt, i64)> {
    let mut parts = body.split('_');
    let run = RunId::from_characters(parts.next()?).ok()?;
    let phase = parts.next()?;
    let kind = if phase.starts_with('p') { PhaseKind::Plan } else { PhaseKind::Apply };
    let epoch = phase.get(1..)?.parse().ok()?;
    Some((PhaseAttempt { run, phase: kind, epoch }, parts.next()?.parse().ok()?))
}
