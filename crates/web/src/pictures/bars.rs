//! Runs per day, stacked by outcome.

use taco_domain::run_activity::{DayCounts, RunActivity};
use taco_domain::run_outcome::RunOutcome;

use super::{Drawing, Figure, Key, Mark, Shape, Table, TableRow, counted};

/// Height of the bars, and of all with the labels, in pixels.
const HEIGHT: f64 = 96.0;
const WITH_LABELS: u32 = 118;
/// What is there is seen, however much there is of something else.
const LEAST_HEIGHT: f64 = 3.0;
/// Part of a day's place that its bar takes.
const BAR: f64 = 0.72;

/// From the bottom up.
const ORDER: [(RunOutcome, &str); 4] = [
    (RunOutcome::Succeeded, "good"),
    (RunOutcome::Open, "running"),
    (RunOutcome::Stopped, "stopped"),
    (RunOutcome::Failed, "bad"),
];

/// The sign that stands for an outcome where colour is not enough.
pub(super) fn sign(outcome: RunOutcome) -> &'static str {
    match outcome {
        RunOutcome::Succeeded => "✓",
        RunOutcome::Failed => "✗",
        RunOutcome::Stopped => "–",
        RunOutcome::Open => "◔",
    }
}

pub(super) fn word(outcome: RunOutcome) -> &'static str {
    match outcome {
        RunOutcome::Succeeded => "succeeded",
        RunOutcome::Failed => "failed",
        RunOutcome::Stopped => "canceled",
        RunOutcome::Open => "not finished",
    }
}

/// `None` if there was no run at all.
pub(crate) fn runs_per_day(activity: &RunActivity) -> Option<Figure> {
    let days = activity.days();
    let (first, last) = (days.first()?, days.last()?);
    let total = |outcome: RunOutcome| days.iter().map(|day| day.count(outcome)).sum::<u64>();
    let all: u64 = days.iter().map(DayCounts::total).sum();
    if all == 0 {
        return None;
    }
    let most = days.iter().map(DayCounts::total).max().unwrap_or_default().max(1);
    let place = 100.0 / days.len() as f64;
    let mut marks = vec![
        Mark::new("rule", Shape::Bar { x: 0.0, y: HEIGHT, width: 100.0, height: 1.0 }),
        Mark::text(0.0, HEIGHT + 17.0, "start", short(first)),
        Mark::text(100.0, HEIGHT + 17.0, "end", "today"),
    ];
    for (index, day) in days.iter().enumerate() {
        let x = place * (index as f64 + (1.0 - BAR) / 2.0);
        let mut bottom = HEIGHT;
        for (height, class) in heights(day, most) {
            bottom -= height;
            marks.push(Mark::new(class, Shape::Bar { x, y: bottom, width: place * BAR, height: height - 1.0 }));
        }
        if day.total() > 0 {
            let whole = Shape::Bar { x: place * index as f64, y: 0.0, width: place, height: HEIGHT };
            marks.push(Mark::new("hit", whole).titled(in_words(day)));
        }
    }
    let busiest = days.iter().max_by_key(|day| day.total()).filter(|_| most > 1);
    let busiest = busiest.map(|day| format!(", at most {} a day", day.total())).unwrap_or_default();
    let counts = ORDER.iter().filter(|(outcome, _)| total(*outcome) > 0);
    let rows = days.iter().rev().filter(|day| day.total() > 0).map(|day| TableRow {
        name: short(day),
        href: String::new(),
        cells: std::iter::once(day.total())
            .chain(ORDER.iter().map(|(outcome, _)| day.count(*outcome)))
            .map(|count| count.to_string())
            .collect(),
    });
    Some(Figure {
        id: "runs-per-day",
        title: "Runs per day".to_owned(),
        summary: format!("{} since {}{busiest}", counted(all, "run"), short(first)),
        drawing: Drawing { width: None, height: WITH_LABELS, marks },
        legend: counts
            .map(|(outcome, class)| Key::new(class, sign(*outcome), word(*outcome)).counted(total(*outcome)))
            .collect(),
        table: Some(Table {
            head: vec!["Day (UTC)", "Runs", "Succeeded", "Not finished", "Canceled", "Failed"],
            rows: rows.collect(),
        }),
        note: String::new(),
    })
    .filter(|_| last.day >= first.day)
}

