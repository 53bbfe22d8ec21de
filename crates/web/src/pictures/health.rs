//! How the bucket does over a day, and since when servers run.

use std::time::Duration;

use jiff::tz::TimeZone;
use jiff::{SignedDuration, Timestamp};
use taco_control_plane::{BucketTimes, IntervalTimes};

use super::{Drawing, Figure, Key, Mark, Row, Rows, Shape, Table, TableRow, counted, number, shortened};
use crate::text::{Moment, span};

const DAY: SignedDuration = SignedDuration::from_hours(24);
/// Of the lines, and of all with errors and labels, in pixels.
const HEIGHT: f64 = 90.0;
const WITH_LABELS: u32 = 122;
/// Rows of the table, which adds intervals up.
const HOUR: SignedDuration = SignedDuration::from_hours(1);

/// Half and all but a hundredth of the operations, and the errors, of each interval. `None` before there were any.
pub(crate) fn bucket_times(times: &BucketTimes, now: Timestamp) -> Option<Figure> {
    let last = times.intervals.last()?;
    let length = times.interval.as_secs_f64();
    let in_a_day = (DAY.as_secs_f64() / length).round().max(1.0);
    let slowest = times.intervals.iter().map(|one| one.p99).max().unwrap_or_default();
    let top = top_of(slowest);
    let y = |took: Duration| HEIGHT - scaled(took, top) * HEIGHT;
    let x = |interval: &IntervalTimes| (in_a_day - 1.0 - interval.ago as f64).max(0.0) / in_a_day * 100.0;
    let width = 100.0 / in_a_day;
    let mut marks = Vec::new();
    for (line, label) in grid(top) {
        marks.push(Mark::new("grid", Shape::Bar { x: 0.0, y: y(line), width: 100.0, height: 1.0 }));
        marks.push(Mark::text(0.0, y(line) + 12.0, "start", label));
    }
    let whole = |path: String, class: &'static str| Mark::new(class, Shape::Path(path));
    // The paths are stretched over the whole height, of which the lines take a part.
    let part = |took: Duration| y(took) / f64::from(WITH_LABELS) * 100.0;
    marks.push(whole(steps(times, x, width, |one| part(one.p99)), "line-high"));
    marks.push(whole(steps(times, x, width, |one| part(one.median)), "line"));
    for interval in times.intervals.iter().filter(|interval| interval.errors > 0) {
        let shape = Shape::Bar { x: x(interval), y: HEIGHT + 3.0, width: width.max(0.6), height: 10.0 };
        marks.push(Mark::new("bad", shape).titled(counted(interval.errors, "error")));
    }
    marks.push(Mark::new("rule", Shape::Bar { x: 0.0, y: HEIGHT, width: 100.0, height: 1.0 }));
    marks.push(Mark::text(0.0, f64::from(WITH_LABELS) - 3.0, "start", "24 h ago"));
    marks.push(Mark::text(100.0, f64::from(WITH_LABELS) - 3.0, "end", "now"));
    let (operations, errors) = totals(&times.intervals);
    let is_young = now.duration_since(times.since) < DAY;
    Some(Figure {
        id: "bucket-times",
        title: "Bucket latency, last 24 hours".to_owned(),
        summary: format!(
            "{} now (p99 {}); {} of {} failed",
            millis(last.median),
            millis(last.p99),
            errors,
            counted(operations, "operation")
        ),
        drawing: Drawing { width: None, height: WITH_LABELS, marks },
        legend: vec![
            Key::new("swatch-median", "", "median (p50)"),
            Key::new("swatch-high", "", "p99"),
            Key::new("bad", "", "errors").counted(errors),
        ],
        table: Some(Table {
            head: vec!["Hour (UTC)", "Median", "p99", "Operations", "Errors"],
            rows: hours(times, now),
        }),
        note: match is_young {
            true => format!("Measured by this server since it started, {}.", Moment(times.since).ago(&now)),
            false => "Measured by this server, in intervals of 5 minutes.".to_owned(),
        },
    })
}

fn totals<'a>(intervals: impl IntoIterator<Item = &'a IntervalTimes>) -> (u64, u64) {
    let add =
        |(operations, errors): (u64, u64), one: &IntervalTimes| (operations + one.operations, errors + one.errors);
    intervals.into_iter().fold((0, 0), add)
}

