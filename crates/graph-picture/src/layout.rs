//! Layered layout, after Sugiyama: every node is right of what it uses. Long lines of one node share a way through the
//! layers between, so that they read as one line that forks.

mod layers;
mod order;
mod places;

use layers::Layers;

/// Distance between columns, which lines have for their curves.
const COLUMN_GAP: f64 = 72.0;
/// Distance between boxes below one another.
const ROW_GAP: f64 = 12.0;
/// Height of a line that passes a column.
const LANE: f64 = 6.0;
/// Distance between the graph and the units without edges.
const REST_GAP: f64 = 56.0;
/// Units without edges share at least so many columns.
const REST_COLUMNS: usize = 4;

/// Size of a node's box.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Size {
    pub(crate) width: f64,
    pub(crate) height: f64,
}

/// Places of boxes and lines.
#[derive(Debug)]
pub(crate) struct Layout {
    /// By node: left, and middle of its height.
    pub(crate) places: Vec<Point>,
    /// By link: from the producer's box to the consumer's.
    pub(crate) routes: Vec<Vec<Point>>,
    pub(crate) width: f64,
    pub(crate) height: f64,
    /// Where the units without edges begin, if there are any beside the others.
    pub(crate) rest: Option<f64>,
}

#[derive(Clone, Copy, PartialEq, Debug)]
pub(crate) struct Point {
    pub(crate) x: f64,
    pub(crate) y: f64,
}

/// One place in a layer: a node, or the way of a node's lines to layers further right.
#[derive(Clone, Copy, Debug)]
struct Slot {
    layer: usize,
    node: Option<usize>,
    height: f64,
}

/// Slots and the lines between neighbouring layers.
#[derive(Default, Debug)]
struct Layered {
    slots: Vec<Slot>,
    left: Vec<Vec<usize>>,
    right: Vec<Vec<usize>>,
    /// By layer.
    order: Vec<Vec<usize>>,
}

impl Layered {
    fn push(&mut self, slot: Slot) -> usize {
        self.slots.push(slot);
        self.left.push(Vec::new());
        self.right.push(Vec::new());
        self.slots.len() - 1
    }

    fn connect(&mut self, from: usize, to: usize) {
        if !self.right[from].contains(&to) {
            self.right[from].push(to);
            self.left[to].push(from);
        }
    }
}

