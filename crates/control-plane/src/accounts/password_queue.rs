//! Queue for hashing passwords. Argon2 takes much memory and time on purpose, so that only a few are hashed at once;
//! the others wait, and those of different addresses take turns: however many one address sends, the next one of
//! another address does not wait for them all.

use std::collections::{HashMap, VecDeque};
use std::net::{IpAddr, Ipv6Addr};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::Duration;

use argon2::Block;
use tokio::sync::oneshot;

use crate::error::Error;

/// Passwords hashed at once, at most: each takes a core, and 19 MiB.
const MAX_AT_ONCE: usize = 4;
const MAX_WAITING: usize = 200;
const MAX_WAITING_PER_ADDRESS: usize = 20;

/// Source of a request: an address, or for IPv6 the network that belongs to one customer. `None` stands for all without
/// an address.
pub(crate) type Asker = Option<IpAddr>;

pub(crate) fn asker(address: Option<IpAddr>) -> Asker {
    match address?.to_canonical() {
        IpAddr::V6(address) => {
            let network = u128::from(address) & !u128::from(u64::MAX);
            Some(Ipv6Addr::from(network).into())
        }
        address => Some(address),
    }
}

#[derive(Clone)]
pub(crate) struct PasswordQueue(Arc<Inner>);

struct Inner {
    at_once: usize,
    queue: Mutex<Queue>,
    /// Memory of those who are done, for those who follow: given back to the allocator, it would not come back to the
    /// system.
    memory: Mutex<Vec<Vec<Block>>>,
}

#[derive(Default)]
struct Queue {
    hashing: usize,
    waiting: HashMap<Asker, VecDeque<oneshot::Sender<QueuePick>>>,
    /// Round-robin order of those who wait; everyone is in it once.
    turns: VecDeque<Asker>,
    count: usize,
}

impl Queue {
    fn next(&mut self) -> Option<oneshot::Sender<QueuePick>> {
        let asker = self.turns.pop_front()?;
        let waiting = self.waiting.get_mut(&asker)?;
        let next = waiting.pop_front();
        match waiting.is_empty() {
            true => drop(self.waiting.remove(&asker)),
            false => self.turns.push_back(asker),
        }
        self.count -= usize::from(next.is_some());
        next
    }
}

impl Default for PasswordQueue {
    fn default() -> Self {
        // The others are for requests that want something else.
        let cores = thread::available_parallelism().map_or(1, usize::from);
        Self::of((cores / 2).clamp(1, MAX_AT_ONCE))
    }
}

impl PasswordQueue {
    fn of(at_once: usize) -> Self {
        Self(Arc::new(Inner { at_once, queue: Mutex::default(), memory: Mutex::default() }))
    }

    /// Waits for a turn. It ends when what is returned is dropped.
    pub(crate) async fn turn(&self, asker: Asker) -> Result<QueuePick, Error> {
        let waiting = {
            let mut queue = self.0.lock();
            if queue.hashing < self.0.at_once {
                queue.hashing += 1;
                return Ok(QueuePick(Some(Arc::clone(&self.0))));
            }
            let of_asker = queue.waiting.get(&asker).map_or(0, VecDeque::len);
            if queue.count >= MAX_WAITING || of_asker >= MAX_WAITING_PER_ADDRESS {
                return Err(Error::TooManyRequests {
                    detail: "Too many passwords are being checked at the moment. Wait a little, then try again."
                        .to_owned(),
                    retry_after: Duration::from_secs(5),
                });
            }
            let (sender, waiting) = oneshot::channel();
            if of_asker == 0 {
                queue.turns.push_back(asker);
            }
            queue.waiting.entry(asker).or_default().push_back(sender);
            queue.count += 1;
            waiting
        };
        waiting.await.map_err(|closed| Error::Corrupt(taco_ledger::Error::Broken(closed.to_string())))
    }
}

