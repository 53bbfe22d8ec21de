//! One empty bucket of each kind for each test.

use std::sync::Arc;

use harness::bucket_servers::BucketServer;
use taco_ledger::{Bucket, Location, ObjectBucket, SharedRng};
use tempfile::TempDir;
use tokio::sync::OnceCell;

/// Bucket for a test.
pub(crate) struct Place {
    pub(crate) bucket: Arc<dyn Bucket>,
    /// Location with which to open it again, where that is possible.
    pub(crate) location: Option<Location>,
    _directory: Option<TempDir>,
}

impl Place {
    pub(crate) fn at(location: Location, directory: Option<TempDir>) -> Self {
        Self { bucket: open(&location), location: Some(location), _directory: directory }
    }

    /// The same bucket for another server, which shares nothing with the first but the objects.
    pub(crate) fn open_again(&self) -> Arc<dyn Bucket> {
        self.location.as_ref().map_or_else(|| Arc::clone(&self.bucket), open)
    }
}

pub(crate) fn open(location: &Location) -> Arc<dyn Bucket> {
    Arc::new(location.open().expect("the location is good"))
}

pub(crate) async fn memory() -> Place {
    Place { bucket: Arc::new(ObjectBucket::in_memory()), location: None, _directory: None }
}

pub(crate) async fn directory() -> Place {
    let directory = tempfile::tempdir().expect("a directory");
    Place::at(Location::directory(directory.path()), Some(directory))
}

macro_rules! shared_servers {
    ($($name:ident;)*) => {
        $(pub(crate) async fn $name() -> Place {
            static SERVER: OnceCell<BucketServer> = OnceCell::const_new();
            let server = SERVER.get_or_try_init(BucketServer::$name).await;
            let server = server.unwrap_or_else(|error| panic!("{error:#}"));
            Place::at(server.location_under(&SharedRng::from_system().unique()), None)
        })*
    };
}

shared_servers! {
    gofakes3;
    versitygw;
    azurite;
    fake_gcs;
}