/// Places nodes of these sizes. `links` go from producer to consumer, and never from a node to itself.
pub(crate) fn layout(sizes: &[Size], links: &[(usize, usize)]) -> Layout {
    let layers = Layers::of(sizes.len(), links);
    let (mut layered, slot_of, ways) = layered(sizes, links, &layers);
    order::order(&mut layered);
    let middles = places::middles(&layered);
    let mut columns = vec![0.0_f64; layered.order.len()];
    for slot in &layered.slots {
        if let Some(node) = slot.node {
            columns[slot.layer] = columns[slot.layer].max(sizes[node].width);
        }
    }
    let mut lefts = Vec::with_capacity(columns.len());
    let mut x = 0.0;
    for width in &columns {
        lefts.push(x);
        x += width + COLUMN_GAP;
    }
    let mut width = (x - COLUMN_GAP).max(0.0);
    let bottom = |(slot, middle): (&Slot, &f64)| middle + slot.height / 2.0;
    let mut height = layered.slots.iter().zip(&middles).map(bottom).fold(0.0, f64::max);

    let mut places = vec![Point { x: 0.0, y: 0.0 }; sizes.len()];
    for (node, slot) in slot_of.iter().enumerate() {
        if let Some(slot) = slot {
            places[node] = Point { x: lefts[layered.slots[*slot].layer], y: middles[*slot] };
        }
    }
    let rest: Vec<usize> = (0..sizes.len()).filter(|node| slot_of[*node].is_none()).collect();
    let has_graph = rest.len() < sizes.len();
    let top = if has_graph && !rest.is_empty() { height + REST_GAP } else { 0.0 };
    if !rest.is_empty() {
        let cell = rest.iter().map(|node| sizes[*node].width).fold(0.0, f64::max) + ROW_GAP * 2.0;
        let square = ((rest.len() as f64).sqrt() / 2.0).ceil() as usize;
        let across = ((width / cell) as usize).max(REST_COLUMNS).max(square);
        let row = rest.iter().map(|node| sizes[*node].height).fold(0.0, f64::max) + ROW_GAP;
        for (number, node) in rest.iter().enumerate() {
            let (column, line) = (number % across, number / across);
            places[*node] = Point { x: column as f64 * cell, y: top + line as f64 * row + sizes[*node].height / 2.0 };
            width = width.max(column as f64 * cell + sizes[*node].width);
            height = height.max(places[*node].y + sizes[*node].height / 2.0);
        }
    }
    let route = |(number, way): (usize, &Vec<usize>)| {
        let mut points = Vec::with_capacity(way.len() * 2);
        for (step, slot) in way.iter().enumerate() {
            let (left, y) = (lefts[layered.slots[*slot].layer], middles[*slot]);
            let own = layered.slots[*slot].node.map_or(columns[layered.slots[*slot].layer], |node| sizes[node].width);
            if step > 0 {
                points.push(Point { x: left, y });
            }
            if step + 1 < way.len() {
                points.push(Point { x: left + own, y });
            }
        }
        if layers.is_reversed[number] {
            points.reverse();
        }
        points
    };
    let routes = ways.iter().enumerate().map(route).collect();
    Layout { places, routes, width, height, rest: (has_graph && !rest.is_empty()).then_some(top) }
}

