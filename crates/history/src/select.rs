//! One page of a list whose items come from many sorted sources, without walking over those before it.

use crate::catalog::RowId;

/// Items in the order of a list: the greatest first, and the smallest tie first among equals.
pub trait Source: Sync {
    fn count(&self) -> usize;
    /// Sort key of the list, for instance the creation time of an item.
    fn order(&self, index: usize) -> i64;
    /// Tie-breaker between items of equal order; no two items have the same.
    fn tie(&self, index: usize) -> (u64, RowId);
}

/// The items from `skip` on, `take` at most, as source and index within it.
pub fn select(sources: &[&dyn Source], skip: usize, take: usize) -> Vec<(usize, usize)> {
    let total: usize = sources.iter().map(|source| source.count()).sum();
    if skip >= total || take == 0 {
        return Vec::new();
    }
    let (mut positions, mut before) = starts(sources, skip);
    let mut found = Vec::with_capacity(take);
    while found.len() < take {
        let ahead = positions.iter().enumerate().filter(|(source, at)| **at < sources[*source].count());
        let key = |source: usize, at: usize| (std::cmp::Reverse(sources[source].order(at)), sources[source].tie(at));
        let Some((source, at)) = ahead.map(|(source, at)| (source, *at)).min_by_key(|(source, at)| key(*source, *at))
        else {
            break;
        };
        positions[source] += 1;
        if before == skip {
            found.push((source, at));
        } else {
            before += 1;
        }
    }
    found
}

/// Start index in each source, and the number of items before that: as many as possible, and no more than `skip`.
fn starts(sources: &[&dyn Source], skip: usize) -> (Vec<usize>, usize) {
    if skip == 0 {
        return (vec![0; sources.len()], 0);
    }
    let greater_than = |order: i64| -> Vec<usize> {
        let in_source = |source: &&dyn Source| partition_point(source.count(), |index| source.order(index) > order);
        sources.iter().map(in_source).collect()
    };
    // The smallest order that no more than `skip` items exceed.
    let (mut low, mut high) = (i64::MIN, i64::MAX);
    while low < high {
        let middle = floor_of_middle(low, high);
        match greater_than(middle).iter().sum::<usize>() <= skip {
            true => high = middle,
            false => low = middle + 1,
        }
    }
    let positions = greater_than(low);
    let before = positions.iter().sum();
    (positions, before)
}

/// Rounded down, also between negative numbers: else the search would not end.
fn floor_of_middle(low: i64, high: i64) -> i64 {
    (low & high) + ((low ^ high) >> 1)
}

/// The first index for which `holds` is false. It holds up to there.
fn partition_point(len: usize, holds: impl Fn(usize) -> bool) -> usize {
    let (mut low, mut high) = (0, len);
    while low < high {
        let middle = low.midpoint(high);
        match holds(middle) {
            true => low = middle + 1,
            false => high = middle,
        }
    }
    low
}

#[cfg(test)]
mod tests {
    use super::*;

    struct Items(Vec<(i64, u8)>);

    impl Items {
        fn new(mut items: Vec<(i64, u8)>) -> Self {
            items.sort_by_key(|(order, id)| (std::cmp::Reverse(*order), *id));
            Self(items)
        }
    }

    impl Source for Items {
        fn count(&self) -> usize {
            self.0.len()
        }

        fn order(&self, index: usize) -> i64 {
            self.0[index].0
        }

        fn tie(&self, index: usize) -> (u64, RowId) {
            (0, [self.0[index].1; 16])
        }
    }

    #[test]
    fn every_page_is_the_same_part_of_the_whole_list() {
        let spread = |offset: u8, step: i64| (0..40_u8).map(|n| (i64::from(n) / 3 * step, n * 5 + offset)).collect();
        let sources =
            [Items::new(spread(0, 7)), Items::new(spread(1, 2)), Items::new(vec![]), Items::new(spread(2, -1))];
        let all = Items::new(sources.iter().flat_map(|source| source.0.clone()).collect());
        let sources: Vec<&dyn Source> = sources.iter().map(|source| source as &dyn Source).collect();
        for skip in 0..all.0.len() + 2 {
            for take in [0, 1, 7, 500] {
                let found: Vec<(i64, (u64, RowId))> = (select(&sources, skip, take).into_iter())
                    .map(|(source, at)| (sources[source].order(at), sources[source].tie(at)))
                    .collect();
                let expected = (skip..all.0.len()).take(take).map(|at| (all.order(at), all.tie(at)));
                assert_eq!(found, expected.collect::<Vec<_>>(), "{skip} {take}");
            }
        }
    }
}
