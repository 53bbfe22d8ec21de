//! Parts of a whole, as one bar.

use super::{Drawing, Figure, Key, Mark, Shape, shares, shortened};

/// Parts with a shade of their own, the largest first; the rest is one part.
const SHADES: [&str; 6] = ["shade-1", "shade-2", "shade-3", "shade-4", "shade-5", "shade-6"];
const REST: &str = "shade-rest";
const HEIGHT: u32 = 16;
/// In percent.
const LEAST_WIDTH: f64 = 0.8;
const GAP: f64 = 0.3;
/// Characters of a name.
const LONGEST_NAME: usize = 60;

/// The parts come with their counts, the largest first. `None` without parts.
pub(crate) fn parts_of_whole(id: &'static str, title: &str, noun: &str, parts: &[(String, u64)]) -> Option<Figure> {
    let total: u64 = parts.iter().map(|(_, count)| count).sum();
    if total == 0 {
        return None;
    }
    let own = if parts.len() <= SHADES.len() { parts.len() } else { SHADES.len() - 1 };
    let mut shown: Vec<(String, u64, &'static str)> = parts[..own]
        .iter()
        .zip(SHADES)
        .map(|((name, count), class)| (shortened(name, LONGEST_NAME), *count, class))
        .collect();
    let rest = &parts[own..];
    if !rest.is_empty() {
        shown.push((format!("{} others", rest.len()), rest.iter().map(|(_, count)| count).sum(), REST));
    }
    let counts: Vec<f64> = shown.iter().map(|(_, count, _)| *count as f64).collect();
    let mut left = 0.0;
    let mut marks = Vec::new();
    for ((name, count, class), width) in shown.iter().zip(shares(&counts, LEAST_WIDTH)) {
        let drawn = if left + width < 99.9 { (width - GAP).max(LEAST_WIDTH / 2.0) } else { width };
        let shape = Shape::Bar { x: left, y: 0.0, width: drawn, height: f64::from(HEIGHT) };
        marks.push(Mark::new(class, shape).titled(format!("{name}: {count}, {}", percent(*count, total))));
        left += width;
    }
    Some(Figure {
        id,
        title: title.to_owned(),
        summary: super::counted(total, noun),
        drawing: Drawing { width: None, height: HEIGHT, marks },
        legend: shown.into_iter().map(|(name, count, class)| Key::new(class, "", name).counted(count)).collect(),
        table: None,
        note: String::new(),
    })
}

fn percent(count: u64, total: u64) -> String {
    match count * 100 / total.max(1) {
        0 => "less than 1 %".to_owned(),
        percent => format!("{percent} %"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parts(counts: &[u64]) -> Vec<(String, u64)> {
        counts.iter().enumerate().map(|(index, count)| (format!("type_{index}"), *count)).collect()
    }

    fn ends(figure: &Figure) -> f64 {
        let end = |mark: &Mark| match mark.shape {
            Shape::Bar { x, width, .. } => x + width,
            _ => 0.0,
        };
        figure.drawing.marks.iter().map(end).fold(0.0, f64::max)
    }

    #[test]
    fn nothing_is_no_picture_and_one_part_is_the_whole_bar() {
        assert!(parts_of_whole("x", "Types", "resource", &[]).is_none());
        let figure = parts_of_whole("x", "Types", "resource", &parts(&[3])).expect("a picture");
        assert_eq!((figure.drawing.marks.len(), figure.summary.as_str()), (1, "3 resources"));
        assert!((ends(&figure) - 100.0).abs() < 1e-9);
    }

    #[test]
    fn many_parts_end_in_one_for_the_rest() {
        let figure =
            parts_of_whole("x", "Types", "resource", &parts(&[10_000, 5, 4, 3, 2, 1, 1, 1])).expect("a picture");
        assert_eq!(figure.drawing.marks.len(), 6);
        assert!(ends(&figure) <= 100.0 + 1e-9);
        let last = figure.legend.last().expect("a legend");
        assert_eq!((last.word.as_str(), last.count.as_str(), last.class), ("3 others", "3", REST));
        let long = vec![("<b>".repeat(1000), 1)];
        assert!(parts_of_whole("x", "Types", "resource", &long).expect("a picture").to_string().len() < 3000);
    }
}
