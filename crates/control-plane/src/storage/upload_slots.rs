//! Slots for uploads: so many of one organization at a time. A slow client keeps a slot of its own organization, and no
//! other organization waits for it.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use taco_domain::id::OrganizationId;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::time::timeout;

use crate::blob_error::broken;
use crate::error::Error;

/// Uploads of one kind that an organization has under way at this server.
const UPLOADS_AT_ONCE: usize = 8;

/// Uploads that wait for those, at most.
const MAX_WAITING: usize = 200;

/// Timeout for waiting. Clients retry when they are told to, but some not often, so it is better to keep them waiting
/// at first.
const WAIT_TIMEOUT: Duration = Duration::from_secs(30);

/// Kinds do not wait for each other: what an agent sends of an apply must not wait for someone's configuration.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub(crate) enum UploadKind {
    Configuration,
    State,
    /// Uploads of agents: plans, and the states of applies.
    Phase,
}

type Place = (OrganizationId, UploadKind);

#[derive(Clone, Default)]
pub(crate) struct UploadSlots(Arc<Mutex<HashMap<Place, Slots>>>);

struct Slots {
    semaphore: Arc<Semaphore>,
    /// Those who have a slot, and those who wait.
    users: usize,
}

/// One upload, until it is dropped.
pub(crate) struct UploadSlot {
    _permit: OwnedSemaphorePermit,
    _user: User,
}

struct User {
    slots: UploadSlots,
    place: Place,
}

impl UploadSlots {
    fn lock(&self) -> MutexGuard<'_, HashMap<Place, Slots>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Waits for a slot, but not for ever.
    pub(crate) async fn take(&self, organization: OrganizationId, kind: UploadKind) -> Result<UploadSlot, Error> {
        let place = (organization, kind);
        let (semaphore, user) = {
            let mut all = self.lock();
            let slots = all
                .entry(place)
                .or_insert_with(|| Slots { semaphore: Arc::new(Semaphore::new(UPLOADS_AT_ONCE)), users: 0 });
            if slots.users >= UPLOADS_AT_ONCE + MAX_WAITING {
                return Err(too_many());
            }
            slots.users += 1;
            (Arc::clone(&slots.semaphore), User { slots: self.clone(), place })
        };
        match timeout(WAIT_TIMEOUT, semaphore.acquire_owned()).await {
            Ok(permit) => Ok(UploadSlot { _permit: permit.map_err(|closed| broken(closed.to_string()))?, _user: user }),
            Err(_) => Err(too_many()),
        }
    }
}

fn too_many() -> Error {
    Error::TooManyRequests {
        detail: format!(
            "{UPLOADS_AT_ONCE} uploads of this organization are already in progress, and more are queued: try again \
             when some of them are finished"
        ),
        retry_after: Duration::from_secs(5),
    }
}

impl Drop for User {
    fn drop(&mut self) {
        let mut all = self.slots.lock();
        if let Some(slots) = all.get_mut(&self.place) {
            slots.users -= 1;
            if slots.users == 0 {
                all.remove(&self.place);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn an_organization_waits_for_its_own_uploads_alone() {
        let slots = UploadSlots::default();
        let organization = |number| OrganizationId::from_random([number; 16]);
        let take = |number, kind| slots.take(organization(number), kind);
        let mut slow = Vec::new();
        for _ in 0..UPLOADS_AT_ONCE {
            slow.push(take(1, UploadKind::Configuration).await.expect("a slot"));
        }
        assert!(
            matches!(take(1, UploadKind::Configuration).await, Err(Error::TooManyRequests { .. })),
            "after a while"
        );
        take(1, UploadKind::State).await.expect("another kind");
        take(2, UploadKind::Configuration).await.expect("another organization");
        let waits = async { take(1, UploadKind::Configuration).await.is_ok() };
        let ends = async { drop(slow.pop()) };
        assert!(tokio::join!(waits, ends).0, "one of them is over");
        slow.clear();
        assert!(slots.lock().is_empty(), "nothing is left behind");
    }
}
