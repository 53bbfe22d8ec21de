//! Data retention policies: for how long an organization or a workspace keeps data that is not current any more.
//!
//! A state or a configuration is current until a newer one takes its place; the days of a policy count from then on. So
//! a rollback to what was in use yesterday is possible however old that is.

use jiff::{SignedDuration, Timestamp};
use serde::{Deserialize, Serialize};
use taco_words::id_kinds;

use crate::OrganizationState;
use crate::attribute::InvalidAttribute;
use crate::configuration_version::{ConfigurationStatus, ConfigurationVersion};
use crate::state_version::{StateOrigin, StateVersion, StateVersionStatus};
use crate::workspace::Workspace;

/// Maximum number of days of a policy: about a hundred years.
pub const MAX_RETENTION_DAYS: u32 = 36_500;

id_kinds! {
    /// The data retention policy of an organization or a workspace. It has the characters of its owner's id.
    RetentionPolicyId = "drp";
}

/// A data retention policy.
#[derive(Clone, Copy, PartialEq, Eq, Serialize, Deserialize, Debug)]
#[serde(rename_all = "snake_case")]
pub enum RetentionPolicy {
    /// Data is deleted for good so many days after something newer took its place.
    DeleteOlderThanDays(u32),
    /// Nothing is deleted, whatever the organization's policy says: a legal hold.
    DontDelete,
}

impl RetentionPolicy {
    /// The policy with this number of days.
    pub fn delete_older_than(days: i64) -> Result<Self, InvalidAttribute> {
        match u32::try_from(days) {
            Ok(days @ 1..=MAX_RETENTION_DAYS) => Ok(Self::DeleteOlderThanDays(days)),
            _ => Err(InvalidAttribute::new(
                "delete-older-than-n-days",
                format!("It is a number of days from 1 to {MAX_RETENTION_DAYS}; it is {days}"),
            )),
        }
    }

    /// The moment before which data must have been replaced to be deleted; `None` if nothing is.
    pub fn cutoff(self, now: Timestamp) -> Option<Timestamp> {
        match self {
            Self::DeleteOlderThanDays(days) => now.checked_sub(SignedDuration::from_hours(24 * i64::from(days))).ok(),
            Self::DontDelete => None,
        }
    }
}

/// One version of a workspace's data, as far as retention asks.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Version<Id> {
    pub id: Id,
    pub at: Timestamp,
    /// True if its data is there.
    pub has_data: bool,
    /// True if it took the place of the one before it.
    pub replaces: bool,
}

/// Of versions, newest first, those whose place something newer took before the cutoff.
pub fn replaced_before<Id: Copy>(versions: &[Version<Id>], cutoff: Timestamp) -> Vec<Id> {
    let mut replaced_at: Option<Timestamp> = None;
    let mut due = Vec::new();
    for version in versions {
        if version.has_data && replaced_at.is_some_and(|at| at < cutoff) {
            due.push(version.id);
        }
        if version.replaces {
            replaced_at = Some(version.at);
        }
    }
    due
}

impl StateVersionStatus {
    /// True if its bytes are in the bucket.
    pub fn has_data(self) -> bool {
        matches!(self, Self::Finalized | Self::BackingDataSoftDeleted)
    }
}

impl ConfigurationStatus {
    /// True if its archive is in the bucket.
    pub fn has_data(self) -> bool {
        matches!(self, Self::Uploaded | Self::BackingDataSoftDeleted)
    }
}

impl OrganizationState {
    /// The policy that holds for a workspace: its own, or else the organization's.
    pub fn retention_of(&self, workspace: &Workspace) -> Option<RetentionPolicy> {
        workspace.retention.or_else(|| self.organization().and_then(|organization| organization.retention))
    }

    /// True if retention may delete the data of this state: it is not current, and nobody is still to look at it.
    pub fn may_expire(&self, workspace: &Workspace, version: &StateVersion) -> bool {
        let is_rescued_from_open_lock = version.origin == StateOrigin::Rescue && workspace.lock.is_some();
        let run_goes_on = version.run.and_then(|run| self.runs.get(&run)).is_some_and(|run| !run.status.is_final());
        version.status.has_data()
            && workspace.current_state_version != Some(version.id)
            && !is_rescued_from_open_lock
            && !run_goes_on
    }

    /// The same for a configuration: the next run does not use it, nor does one that goes on.
    pub fn may_expire_configuration(&self, version: &ConfigurationVersion) -> bool {
        let is_current = self.usable_configuration(version.workspace).is_some_and(|current| current.id == version.id);
        let mut runs = self.runs.by().configuration_version.get(&version.id);
        version.status.has_data() && !is_current && runs.all(|run| run.status.is_final())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn day(day: i64) -> Timestamp {
        Timestamp::UNIX_EPOCH + SignedDuration::from_hours(24 * day)
    }

    fn version(id: u8, at: i64) -> Version<u8> {
        Version { id, at: day(at), has_data: true, replaces: true }
    }

    #[test]
    fn days_count_from_when_something_newer_took_its_place() {
        // 1 was current for a hundred days.
        let versions = [version(3, 101), version(2, 100), version(1, 0)];
        assert!(replaced_before(&versions, day(99)).is_empty());
        assert_eq!(replaced_before(&versions, day(101)), [1]);
        assert_eq!(replaced_before(&versions, day(102)), [2, 1]);
        assert_eq!(replaced_before(&versions, day(1_000)), [2, 1], "the newest stays for ever");
    }

    #[test]
    fn what_never_counted_takes_nobody_s_place() {
        let discarded = Version { has_data: false, replaces: false, ..version(2, 1) };
        assert!(replaced_before(&[discarded, version(1, 0)], day(1_000)).is_empty());
    }

    #[test]
    fn data_that_is_gone_is_not_due_again() {
        let gone = Version { has_data: false, ..version(1, 0) };
        assert!(replaced_before(&[version(2, 1), gone], day(1_000)).is_empty());
    }

    #[test]
    fn a_policy_has_between_one_day_and_a_hundred_years() {
        for days in [-1, 0, 36_501, i64::MAX] {
            let refused = RetentionPolicy::delete_older_than(days).expect_err("out of range");
            assert_eq!(refused.attribute, "delete-older-than-n-days");
        }
        let policy = RetentionPolicy::delete_older_than(30).expect("legal");
        assert_eq!(policy.cutoff(day(40)), Some(day(10)));
        assert_eq!(RetentionPolicy::DontDelete.cutoff(day(40)), None);
    }
}