impl Inner {
    fn lock(&self) -> MutexGuard<'_, Queue> {
        self.queue.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The right to hash a password. It goes to the next one when it is dropped, also if the client that waited for it has
/// disconnected.
pub(crate) struct QueuePick(Option<Arc<Inner>>);

impl QueuePick {
    /// Memory to hash with, which may hold anything.
    pub(crate) fn memory(&self) -> Vec<Block> {
        let free = self.0.as_ref().and_then(|inner| inner.memory.lock().unwrap_or_else(PoisonError::into_inner).pop());
        free.unwrap_or_default()
    }

    pub(crate) fn give_back(&self, memory: Vec<Block>) {
        if let Some(inner) = &self.0 {
            inner.memory.lock().unwrap_or_else(PoisonError::into_inner).push(memory);
        }
    }
}

impl Drop for QueuePick {
    fn drop(&mut self) {
        let Some(inner) = self.0.take() else { return };
        let mut queue = inner.lock();
        let mut turn = Self(Some(Arc::clone(&inner)));
        while let Some(next) = queue.next() {
            match next.send(turn) {
                Ok(()) => return,
                Err(back) => turn = back,
            }
        }
        turn.0 = None;
        queue.hashing -= 1;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn address(last: u8) -> Asker {
        asker(Some(IpAddr::from([10, 0, 0, last])))
    }

    /// Numbers of passwords being hashed and of those waiting.
    fn counts(queue: &PasswordQueue) -> (usize, usize) {
        let queue = queue.0.lock();
        (queue.hashing, queue.count)
    }

    /// Lets whoever can go on do so.
    async fn put_run_and_follow_up() {
        for _ in 0..20 {
            tokio::task::yield_now().await;
        }
    }

    #[tokio::test]
    async fn addresses_take_turns() {
        let queue = PasswordQueue::of(1);
        let first = queue.turn(address(1)).await.expect("nobody is there");
        let order = Arc::new(Mutex::new(Vec::new()));
        for (number, from) in [1, 1, 1, 2, 2, 3].into_iter().enumerate() {
            let (queue, order) = (queue.clone(), Arc::clone(&order));
            tokio::spawn(async move {
                let _turn = queue.turn(address(from)).await.expect("there is room");
                order.lock().expect("nobody panicked").push((from, number));
            });
            put_run_and_follow_up().await;
        }
        assert!(order.lock().expect("nobody panicked").is_empty(), "one at a time");
        drop(first);
        put_run_and_follow_up().await;
        assert_eq!(*order.lock().expect("nobody panicked"), [(1, 0), (2, 3), (3, 5), (1, 1), (2, 4), (1, 2)]);
        assert_eq!(counts(&queue), (0, 0));
    }

    #[tokio::test]
    async fn an_address_cannot_fill_the_queue_and_who_goes_away_leaves_no_hole() {
        let queue = PasswordQueue::of(1);
        let first = queue.turn(address(1)).await.expect("nobody is there");
        let wait = |from| {
            let queue = queue.clone();
            tokio::spawn(async move { queue.turn(address(from)).await.map(drop) })
        };
        let waiting: Vec<_> = (0..MAX_WAITING_PER_ADDRESS).map(|_| wait(1)).collect();
        put_run_and_follow_up().await;
        assert!(matches!(queue.turn(address(1)).await, Err(Error::TooManyRequests { .. })));
        let other = wait(2);
        put_run_and_follow_up().await;
        for one in &waiting {
            one.abort();
        }
        put_run_and_follow_up().await;
        drop(first);
        other.await.expect("no panic").expect("its turn");
        assert_eq!(counts(&queue), (0, 0));
        queue.turn(address(1)).await.expect("nobody is there");
    }

    #[test]
    fn a_customer_of_ipv6_is_one_asker() {
        let of = |text: &str| asker(text.parse().ok());
        assert_eq!(of("2001:db8::1"), of("2001:db8::ffff:1"));
        assert_ne!(of("2001:db8::1"), of("2001:db8:0:1::1"));
        assert_eq!(of("::ffff:10.0.0.1"), of("10.0.0.1"));
        assert_ne!(of("10.0.0.1"), of("10.0.0.2"));
    }
}
