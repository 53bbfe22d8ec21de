//! Ledgers that cannot be read: which, since when, and why. One damaged organization must not harm the others, so loops
//! over all of them skip it; this module reports it to operators.
//!
//! A ledger is noted when reading it fails with an error that is not transient, and removed when a read succeeds. Both
//! are logged once.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};

use jiff::Timestamp;
use taco_domain::id::OrganizationId;
use taco_ledger::{Clock, LedgerName};

use crate::error::Error;

/// A ledger that could not be read when someone last looked.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct UnreadableLedger {
    /// `None` is the site's own.
    pub organization: Option<OrganizationId>,
    /// The object that is damaged, missing or out of reach.
    pub object: String,
    /// For operators: it may quote what is stored.
    pub why: String,
    pub since: Timestamp,
}

/// Those that this server knows of. Clones share them.
#[derive(Clone)]
pub(crate) struct UnreadableLedgers {
    clock: Arc<dyn Clock>,
    known: Arc<Mutex<BTreeMap<Option<OrganizationId>, UnreadableLedger>>>,
}

impl UnreadableLedgers {
    pub(crate) fn new(clock: Arc<dyn Clock>) -> Self {
        Self { clock, known: Arc::default() }
    }

    /// Takes note of how a look at a ledger ended. What may pass by itself changes nothing.
    pub(crate) fn note<T>(&self, organization: Option<OrganizationId>, look: &Result<T, taco_ledger::Error>) {
        match look {
            Ok(_) => self.strike_off(organization),
            Err(error) => self.note_failure(organization, error),
        }
    }

    /// Takes note of a failure alone: a success that did not look at the whole proves nothing.
    pub(crate) fn note_failure(&self, organization: Option<OrganizationId>, error: &taco_ledger::Error) {
        use taco_ledger::Error as E;
        let (object, why) = match error {
            E::Corrupt { object, why } => (object.to_string(), why.clone()),
            E::NewerFormat { object, .. } => (object.to_string(), error.to_string()),
            E::Unavailable(denied) if !error.is_transient() => (denied.key.to_string(), denied.why.clone()),
            E::Unavailable(_) | E::Busy { .. } | E::NewerRecord(_) | E::Broken(_) => return,
        };
        let mut known = self.lock();
        let before = known.get(&organization);
        if before.is_some_and(|before| before.object == object && before.why == why) {
            return;
        }
        let ledger = ledger_name(organization);
        tracing::error!(
            event = "ledger_unreadable", %ledger, object, why,
            "a ledger cannot be read: all others are served; `taco doctor` tells more"
        );
        let since = before.map_or_else(|| self.clock.now(), |before| before.since);
        known.insert(organization, UnreadableLedger { organization, object, why, since });
        drop(known);
        gauge(&ledger, 1);
    }

    /// The organization was deleted, or can be read again.
    pub(crate) fn strike_off(&self, organization: Option<OrganizationId>) {
        if self.lock().remove(&organization).is_some() {
            let ledger = ledger_name(organization);
            tracing::info!(event = "ledger_readable", %ledger, "a ledger can be read again, or is gone");
            gauge(&ledger, 0);
        }
    }

    pub(crate) fn contains(&self, organization: OrganizationId) -> bool {
        self.lock().contains_key(&Some(organization))
    }

    pub(crate) fn list(&self) -> Vec<UnreadableLedger> {
        self.lock().values().cloned().collect()
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, BTreeMap<Option<OrganizationId>, UnreadableLedger>> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn gauge(ledger: &LedgerName, value: u8) {
    metrics::gauge!("taco_ledger_unreadable", "ledger" => ledger.to_string()).set(value);
}

pub(crate) fn ledger_name(organization: Option<OrganizationId>) -> LedgerName {
    match organization {
        Some(id) => id.to_string().parse().expect("an id is a legal name"),
        None => LedgerName::site(),
    }
}

/// True if reading one ledger failed in a way that says nothing about the others.
pub(crate) fn is_of_one_ledger(error: &Error) -> bool {
    match error {
        Error::Corrupt(_) => true,
        Error::Unavailable(cause) => !cause.is_transient(),
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use taco_ledger::{SystemClock, layout};

    use super::*;

    fn damaged(why: &str) -> Result<(), taco_ledger::Error> {
        Err(taco_ledger::Error::Corrupt { object: layout::format(), why: why.to_owned() })
    }

    #[test]
    fn a_ledger_is_noted_until_it_can_be_read() {
        let unreadable = UnreadableLedgers::new(Arc::new(SystemClock));
        let id = OrganizationId::from_random([1; 16]);
        unreadable.note(Some(id), &damaged("it ends too soon"));
        let since = unreadable.list()[0].since;
        unreadable.note(Some(id), &damaged("it is missing"));
        let [known] = &unreadable.list()[..] else { panic!("one is damaged") };
        assert_eq!((known.organization, known.why.as_str(), known.since), (Some(id), "it is missing", since));
        assert!(unreadable.contains(id) && !unreadable.contains(OrganizationId::from_random([2; 16])));
        let busy = Err(taco_ledger::Error::Busy { ledger: id.to_string(), seconds: 10 });
        unreadable.note::<()>(Some(id), &busy);
        assert_eq!(unreadable.list().len(), 1, "trouble that passes proves nothing");
        unreadable.note(Some(id), &Ok(()));
        assert_eq!(unreadable.list(), []);
        unreadable.note::<()>(None, &busy);
        assert_eq!(unreadable.list(), []);
    }
}
