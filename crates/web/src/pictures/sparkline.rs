//! A count over time, or over versions, as a small area.

use super::{Drawing, Figure, Mark, Shape, Table, TableRow, number};

const HEIGHT: u32 = 44;
/// More points than a small picture has pixels are thinned out.
const MAX_POINTS: usize = 240;

/// A count at one point, with its words for the table.
#[derive(Clone, PartialEq, Debug)]
pub(crate) struct Point {
    pub(crate) name: String,
    pub(crate) count: u64,
}

/// Description of what is counted.
pub(crate) struct Series<'a> {
    pub(crate) id: &'static str,
    pub(crate) title: &'a str,
    /// Heads of the table's two columns.
    pub(crate) head: [&'static str; 2],
    /// The highest that it can be, if there is such.
    pub(crate) limit: Option<u64>,
    pub(crate) class: &'static str,
    pub(crate) note: &'a str,
}

/// The points are the oldest first. `None` if there are fewer than two: there is nothing to compare.
pub(crate) fn area(series: &Series<'_>, points: &[Point]) -> Option<Figure> {
    if points.len() < 2 {
        return None;
    }
    let points = thinned(points);
    let highest = points.iter().map(|point| point.count).max().unwrap_or_default();
    let lowest = points.iter().map(|point| point.count).min().unwrap_or_default();
    let top = series.limit.unwrap_or_default().max(highest).max(1);
    let last = points.last()?;
    let (line, fill) = paths(&points, top);
    let range = if highest == lowest {
        format!("{highest} throughout")
    } else {
        format!("{} now, between {lowest} and {highest}", last.count)
    };
    Some(Figure {
        id: series.id,
        title: series.title.to_owned(),
        summary: range,
        drawing: Drawing {
            width: None,
            height: HEIGHT,
            marks: vec![
                Mark::new("rule", Shape::Bar { x: 0.0, y: f64::from(HEIGHT) - 1.0, width: 100.0, height: 1.0 }),
                Mark::new(if series.class == "busy" { "area-busy" } else { "area" }, Shape::Path(fill)),
                Mark::new(if series.class == "busy" { "line-busy" } else { "line" }, Shape::Path(line)),
            ],
        },
        legend: Vec::new(),
        table: Some(Table { head: series.head.to_vec(), rows: rows(&points) }),
        note: series.note.to_owned(),
    })
}

/// Rows of the table: only where something changes, the newest first.
fn rows(points: &[Point]) -> Vec<TableRow> {
    let changes = points
        .iter()
        .enumerate()
        .filter(|(index, point)| *index == 0 || *index + 1 == points.len() || points[index - 1].count != point.count);
    let row = |(_, point): (usize, &Point)| TableRow {
        name: point.name.clone(),
        href: String::new(),
        cells: vec![point.count.to_string()],
    };
    let mut rows: Vec<TableRow> = changes.map(row).collect();
    rows.reverse();
    rows.truncate(60);
    rows
}

/// The highest of neighbours that share a place: a peak is what one looks for.
fn thinned(points: &[Point]) -> Vec<Point> {
    let together = points.len().div_ceil(MAX_POINTS).max(1);
    let highest = |chunk: &[Point]| {
        let count = chunk.iter().map(|point| point.count).max().unwrap_or_default();
        Point { count, ..chunk[chunk.len() - 1].clone() }
    };
    points.chunks(together).map(highest).collect()
}

/// Line and area in a square of 100 by 100. A count holds until the next: these are steps, not slopes.
fn paths(points: &[Point], top: u64) -> (String, String) {
    let step = 100.0 / points.len() as f64;
    let y = |point: &Point| 96.0 - point.count as f64 / top as f64 * 90.0;
    let mut line = String::new();
    for (index, point) in points.iter().enumerate() {
        let x = number(step * index as f64);
        match index {
            0 => line.push_str(&format!("M{x} {}", number(y(point)))),
            _ if points[index - 1].count == point.count => continue,
            _ => line.push_str(&format!("H{x}V{}", number(y(point)))),
        }
    }
    line.push_str("H100");
    let fill = format!("{line}V100H0Z");
    (line, fill)
}

#[cfg(test)]
mod tests {
    use super::*;

    const SERIES: Series<'_> =
        Series { id: "x", title: "Waiting", head: ["Time", "Waiting"], limit: None, class: "calm", note: "" };

    fn points(counts: &[u64]) -> Vec<Point> {
        counts.iter().enumerate().map(|(index, count)| Point { name: index.to_string(), count: *count }).collect()
    }

    #[test]
    fn one_point_is_no_picture() {
        assert!(area(&SERIES, &points(&[])).is_none());
        assert!(area(&SERIES, &points(&[7])).is_none());
    }

    #[test]
    fn a_count_holds_until_the_next() {
        let (line, fill) = paths(&points(&[0, 10, 10, 5]), 10);
        assert_eq!(line, "M0 96H25V6H75V51H100");
        assert_eq!(fill, "M0 96H25V6H75V51H100V100H0Z");
    }

    #[test]
    fn words_say_what_the_line_shows() {
        let figure = area(&SERIES, &points(&[0, 3, 3, 1])).expect("a picture");
        assert_eq!(figure.summary, "1 now, between 0 and 3");
        let table = figure.table.expect("a table");
        let rows: Vec<_> = table.rows.iter().map(|row| (row.name.as_str(), row.cells[0].as_str())).collect();
        assert_eq!(rows, [("3", "1"), ("1", "3"), ("0", "0")]);
        assert_eq!(area(&SERIES, &points(&[0, 0])).expect("a picture").summary, "0 throughout");
    }

    #[test]
    fn many_points_are_thinned_and_keep_their_peak() {
        let mut many = points(&vec![1; 10_000]);
        many[5_000].count = 99;
        let figure = area(&SERIES, &many).expect("a picture");
        assert_eq!(figure.summary, "1 now, between 1 and 99");
        assert!(figure.to_string().len() < 20_000);
    }
}
