//! The last runs of a workspace, one bar each: its height is how long agents worked on it.

use taco_control_plane::RecentRun;
use taco_domain::run_outcome::RunOutcome;

use super::bars::{sign, word};
use super::{Drawing, Figure, Key, Mark, Shape, Table, TableRow};
use crate::badge::Badge;
use crate::text::{Moment, stopwatch};

/// Number of runs that have a place.
pub(crate) const PLACES: usize = 30;
/// Height of the bars, and of all with the signs below them, in pixels.
const HEIGHT: f64 = 64.0;
const WITH_SIGNS: u32 = 80;
const LEAST_HEIGHT: f64 = 4.0;
const BAR: f64 = 0.72;

/// The runs are newest first; `address` is where a workspace's runs are. `None` without runs.
pub(crate) fn recent_runs(runs: &[RecentRun], address: &str) -> Option<Figure> {
    if runs.is_empty() {
        return None;
    }
    let runs: Vec<&RecentRun> = runs.iter().take(PLACES).collect();
    let seconds = |run: &RecentRun| run.executed.map_or(0.0, |took| took.as_secs_f64().max(0.0));
    let longest = runs.iter().map(|run| seconds(run)).fold(0.0, f64::max);
    let place = 100.0 / PLACES as f64;
    let mut marks = vec![Mark::new("rule", Shape::Bar { x: 0.0, y: HEIGHT, width: 100.0, height: 1.0 })];
    let left_of = |age: usize| place * (PLACES - 1 - age) as f64;
    for age in 0..PLACES {
        let x = left_of(age) + place * (1.0 - BAR) / 2.0;
        marks.push(Mark::new("place", Shape::Bar { x, y: 0.0, width: place * BAR, height: HEIGHT }));
    }
    for (age, run) in runs.iter().enumerate() {
        let left = left_of(age);
        let height = height_of(seconds(run), longest);
        let x = left + place * (1.0 - BAR) / 2.0;
        marks.push(Mark::new(class_of(run), Shape::Bar { x, y: HEIGHT - height, width: place * BAR, height }));
        if run.outcome != RunOutcome::Succeeded {
            marks.push(Mark { class: "sign", ..Mark::text(left + place / 2.0, HEIGHT + 14.0, "middle", sign_of(run)) });
        }
        let whole = Shape::Bar { x: left, y: 0.0, width: place, height: f64::from(WITH_SIGNS) };
        marks.push(Mark::new("hit", whole).titled(in_words(run)).leading_to(format!("{address}/{}", run.id)));
    }
    let count = |outcome: RunOutcome| runs.iter().filter(|run| run.outcome == outcome).count();
    let outcomes = [
        (RunOutcome::Succeeded, "good"),
        (RunOutcome::Failed, "bad"),
        (RunOutcome::Stopped, "stopped"),
        (RunOutcome::Open, "running"),
    ];
    let outcomes = outcomes.iter().filter(|(outcome, _)| count(*outcome) > 0);
    let median = median(runs.iter().filter_map(|run| run.executed).collect());
    let median = median.map(|took| format!(", typically {}", stopwatch(took))).unwrap_or_default();
    let rows = runs.iter().map(|run| TableRow {
        name: format!("Run {}, {}", run.number, Moment(run.created_at).text()),
        href: format!("{address}/{}", run.id),
        cells: vec![status_word(run).to_owned(), run.executed.map(stopwatch).unwrap_or_default()],
    });
    Some(Figure {
        id: "recent-runs",
        title: if runs.len() == 1 { "The only run so far".to_owned() } else { format!("Last {} runs", runs.len()) },
        summary: format!("{} failed{median}", count(RunOutcome::Failed)),
        legend: outcomes
            .map(|(outcome, class)| Key::new(class, sign(*outcome), word(*outcome)).counted(count(*outcome)))
            .collect(),
        table: Some(Table { head: vec!["Run", "Status", "Worked on"], rows: rows.collect() }),
        drawing: Drawing { width: None, height: WITH_SIGNS, marks },
        note: "The taller, the longer agents worked on it; the newest is on the right.".to_owned(),
    })
}

