//! Agents: their slots as cells, and the minutes in which they were heard.

use jiff::Timestamp;
use taco_domain::agent::AgentPresence;
use taco_domain::heartbeats::{Beat, HEARTBEAT_MINUTES, Heartbeats};

use super::{Drawing, Key, Mark, Row, Rows, Shape, counted, shortened};
use crate::text::{Moment, plain};

/// So many agents are drawn, and so many slots of each.
const MAX_AGENTS: usize = 24;
const MAX_CELLS: u32 = 24;
const CELLS_IN_A_ROW: u32 = 12;
/// Side of a cell, and the distance between two, in pixels.
const SIDE: u32 = 11;
const STEP: u32 = 15;
/// Width of a minute in the strip, in pixels.
const MINUTE: usize = 5;
const STRIP: u32 = (HEARTBEAT_MINUTES * MINUTE) as u32;
const STRIP_HEIGHT: u32 = 12;

/// An agent that is drawn.
pub(crate) struct DrawnAgent {
    pub(crate) name: String,
    pub(crate) busy: u32,
    pub(crate) concurrency: u32,
    pub(crate) last_heard: Option<Timestamp>,
    pub(crate) heartbeats: Option<Heartbeats>,
}

impl DrawnAgent {
    pub(crate) fn of(agent: &AgentPresence, heartbeats: Option<Heartbeats>) -> Self {
        Self {
            name: plain(&agent.name),
            busy: agent.busy,
            concurrency: agent.concurrency,
            last_heard: agent.last_heard_at,
            heartbeats,
        }
    }
}

/// `None` without agents.
pub(crate) fn agents(agents: &[DrawnAgent], now: Timestamp) -> Option<Rows> {
    if agents.is_empty() {
        return None;
    }
    let slots: u64 = agents.iter().map(|agent| u64::from(agent.concurrency)).sum();
    let busy: u64 = agents.iter().map(|agent| u64::from(agent.busy)).sum();
    let rows = agents.iter().take(MAX_AGENTS).map(|agent| Row {
        name: shortened(&agent.name, 60),
        href: String::new(),
        words: words(agent, now),
        drawings: vec![strip(agent.heartbeats, now), cells(agent.busy, agent.concurrency)],
    });
    let more = agents.len().saturating_sub(MAX_AGENTS);
    Some(Rows {
        id: "agent-slots",
        title: "Slots and heartbeats".to_owned(),
        summary: format!("{busy} of {} busy", counted(slots, "slot")),
        class: "agents",
        rows: rows.collect(),
        legend: vec![
            Key::new("running", "", "busy slot"),
            Key::new("free", "", "free slot"),
            Key::new("beat", "", "seen in this minute"),
            Key::new("missed", "", "not seen"),
        ],
        note: match more {
            0 => format!("Heartbeats of the last {HEARTBEAT_MINUTES} minutes, as far as this server remembers."),
            more => format!("And {}.", counted(more as u64, "more agent")),
        },
    })
}

fn words(agent: &DrawnAgent, now: Timestamp) -> String {
    let seen = agent.last_heard.map(|at| format!(", seen {}", Moment(at).ago(&now))).unwrap_or_default();
    let missed = agent
        .heartbeats
        .map_or(0, |beats| beats.minutes(now).iter().filter(|beat| **beat == Beat::Missed).count() as u64);
    let missed = match missed {
        0 => String::new(),
        missed => format!(", not seen in {} of the last {HEARTBEAT_MINUTES}", counted(missed, "minute")),
    };
    format!("{} of {} busy{seen}{missed}", agent.busy, agent.concurrency)
}

/// Slots as cells, those that are taken first.
fn cells(busy: u32, slots: u32) -> Drawing {
    let shown = slots.max(busy).min(MAX_CELLS);
    let squares = |from: u32, to: u32| -> String {
        let square = |index: u32| {
            let (x, y) = (index % CELLS_IN_A_ROW * STEP, index / CELLS_IN_A_ROW * STEP);
            format!("M{x} {y}h{SIDE}v{SIDE}h-{SIDE}z")
        };
        (from..to).map(square).collect()
    };
    let busy = busy.min(shown);
    let parts = [("running", squares(0, busy)), ("free", squares(busy, shown))];
    let parts = parts.into_iter().filter(|(_, squares)| !squares.is_empty());
    Drawing {
        width: Some(shown.clamp(1, CELLS_IN_A_ROW) * STEP),
        height: shown.div_ceil(CELLS_IN_A_ROW).max(1) * STEP,
        marks: parts.map(|(class, squares)| Mark::new(class, Shape::Squares(squares))).collect(),
    }
}

