//! Everything taco knows, kept in a bucket.
//!
//! A ledger is a numbered log of commits, each an immutable object written create-if-absent. Its state is what the
//! commits add up to, held in memory as a cache that can be dropped at any moment. This crate knows no record type:
//! the application declares its tables with [`taco_tables`] and supplies closures that decide.
//!
//! Where to read on: [`Ledger`] for the life of a read and of a change, `writer.rs` for what happens between a
//! closure and the bucket, `docs/bucket-layout.md` for what lies where.

pub mod audit;
pub mod beacon;
pub mod blob;
pub mod bucket;
mod byte_stream;
pub mod clock;
mod commit;
mod delta;
pub mod doctor;
mod environment;
mod error;
mod file_download;
mod file_upload;
pub mod format;
mod head_object;
pub mod layout;
mod ledger;
pub mod location;
pub mod log_chunks;
mod measured;
mod newest_commit;
mod object_bucket;
mod operation_times;
mod pace;
mod pack;
mod packing;
mod retry;
pub mod seal;
mod set_aside_report;
pub mod simulated;
#[cfg(test)]
mod simulation;
mod snapshot;
mod snapshot_chain;
mod snapshot_loader;
mod snapshot_writer;
mod transaction;
mod writer;

pub use beacon::Peers;
pub use blob::{BlobError, Blobs, Stored};
pub use bucket::{Bucket, BucketError, BucketErrorKind, Key, ObjectRange};
pub use clock::{Clock, SharedRng, SystemClock};
pub use commit::{Commit, Entry, Hash, Put};
pub use environment::Environment;
pub use error::{CommitError, Error};
pub use layout::LedgerName;
pub use ledger::{Changes, Ledger, Options, View};
pub use location::{Location, LocationError};
pub use log_chunks::{AppendError, LogBlock, LogChunks, LogDigest};
pub use measured::{Measured, WriteHealth};
pub use object_bucket::ObjectBucket;
pub use operation_times::{IntervalTimes, OperationTimes};
pub use retry::{CALLER_TIMEOUT, OPERATION_TIMEOUT, Retrying};
pub use seal::{MasterKey, MasterKeys};
pub use transaction::{Intent, Transaction};
