use std::sync::Arc;

use crate::beacon::Peers;
use crate::bucket::Bucket;
use crate::clock::{Clock, SharedRng};

/// Dependencies of a ledger on the world outside. All of it can be replaced in a test.
#[derive(Clone, Debug)]
pub struct Environment {
    pub bucket: Arc<dyn Bucket>,
    pub clock: Arc<dyn Clock>,
    pub rng: SharedRng,
    /// This server's id, which its commits bear.
    pub server: String,
    /// The other servers on this bucket, as far as their beacons tell.
    pub peers: Peers,
}
