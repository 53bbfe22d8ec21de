//! Limits on the number of connections: in all, and from one address.
//!
//! When all slots are taken, an idle connection is closed to make room for a new one. So those who have something to
//! send get in, regardless of who else is there: people who log in, and agents.

use std::collections::{BTreeMap, HashMap};
use std::net::IpAddr;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::sync::Notify;
use tokio::time::{Instant, timeout};

use super::activity::{Activity, Stage};

/// Time that a new connection has to send something before it can be evicted for another one.
const EVICTION_GRACE_PERIOD: Duration = Duration::from_millis(250);

/// The share of all slots that is emptied at a time, so that a flood does not cost a search for each connection.
const EVICTED_SHARE: usize = 64;

/// Bounds on connections.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ConnectionLimits {
    pub(crate) all: usize,
    pub(crate) per_address: usize,
}

#[derive(Clone, Debug)]
pub(super) struct Slots(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    limits: ConnectionLimits,
    taken: Mutex<Taken>,
    freed: Notify,
}

#[derive(Default, Debug)]
struct Taken {
    next: u64,
    /// Connections from the oldest to the newest.
    connections: BTreeMap<u64, Connection>,
    /// Without those that are being closed, and without those whose address tells nothing about who they are.
    by_address: HashMap<IpAddr, usize>,
    /// Number of connections being closed.
    evicted: usize,
}

#[derive(Debug)]
struct Connection {
    /// `None` for a proxy, behind which there are many clients.
    address: Option<IpAddr>,
    activity: Arc<Activity>,
    evicted: bool,
}

/// Order of eviction: first those who lose least.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Rank {
    NoRequestYet,
    Idle,
    Blocked,
}

const RANKS: [Rank; 3] = [Rank::NoRequestYet, Rank::Idle, Rank::Blocked];

fn rank(stage: Stage) -> Option<(Rank, Instant)> {
    match stage {
        Stage::NoRequestYet { since, .. } => Some((Rank::NoRequestYet, since)),
        Stage::Idle { since } | Stage::NextHead { since } => Some((Rank::Idle, since)),
        Stage::Answering { blocked } => blocked.map(|since| (Rank::Blocked, since)),
        Stage::Upgraded => None,
    }
}

impl Taken {
    /// Makes up to `most` connections leave; how many.
    fn evict(&mut self, most: usize, which: impl Fn(&Connection, Instant) -> bool) -> usize {
        for wanted in RANKS {
            let leaving: Vec<u64> = (self.connections.iter())
                .filter(|(_, connection)| {
                    let ranked = rank(connection.activity.stage());
                    !connection.evicted
                        && ranked.is_some_and(|(rank, since)| rank == wanted && which(connection, since))
                })
                .map(|(number, _)| *number)
                .take(most)
                .collect();
            for number in &leaving {
                self.evict_one(*number);
            }
            if !leaving.is_empty() {
                return leaving.len();
            }
        }
        0
    }

    fn evict_one(&mut self, number: u64) {
        let Some(connection) = self.connections.get_mut(&number) else { return };
        connection.evicted = true;
        connection.activity.evict();
        let address = connection.address;
        self.evicted += 1;
        self.forget_address(address);
    }

    fn forget_address(&mut self, address: Option<IpAddr>) {
        let Some(address) = address else { return };
        if let Some(count) = self.by_address.get_mut(&address) {
            *count -= 1;
            if *count == 0 {
                self.by_address.remove(&address);
            }
        }
    }

    fn of_address(&self, address: Option<IpAddr>) -> usize {
        address.and_then(|address| self.by_address.get(&address)).copied().unwrap_or_default()
    }
}

enum Look {
    Admitted(Slot),
    /// Another connection is about to close.
    Wait,
    Full,
}

impl Slots {
    pub(super) fn new(limits: ConnectionLimits) -> Self {
        Self(Arc::new(Inner { limits, taken: Mutex::default(), freed: Notify::new() }))
    }

    /// A slot for a new connection, or `None` where all others are of use. `address` is `None` for a proxy, behind which
    /// there are many clients.
    pub(super) async fn admit(&self, address: Option<IpAddr>) -> Option<Slot> {
        loop {
            match self.look(address) {
                Look::Admitted(slot) => return Some(slot),
                Look::Full => return None,
                // The permit of a `Notify` is kept, so that nothing is missed in between.
                Look::Wait => {
                    _ = timeout(EVICTION_GRACE_PERIOD, self.0.freed.notified()).await;
                }
            }
        }
    }

