//! Runs per day, stacked by outcome.

use taco_domain::run_activity::{DayCounts, RunActivity};
use taco_domain::run_outcome::RunOutcome;

use super::{Drawing, Figure, Key, Mark, Shape, Table, TableRow, counted};

/// Height of the bars, and of all with the labels, in pixels.
const HEIGHT: f64 = 96.0;
const WITH_LABELS: u32 = 118;
/// What is there is seen, however much there is of something else.
const LEAST_HEIGHT: f64 = 3.0;
/// Part of a day's place that its bar takes, and its greatest width in percent of the picture.
const BAR: f64 = 0.72;
const MAX_BAR_WIDTH: f64 = 5.0;
/// Days that are shown as long as all runs are within them: a new organization has no empty month before its first run.
const FIRST_SPANS: [usize; 2] = [7, 14];
/// So many days have their date below them.
const LABELS: usize = 7;

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

/// The last of `days`: the shortest span that all runs are in.
fn shown(days: &[DayCounts]) -> &[DayCounts] {
    let used = days.iter().position(|day| day.total() > 0).map_or(0, |first| days.len() - first);
    let span = FIRST_SPANS.into_iter().find(|span| used <= *span).unwrap_or(days.len());
    &days[days.len().saturating_sub(span)..]
}

/// `None` if there was no run at all. Each day leads to its runs in the list at `runs`.
pub(crate) fn runs_per_day(activity: &RunActivity, runs: &str) -> Option<Figure> {
    let days = shown(activity.days());
    let last = days.last()?;
    let total = |outcome: RunOutcome| days.iter().map(|day| day.count(outcome)).sum::<u64>();
    let all: u64 = days.iter().map(DayCounts::total).sum();
    if all == 0 {
        return None;
    }
    let most = days.iter().map(DayCounts::total).max().unwrap_or_default().max(1);
    let place = 100.0 / days.len() as f64;
    let width = (place * BAR).min(MAX_BAR_WIDTH);
    let list = |day: &DayCounts| format!("{runs}?day={}", day.day);
    let mut marks = vec![Mark::new("rule", Shape::Bar { x: 0.0, y: HEIGHT, width: 100.0, height: 1.0 })];
    for (index, day) in days.iter().enumerate() {
        let x = place * index as f64 + (place - width) / 2.0;
        if (days.len() - 1 - index).is_multiple_of(days.len().div_ceil(LABELS)) {
            let label = if day.day == last.day { "today".to_owned() } else { short(day) };
            marks.push(Mark::text(place * (index as f64 + 0.5), HEIGHT + 17.0, "middle", label));
        }
        marks.push(Mark::new("place", Shape::Bar { x, y: 0.0, width, height: HEIGHT }));
        let mut bottom = HEIGHT;
        for (height, class) in heights(day, most) {
            bottom -= height;
            marks.push(Mark::new(class, Shape::Bar { x, y: bottom, width, height: height - 1.0 }));
        }
        if day.total() > 0 {
            let whole = Shape::Bar { x: place * index as f64, y: 0.0, width: place, height: HEIGHT };
            marks.push(Mark::new("hit", whole).titled(in_words(day)).leading_to(list(day)));
        }
    }
    let busiest = days.iter().max_by_key(|day| day.total()).filter(|_| most > 1);
    let busiest = busiest.map(|day| format!(", at most {} a day", day.total())).unwrap_or_default();
    let counts = ORDER.iter().filter(|(outcome, _)| total(*outcome) > 0);
    let rows = days.iter().rev().filter(|day| day.total() > 0).map(|day| TableRow {
        name: short(day),
        href: list(day),
        cells: std::iter::once(day.total())
            .chain(ORDER.iter().map(|(outcome, _)| day.count(*outcome)))
            .map(|count| count.to_string())
            .collect(),
    });
    Some(Figure {
        id: "runs-per-day",
        title: "Runs per day".to_owned(),
        summary: format!("{} in the last {} days{busiest}", counted(all, "run"), days.len()),
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

    fn drawn(activity: &RunActivity) -> Option<Figure> {
        runs_per_day(activity, "/app/acme/runs")
    }

    #[test]
    fn the_first_days_fill_the_picture() {
        for (days_ago, shown) in [(0, 7), (6, 7), (7, 14), (13, 14), (14, 30), (29, 30)] {
            let figure = drawn(&with(&[(days_ago, RunOutcome::Succeeded, 1)])).expect("a picture");
            assert_eq!(figure.summary, format!("1 run in the last {shown} days"));
            let labels = figure.drawing.marks.iter().filter(|mark| matches!(mark.shape, Shape::Text { .. }));
            assert!((5..=7).contains(&labels.count()), "{shown}");
        }
    }

    #[test]
    fn a_day_leads_to_its_runs() {
        let figure = drawn(&with(&[(1, RunOutcome::Failed, 2)])).expect("a picture");
        let links: Vec<&str> = figure.drawing.marks.iter().map(|mark| mark.href.as_str()).collect();
        assert!(links.contains(&"/app/acme/runs?day=2026-11-17"), "{links:?}");
        assert_eq!(figure.table.expect("a table").rows[0].href, "/app/acme/runs?day=2026-11-17");
    }

    #[test]
    fn no_run_is_no_picture() {
        assert!(drawn(&with(&[])).is_none());
        assert!(drawn(&with(&[(31, RunOutcome::Failed, 3)])).is_none(), "that is too long ago");
    }

    #[test]
    fn one_run_is_one_bar_of_the_whole_height() {
        let figure = drawn(&with(&[(0, RunOutcome::Succeeded, 1)])).expect("a picture");
        let bars: Vec<_> = figure.drawing.marks.iter().filter(|mark| mark.class == "good").collect();
        let [Mark { shape: Shape::Bar { x, y, .. }, .. }] = bars[..] else { panic!("{bars:?}") };
        assert!(*y == 0.0 && *x > 85.0, "today is the last: {bars:?}");
    }

    #[test]
    fn one_failure_among_thousands_is_seen_and_nothing_grows_out_of_the_picture() {
        let figure = drawn(&with(&[
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
