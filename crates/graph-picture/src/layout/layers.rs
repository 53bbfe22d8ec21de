//! Layers: how far right each node is.

/// Layers of nodes, and which links had to be turned round for that.
#[derive(Debug)]
pub(super) struct Layers {
    /// `None` for nodes without links.
    pub(super) of: Vec<Option<usize>>,
    /// By link. Turned round, so that what is left has no cycle.
    pub(super) is_reversed: Vec<bool>,
}

impl Layers {
    pub(super) fn of(nodes: usize, links: &[(usize, usize)]) -> Self {
        let is_reversed = back_links(nodes, links);
        let (mut rights, mut waits) = (vec![Vec::new(); nodes], vec![0_usize; nodes]);
        let mut is_linked = vec![false; nodes];
        for ((from, to), is_reversed) in links.iter().zip(&is_reversed) {
            let (from, to) = if *is_reversed { (*to, *from) } else { (*from, *to) };
            rights[from].push(to);
            waits[to] += 1;
            (is_linked[from], is_linked[to]) = (true, true);
        }
        let uses_nothing: Vec<bool> = waits.iter().map(|count| *count == 0).collect();
        let mut layers = vec![0_usize; nodes];
        let mut ready: Vec<usize> = (0..nodes).filter(|node| uses_nothing[*node]).collect();
        while let Some(node) = ready.pop() {
            for to in &rights[node] {
                layers[*to] = layers[*to].max(layers[node] + 1);
                waits[*to] -= 1;
                if waits[*to] == 0 {
                    ready.push(*to);
                }
            }
        }
        // What uses nothing could be anywhere on the left; near its consumers, lines are short.
        for node in (0..nodes).filter(|node| uses_nothing[*node]) {
            if let Some(nearest) = rights[node].iter().map(|to| layers[*to]).min() {
                layers[node] = nearest - 1;
            }
        }
        let of = layers.into_iter().zip(is_linked).map(|(layer, is_linked)| is_linked.then_some(layer)).collect();
        Self { of, is_reversed }
    }
}

/// Links that close a cycle, as a walk finds them that begins where most goes out.
fn back_links(nodes: usize, links: &[(usize, usize)]) -> Vec<bool> {
    #[derive(Clone, Copy, PartialEq)]
    enum Seen {
        No,
        OnTheWay,
        Done,
    }
    let mut outgoing = vec![Vec::new(); nodes];
    let mut balance = vec![0_i64; nodes];
    for (number, (from, to)) in links.iter().enumerate() {
        outgoing[*from].push((number, *to));
        balance[*from] += 1;
        balance[*to] -= 1;
    }
    let mut roots: Vec<usize> = (0..nodes).collect();
    roots.sort_by_key(|node| (-balance[*node], *node));
    let mut seen = vec![Seen::No; nodes];
    let mut is_back = vec![false; links.len()];
    for root in roots {
        if seen[root] != Seen::No {
            continue;
        }
        seen[root] = Seen::OnTheWay;
        let mut way = vec![(root, 0)];
        while let Some((node, followed)) = way.last_mut() {
            let Some((number, to)) = outgoing[*node].get(*followed).copied() else {
                seen[*node] = Seen::Done;
                way.pop();
                continue;
            };
            *followed += 1;
            match seen[to] {
                Seen::No => {
                    seen[to] = Seen::OnTheWay;
                    way.push((to, 0));
                }
                Seen::OnTheWay => is_back[number] = true,
                Seen::Done => {}
            }
        }
    }
    is_back
}
