//! Status of the site for its admins: the bucket, and the servers that share it.

use std::time::Duration;

use jiff::{SignedDuration, Timestamp};
use taco_boxed::boxed;
use taco_domain::permission::{Action, Resource};
use taco_ledger::{IntervalTimes, OperationTimes, format};
use tokio::time::timeout;

use crate::caller::Caller;
use crate::control_plane::ControlPlane;
use crate::error::Error;
use crate::unreadable::UnreadableLedger;

/// A bucket that needs longer is not well.
const BUCKET_PROBE_TIMEOUT: Duration = Duration::from_secs(3);

/// Current status of the site.
#[derive(Clone, Debug)]
pub struct SiteStatus {
    /// Name of this server.
    pub server: String,
    pub bucket: BucketStatus,
    /// How long this server waited for the bucket over the last day; `None` where nobody measures it.
    pub bucket_times: Option<BucketTimes>,
    /// The other servers that are alive, as their beacons say.
    pub others: Vec<ServerStatus>,
    /// Number of commits in the site's ledger.
    pub site_commits: u64,
    pub users: usize,
    pub organizations: usize,
    /// Records that this version cannot read, in the ledgers that this server has opened.
    pub unreadable_records: usize,
}

/// Response of the bucket to a check just now.
#[derive(Clone, Debug)]
pub enum BucketStatus {
    Answers { after: SignedDuration, format: u64, created_at: Timestamp, created_by: String },
    Empty,
    Silent,
}

/// Operations of this server on the bucket over the last day.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct BucketTimes {
    /// When this server began to measure.
    pub since: Timestamp,
    /// Length of an interval.
    pub interval: Duration,
    /// The intervals that had operations, the oldest first.
    pub intervals: Vec<IntervalTimes>,
}

/// Another server on the same bucket.
#[derive(Clone, Debug)]
pub struct ServerStatus {
    pub server: String,
    /// By its own clock.
    pub started_at: Timestamp,
    pub seen_at: Timestamp,
    /// Address at which this server reaches it, if it does.
    pub address: Option<String>,
    pub agents: usize,
}

#[boxed]
impl ControlPlane {
    pub async fn site_status(&self, caller: &Caller) -> Result<SiteStatus, Error> {
        caller.require(Action::ManageSite, Resource::Site, "page")?;
        let environment = &self.shared.environment;
        let others = environment.peers.list().into_iter().map(|beacon| ServerStatus {
            server: beacon.server,
            started_at: beacon.started_at,
            seen_at: beacon.at,
            address: beacon.address.map(|address| address.to_string()),
            agents: beacon.agents.len(),
        });
        Ok(SiteStatus {
            server: environment.server.clone(),
            bucket: self.bucket_status().await,
            bucket_times: self.bucket_times(),
            others: others.collect(),
            site_commits: self.shared.site.last_seen().seq(),
            users: caller.site.users.len(),
            organizations: caller.site.organizations.len(),
            unreadable_records: self.unreadable_records(),
        })
    }

    /// Checks that the caller is an admin of the site: for requests that only admins may make and that need no lookup.
    pub fn require_site_admin(&self, caller: &Caller) -> Result<(), Error> {
        caller.require(Action::ManageSite, Resource::Site, "page")
    }

    /// The organizations that could not be read when this server last looked, by name, for the site's admins.
    pub fn unreadable_organizations(&self, caller: &Caller) -> Result<Vec<(String, UnreadableLedger)>, Error> {
        caller.require(Action::ManageSite, Resource::Site, "page")?;
        let named = self.unreadable_ledgers().into_iter().filter_map(|ledger| {
            let entry = caller.site.organizations.get(&ledger.organization?)?;
            Some((entry.name.to_string(), ledger))
        });
        Ok(named.collect())
    }

    fn bucket_times(&self) -> Option<BucketTimes> {
        let times = self.shared.environment.bucket.operation_times()?;
        let age = SignedDuration::try_from(times.age()).unwrap_or(SignedDuration::MAX);
        Some(BucketTimes {
            since: self.now().saturating_sub(age).unwrap_or(Timestamp::MIN),
            interval: OperationTimes::INTERVAL,
            intervals: times.intervals(),
        })
    }

    async fn bucket_status(&self) -> BucketStatus {
        let asked_at = self.now();
        match timeout(BUCKET_PROBE_TIMEOUT, format::read(&*self.shared.environment.bucket)).await {
            Ok(Ok(Some(format))) => BucketStatus::Answers {
                after: self.now().duration_since(asked_at),
                format: format.format,
                created_at: format.created_at,
                created_by: format.created_by,
            },
            Ok(Ok(None)) => BucketStatus::Empty,
            Ok(Err(error)) => {
                tracing::warn!(event = "bucket_check_failed", %error, "an admin asked how the bucket is");
                BucketStatus::Silent
            }
            Err(_) => BucketStatus::Silent,
        }
    }
}