    fn look(&self, address: Option<IpAddr>) -> Look {
        let limits = self.0.limits;
        let mut taken = self.0.lock();
        let now = Instant::now();
        if taken.of_address(address) >= limits.per_address
            && taken.evict(1, |connection, _| connection.address == address) == 0
        {
            return Look::Full;
        }
        if taken.connections.len() >= limits.all {
            let share = (limits.all / EVICTED_SHARE).max(1);
            let leave = taken.evicted > 0
                || taken.evict(share, |_, since| since + EVICTION_GRACE_PERIOD <= now) > 0
                || taken.connections.values().any(|connection| rank(connection.activity.stage()).is_some());
            return if leave { Look::Wait } else { Look::Full };
        }
        let number = taken.next;
        taken.next += 1;
        let activity = Arc::new(Activity::new());
        taken.connections.insert(number, Connection { address, activity: Arc::clone(&activity), evicted: false });
        if let Some(address) = address {
            *taken.by_address.entry(address).or_default() += 1;
        }
        Look::Admitted(Slot { slots: Arc::clone(&self.0), number, activity })
    }
}

impl Inner {
    fn lock(&self) -> MutexGuard<'_, Taken> {
        self.taken.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The slot of one connection, until it is dropped.
#[derive(Debug)]
pub(super) struct Slot {
    slots: Arc<Inner>,
    number: u64,
    pub(super) activity: Arc<Activity>,
}

impl Drop for Slot {
    fn drop(&mut self) {
        let mut taken = self.slots.lock();
        if let Some(connection) = taken.connections.remove(&self.number) {
            match connection.evicted {
                true => taken.evicted -= 1,
                false => taken.forget_address(connection.address),
            }
        }
        drop(taken);
        self.slots.freed.notify_one();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn slots(all: usize, per_address: usize) -> Slots {
        Slots::new(ConnectionLimits { all, per_address })
    }

    fn address(last: u8) -> Option<IpAddr> {
        Some(IpAddr::from([10, 0, 0, last]))
    }

    /// Task of a connection: it closes when it is told to.
    fn serve(slot: Slot) {
        tokio::spawn(async move {
            slot.activity.ended().await;
        });
    }

    #[tokio::test(start_paused = true)]
    async fn the_oldest_that_asked_for_nothing_makes_room() {
        let slots = slots(3, 10);
        let first = slots.admit(address(1)).await.expect("room");
        let second = slots.admit(address(2)).await.expect("room");
        let third = slots.admit(address(3)).await.expect("room");
        let (of_second, of_third) = (Arc::clone(&second.activity), Arc::clone(&third.activity));
        // The first is being answered; the other two are silent.
        let answering = first.activity.begin_answer();
        serve(second);
        serve(third);
        let fourth = slots.admit(address(4)).await.expect("the second leaves");
        assert_eq!((Arc::strong_count(&of_second), Arc::strong_count(&of_third)), (1, 3));
        let _answering = fourth.activity.begin_answer();
        let fifth = slots.admit(address(5)).await.expect("the third leaves");
        fifth.activity.upgraded();
        assert!(slots.admit(address(6)).await.is_none(), "all are of use");
        drop(answering);
        serve(first);
        slots.admit(address(6)).await.expect("the first is idle now");
    }

    #[tokio::test(start_paused = true)]
    async fn an_address_that_has_enough_makes_room_among_its_own() {
        let slots = slots(100, 2);
        let busy = slots.admit(address(1)).await.expect("room");
        let _answering = busy.activity.begin_answer();
        let silent = slots.admit(address(1)).await.expect("room");
        let other = slots.admit(address(2)).await.expect("room");
        let (of_silent, of_other) = (Arc::clone(&silent.activity), Arc::clone(&other.activity));
        serve(silent);
        serve(other);
        let third = slots.admit(address(1)).await.expect("its silent one leaves");
        tokio::task::yield_now().await;
        assert_eq!((Arc::strong_count(&of_silent), Arc::strong_count(&of_other)), (1, 3));
        let _answering = third.activity.begin_answer();
        assert!(slots.admit(address(1)).await.is_none());
        for _ in 0..10 {
            serve(slots.admit(None).await.expect("behind a proxy there are many"));
        }
    }
}