/// The intervals of each hour together, the newest first. Of their quantiles the worst is told.
fn hours(times: &BucketTimes, now: Timestamp) -> Vec<TableRow> {
    let per_hour = (HOUR.as_secs_f64() / times.interval.as_secs_f64()).max(1.0) as u64;
    let together = times.intervals.chunk_by(|one, other| one.ago / per_hour == other.ago / per_hour);
    let row = |hour: &[IntervalTimes]| {
        let ends = now - HOUR * i32::try_from(hour[0].ago / per_hour).unwrap_or_default();
        let at = |moment: Timestamp| moment.to_zoned(TimeZone::UTC).strftime("%H:%M").to_string();
        let worst = |of: fn(&IntervalTimes) -> Duration| hour.iter().map(of).max().unwrap_or_default();
        let (operations, errors) = totals(hour);
        TableRow {
            name: format!("{} to {}", at(ends - HOUR), at(ends)),
            href: String::new(),
            cells: vec![
                millis(worst(|one| one.median)),
                millis(worst(|one| one.p99)),
                operations.to_string(),
                errors.to_string(),
            ],
        }
    };
    together.map(row).rev().collect()
}

/// Steps from interval to interval; where one is missing there is a gap.
fn steps(
    times: &BucketTimes,
    x: impl Fn(&IntervalTimes) -> f64,
    width: f64,
    y: impl Fn(&IntervalTimes) -> f64,
) -> String {
    let mut path = String::new();
    let mut before: Option<&IntervalTimes> = None;
    for interval in &times.intervals {
        let (left, height) = (number(x(interval)), number(y(interval)));
        match before {
            Some(before) if before.ago == interval.ago + 1 => path.push_str(&format!("V{height}")),
            _ => path.push_str(&format!("M{left} {height}")),
        }
        path.push_str(&format!("H{}", number(x(interval) + width)));
        before = Some(interval);
    }
    path
}

/// Place of a duration between nothing and `top`. By logarithm: a directory answers in microseconds, a far bucket in
/// seconds.
fn scaled(took: Duration, top: Duration) -> f64 {
    let low = 0.000_1_f64;
    let took = took.as_secs_f64().max(low);
    ((took / low).ln() / (top.as_secs_f64() / low).ln()).clamp(0.0, 1.0)
}

/// The end of the scale: the next of 10 ms, 100 ms, 1 s, 10 s.
fn top_of(slowest: Duration) -> Duration {
    let ends = [10, 100, 1000, 10_000].map(Duration::from_millis);
    ends.into_iter().find(|end| slowest <= *end).unwrap_or(ends[3])
}

fn grid(top: Duration) -> impl Iterator<Item = (Duration, &'static str)> {
    let lines = [(1, "1 ms"), (10, "10 ms"), (100, "100 ms"), (1000, "1 s"), (10_000, "10 s")];
    lines.into_iter().map(|(millis, label)| (Duration::from_millis(millis), label)).filter(move |(at, _)| *at <= top)
}

fn millis(took: Duration) -> String {
    match took.as_secs_f64() * 1000.0 {
        millis if millis < 1.0 => "< 1 ms".to_owned(),
        millis if millis < 1000.0 => format!("{millis:.0} ms"),
        millis => format!("{:.1} s", millis / 1000.0),
    }
}

/// A server, and since when it runs.
pub(crate) struct DrawnServer {
    pub(crate) name: String,
    pub(crate) is_this: bool,
    pub(crate) started: Timestamp,
    pub(crate) seen: Timestamp,
}

/// So many servers are drawn.
const MAX_SERVERS: usize = 50;

