//! Promises of a ledger to those who use it, on buckets that behave.

mod commits;
mod common;
mod damage;
mod newest_commit;
mod outage;
mod packs;
mod samples;
mod snapshots;
