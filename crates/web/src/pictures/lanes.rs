//! The queue as lanes: the slots of each pool, what is in them, and what waits for one.

use taco_control_plane::{QueueLane, RunView};

use super::{Drawing, Key, Mark, Row, Rows, Shape, counted, shortened};
use crate::agents::pool_address;
use crate::navigation::organization_address;
use crate::run::page::address_of;
use crate::words::subject;

/// So many lanes are drawn, so many slots and as many waiting runs of each, and so many cells in all.
const MAX_LANES: usize = 20;
const MAX_CELLS: usize = 20;
const MAX_CELLS_IN_ALL: usize = 80;
const LONGEST_NAME: usize = 40;
const LONGEST_TITLE: usize = 80;
const CELLS_IN_A_ROW: usize = 12;
/// Side of a cell, and the distance between two, in pixels.
const SIDE: u32 = 18;
const STEP: u32 = 23;

/// Number of slots that are drawn of each lane, and of waiting runs.
fn most_cells(lanes: usize) -> usize {
    (MAX_CELLS_IN_ALL / 2 / lanes.max(1)).min(MAX_CELLS)
}

/// `None` if nothing could execute anything, and nothing waits.
pub(crate) fn lanes(lanes: &[QueueLane], organization: &str) -> Option<Rows> {
    if lanes.is_empty() {
        return None;
    }
    // What an address leads to is known for runs; so many that the page stays small.
    let most = most_cells(lanes.len().min(MAX_LANES));
    let rows = lanes.iter().take(MAX_LANES).map(|lane| Row {
        name: lane
            .pool
            .as_ref()
            .map_or_else(|| "Built-in agents".to_owned(), |(_, name)| shortened(name, LONGEST_NAME)),
        href: lane.pool.as_ref().map_or_else(
            || format!("{}/agents", organization_address(organization)),
            |(id, _)| pool_address(organization, *id),
        ),
        words: words(lane),
        drawings: [slots(lane, most), waiting(lane, most)]
            .into_iter()
            .filter(|drawing| !drawing.marks.is_empty())
            .collect(),
    });
    let slots: u64 = lanes.iter().map(|lane| u64::from(lane.slots)).sum();
    let ready: usize = lanes.iter().map(|lane| lane.ready_total).sum();
    Some(Rows {
        id: "queue-lanes",
        title: "Lanes".to_owned(),
        summary: format!("{} in all, {ready} waiting for one", counted(slots, "slot")),
        class: "lanes",
        rows: rows.collect(),
        legend: vec![
            Key::new("running", "", "running"),
            Key::new("taken", "", "in use elsewhere"),
            Key::new("free", "", "free slot"),
            Key::new("waiting", "", "waiting for a slot"),
        ],
        note: match lanes.len().saturating_sub(MAX_LANES) {
            0 => String::new(),
            more => format!("And {}.", counted(more as u64, "more pool")),
        },
    })
}

fn words(lane: &QueueLane) -> String {
    let mut words = match lane.slots {
        0 => "no agents online".to_owned(),
        slots => format!("{} of {} in use", lane.busy.max(lane.executing.len() as u32), counted(slots, "slot")),
    };
    if lane.ready_total > 0 {
        words.push_str(&format!(", {} waiting for a slot", lane.ready_total));
    }
    if lane.behind > 0 {
        words.push_str(&format!(", {} behind other runs of their workspace", lane.behind));
    }
    words
}

fn cell(class: &'static str, index: usize) -> Mark {
    let (column, row) = (index % CELLS_IN_A_ROW, index / CELLS_IN_A_ROW);
    Mark::new(class, Shape::Cell { x: column as u32 * STEP + 1, y: row as u32 * STEP + 1, size: SIDE })
}

fn drawing(marks: Vec<Mark>) -> Drawing {
    let count = marks.len();
    Drawing {
        width: Some(count.clamp(1, CELLS_IN_A_ROW) as u32 * STEP),
        height: count.div_ceil(CELLS_IN_A_ROW).max(1) as u32 * STEP,
        marks,
    }
}

fn slots(lane: &QueueLane, most: usize) -> Drawing {
    let executing = lane.executing.len();
    let busy = executing.max(lane.busy as usize);
    let all = busy.max(lane.slots as usize).min(most);
    let mark = |index: usize| match lane.executing.get(index) {
        Some(run) => linked(cell("running", index), run),
        None if index < busy => cell("taken", index).titled("in use, by a run that is not listed here"),
        None => cell("free", index).titled("free slot"),
    };
    drawing((0..all).map(mark).collect())
}

fn waiting(lane: &QueueLane, most: usize) -> Drawing {
    let runs = lane.ready.iter().take(most).enumerate();
    drawing(runs.map(|(index, run)| linked(cell("waiting", index), run)).collect())
}

fn linked(mark: Mark, view: &RunView) -> Mark {
    let subject = subject(&view.run.options.message);
    let title = format!("{}: {}", view.workspace.name, if subject.is_empty() { "run" } else { &subject });
    mark.titled(shortened(&title, LONGEST_TITLE)).leading_to(address_of(view))
}

#[cfg(test)]
mod tests {
    use taco_domain::id::AgentPoolId;

    use super::*;

    fn lane(slots: u32, busy: u32) -> QueueLane {
        QueueLane { slots, busy, agents: 1, ..QueueLane::default() }
    }

    fn classes(drawing: &Drawing) -> Vec<&str> {
        drawing.marks.iter().map(|mark| mark.class).collect()
    }

    #[test]
    fn slots_that_others_use_are_taken() {
        assert!(lanes(&[], "acme").is_none());
        assert_eq!(classes(&slots(&lane(3, 1), 10)), ["taken", "free", "free"]);
        assert_eq!(slots(&lane(1000, 1000), 20).marks.len(), 20);
        assert_eq!(words(&lane(3, 1)), "1 of 3 slots in use");
    }

    #[test]
    fn a_lane_without_agents_says_so() {
        let mut lane = lane(0, 0);
        lane.ready_total = 2;
        lane.behind = 1;
        lane.pool = Some((AgentPoolId::from_random([1; 16]), "<&\"".repeat(50)));
        let rows = lanes(&[lane], "acme").expect("a picture");
        assert_eq!(
            rows.rows[0].words,
            "no agents online, 2 waiting for a slot, 1 behind other runs of their workspace"
        );
        assert!(!rows.to_string().contains("<&\""));
    }

    #[test]
    fn many_lanes_are_bounded() {
        let all: Vec<QueueLane> = (0..1000).map(|_| lane(500, 20)).collect();
        let html = lanes(&all, "acme").expect("a picture").to_string();
        assert!(html.len() < 40_000 && html.contains("And 980 more pools."), "{}", html.len());
    }

    #[test]
    fn cells_that_lead_to_runs_are_bounded() {
        for lanes in [1, 2, 10, MAX_LANES] {
            assert!(2 * lanes * most_cells(lanes) <= MAX_CELLS_IN_ALL, "{lanes}");
        }
        let address = format!("/app/acme/workspaces/{}/runs/run-4Tk9mXbq7cWvZpHn", "n".repeat(90));
        let longest = |index| cell("waiting", index).titled("t".repeat(LONGEST_TITLE)).leading_to(&address);
        let row = Row { drawings: vec![drawing((0..MAX_CELLS_IN_ALL).map(longest).collect())], ..Row::default() };
        let html = Rows { rows: vec![row], ..Rows::default() }.to_string();
        assert!(html.len() < 32_000, "{}", html.len());
    }
}