/// Servers by how long they have run, of the last day.
pub(crate) fn servers(servers: &[DrawnServer], now: Timestamp) -> Option<Rows> {
    if servers.is_empty() {
        return None;
    }
    let begins = now.saturating_sub(DAY).unwrap_or(Timestamp::MIN);
    let at =
        |moment: Timestamp| (moment.duration_since(begins).as_secs_f64() / DAY.as_secs_f64() * 100.0).clamp(0.0, 100.0);
    let row = |server: &DrawnServer| {
        let (left, right) = (at(server.started), at(server.seen));
        let left = left.min(99.0);
        let track = Shape::Bar { x: 0.0, y: 5.5, width: 100.0, height: 1.0 };
        let bar = Shape::Bar { x: left, y: 0.0, width: (right - left).max(1.0), height: 12.0 };
        let up = span(now.duration_since(server.started));
        Row {
            name: shortened(&server.name, 60),
            href: String::new(),
            words: match server.is_this {
                true => format!("up {up}, this server"),
                false => format!("up {up}, last seen {}", Moment(server.seen).ago(&now)),
            },
            drawings: vec![Drawing {
                width: None,
                height: 12,
                marks: vec![
                    Mark::new("track", track),
                    Mark::new("good", bar).titled(format!("since {}", Moment(server.started).text())),
                ],
            }],
        }
    };
    Some(Rows {
        id: "server-uptime",
        title: "Servers on this bucket".to_owned(),
        summary: format!("{}, uptime over the last 24 hours", counted(servers.len() as u64, "server")),
        class: "servers",
        rows: servers.iter().take(MAX_SERVERS).map(row).collect(),
        legend: Vec::new(),
        note: String::new(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn now() -> Timestamp {
        "2026-11-18T12:00:00Z".parse().expect("a timestamp")
    }

    fn interval(ago: u64, errors: u64, p99: u64) -> IntervalTimes {
        let (median, p99) = (Duration::from_millis(2), Duration::from_millis(p99));
        IntervalTimes { ago, operations: 100, errors, median, p99 }
    }

    fn times(intervals: Vec<IntervalTimes>) -> BucketTimes {
        BucketTimes { since: now() - HOUR, interval: Duration::from_secs(300), intervals }
    }

    #[test]
    fn before_the_first_operation_there_is_no_picture() {
        assert!(bucket_times(&times(Vec::new()), now()).is_none());
        assert!(servers(&[], now()).is_none());
    }

    #[test]
    fn lines_have_gaps_and_errors_have_marks() {
        let times = times(vec![interval(20, 0, 10), interval(19, 3, 50), interval(0, 0, 900)]);
        let figure = bucket_times(&times, now()).expect("a picture");
        assert_eq!(figure.summary, "2 ms now (p99 900 ms); 3 of 300 operations failed");
        assert!(figure.note.starts_with("Measured by this server since it started, 60 min ago"), "{}", figure.note);
        let paths = figure.drawing.marks.iter().filter_map(|mark| match &mark.shape {
            Shape::Path(path) => Some(path.matches('M').count()),
            _ => None,
        });
        assert_eq!(paths.collect::<Vec<_>>(), [2, 2], "one gap");
        assert_eq!(figure.drawing.marks.iter().filter(|mark| mark.class == "bad").count(), 1);
        let rows = figure.table.expect("a table").rows;
        assert_eq!((rows[0].name.as_str(), rows[0].cells[1].as_str()), ("11:00 to 12:00", "900 ms"));
        assert_eq!((rows[1].name.as_str(), rows[1].cells[3].as_str()), ("10:00 to 11:00", "3"));
    }

    #[test]
    fn a_bad_day_stays_small() {
        let all = (0..288).rev().map(|ago| interval(ago, ago % 2, 20 + ago * 30)).collect();
        let html = bucket_times(&times(all), now()).expect("a picture").to_string();
        assert!(html.len() < 40_000, "{}", html.len());
    }

    #[test]
    fn a_server_is_drawn_from_when_it_started() {
        let server = |hours: i64| DrawnServer {
            name: "<&\"".repeat(40),
            is_this: hours == 6,
            started: now() - HOUR * i32::try_from(hours).expect("few"),
            seen: now(),
        };
        let rows = servers(&[server(6), server(1000)], now()).expect("a picture");
        let bars = rows.rows.iter().map(|row| match row.drawings[0].marks[1].shape {
            Shape::Bar { x, width, .. } => (x, width),
            _ => (0.0, 0.0),
        });
        assert_eq!(bars.collect::<Vec<_>>(), [(75.0, 25.0), (0.0, 100.0)]);
        assert_eq!(rows.rows[0].words, "up 6 h, this server");
        assert!(!rows.to_string().contains("<&\""));
    }
}
