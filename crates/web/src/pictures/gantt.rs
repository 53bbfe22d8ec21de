//! The resources of a phase, each as a bar from when work on it began until it ended.

use jiff::{SignedDuration, Timestamp};

use super::{Drawing, Mark, Shape};
use crate::run::progress::{Facts, ResourceProgress, State, WorkTime};
use crate::text::stopwatch;

/// So many resources have a bar; the log has them all.
const MAX_BARS: usize = 50;
const HEIGHT: u32 = 10;
const LEAST_WIDTH: f64 = 0.8;

/// A resource with its bar.
#[derive(Debug)]
pub(crate) struct GanttRow<'a> {
    pub(crate) resource: &'a ResourceProgress,
    pub(crate) bar: Drawing,
}

/// The resources of a phase in the order in which work on them began.
#[derive(Default, Debug)]
pub(crate) struct Gantt<'a> {
    pub(crate) rows: Vec<GanttRow<'a>>,
    /// Resources that are not shown.
    pub(crate) left_out: usize,
    /// Time from the first to the last.
    pub(crate) span: String,
}

impl<'a> Gantt<'a> {
    /// Failed and running ones are shown first if there are too many.
    pub(crate) fn of(facts: &'a Facts) -> Self {
        let mut shown: Vec<&ResourceProgress> = facts.resources.iter().collect();
        if shown.len() > MAX_BARS {
            shown.sort_by_key(|resource| rank(resource.state));
            shown.truncate(MAX_BARS);
        }
        // Those that have not begun come last, in their order.
        shown.sort_by_key(|resource| facts.time_of(resource).map_or(Timestamp::MAX, |time| time.began));
        let times = || facts.resources.iter().filter_map(|resource| facts.time_of(resource));
        let span = times().map(|time| time.began).min().zip(times().map(|time| time.latest).max());
        let axis = span.map(|(begins, ends)| Axis { begins, length: length(begins, ends) });
        let row = |resource| GanttRow { resource, bar: bar(resource, facts.time_of(resource), axis) };
        Self {
            rows: shown.into_iter().map(row).collect(),
            left_out: facts.resources.len().saturating_sub(MAX_BARS),
            span: span.map(|(begins, ends)| stopwatch(ends.duration_since(begins))).unwrap_or_default(),
        }
    }
}

/// Most interesting first.
fn rank(state: State) -> u8 {
    match state {
        State::Failed => 0,
        State::Running => 1,
        State::Done => 2,
        State::Planned | State::NotStarted => 3,
    }
}

#[derive(Clone, Copy)]
struct Axis {
    begins: Timestamp,
    length: f64,
}

fn length(begins: Timestamp, ends: Timestamp) -> f64 {
    ends.duration_since(begins).max(SignedDuration::from_millis(1)).as_secs_f64()
}

fn bar(resource: &ResourceProgress, time: Option<WorkTime>, axis: Option<Axis>) -> Drawing {
    let mut drawing = Drawing { width: None, height: HEIGHT, marks: Vec::new() };
    let Some(axis) = axis else { return drawing };
    let height = f64::from(HEIGHT);
    drawing.marks.push(Mark::new("track", Shape::Bar { x: 0.0, y: 4.5, width: 100.0, height: 1.0 }));
    let Some(WorkTime { began, latest }) = time else { return drawing };
    let at = |moment: Timestamp| moment.duration_since(axis.begins).as_secs_f64() / axis.length * 100.0;
    let left = at(began).clamp(0.0, 100.0 - LEAST_WIDTH);
    let right = if resource.state == State::Running { 100.0 } else { at(latest).min(100.0) };
    let width = (right - left).max(LEAST_WIDTH);
    drawing.marks.push(Mark::new(class_of(resource.state), Shape::Bar { x: left, y: 0.0, width, height }));
    drawing
}

fn class_of(state: State) -> &'static str {
    match state {
        State::Running => "running",
        State::Done => "good",
        State::Failed => "bad",
        State::Planned | State::NotStarted => "waiting",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn line(kind: &str, address: &str, second: u32, elapsed: u32) -> String {
        let at = format!("2026-11-18T10:{:02}:{:02}.000000Z", second / 60, second % 60);
        format!(
            r#"{{"@level":"info","@message":"x","@timestamp":"{at}","type":"{kind}","hook":{{"resource":{{"addr":"{address}"}},"action":"create","elapsed_seconds":{elapsed}}}}}"#
        ) + "\n"
    }

    fn told(facts: &Facts) -> Vec<String> {
        let tell = |row: &GanttRow<'_>| {
            let bar = row.bar.marks.iter().find(|mark| mark.class != "track");
            let bar = bar.map_or("no bar".to_owned(), |mark| match mark.shape {
                Shape::Bar { x, width, .. } => format!("{} {x:.0}+{width:.0}", mark.class),
                _ => String::new(),
            });
            format!("{}: {bar}", row.resource.address)
        };
        Gantt::of(facts).rows.iter().map(tell).collect()
    }

    #[test]
    fn a_bar_is_where_its_time_was() {
        let mut facts = Facts::default();
        let log = [
            line("apply_start", "a.one", 0, 0),
            line("apply_complete", "a.one", 50, 50),
            line("apply_start", "a.two", 50, 0),
            line("apply_errored", "a.two", 75, 25),
            line("apply_start", "a.three", 60, 0),
            line("apply_progress", "a.three", 100, 40),
        ];
        facts.push(log.concat().as_bytes());
        assert_eq!(told(&facts), ["a.one: good 0+50", "a.two: bad 50+25", "a.three: running 60+40"]);
        assert_eq!(Gantt::of(&facts).span, "1:40");
    }

    #[test]
    fn what_began_before_the_part_of_the_log_that_is_read_is_known_by_its_duration() {
        let mut facts = Facts::default();
        facts
            .push([line("apply_complete", "a.one", 100, 100), line("apply_start", "a.two", 50, 0)].concat().as_bytes());
        assert_eq!(told(&facts), ["a.one: good 0+100", "a.two: running 50+50"]);
    }

    #[test]
    fn ten_thousand_resources_are_bounded_and_failures_are_among_them() {
        let mut facts = Facts::default();
        assert!(Gantt::of(&facts).rows.is_empty());
        for number in 0..10_000 {
            let kind = if number == 9_000 { "apply_errored" } else { "apply_complete" };
            facts.push(line(kind, &format!("module.m.a.r{number}"), number % 3000, 1).as_bytes());
        }
        let gantt = Gantt::of(&facts);
        assert_eq!((gantt.rows.len(), gantt.left_out), (MAX_BARS, 9_950));
        assert!(gantt.rows.iter().any(|row| row.resource.state == State::Failed));
    }
}
