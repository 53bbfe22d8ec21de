//! Rules for a state to replace the previous one.
//!
//! All ways to write a state end here. A request describes its state (serial, lineage, MD5) before or together with the
//! bytes; the description counts, and has to match the bytes.

use crate::attribute::{InvalidAttribute, is_plain_text, shown};
use crate::lock::{Claim, Lock, LockConflict, check_lock};

/// Clients read serials as numbers of 64 bits with a sign, and have to be able to write the next one.
pub const LARGEST_SERIAL: u64 = i64::MAX as u64 - 1;

/// Terraform and tofu make UUIDs. A lineage stands in records, so it must not be as long as a state may be.
const LONGEST_LINEAGE: usize = 255;

/// By what two states are compared.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct StateIdentity<'a> {
    pub serial: u64,
    pub lineage: &'a str,
    pub md5: &'a str,
}

/// Action for a state that may be written.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Verdict {
    New,
    /// The request was repeated: the current state is this one.
    SameAgain,
}

/// Reason for not writing a state.
#[derive(Clone, PartialEq, Eq, thiserror::Error, Debug)]
pub enum StateConflict {
    #[error(transparent)]
    Lock(#[from] LockConflict),
    #[error(transparent)]
    Description(#[from] StateMismatch),
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

/// Checks whether this state may become the current one.
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

/// Description of a state in a request. All of it may be missing on some ways in.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct StateDescription<'a> {
    pub serial: Option<u64>,
    pub lineage: Option<&'a str>,
    pub md5: Option<&'a str>,
}

impl StateDescription<'_> {
    /// Checks whether there can be such a state at all.
    pub fn check(&self) -> Result<(), InvalidAttribute> {
        let refused = |attribute, detail| Err(InvalidAttribute::new(attribute, detail));
        if let Some(serial) = self.serial.filter(|serial| *serial > LARGEST_SERIAL) {
            return refused("serial", serial_too_large(serial));
        }
        if let Some(lineage) = self.lineage.filter(|lineage| !is_lineage(lineage)) {
            return refused("lineage", no_lineage(lineage));
        }
        match self.md5 {
            Some(md5) if md5.len() != 32 || !md5.bytes().all(|byte| byte.is_ascii_hexdigit()) => {
                refused("md5", format!("md5 must be 32 hexadecimal digits, not {}", shown(md5)))
            }
            _ => Ok(()),
        }
    }
}

/// Checks whether a state with this serial and lineage can be stored.
pub fn check_contained(serial: u64, lineage: &str) -> Result<(), InvalidAttribute> {
    let refused = |detail| Err(InvalidAttribute::new("state", detail));
    match () {
        () if serial > LARGEST_SERIAL => refused(serial_too_large(serial)),
        () if !is_lineage(lineage) => refused(no_lineage(lineage)),
        () => Ok(()),
    }
}

fn is_lineage(text: &str) -> bool {
    text.chars().count() <= LONGEST_LINEAGE && is_plain_text(text)
}

fn serial_too_large(serial: u64) -> String {
    format!("The serial must be at most {LARGEST_SERIAL}, not {serial}: clients could not count on from there")
}

fn no_lineage(text: &str) -> String {
    format!("The lineage must be at most {LONGEST_LINEAGE} characters of plain text, not {}", shown(text))
}

/// The serial after this one, if there is one.
pub fn next_serial(serial: u64) -> Option<u64> {
    serial.checked_add(1).filter(|next| *next <= LARGEST_SERIAL)
}

/// Checks whether a state may be filed under a lineage and a serial that it does not contain. `filed` is how it would
/// count, `contained` what the bytes say of themselves.
///
/// Terraform Cloud lets API users do so. Go-tfe's own suite does it where there is no state yet, and with the bytes of the
/// current state; there it does no harm. Over another state it would be a way around the rule that a state descends from
/// the one before it.
pub fn check_filing(
    current: Option<StateIdentity<'_>>,
    filed: StateIdentity<'_>,
    contained: StateIdentity<'_>,
    force: bool,
) -> Result<(), StateConflict> {
    let Some(current) = current.filter(|current| !same_digest(current.md5, contained.md5)) else { return Ok(()) };
    if filed.lineage != contained.lineage && !force {
        return Err(StateConflict::Lineage { current: current.lineage.to_owned(), new: contained.lineage.to_owned() });
    }
    if filed.serial != contained.serial {
        return Err(StateMismatch::Serial { described: filed.serial, contained: contained.serial }.into());
    }
    Ok(())
}

/// Checks that the description matches the bytes. `contained` is what the bytes say of themselves, with the MD5
/// computed.
///
/// Serials are compared only if the lineage is said to be the state's own; otherwise [`check_filing`] asks what is there
/// already.
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

/// Compares hexadecimal text, ignoring case.
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
            Err(StateConflict::Description(_)) => "description",
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
    fn a_state_takes_anothers_place_under_its_own_lineage_and_serial_alone() {
        let current = Some(state(5, "L", "aa"));
        for (current, filed, contained, force, expected) in [
            (None, state(0, "L", "bb"), state(5, "L", "bb"), false, "new"),
            (None, state(1, "M", "bb"), state(5, "L", "bb"), false, "new"),
            (current, state(6, "L", "bb"), state(6, "L", "bb"), false, "new"),
            (current, state(6, "L", "aa"), state(5, "L", "aa"), false, "new"),
            (current, state(6, "M", "aa"), state(5, "L", "aa"), true, "new"),
            (current, state(6, "L", "bb"), state(6, "M", "bb"), false, "lineage"),
            (current, state(6, "L", "bb"), state(9, "M", "bb"), false, "lineage"),
            (current, state(6, "L", "bb"), state(6, "M", "bb"), true, "new"),
            (current, state(6, "L", "bb"), state(9, "L", "bb"), false, "description"),
            (current, state(6, "L", "bb"), state(9, "M", "bb"), true, "description"),
        ] {
            let result = check_filing(current, filed, contained, force).map(|()| Verdict::New);
            assert_eq!(kind(result), expected, "{current:?}: {contained:?} filed as {filed:?} force {force}");
        }
    }

