//! The rules about snapshots and deltas, as plain functions of what lies in the bucket: where a server begins, what is
//! written next, and what may go. See `docs/decisions/0030-delta-snapshots.md`.

use std::collections::{BTreeMap, BTreeSet};

use jiff::{SignedDuration, Timestamp};

use crate::bucket::Key;
use crate::layout::{self, LedgerName};

/// A whole state is written at the latest after so many deltas' worth of commits: servers that know no deltas read the log
/// from there.
pub(crate) const DELTAS_PER_SNAPSHOT: u64 = 32;

/// Number of the newest whole states that stay, with what continues them.
const KEPT_SNAPSHOTS: usize = 2;

/// Minimum age of what is removed: somebody may be reading anything younger.
const MIN_KEPT_AGE: SignedDuration = SignedDuration::from_hours(1);

/// A snapshot or a delta, by its numbers.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(crate) enum Piece {
    Snapshot(u64),
    /// Changes after commit `from`, up to and with `to`.
    Delta {
        from: u64,
        to: u64,
    },
}

impl Piece {
    pub(crate) fn key(self, ledger: &LedgerName) -> Key {
        match self {
            Self::Snapshot(seq) => layout::snapshot(ledger, seq),
            Self::Delta { from, to } => layout::delta(ledger, from, to),
        }
    }

    /// The piece that a key names.
    pub(crate) fn of(key: &Key) -> Option<Self> {
        let delta = || layout::range_of(key).map(|(from, to)| Self::Delta { from, to });
        layout::number_of(key).map(Self::Snapshot).or_else(delta)
    }

    /// The last commit that it contains.
    pub(crate) fn end(self) -> u64 {
        match self {
            Self::Snapshot(seq) => seq,
            Self::Delta { to, .. } => to,
        }
    }

    /// The first commit that it depends on: a delta is of no use without what comes before.
    fn begin(self) -> u64 {
        match self {
            Self::Snapshot(seq) => seq,
            Self::Delta { from, .. } => from,
        }
    }
}

/// A snapshot and the deltas that continue it, in order. It is never empty.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Chain(pub(crate) Vec<Piece>);

/// Listing of a ledger's snapshots and deltas.
#[derive(Clone, Default, Debug)]
pub(crate) struct Pieces(BTreeSet<Piece>);

impl FromIterator<Piece> for Pieces {
    fn from_iter<T: IntoIterator<Item = Piece>>(pieces: T) -> Self {
        Self(pieces.into_iter().collect())
    }
}

impl Pieces {
    pub(crate) fn iter(&self) -> impl Iterator<Item = Piece> {
        self.0.iter().copied()
    }

    pub(crate) fn remove(&mut self, piece: Piece) {
        self.0.remove(&piece);
    }

    fn snapshots(&self) -> impl DoubleEndedIterator<Item = u64> {
        self.0.iter().filter_map(|piece| match piece {
            Piece::Snapshot(seq) => Some(*seq),
            Piece::Delta { .. } => None,
        })
    }

    /// Every commit at which a chain ends, with the shortest that does.
    fn chains(&self) -> BTreeMap<u64, Chain> {
        let mut chains: BTreeMap<u64, Chain> =
            self.snapshots().map(|seq| (seq, Chain(vec![Piece::Snapshot(seq)]))).collect();
        // In the order of where they begin: whatever leads there was looked at before.
        for piece in self.iter() {
            let Piece::Delta { from, to } = piece else { continue };
            let Some(before) = chains.get(&from) else { continue };
            if chains.get(&to).is_none_or(|known| known.0.len() > before.0.len() + 1) {
                let pieces = before.0.iter().copied().chain([piece]).collect();
                chains.insert(to, Chain(pieces));
            }
        }
        chains
    }

    /// The chain that leads furthest: a server begins with it.
    pub(crate) fn longest_chain(&self) -> Option<Chain> {
        self.chains().pop_last().map(|(_, chain)| chain)
    }

    /// The chain to the newest of these commits that has one.
    pub(crate) fn chain_to_newest_of(&self, seqs: impl IntoIterator<Item = u64>) -> Option<Chain> {
        let mut chains = self.chains();
        let newest = seqs.into_iter().filter(|seq| chains.contains_key(seq)).max()?;
        chains.remove(&newest)
    }

    /// The second newest of the whole states, if there are two: no server begins before it.
    pub(crate) fn second_newest_snapshot(&self) -> Option<u64> {
        self.snapshots().rev().nth(1)
    }

    /// The oldest of the whole states that stay.
    pub(crate) fn oldest_kept_snapshot(&self) -> Option<u64> {
        self.snapshots().rev().take(KEPT_SNAPSHOTS).last()
    }

    /// Pieces with which no server begins, however many of the newest pieces it cannot read: older states than those that stay,
    /// and deltas that continue such.
    pub(crate) fn superseded(&self) -> impl Iterator<Item = Piece> {
        let oldest = self.oldest_kept_snapshot().unwrap_or(0);
        self.iter().filter(move |piece| piece.begin() < oldest)
    }

    /// Deltas that stay and yet continue nothing: what they continue is missing.
    pub(crate) fn detached(&self) -> impl Iterator<Item = Piece> {
        let chains = self.chains();
        let oldest = self.oldest_kept_snapshot().unwrap_or(0);
        self.iter().filter(move |piece| {
            matches!(piece, Piece::Delta { .. }) && piece.begin() >= oldest && !chains.contains_key(&piece.begin())
        })
    }
}

