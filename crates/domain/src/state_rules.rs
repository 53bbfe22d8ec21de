//! When a state may take the place of the one before it.
//!
//! All ways to write a state end here. A request describes its state (serial, lineage, MD5) before or beside the
//! bytes; the description counts, and has to fit the bytes.

use crate::lock::{Claim, Lock, LockConflict, check_lock};

/// By what two states are compared.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct StateIdentity<'a> {
    pub serial: u64,
    pub lineage: &'a str,
    pub md5: &'a str,
}

/// What to do with a state that may be written.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Verdict {
    New,
    /// The request was repeated: the current state is this one.
    SameAgain,
}

/// Why a state is not written.
#[derive(Clone, PartialEq, Eq, thiserror::Error, Debug)]
pub enum StateConflict {
    #[error(transparent)]
    Lock(#[from] LockConflict),
    #[error(
        "The state has lineage {new:?}, the workspace's current state has {current:?}: they do not descend from one \
         another. Send force to replace it all the same"
    )]
    Lineage { current: String, new: String },
    #[error(
        "The state has serial {new}, and the workspace's current state has serial {current} with other content: \
         someone wrote in between. Read the current state and apply your change again"
    )]
    Serial { current: u64, new: u64 },
}

/// A description that does not fit its state.
#[derive(Clone, PartialEq, Eq, thiserror::Error, Debug)]
pub enum StateMismatch {
    #[error("MD5 mismatch: got {got}, expected {expected}")]
    Md5 { got: String, expected: String },
    #[error("Serial {described} was announced, but the state itself has serial {contained}")]
    Serial { described: u64, contained: u64 },
}

/// May this state become the current one?
pub fn check_state_write(
    current: Option<StateIdentity<'_>>,
    lock: Option<&Lock>,
    claim: &Claim,
    new: StateIdentity<'_>,
    force: bool,
) -> Result<Verdict, StateConflict> {
    check_lock(lock, claim)?;
    let Some(current) = current else { return Ok(Verdict::New) };
    if new.serial == current.serial && new.lineage == current.lineage && same_digest(new.md5, current.md5) {
        return Ok(Verdict::SameAgain);
    }
    if force {
        return Ok(Verdict::New);
    }
    if new.lineage != current.lineage {
        return Err(StateConflict::Lineage { current: current.lineage.to_owned(), new: new.lineage.to_owned() });
    }
    if new.serial <= current.serial {
        return Err(StateConflict::Serial { current: current.serial, new: new.serial });
    }
    Ok(Verdict::New)
}

/// What a request says about its state. All but the MD5 may be missing on some ways in.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct StateDescription<'a> {
    pub serial: Option<u64>,
    pub lineage: Option<&'a str>,
    pub md5: Option<&'a str>,
}

/// Does the description fit the bytes? `contained` is what the bytes say of themselves, with the MD5 computed.
///
/// Serials are compared only if the lineage is the state's own: Terraform Cloud lets API users file a state under
/// another lineage and serial than it contains, and go-tfe's own suite does so.
pub fn check_description(described: StateDescription<'_>, contained: StateIdentity<'_>) -> Result<(), StateMismatch> {
    if let Some(expected) = described.md5
        && !same_digest(expected, contained.md5)
    {
        return Err(StateMismatch::Md5 { got: contained.md5.to_owned(), expected: expected.to_owned() });
    }
    match (described.serial, described.lineage) {
        (Some(serial), Some(lineage)) if lineage == contained.lineage && serial != contained.serial => {
            Err(StateMismatch::Serial { described: serial, contained: contained.serial })
        }
        _ => Ok(()),
    }
}

