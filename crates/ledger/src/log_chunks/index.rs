//! Boundaries of the pieces of logs, as far as this server knows: it only saves requests.

use std::collections::BTreeMap;

use super::{FETCH_CONCURRENCY, Log};

/// Maximum number of pieces that the index has of all logs: a few megabytes.
const MAX_CACHED_PIECES: usize = 50_000;

/// Cache of the boundaries of pieces. It evicts the logs that nobody asked for lately.
#[derive(Default, Debug)]
pub(super) struct Index {
    logs: BTreeMap<Log, Known>,
    pieces: usize,
    uses: u64,
}

#[derive(Debug)]
struct Known {
    /// Every border known, with the end of the piece that begins there if that is known too.
    boundaries: BTreeMap<u64, Option<u64>>,
    last_use: u64,
}

impl Index {
    /// The last border known at or before `offset`. A log begins at 0, so there always is one.
    pub(super) fn at_or_before(&mut self, log: &Log, offset: u64) -> (u64, Option<u64>) {
        self.uses += 1;
        let Some(known) = self.logs.get_mut(log) else { return (0, None) };
        known.last_use = self.uses;
        known.boundaries.range(..=offset).next_back().map_or((0, None), |(start, end)| (*start, *end))
    }

    /// `first`, and the next few pieces known that begin before `stop`.
    pub(super) fn pieces_from(&self, log: &Log, first: (u64, Option<u64>), stop: u64) -> Vec<(u64, Option<u64>)> {
        let mut pieces = vec![first];
        if let Some(known) = self.logs.get(log) {
            let after = known.boundaries.range(first.0..).skip_while(|(start, _)| **start == first.0);
            let wanted = after.take_while(|(start, _)| **start < stop);
            pieces.extend(wanted.map(|(start, end)| (*start, *end)).take(FETCH_CONCURRENCY - 1));
        }
        pieces
    }

    /// Offsets at which pieces begin, from `start` on and before `end`, as far as that is known.
    pub(super) fn boundaries(&self, log: &Log, start: u64, end: u64) -> Vec<u64> {
        let known = self.logs.get(log).into_iter().flat_map(|known| known.boundaries.range(start..end));
        std::iter::once(start).chain(known.map(|(border, _)| *border).filter(|border| *border != start)).collect()
    }

    pub(super) fn learn(&mut self, log: &Log, start: u64, length: usize) {
        let end = start + length as u64;
        self.insert(log, start, Some(end));
        self.insert(log, end, None);
        self.evict_except(log);
    }

    pub(super) fn add_boundaries(&mut self, log: &Log, boundaries: impl Iterator<Item = u64>) {
        for border in boundaries {
            self.insert(log, border, None);
        }
        self.evict_except(log);
    }

    pub(super) fn insert(&mut self, log: &Log, start: u64, end: Option<u64>) {
        if !self.logs.contains_key(log) {
            self.logs.insert(log.clone(), Known { boundaries: BTreeMap::new(), last_use: self.uses });
        }
        let known = self.logs.get_mut(log).expect("inserted where it was absent");
        let before = known.boundaries.len();
        let border = known.boundaries.entry(start).or_default();
        *border = border.or(end);
        self.pieces += known.boundaries.len() - before;
    }

    pub(super) fn evict_except(&mut self, log_in_use: &Log) {
        if self.pieces <= MAX_CACHED_PIECES {
            return;
        }
        let mut by_last_use: Vec<(u64, Log)> = self
            .logs
            .iter()
            .filter(|(log, _)| *log != log_in_use)
            .map(|(log, known)| (known.last_use, log.clone()))
            .collect();
        by_last_use.sort_unstable();
        for (_, log) in by_last_use {
            if self.pieces <= MAX_CACHED_PIECES / 2 {
                break;
            }
            let forgotten = self.logs.remove(&log).map_or(0, |known| known.boundaries.len());
            self.pieces -= forgotten;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::layout::LedgerName;

    #[test]
    fn the_index_forgets_what_was_not_used_lately() {
        let mut index = Index::default();
        let log = |number: u64| Log { ledger: LedgerName::site(), id: "plan-1".to_owned(), epoch: number };
        for number in 0..10 {
            for piece in 0..MAX_CACHED_PIECES as u64 / 8 {
                index.learn(&log(number), piece * 10, 10);
            }
            // The first one stays in use.
            index.at_or_before(&log(0), 0);
        }
        assert!(index.pieces <= MAX_CACHED_PIECES, "{}", index.pieces);
        assert_eq!(index.pieces, index.logs.values().map(|known| known.boundaries.len()).sum::<usize>());
        assert_eq!(index.at_or_before(&log(0), 15), (10, Some(20)));
        assert_eq!(index.at_or_before(&log(9), 15), (10, Some(20)));
        assert_eq!(index.at_or_before(&log(1), 15), (0, None));
    }
}
