//! The stages of a run, as wide as they were long.

use jiff::{SignedDuration, Timestamp};

use super::{Drawing, Key, Mark, Shape, shares};
use crate::run::stages::Stage;
use crate::text::stopwatch;

const HEIGHT: u32 = 14;
/// In percent. A plan of a second beside a weekend of waiting is still there.
const LEAST_WIDTH: f64 = 2.5;
const GAP: f64 = 0.25;

/// The bar above the list of stages, which says the same in words. Empty before anything took time.
pub(crate) fn stages_bar(stages: &[Stage], now: &Timestamp) -> Drawing {
    let begun: Vec<(&Stage, Timestamp)> =
        stages.iter().filter_map(|stage| stage.began.map(|began| (stage, began.0))).collect();
    let ends = begun.iter().skip(1).map(|(_, began)| *began).chain([*now]);
    let spans: Vec<(&Stage, SignedDuration)> = begun
        .iter()
        .zip(ends)
        .filter(|((stage, _), _)| stage.state != "last")
        .map(|((stage, began), end)| (*stage, end.duration_since(*began).max(SignedDuration::ZERO)))
        .collect();
    let total: f64 = spans.iter().map(|(_, span)| span.as_secs_f64()).sum();
    let values: Vec<f64> = spans.iter().map(|(_, span)| span.as_secs_f64()).collect();
    let mut marks = Vec::new();
    let mut left = 0.0;
    for ((stage, span), width) in spans.iter().zip(shares(&values, LEAST_WIDTH)) {
        let drawn = if left + width < 99.9 { width - GAP } else { width };
        let percent = if total > 0.0 { span.as_secs_f64() / total * 100.0 } else { 0.0 };
        let shape = Shape::Bar { x: left, y: 0.0, width: drawn, height: f64::from(HEIGHT) };
        let title = format!("{}: {}, {percent:.0} % of the time", stage.name, stopwatch(*span));
        marks.push(Mark::new(class_of(stage), shape).titled(title));
        left += width;
    }
    Drawing { width: None, height: HEIGHT, marks }
}

pub(crate) fn legend() -> Vec<Key> {
    vec![
        Key::new("waiting", "", "waiting"),
        Key::new("plan", "", "planning"),
        Key::new("decision", "", "approval"),
        Key::new("apply", "", "applying"),
    ]
}

/// What the time went into: work, a decision, or waiting.
fn class_of(stage: &Stage) -> &'static str {
    match stage.name {
        "Planning" => "plan",
        "Applying" => "apply",
        "Awaiting approval" | "Needs approval" => "decision",
        _ => "waiting",
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::text::Moment;

    fn stage(name: &'static str, state: &'static str, began: Option<i64>) -> Stage {
        let began = began.map(|second| Moment(at(second)));
        Stage { name, sign: "", state, tone: "", began, took: None, elapsed: None }
    }

    fn at(second: i64) -> Timestamp {
        Timestamp::UNIX_EPOCH + SignedDuration::from_secs(second)
    }

    fn told(drawing: &Drawing) -> Vec<(String, f64)> {
        let width = |mark: &Mark| match mark.shape {
            Shape::Bar { width, .. } => width,
            _ => 0.0,
        };
        drawing.marks.iter().map(|mark| (format!("{} {}", mark.class, mark.title), width(mark))).collect()
    }

    #[test]
    fn stages_are_as_wide_as_they_were_long() {
        let stages = [
            stage("Pending", "done", Some(0)),
            stage("Planning", "done", Some(25)),
            stage("Applying", "done", Some(50)),
            stage("Applied", "last", Some(100)),
        ];
        let told = told(&stages_bar(&stages, &at(5000)));
        assert_eq!(told[0].0, "waiting Pending: 0:25, 25 % of the time");
        assert_eq!(told[2], ("apply Applying: 0:50, 50 % of the time".to_owned(), 50.0));
        assert_eq!(told.len(), 3, "the end takes no time");
    }

    #[test]
    fn what_goes_on_lasts_until_now_and_nothing_vanishes() {
        let stages = [
            stage("Pending", "done", Some(0)),
            stage("Planning", "done", Some(1)),
            stage("Needs approval", "now", Some(2)),
            stage("Applying", "ahead", None),
        ];
        let told = told(&stages_bar(&stages, &at(3 * 86_400)));
        assert!(told.iter().all(|(_, width)| *width > 2.0), "{told:?}");
        assert!(told[2].0.starts_with("decision Needs approval: 71:59:58"), "{told:?}");
        assert!(stages_bar(&[], &at(0)).marks.is_empty());
    }
}