/// True if a superseded piece may be removed. Both times are of the bucket's clock.
pub(crate) fn is_old_enough(written: Timestamp, now: Timestamp) -> bool {
    now.duration_since(written) >= MIN_KEPT_AGE
}

/// Size of a chain in the bucket, and how far it leads.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct ChainSize {
    pub(crate) snapshot_bytes: u64,
    pub(crate) delta_bytes: u64,
    /// Number of commits there will be since its snapshot.
    pub(crate) commits: u64,
}

/// True if a whole state is due, and not another delta: when the deltas together outweigh the snapshot that they continue,
/// so that all snapshots together cost no more than all deltas; or when there are too many for those who know no deltas.
pub(crate) fn wants_snapshot(chain: ChainSize, snapshot_every: u64) -> bool {
    chain.delta_bytes >= chain.snapshot_bytes || chain.commits >= snapshot_every.saturating_mul(DELTAS_PER_SNAPSHOT)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pieces(snapshots: &[u64], deltas: &[(u64, u64)]) -> Pieces {
        let deltas = deltas.iter().map(|&(from, to)| Piece::Delta { from, to });
        snapshots.iter().map(|&seq| Piece::Snapshot(seq)).chain(deltas).collect()
    }

    fn chain(snapshot: u64, deltas: &[(u64, u64)]) -> Option<Chain> {
        Some(Chain(pieces(&[snapshot], deltas).iter().collect()))
    }

    #[test]
    fn a_server_begins_with_the_chain_that_leads_furthest() {
        assert_eq!(pieces(&[], &[]).longest_chain(), None);
        assert_eq!(pieces(&[], &[(10, 20)]).longest_chain(), None, "a delta alone is of no use");
        assert_eq!(pieces(&[10, 20], &[]).longest_chain(), chain(20, &[]));
        assert_eq!(pieces(&[10], &[(10, 20), (20, 30)]).longest_chain(), chain(10, &[(10, 20), (20, 30)]));
        assert_eq!(pieces(&[10, 20], &[(10, 20), (20, 30)]).longest_chain(), chain(20, &[(20, 30)]));
        assert_eq!(pieces(&[10], &[(10, 20), (30, 40)]).longest_chain(), chain(10, &[(10, 20)]));
        let branched = pieces(&[10], &[(10, 20), (20, 30), (10, 30), (30, 40)]);
        assert_eq!(branched.longest_chain(), chain(10, &[(10, 30), (30, 40)]), "the shorter of two ways");
        assert_eq!(branched.chain_to_newest_of([20, 25, 7]), chain(10, &[(10, 20)]));
        assert_eq!(branched.chain_to_newest_of([25]), None);
    }

    #[test]
    fn a_whole_state_is_due_when_the_deltas_outweigh_the_last_one_or_it_is_too_old() {
        let size = |snapshot_bytes, delta_bytes, commits| ChainSize { snapshot_bytes, delta_bytes, commits };
        assert!(!wants_snapshot(size(100, 0, 1_000), 1_000));
        assert!(!wants_snapshot(size(100, 99, 5_000), 1_000));
        assert!(wants_snapshot(size(100, 100, 5_000), 1_000));
        assert!(!wants_snapshot(size(100, 1, 31_999), 1_000));
        assert!(wants_snapshot(size(100, 1, 32_000), 1_000));
    }

    #[test]
    fn the_two_newest_states_stay_with_what_continues_them() {
        let superseded = |pieces: &Pieces| pieces.superseded().collect::<Vec<_>>();
        assert_eq!(superseded(&pieces(&[10], &[(10, 20)])), []);
        assert_eq!(superseded(&pieces(&[10, 30], &[(10, 20), (30, 40)])), []);
        let three = pieces(&[10, 30, 50], &[(10, 20), (20, 30), (20, 40), (30, 40), (40, 50), (50, 60)]);
        assert_eq!(superseded(&three), superseded(&pieces(&[10, 30, 50], &[(10, 20), (20, 30), (20, 40)])));
        assert_eq!(superseded(&three).len(), 4);
        let mut left = three.clone();
        superseded(&three).into_iter().for_each(|piece| left.remove(piece));
        assert_eq!(left.longest_chain(), three.longest_chain());
        left.remove(Piece::Snapshot(50));
        assert_eq!(left.longest_chain(), chain(30, &[(30, 40), (40, 50), (50, 60)]));
    }

    #[test]
    fn what_is_young_stays() {
        let now = Timestamp::UNIX_EPOCH + SignedDuration::from_hours(100);
        assert!(!is_old_enough(now, now));
        assert!(!is_old_enough(now - SignedDuration::from_mins(59), now));
        assert!(is_old_enough(now - SignedDuration::from_mins(60), now));
    }

    #[test]
    fn a_delta_whose_beginning_is_missing_is_found() {
        let detached = |pieces: &Pieces| pieces.detached().collect::<Vec<_>>();
        assert_eq!(detached(&pieces(&[10], &[(10, 20), (20, 30)])), []);
        assert_eq!(detached(&pieces(&[10], &[(20, 30)])), [Piece::Delta { from: 20, to: 30 }]);
        assert_eq!(detached(&pieces(&[50, 60], &[(20, 30)])), [], "it is superseded");
    }

    #[test]
    fn a_piece_is_known_by_its_key() {
        let site = LedgerName::site();
        for piece in [Piece::Snapshot(7), Piece::Delta { from: 7, to: 9 }] {
            assert_eq!(Piece::of(&piece.key(&site)), Some(piece));
        }
    }
}
