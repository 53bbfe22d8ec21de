//! Packs the settled part of a log: `docs/decisions/0031-packed-commits.md`.
//!
//! A server that dies between any two writes leaves a log that reads the same, and the next one goes on. Two at once write the
//! same bytes.

use std::sync::atomic::Ordering;

use bytes::Bytes;
use futures::{StreamExt, TryStreamExt, stream};
use jiff::SignedDuration;
use taco_tables::State;

use crate::beacon::PACKS;
use crate::commit::{Commit, Hash};
use crate::error::Error;
use crate::layout;
use crate::ledger::{Ledger, Shared};
use crate::pack::{self, Pack, PackRange};
use crate::snapshot_loader;
use crate::snapshot_writer::{create_idempotent, run_blocking};

/// Number of commits that are read or overwritten at once.
const REQUEST_CONCURRENCY: usize = 16;

/// Size of a pack that no further commit is added to.
const MAX_PACK_BYTES: usize = 8 * 1024 * 1024;

impl<S: State> Ledger<S> {
    /// Packs one settled range of the log, if there is one: `true` if there may be more. A range is settled when it is older
    /// than the second newest snapshot, and than some hours: no server begins there, and hardly anyone looks back that far.
    /// Older servers could not read it, so nothing is packed while one is alive.
    ///
    /// Cheap to call often: where only further snapshots can settle more, nothing is asked until there may be one.
    pub async fn pack_settled(&self) -> Result<bool, Error> {
        let shared = &*self.shared;
        let seen = shared.head().seq;
        let is_due = seen >= shared.packing_due.load(Ordering::SeqCst);
        if !is_due || !shared.environment.peers.all_can(PACKS) {
            return Ok(false);
        }
        let bucket = &*shared.environment.bucket;
        let settled = snapshot_loader::list(bucket, &shared.name).await?.second_newest_snapshot().unwrap_or(0);
        let mut packed = shared.packed.load(Ordering::SeqCst);
        if packed == 0
            && let Some(last) = pack::list(bucket, &shared.name).await?.last()
        {
            // Each is finished before the next one begins, so that only the last may not be.
            shared.finish_pack(*last).await?;
            packed = last.to;
            shared.packed.fetch_max(packed, Ordering::SeqCst);
        }
        if packed + shared.options.pack_commits > settled {
            shared.packing_due.store(seen + shared.options.snapshot_every, Ordering::SeqCst);
            return Ok(false);
        }
        let Some(range) = shared.write_next_pack(packed + 1).await? else { return Ok(false) };
        shared.finish_pack(range).await?;
        shared.packed.fetch_max(range.to, Ordering::SeqCst);
        metrics::counter!("taco_ledger_packs_total").increment(1);
        Ok(true)
    }
}

impl<S: State> Shared<S> {
    /// Writes the pack that begins with a commit, unless it is there, and says what it has. `None` if it is too young.
    async fn write_next_pack(&self, from: u64) -> Result<Option<PackRange>, Error> {
        let (bucket, largest) = (&*self.environment.bucket, from + self.options.pack_commits - 1);
        if !self.is_old(largest).await? {
            return Ok(None);
        }
        let mut commits = Vec::new();
        let mut bytes = 0;
        let mut found = stream::iter(from..=largest).map(|seq| self.object_of(seq)).buffered(REQUEST_CONCURRENCY);
        while let Some(object) = found.try_next().await? {
            // Somebody else was here.
            if let Some(range) = PackRange::named_by(&object) {
                return Ok(Some(range));
            }
            bytes += object.len();
            commits.push(object);
            if bytes >= MAX_PACK_BYTES {
                break;
            }
        }
        drop(found);
        let range = PackRange { from, to: from + commits.len() as u64 - 1 };
        let name = self.name.clone();
        let encoded = run_blocking(move || Pack::encode(&name, range, &commits)).await.map_err(Error::Broken)?;
        create_idempotent(bucket, &range.key(&self.name), encoded).await?;
        Ok(Some(range))
    }

    /// True if a commit was written long enough ago. That our clock and the bucket's differ by some minutes does no harm.
    async fn is_old(&self, seq: u64) -> Result<bool, Error> {
        let stat = self.environment.bucket.stat(&layout::commit(&self.name, seq)).await?;
        let age = |stat: crate::bucket::Stat| self.environment.clock.now().duration_since(stat.last_modified);
        Ok(stat.is_some_and(|stat| age(stat) >= self.options.pack_after))
    }

    /// Object in the place of a commit.
    async fn object_of(&self, seq: u64) -> Result<Bytes, Error> {
        let key = layout::commit(&self.name, seq);
        let object = self.environment.bucket.get(&key).await?;
        Ok(object.ok_or_else(|| Error::corrupt(&key, "it is missing"))?.bytes)
    }

    /// Reads a pack back, proves that it has exactly what the log has, and only then overwrites its commits. The last of them
    /// comes last, so that it tells whether all were.
    async fn finish_pack(&self, range: PackRange) -> Result<(), Error> {
        if PackRange::named_by(&self.object_of(range.to).await?) == Some(range) {
            return Ok(());
        }
        let pack = Pack::read(&*self.environment.bucket, &self.name, range).await?;
        self.prove_end(&pack, range).await?;
        let before_last = stream::iter(range.from..range.to).map(|seq| self.prove_equal(&pack, range, seq));
        let places: Vec<_> = before_last.buffered(REQUEST_CONCURRENCY).try_collect().await?;
        let last = self.prove_equal(&pack, range, range.to).await?;
        let open: Vec<u64> = places.into_iter().flatten().collect();
        let overwrite = |seq| async move {
            let key = layout::commit(&self.name, seq);
            self.environment.bucket.put(&key, range.placeholder()).await
        };
        stream::iter(open).map(overwrite).buffer_unordered(REQUEST_CONCURRENCY).try_collect::<Vec<_>>().await?;
        if let Some(last) = last {
            overwrite(last).await?;
        }
        Ok(())
    }

    /// The commit after a pack names the hash of its last, and each in it that of the one before.
    async fn prove_end(&self, pack: &Pack, range: PackRange) -> Result<(), Error> {
        let (key, bytes) = self
            .fetch(range.to + 1)
            .await?
            .ok_or_else(|| Error::corrupt(&layout::commit(&self.name, range.to + 1), "it is missing"))?;
        let next = Commit::decode(&key, range.to + 1, &bytes)?;
        match pack.commit(range.to).map(|bytes| Hash::of(&bytes)) {
            Some(last) if last == next.previous => Ok(()),
            _ => {
                let why = format!("its last commit is not the one that commit {} follows", range.to + 1);
                Err(Error::corrupt(&range.key(&self.name), why))
            }
        }
    }

    /// Proves that a pack has a commit as the log has it. The number, if the commit is still in its place.
    async fn prove_equal(&self, pack: &Pack, range: PackRange, seq: u64) -> Result<Option<u64>, Error> {
        let object = self.object_of(seq).await?;
        if PackRange::named_by(&object) == Some(range) {
            return Ok(None);
        }
        if pack.commit(seq).as_ref() == Some(&object) {
            return Ok(Some(seq));
        }
        let why = format!("it is not what {} has: one of the two was altered", range.key(&self.name));
        Err(Error::corrupt(&layout::commit(&self.name, seq), why))
    }
}

/// Minimum age of a commit that is packed.
pub(crate) const PACK_AFTER: SignedDuration = SignedDuration::from_hours(2);

/// Number of commits in a pack, unless they are large.
pub(crate) const PACK_COMMITS: u64 = 1_000;
