//! Order within layers: neighbours of neighbours are put together, so that few lines cross.

use super::Layered;

/// Times that order is improved from left to right and back.
const SWEEPS: usize = 12;
/// So many without fewer crossings are enough.
const MAX_VAIN_SWEEPS: usize = 4;

/// Fills in the order of each layer.
pub(super) fn order(layered: &mut Layered) {
    layered.order = first_order(layered);
    let (mut best, mut fewest) = (layered.order.clone(), crossings(layered));
    let mut vain = 0;
    for _ in 0..SWEEPS {
        if fewest == 0 || vain >= MAX_VAIN_SWEEPS {
            break;
        }
        sweep(layered, true);
        sweep(layered, false);
        let found = crossings(layered);
        vain += 1;
        if found < fewest {
            (best, fewest, vain) = (layered.order.clone(), found, 0);
        }
    }
    layered.order = best;
}

/// As a walk along the lines meets them: so trees have no crossings, and what is connected stays together.
fn first_order(layered: &Layered) -> Vec<Vec<usize>> {
    let mut order = vec![Vec::new(); layered.order.len()];
    let mut is_placed = vec![false; layered.slots.len()];
    let mut roots: Vec<usize> = (0..layered.slots.len()).collect();
    roots.sort_by_key(|slot| (layered.slots[*slot].layer, *slot));
    for root in roots {
        let mut way = vec![root];
        while let Some(slot) = way.pop() {
            if std::mem::replace(&mut is_placed[slot], true) {
                continue;
            }
            order[layered.slots[slot].layer].push(slot);
            way.extend(layered.left[slot].iter().rev().filter(|next| !is_placed[**next]));
            way.extend(layered.right[slot].iter().rev().filter(|next| !is_placed[**next]));
        }
    }
    order
}

/// Sorts each layer by the mean place of neighbours in the layer before.
fn sweep(layered: &mut Layered, rightwards: bool) {
    let mut place = vec![0.0; layered.slots.len()];
    let mut layers: Vec<usize> = (0..layered.order.len()).collect();
    if !rightwards {
        layers.reverse();
    }
    for layer in layers {
        let neighbours = if rightwards { &layered.left } else { &layered.right };
        let slots = &mut layered.order[layer];
        let mut keyed: Vec<(f64, usize)> = slots
            .iter()
            .enumerate()
            .map(|(at, slot)| (mean(&neighbours[*slot], &place).unwrap_or(at as f64), *slot))
            .collect();
        keyed.sort_by(|one, other| one.0.total_cmp(&other.0));
        for (at, (_, slot)) in keyed.iter().enumerate() {
            place[*slot] = at as f64;
            slots[at] = *slot;
        }
    }
}

fn mean(slots: &[usize], place: &[f64]) -> Option<f64> {
    let sum: f64 = slots.iter().map(|slot| place[*slot]).sum();
    (!slots.is_empty()).then(|| sum / slots.len() as f64)
}

/// How many pairs of lines cross.
fn crossings(layered: &Layered) -> usize {
    let mut place = vec![0; layered.slots.len()];
    for layer in &layered.order {
        for (at, slot) in layer.iter().enumerate() {
            place[*slot] = at;
        }
    }
    let mut count = 0;
    for (layer, next) in layered.order.iter().zip(layered.order.iter().skip(1)) {
        // Ends of lines from top to bottom; each crosses those before it that end below.
        let mut below = Ends::new(next.len());
        let mut lines = 0;
        for slot in layer {
            let mut ends: Vec<usize> = layered.right[*slot].iter().map(|to| place[*to]).collect();
            ends.sort_unstable();
            count += ends.iter().map(|end| lines - below.up_to(*end)).sum::<usize>();
            ends.iter().for_each(|end| below.add(*end));
            lines += ends.len();
        }
    }
    count
}

/// Counts of ends, summed up from the first in logarithmic time: a Fenwick tree.
struct Ends(Vec<usize>);

impl Ends {
    fn new(places: usize) -> Self {
        Self(vec![0; places + 1])
    }

    fn add(&mut self, place: usize) {
        let mut at = place + 1;
        while at < self.0.len() {
            self.0[at] += 1;
            at += at & at.wrapping_neg();
        }
    }

    fn up_to(&self, place: usize) -> usize {
        let (mut at, mut sum) = (place + 1, 0);
        while at > 0 {
            sum += self.0[at];
            at -= at & at.wrapping_neg();
        }
        sum
    }
}

#[cfg(test)]
mod tests {
    use super::super::Slot;
    use super::*;

    fn of(layers: &[usize], lines: &[(usize, usize)]) -> Layered {
        let mut layered = Layered::default();
        for layer in layers {
            layered.push(Slot { layer: *layer, node: None, height: 1.0 });
        }
        for (from, to) in lines {
            layered.connect(*from, *to);
        }
        let count = layers.iter().max().map_or(0, |last| last + 1);
        layered.order =
            (0..count).map(|wanted| (0..layers.len()).filter(|slot| layers[*slot] == wanted).collect()).collect();
        layered
    }

    #[test]
    fn crossings_are_counted() {
        assert_eq!(crossings(&of(&[0, 0, 1, 1], &[(0, 3), (1, 2)])), 1);
        assert_eq!(crossings(&of(&[0, 0, 1, 1], &[(0, 2), (0, 3), (1, 2), (1, 3)])), 1);
        assert_eq!(crossings(&of(&[0, 0, 0, 1, 1, 1], &[(0, 5), (1, 4), (2, 3)])), 3);
    }

    #[test]
    fn crossings_that_need_not_be_are_gone() {
        let mut layered = of(&[0, 0, 0, 1, 1, 1, 2, 2], &[(0, 5), (1, 4), (2, 3), (5, 7), (4, 6), (3, 6)]);
        order(&mut layered);
        assert_eq!(crossings(&layered), 0);
    }
}