/// Minutes of the same kind are one bar, and all bars of a kind one path.
fn strip(heartbeats: Option<Heartbeats>, now: Timestamp) -> Drawing {
    let minutes = heartbeats.map_or([Beat::Unknown; HEARTBEAT_MINUTES], |beats| beats.minutes(now));
    // What is missing is also lower, so that it is seen without colours.
    let mut bars = [("beat", 12, String::new()), ("missed", 5, String::new()), ("unknown", 2, String::new())];
    let mut begin = 0;
    for same in minutes.chunk_by(|one, other| one == other) {
        let (_, height, path) = match same[0] {
            Beat::Heard => &mut bars[0],
            Beat::Missed => &mut bars[1],
            Beat::Unknown => &mut bars[2],
        };
        let (x, y, width) = (begin * MINUTE, STRIP_HEIGHT - *height, same.len() * MINUTE - 1);
        path.push_str(&format!("M{x} {y}h{width}v{height}h-{width}z"));
        begin += same.len();
    }
    let marks = bars.into_iter().filter(|(.., path)| !path.is_empty());
    let marks = marks.map(|(class, _, path)| Mark::new(class, Shape::Squares(path)));
    Drawing { width: Some(STRIP), height: STRIP_HEIGHT, marks: marks.collect() }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn now() -> Timestamp {
        "2026-11-18T12:00:30Z".parse().expect("a timestamp")
    }

    fn agent(name: &str, busy: u32, concurrency: u32) -> DrawnAgent {
        let heartbeats = Some(Heartbeats::new(now() - jiff::SignedDuration::from_mins(3)));
        DrawnAgent { name: name.to_owned(), busy, concurrency, last_heard: Some(now()), heartbeats }
    }

    #[test]
    fn taken_slots_come_first_and_wrap() {
        assert!(agents(&[], now()).is_none());
        let drawing = cells(2, 20);
        let squares = |class: &str| {
            let found = drawing.marks.iter().find(|mark| mark.class == class);
            found.map_or(0, |mark| match &mark.shape {
                Shape::Squares(path) => path.matches('M').count(),
                _ => 0,
            })
        };
        assert_eq!((squares("running"), squares("free")), (2, 18));
        assert_eq!((drawing.width, drawing.height), (Some(180), 30));
        assert!(cells(0, 0).marks.is_empty());
        assert_eq!(cells(u32::MAX, 3).marks.len(), 1, "more than it has");
    }

    #[test]
    fn minutes_without_a_heartbeat_are_told_in_words_too() {
        let rows = agents(&[agent("rack-7", 1, 2)], now()).expect("a picture");
        assert_eq!(rows.rows[0].words, "1 of 2 busy, seen just now, not seen in 2 minutes of the last 30");
        let strip = &rows.rows[0].drawings[0];
        let classes: Vec<_> = strip.marks.iter().map(|mark| mark.class).collect();
        assert_eq!(classes, ["beat", "missed", "unknown"]);
        let Shape::Squares(missed) = &strip.marks[1].shape else { panic!("{strip:?}") };
        assert_eq!(missed, "M135 7h9v5h-9z", "the two minutes before this one");
    }

    #[test]
    fn many_agents_with_long_names_stay_small() {
        // Heard in every second minute: that is the longest strip.
        let mut heartbeats = Heartbeats::new(now() - jiff::SignedDuration::from_mins(29));
        (0..15).for_each(|pair| heartbeats.note(now() - jiff::SignedDuration::from_mins(29 - 2 * pair)));
        let many: Vec<DrawnAgent> = (0..500)
            .map(|_| DrawnAgent { heartbeats: Some(heartbeats), ..agent(&"<&\"long".repeat(100), 1, 400) })
            .collect();
        let html = agents(&many, now()).expect("a picture").to_string();
        assert!(html.contains("And 476 more agents.") && !html.contains("<&\""), "{html}");
        assert!(html.len() < 40_000, "{}", html.len());
    }
}