/// Hexadecimal text, in whatever case.
fn same_digest(one: &str, other: &str) -> bool {
    one.eq_ignore_ascii_case(other)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::author::Author;
    use crate::id::UserId;

    fn author(number: u8) -> Author {
        Author::User(UserId::from_random([number; 16]))
    }

    fn lock(holder: Author) -> Lock {
        Lock {
            holder,
            holder_name: "jane".into(),
            since: jiff::Timestamp::UNIX_EPOCH,
            reason: None,
            from: None,
            http: None,
        }
    }

    fn state<'a>(serial: u64, lineage: &'a str, md5: &'a str) -> StateIdentity<'a> {
        StateIdentity { serial, lineage, md5 }
    }

    /// Enough of a conflict to tell which it is.
    fn kind(result: Result<Verdict, StateConflict>) -> &'static str {
        match result {
            Ok(Verdict::New) => "new",
            Ok(Verdict::SameAgain) => "same again",
            Err(StateConflict::Lock(LockConflict::Unlocked)) => "unlocked",
            Err(StateConflict::Lock(_)) => "locked by another",
            Err(StateConflict::Lineage { .. }) => "lineage",
            Err(StateConflict::Serial { .. }) => "serial",
        }
    }

    #[test]
    fn the_next_state_has_the_lock_the_lineage_and_a_higher_serial() {
        let current = Some(state(5, "L", "aa"));
        for (current, new, force, expected) in [
            (None, state(0, "L", "aa"), false, "new"),
            (None, state(7, "L", "aa"), false, "new"),
            (current, state(6, "L", "bb"), false, "new"),
            (current, state(9, "L", "bb"), false, "new"),
            (current, state(6, "L", "aa"), false, "new"),
            (current, state(5, "L", "aa"), false, "same again"),
            (current, state(5, "L", "AA"), false, "same again"),
            (current, state(5, "L", "aa"), true, "same again"),
            (current, state(5, "L", "bb"), false, "serial"),
            (current, state(3, "L", "bb"), false, "serial"),
            (current, state(3, "L", "aa"), false, "serial"),
            (current, state(5, "M", "aa"), false, "lineage"),
            (current, state(6, "M", "bb"), false, "lineage"),
            (current, state(3, "M", "bb"), false, "lineage"),
            (current, state(6, "M", "bb"), true, "new"),
            (current, state(3, "L", "bb"), true, "new"),
            (current, state(5, "L", "bb"), true, "new"),
        ] {
            let lock = lock(author(1));
            let result = check_state_write(current, Some(&lock), &Claim::Api(author(1)), new, force);
            assert_eq!(kind(result), expected, "{current:?} then {new:?} force {force}");
        }
    }

    #[test]
    fn without_the_lock_nothing_is_written_not_even_by_force() {
        let new = state(1, "L", "aa");
        for force in [false, true] {
            assert_eq!(kind(check_state_write(None, None, &Claim::Api(author(1)), new, force)), "unlocked");
            let other = lock(author(2));
            let result = check_state_write(None, Some(&other), &Claim::Api(author(1)), new, force);
            assert_eq!(kind(result), "locked by another");
        }
    }

    #[test]
    fn conflicts_name_both_sides() {
        let lock = lock(author(1));
        let conflict = |new| {
            let current = Some(state(5, "L", "aa"));
            check_state_write(current, Some(&lock), &Claim::Api(author(1)), new, false)
                .expect_err("conflict")
                .to_string()
        };
        assert!(
            conflict(state(4, "L", "bb"))
                .starts_with("The state has serial 4, and the workspace's current state has serial 5")
        );
        assert!(
            conflict(state(6, "M", "bb"))
                .starts_with(r#"The state has lineage "M", the workspace's current state has "L""#)
        );
    }

    #[test]
    fn a_description_fits_its_state() {
        let contained = state(9, "L", "aa");
        let described = |serial, lineage, md5| StateDescription { serial, lineage, md5 };
        for (description, expected) in [
            (described(None, None, None), None),
            (described(Some(9), Some("L"), Some("aa")), None),
            (described(Some(9), Some("L"), Some("AA")), None),
            (
                described(Some(10), Some("L"), Some("aa")),
                Some("Serial 10 was announced, but the state itself has serial 9"),
            ),
            (described(Some(1), Some("other"), Some("aa")), None),
            (described(Some(1), None, Some("aa")), None),
            (described(Some(9), Some("L"), Some("bb")), Some("MD5 mismatch: got aa, expected bb")),
        ] {
            let mismatch = check_description(description, contained).err().map(|mismatch| mismatch.to_string());
            assert_eq!(mismatch.as_deref(), expected, "{description:?}");
        }
    }
}
