//! Places within layers: as near to their neighbours as the order and the size of boxes let them be.

use super::{Layered, ROW_GAP};

/// Times that places are improved from left to right and back.
const SWEEPS: usize = 6;
/// How much a slot without neighbours on the side that is looked at wants to stay.
const LAZINESS: f64 = 0.05;
/// How much a line that passes a column wants to be straight, beside a box.
const STRAIGHTNESS: f64 = 2.0;

/// By slot, the middle of its height; the top of all is at 0.
pub(super) fn middles(layered: &Layered) -> Vec<f64> {
    let mut middles = vec![0.0; layered.slots.len()];
    for layer in &layered.order {
        let mut top = 0.0;
        for slot in layer {
            middles[*slot] = top + layered.slots[*slot].height / 2.0;
            top += layered.slots[*slot].height + ROW_GAP;
        }
    }
    for _ in 0..SWEEPS {
        for layer in 0..layered.order.len() {
            settle(layered, layer, &mut middles, &layered.left);
        }
        for layer in (0..layered.order.len()).rev() {
            settle(layered, layer, &mut middles, &layered.right);
        }
    }
    let tops = layered.slots.iter().zip(&middles).map(|(slot, middle)| middle - slot.height / 2.0);
    let top = tops.fold(f64::INFINITY, f64::min);
    middles.iter().map(|middle| middle - top).collect()
}

/// Moves a layer's slots to the mean of their neighbours on one side, or as near as the others let them: least
/// squares with an order, for which neighbours that are in each other's way are moved together.
fn settle(layered: &Layered, layer: usize, middles: &mut [f64], neighbours: &[Vec<usize>]) {
    struct Block {
        weight: f64,
        /// Weighted sum of where its members want it.
        wanted: f64,
        members: usize,
    }
    let slots = &layered.order[layer];
    // The least distance from the first slot.
    let mut offsets = Vec::with_capacity(slots.len());
    let mut offset = 0.0;
    let mut blocks: Vec<Block> = Vec::with_capacity(slots.len());
    for (at, slot) in slots.iter().enumerate() {
        if let Some(above) = at.checked_sub(1) {
            offset += (layered.slots[slots[above]].height + layered.slots[*slot].height) / 2.0 + ROW_GAP;
        }
        offsets.push(offset);
        let (weight, wanted) = match neighbours[*slot].len() {
            0 => (LAZINESS, middles[*slot]),
            count => {
                let mean = neighbours[*slot].iter().map(|next| middles[*next]).sum::<f64>() / count as f64;
                (if layered.slots[*slot].node.is_some() { 1.0 } else { STRAIGHTNESS }, mean)
            }
        };
        blocks.push(Block { weight, wanted: weight * (wanted - offset), members: 1 });
        while let [.., above, below] = blocks.as_mut_slice() {
            if above.wanted / above.weight <= below.wanted / below.weight {
                break;
            }
            above.weight += below.weight;
            above.wanted += below.wanted;
            above.members += below.members;
            blocks.pop();
        }
    }
    let mut at = 0;
    for block in blocks {
        for _ in 0..block.members {
            middles[slots[at]] = block.wanted / block.weight + offsets[at];
            at += 1;
        }
    }
}
