//! Start of a server: the newest snapshot with the deltas that continue it. The log has everything that they have, so
//! what cannot be read is reported and passed over.

use futures::TryStreamExt;
use taco_tables::State;

use crate::bucket::{Bucket, BucketError, Key};
use crate::commit::Hash;
use crate::delta;
use crate::error::Error;
use crate::head_object::CommitRef;
use crate::layout::{self, LedgerName};
use crate::ledger::Head;
use crate::snapshot;
use crate::snapshot_chain::{Chain, Piece, Pieces};

/// Maximum number of listings: what was listed and is gone was removed in between, so the listing is made anew.
const MAX_LISTINGS: usize = 4;

/// A state that was loaded, and what could not be.
pub(crate) struct Loaded<S> {
    pub(crate) head: Head<S>,
    /// Nothing that is written may continue these.
    pub(crate) unreadable: Vec<Piece>,
}

/// Reason why a chain could not be loaded.
enum ChainError {
    /// It was removed since it was listed.
    Gone(Piece),
    Unreadable(Piece, Error),
    Failed(Error),
}

/// The snapshots and deltas of a ledger.
pub(crate) async fn list(bucket: &dyn Bucket, name: &LedgerName) -> Result<Pieces, BucketError> {
    let (snapshots, deltas) = (layout::snapshots(name), layout::deltas(name));
    let (snapshots, deltas) = futures::try_join!(bucket.list(&snapshots, None), bucket.list(&deltas, None))?;
    Ok(snapshots.iter().chain(&deltas).filter_map(Piece::of).collect())
}

/// The newest state that snapshots and deltas add up to, or the empty one.
pub(crate) async fn load<S: State>(bucket: &dyn Bucket, name: &LedgerName) -> Result<Loaded<S>, Error> {
    let mut unreadable = Vec::new();
    let mut pieces = list(bucket, name).await?;
    let mut listings = 1;
    while let Some(chain) = pieces.longest_chain() {
        match load_chain(bucket, name, &chain).await {
            Ok(head) => return Ok(Loaded { head, unreadable }),
            Err(ChainError::Gone(piece)) => {
                if listings < MAX_LISTINGS {
                    listings += 1;
                    pieces = list(bucket, name).await?;
                    unreadable.iter().for_each(|piece| pieces.remove(*piece));
                }
                pieces.remove(piece);
            }
            Err(ChainError::Unreadable(piece, error)) => {
                tracing::error!(
                    event = "snapshot_unreadable", %error,
                    "a snapshot or a delta cannot be read: starting from an older one"
                );
                metrics::counter!("taco_ledger_snapshots_unreadable_total").increment(1);
                pieces.remove(piece);
                unreadable.push(piece);
            }
            Err(ChainError::Failed(error)) => return Err(error),
        }
    }
    Ok(Loaded { head: Head { seq: 0, hash: Hash::NONE, size: None, state: S::default() }, unreadable })
}

async fn load_chain<S: State>(bucket: &dyn Bucket, name: &LedgerName, chain: &Chain) -> Result<Head<S>, ChainError> {
    let mut state = S::default();
    let mut end = CommitRef { seq: 0, hash: Hash::NONE };
    for &piece in &chain.0 {
        let key = piece.key(name);
        let bytes = read_whole(bucket, &key).await.map_err(|error| ChainError::Failed(error.into()))?;
        let bytes = bytes.ok_or(ChainError::Gone(piece))?;
        let loaded = match piece {
            Piece::Snapshot(seq) => snapshot::load(&key, name, seq, &bytes).map(|(header, whole)| {
                state = whole;
                CommitRef { seq, hash: header.hash }
            }),
            Piece::Delta { to, .. } => delta::apply(&key, name, end, to, &bytes, &mut state),
        };
        end = loaded.map_err(|error| match (&error, piece) {
            (Error::Corrupt { .. }, _) | (Error::NewerFormat { .. }, Piece::Delta { .. }) => {
                ChainError::Unreadable(piece, error)
            }
            _ => ChainError::Failed(error),
        })?;
    }
    Ok(Head { seq: end.seq, hash: end.hash, size: None, state })
}

/// Reads a snapshot as a large object, which may take longer than a single request for a small one.
async fn read_whole(bucket: &dyn Bucket, key: &Key) -> Result<Option<Vec<u8>>, BucketError> {
    let Some(mut download) = bucket.download(key, None).await? else { return Ok(None) };
    let mut bytes = Vec::new();
    while let Some(piece) = download.body.try_next().await? {
        bytes.extend_from_slice(&piece);
    }
    Ok(Some(bytes))
}