/// The slots of all nodes with links, by node the slot, and by link the slots from left to right.
fn layered(
    sizes: &[Size],
    links: &[(usize, usize)],
    layers: &Layers,
) -> (Layered, Vec<Option<usize>>, Vec<Vec<usize>>) {
    let mut layered = Layered::default();
    let mut slot_of = vec![None; sizes.len()];
    for (node, layer) in layers.of.iter().enumerate() {
        if let Some(layer) = layer {
            slot_of[node] = Some(layered.push(Slot { layer: *layer, node: Some(node), height: sizes[node].height }));
        }
    }
    let count = layers.of.iter().flatten().max().map_or(0, |last| last + 1);
    layered.order = vec![Vec::new(); count];
    // By node on the left: the slots that its lines pass.
    let mut lanes: Vec<Vec<usize>> = vec![Vec::new(); sizes.len()];
    let mut ways = Vec::with_capacity(links.len());
    for (number, (producer, consumer)) in links.iter().enumerate() {
        let (from, to) = if layers.is_reversed[number] { (*consumer, *producer) } else { (*producer, *consumer) };
        let (Some(first), Some(last)) = (slot_of[from], slot_of[to]) else {
            ways.push(Vec::new());
            continue;
        };
        let between = layered.slots[last].layer - layered.slots[first].layer - 1;
        while lanes[from].len() < between {
            let before = lanes[from].last().copied().unwrap_or(first);
            let layer = layered.slots[before].layer + 1;
            let lane = layered.push(Slot { layer, node: None, height: LANE });
            layered.connect(before, lane);
            lanes[from].push(lane);
        }
        let mut way = vec![first];
        way.extend(&lanes[from][..between]);
        let before = way.last().copied().unwrap_or(first);
        layered.connect(before, last);
        way.push(last);
        ways.push(way);
    }
    (layered, slot_of, ways)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::picture::{Grouping, Picture};

    const BOX: Size = Size { width: 100.0, height: 40.0 };

    fn placed(count: usize, links: &[(usize, usize)]) -> Layout {
        layout(&vec![BOX; count], links)
    }

    /// Boxes that share a column are apart.
    fn nothing_overlaps(layout: &Layout) {
        let mut places: Vec<Point> = layout.places.clone();
        places.sort_by(|one, other| one.x.total_cmp(&other.x).then(one.y.total_cmp(&other.y)));
        for pair in places.windows(2) {
            let [one, other] = pair else { continue };
            assert!(one.x != other.x || other.y - one.y >= BOX.height + ROW_GAP - 1e-6, "{one:?} {other:?}");
        }
    }

    #[test]
    fn what_is_used_is_left_of_what_uses_it() {
        let links = [(0, 1), (1, 2), (0, 3), (3, 2), (4, 2)];
        let layout = placed(6, &links);
        for (from, to) in links {
            assert!(layout.places[from].x + BOX.width + COLUMN_GAP <= layout.places[to].x + 1e-9);
        }
        assert_eq!(layout.places[4].x, layout.places[1].x, "a node that uses nothing is near what uses it");
        nothing_overlaps(&layout);
        assert!(layout.rest.is_some_and(|top| layout.places[5].y > top), "the sixth has no links");
    }

    #[test]
    fn routes_begin_and_end_at_boxes() {
        let links = [(0, 1), (1, 2), (2, 3), (0, 3), (0, 2)];
        let layout = placed(4, &links);
        for ((from, to), route) in links.iter().zip(&layout.routes) {
            let (first, last) = (route[0], route[route.len() - 1]);
            let (producer, consumer) = (layout.places[*from], layout.places[*to]);
            assert_eq!(first, Point { x: producer.x + BOX.width, y: producer.y });
            assert_eq!(last, consumer);
            assert!(route.windows(2).all(|pair| pair[0].x <= pair[1].x));
        }
        assert_eq!(layout.routes[3][..3], layout.routes[4][..3], "both pass the second column on the same way");
        let through = layout.routes[3][1];
        assert!((through.y - layout.places[1].y).abs() >= BOX.height / 2.0, "and not through its box");
    }

    #[test]
    fn a_cycle_is_drawn_backwards_somewhere() {
        let layout = placed(3, &[(0, 1), (1, 2), (2, 0)]);
        let backwards = layout.routes.iter().filter(|route| route[0].x > route[route.len() - 1].x).count();
        assert_eq!(backwards, 1);
        nothing_overlaps(&layout);
    }

    #[test]
    fn a_tree_has_no_crossings_and_parents_in_the_middle() {
        // Targets are given in an order that would cross.
        let layout = placed(7, &[(0, 2), (0, 1), (1, 6), (2, 3), (1, 5), (2, 4)]);
        let middle = |one: usize, other: usize| (layout.places[one].y + layout.places[other].y) / 2.0;
        assert!((layout.places[1].y - middle(5, 6)).abs() < 1.0);
        assert!((layout.places[2].y - middle(3, 4)).abs() < 1.0);
        assert!((layout.places[0].y - middle(1, 2)).abs() < 1.0);
        let parents_in_order = layout.places[1].y < layout.places[2].y;
        assert_eq!(layout.places[5].y < layout.places[3].y, parents_in_order);
        nothing_overlaps(&layout);
    }

    #[test]
    fn nothing_and_units_without_links_have_places_too() {
        assert_eq!(placed(0, &[]).places, []);
        let layout = placed(10, &[]);
        nothing_overlaps(&layout);
        assert!(layout.rest.is_none() && layout.width > BOX.width && layout.height > BOX.height);
    }

    #[test]
    fn a_large_graph_is_laid_out_the_same_every_time() {
        let picture = Picture::of(&crate::sample::estate(1000, 3000), Grouping::Units);
        let links: Vec<(usize, usize)> = picture.links.iter().map(|link| (link.producer, link.consumer)).collect();
        let (one, other) = (placed(1000, &links), placed(1000, &links));
        assert_eq!(one.places, other.places);
        nothing_overlaps(&one);
        assert!(one.places.iter().all(|place| place.x >= 0.0 && place.y >= BOX.height / 2.0 - 1e-6));
        assert!(one.places.iter().all(|place| place.y <= one.height && place.x <= one.width));
    }
}