/// Height of each part of a day's bar, from the bottom up. What would vanish takes from what is highest.
fn heights(day: &DayCounts, most: u64) -> Vec<(f64, &'static str)> {
    let height = |count: u64| (count as f64 / most as f64 * HEIGHT).max(LEAST_HEIGHT);
    let parts = ORDER.iter().map(|(outcome, class)| (day.count(*outcome), *class)).filter(|(count, _)| *count > 0);
    let mut heights: Vec<(f64, &str)> = parts.map(|(count, class)| (height(count), class)).collect();
    let over = heights.iter().map(|(height, _)| height).sum::<f64>() - HEIGHT;
    if over > 0.0
        && let Some(highest) = heights.iter_mut().max_by(|one, other| one.0.total_cmp(&other.0))
    {
        highest.0 -= over;
    }
    heights
}

fn short(day: &DayCounts) -> String {
    day.day.strftime("%-d %b").to_string()
}

fn in_words(day: &DayCounts) -> String {
    let parts = ORDER.iter().filter(|(outcome, _)| day.count(*outcome) > 0);
    let parts: Vec<String> = parts.map(|(outcome, _)| format!("{} {}", day.count(*outcome), word(*outcome))).collect();
    format!("{}: {} ({})", short(day), counted(day.total(), "run"), parts.join(", "))
}

#[cfg(test)]
mod tests {
    use jiff::{SignedDuration, Timestamp};

    use super::*;

    fn now() -> Timestamp {
        "2026-11-18T12:00:00Z".parse().expect("a timestamp")
    }

    fn with(runs: &[(i64, RunOutcome, usize)]) -> RunActivity {
        let mut activity = RunActivity::of_days(30, now());
        for (days_ago, outcome, count) in runs {
            for _ in 0..*count {
                activity.add(now() - SignedDuration::from_hours(24 * days_ago), *outcome);
            }
        }
        activity
    }

    #[test]
    fn no_run_is_no_picture() {
        assert!(runs_per_day(&with(&[])).is_none());
        assert!(runs_per_day(&with(&[(31, RunOutcome::Failed, 3)])).is_none(), "that is too long ago");
    }

    #[test]
    fn one_run_is_one_bar_of_the_whole_height() {
        let figure = runs_per_day(&with(&[(0, RunOutcome::Succeeded, 1)])).expect("a picture");
        let bars: Vec<_> = figure.drawing.marks.iter().filter(|mark| mark.class == "good").collect();
        let [Mark { shape: Shape::Bar { x, y, .. }, .. }] = bars[..] else { panic!("{bars:?}") };
        assert!(*y == 0.0 && *x > 96.0, "today is the last: {bars:?}");
        assert_eq!(figure.summary, "1 run since 20 Oct");
    }

    #[test]
    fn one_failure_among_thousands_is_seen_and_nothing_grows_out_of_the_picture() {
        let figure = runs_per_day(&with(&[
            (1, RunOutcome::Succeeded, 10_000),
            (1, RunOutcome::Failed, 1),
            (1, RunOutcome::Stopped, 1),
            (2, RunOutcome::Open, 1),
        ]))
        .expect("a picture");
        for mark in figure.drawing.marks.iter().filter(|mark| mark.class != "rule") {
            if let Shape::Bar { x, y, width, height } = mark.shape {
                assert!(y >= -1e-9 && y + height <= HEIGHT && x + width <= 100.0 + 1e-9 && height >= 2.0, "{mark:?}");
            }
        }
        assert!(figure.drawing.marks.iter().any(|mark| mark.class == "bad"));
        let titles: Vec<&str> = figure.drawing.marks.iter().map(|mark| mark.title.as_str()).collect();
        assert!(titles.contains(&"17 Nov: 10002 runs (10000 succeeded, 1 canceled, 1 failed)"), "{titles:?}");
        assert!(figure.to_string().len() < 20_000);
    }
}
