//! Everything taco knows, kept in a bucket.
//!
//! A ledger is a numbered log of commits, each an immutable object written create-if-absent. Its state is what the
//! commits add up to, held in memory as a cache that can be dropped at any moment. This crate knows no record type:
//! the application declares its tables with [`tables!`] and supplies closures that decide.

pub mod beacon;
pub mod bucket;
pub mod clock;
pub mod layout;
pub mod location;
mod measured;
mod object_bucket;
mod retry;

pub use beacon::{BEACON_INTERVAL, Beacon, Beacons, Peers};
pub use bucket::{Bucket, BucketError, Key, Trouble};
pub use clock::{Clock, Dice, SystemClock};
pub use layout::LedgerName;
pub use location::{Location, LocationError};
pub use measured::Measured;
pub use object_bucket::ObjectBucket;
pub use retry::{PATIENCE, Retrying};