/// A run of a second is seen beside one of hours, which therefore is not that much taller: by the square root.
fn height_of(seconds: f64, longest: f64) -> f64 {
    if longest <= 0.0 { LEAST_HEIGHT } else { ((seconds / longest).sqrt() * HEIGHT).max(LEAST_HEIGHT) }
}

fn median(mut durations: Vec<jiff::SignedDuration>) -> Option<jiff::SignedDuration> {
    durations.sort_unstable();
    durations.get(durations.len() / 2).copied().filter(|_| durations.len() > 1)
}

fn class_of(run: &RecentRun) -> &'static str {
    match run.outcome {
        RunOutcome::Succeeded => "good",
        RunOutcome::Failed => "bad",
        RunOutcome::Stopped => "stopped",
        RunOutcome::Open => "running",
    }
}

fn sign_of(run: &RecentRun) -> &'static str {
    run.status.map_or(sign(run.outcome), |status| Badge::of_run(status).sign)
}

fn status_word(run: &RecentRun) -> &'static str {
    run.status.map_or(word(run.outcome), |status| Badge::of_run(status).word)
}

fn in_words(run: &RecentRun) -> String {
    let took = run.executed.map(|took| format!(", {}", stopwatch(took))).unwrap_or_default();
    let name = if run.message.is_empty() { format!("Run {}", run.number) } else { super::shortened(&run.message, 80) };
    format!("{name}: {}{took}, {}", status_word(run), Moment(run.created_at).text())
}

#[cfg(test)]
mod tests {
    use jiff::{SignedDuration, Timestamp};
    use taco_domain::id::RunId;
    use taco_domain::run_status::RunStatus;

    use super::*;

    fn run(number: u64, outcome: RunOutcome, seconds: i64) -> RecentRun {
        RecentRun {
            id: RunId::from_random([number as u8; 16]),
            number,
            outcome,
            status: None,
            message: String::new(),
            created_at: Timestamp::UNIX_EPOCH,
            executed: Some(SignedDuration::from_secs(seconds)),
        }
    }

    fn bars(figure: &Figure) -> Vec<(f64, f64)> {
        let bar = |mark: &Mark| match mark.shape {
            Shape::Bar { x, height, .. } if !["hit", "place", "rule"].contains(&mark.class) => Some((x, height)),
            _ => None,
        };
        figure.drawing.marks.iter().filter_map(bar).collect()
    }

    #[test]
    fn without_runs_there_is_no_picture() {
        assert!(recent_runs(&[], "/runs").is_none());
    }

    #[test]
    fn one_run_has_the_last_place() {
        let figure = recent_runs(&[run(1, RunOutcome::Failed, 0)], "/runs").expect("a picture");
        assert!(bars(&figure)[0].0 > 96.0);
        assert!(figure.to_string().contains("✗"), "not told by colour alone");
    }

    #[test]
    fn a_second_is_seen_beside_hours() {
        let runs = [run(2, RunOutcome::Succeeded, 1), run(1, RunOutcome::Succeeded, 3 * 3600)];
        let figure = recent_runs(&runs, "/runs").expect("a picture");
        let bars = bars(&figure);
        assert_eq!((bars[0].1, bars[1].1), (LEAST_HEIGHT, HEIGHT));
        assert!(bars[0].0 > bars[1].0, "the newest is on the right");
    }

    #[test]
    fn each_bar_leads_to_its_run_and_the_table_too() {
        let mut named = run(7, RunOutcome::Open, 5);
        named.message = "<b>".repeat(100);
        named.status = Some(RunStatus::Planned);
        let html = recent_runs(&[named], "/app/acme/workspaces/web/runs").expect("a picture").to_string();
        let address = format!("href=\"/app/acme/workspaces/web/runs/{}\"", RunId::from_random([7; 16]));
        assert_eq!(html.matches(&address).count(), 2, "{html}");
        assert!(html.contains(Badge::of_run(RunStatus::Planned).word) && !html.contains("<b>"), "{html}");
        let many: Vec<_> = (0..100).map(|number| run(number, RunOutcome::Stopped, 5)).collect();
        let html = recent_runs(&many, "/app/acme/workspaces/web/runs").expect("a picture").to_string();
        assert!(html.len() < 30_000, "{}", html.len());
    }
}