    #[test]
    fn a_serial_has_one_after_it() {
        assert_eq!(next_serial(7), Some(8));
        assert_eq!(next_serial(LARGEST_SERIAL - 1), Some(LARGEST_SERIAL));
        assert_eq!(next_serial(LARGEST_SERIAL), None);
        assert_eq!(next_serial(u64::MAX), None);
    }

    #[test]
    fn what_no_client_could_read_again_is_refused() {
        let (md5, uuid) = ("0".repeat(32), "8094ef40-1dbd-95cd-1f60-bb25d84d883b");
        let long = "x".repeat(LONGEST_LINEAGE + 1);
        for (serial, lineage, md5, refused) in [
            (LARGEST_SERIAL, uuid, md5.as_str(), None),
            (LARGEST_SERIAL + 1, uuid, &md5, Some("serial")),
            (u64::MAX, uuid, &md5, Some("serial")),
            (1, &long, &md5, Some("lineage")),
            (1, "a\u{202e}b", &md5, Some("lineage")),
            (1, uuid, "x", Some("md5")),
            (1, uuid, "", Some("md5")),
            (1, uuid, &"g".repeat(32), Some("md5")),
            (1, uuid, &"F".repeat(32), None),
        ] {
            let described = StateDescription { serial: Some(serial), lineage: Some(lineage), md5: Some(md5) };
            assert_eq!(described.check().err().map(|error| error.attribute), refused, "{described:?}");
            let contained = check_contained(serial, lineage).is_err();
            assert_eq!(contained, matches!(refused, Some("serial" | "lineage")), "{serial} {lineage}");
        }
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
