//! Pictures on pages: SVG that the server draws, each with the same facts as text.
//!
//! Every layout here is a pure function from facts to [`Drawing`]s, which the templates in `templates/pictures` render.
//! Across, a drawing is measured in percent of the place that it gets, and down in pixels: so it fits a phone and a
//! desk, and its text stays as large as all other text. Colours are classes of `static/pictures.css`, and nothing is
//! told by colour alone.

pub(crate) mod bars;
pub(crate) mod gantt;
pub(crate) mod health;
pub(crate) mod lanes;
pub(crate) mod pages;
pub(crate) mod resource_map;
pub(crate) mod slots;
pub(crate) mod sparkline;
pub(crate) mod stacked_bar;
pub(crate) mod strip;
pub(crate) mod timeline;

use askama::Template;

/// A picture with its title, its legend, and what it shows as text.
#[derive(Template, Default, Debug)]
#[template(path = "pictures/figure.html")]
pub(crate) struct Figure {
    /// Unique on its page.
    pub(crate) id: &'static str,
    pub(crate) title: String,
    /// The most important of it, in words.
    pub(crate) summary: String,
    pub(crate) drawing: Drawing,
    pub(crate) legend: Vec<Key>,
    pub(crate) table: Option<Table>,
    /// Remark below the picture.
    pub(crate) note: String,
}

/// Things with a small drawing each, one below the other.
#[derive(Template, Default, Debug)]
#[template(path = "pictures/rows.html")]
pub(crate) struct Rows {
    /// Unique on its page.
    pub(crate) id: &'static str,
    pub(crate) title: String,
    pub(crate) summary: String,
    /// Class of the list, which says how rows are laid out.
    pub(crate) class: &'static str,
    pub(crate) rows: Vec<Row>,
    pub(crate) legend: Vec<Key>,
    pub(crate) note: String,
}

/// One of [`Rows`]. Its text says all that its drawings show.
#[derive(Default, Debug)]
pub(crate) struct Row {
    pub(crate) name: String,
    /// Address that the name leads to; empty if there is none.
    pub(crate) href: String,
    /// What is drawn, as text.
    pub(crate) words: String,
    pub(crate) drawings: Vec<Drawing>,
}

/// What is drawn in one place.
#[derive(Default, Debug)]
pub(crate) struct Drawing {
    /// In pixels; `None` is as wide as its place.
    pub(crate) width: Option<u32>,
    pub(crate) height: u32,
    pub(crate) marks: Vec<Mark>,
}

impl Drawing {
    /// True if something in it leads elsewhere. Then the picture itself is for the eye, and the text beside it has the links.
    pub(crate) fn has_links(&self) -> bool {
        self.marks.iter().any(|mark| !mark.href.is_empty())
    }
}

/// One thing in a drawing.
#[derive(Debug)]
pub(crate) struct Mark {
    pub(crate) shape: Shape,
    /// A class of the style sheet.
    pub(crate) class: &'static str,
    /// Tooltip; empty if there is none.
    pub(crate) title: String,
    /// Address that it leads to; empty if there is none.
    pub(crate) href: String,
}

#[derive(Debug)]
pub(crate) enum Shape {
    /// Across in percent, down in pixels.
    Bar { x: f64, y: f64, width: f64, height: f64 },
    /// A square, in pixels.
    Cell { x: u32, y: u32, size: u32 },
    /// A path in pixels, of many squares that lead nowhere.
    Squares(String),
    /// An area with a label, all in percent. What of the label does not fit is cut off.
    Area { x: f64, y: f64, width: f64, height: f64, label: String, detail: String },
    /// A path in a square of 100 by 100 that is stretched over the whole drawing.
    Path(String),
    /// Across in percent, down in pixels. The anchor is `start`, `middle` or `end`.
    Text { x: f64, y: f64, anchor: &'static str, text: String },
}

impl Mark {
    pub(crate) fn new(class: &'static str, shape: Shape) -> Self {
        Self { shape, class, title: String::new(), href: String::new() }
    }

    pub(crate) fn text(x: f64, y: f64, anchor: &'static str, text: impl Into<String>) -> Self {
        Self::new("label", Shape::Text { x, y, anchor, text: text.into() })
    }

    pub(crate) fn titled(self, title: impl Into<String>) -> Self {
        Self { title: title.into(), ..self }
    }

    pub(crate) fn leading_to(self, href: impl Into<String>) -> Self {
        Self { href: href.into(), ..self }
    }
}

/// Entry of a legend.
#[derive(Debug)]
pub(crate) struct Key {
    pub(crate) class: &'static str,
    /// Sign that stands for the colour; may be empty.
    pub(crate) sign: &'static str,
    pub(crate) word: String,
    /// Empty if nothing is counted.
    pub(crate) count: String,
}

impl Key {
    pub(crate) fn new(class: &'static str, sign: &'static str, word: impl Into<String>) -> Self {
        Self { class, sign, word: word.into(), count: String::new() }
    }

    pub(crate) fn counted(self, count: impl ToString) -> Self {
        Self { count: count.to_string(), ..self }
    }
}

/// What a picture shows, as a table.
#[derive(Debug)]
pub(crate) struct Table {
    pub(crate) head: Vec<&'static str>,
    pub(crate) rows: Vec<TableRow>,
}

#[derive(Debug)]
pub(crate) struct TableRow {
    pub(crate) name: String,
    /// Address that the name leads to; empty if there is none.
    pub(crate) href: String,
    pub(crate) cells: Vec<String>,
}

/// A number in an attribute: two digits after the point are less than a pixel.
pub(crate) fn number(value: f64) -> String {
    let text = format!("{value:.2}");
    let text = text.trim_end_matches('0').trim_end_matches('.');
    if text == "-0" { "0".to_owned() } else { text.to_owned() }
}

/// The same for templates, which have references.
pub(crate) fn percent(value: &f64) -> String {
    number(*value) + "%"
}

pub(crate) fn pixels(value: &f64) -> String {
    number(*value)
}

/// The beginning of a text that is too long for a picture.
pub(crate) fn shortened(text: &str, most: usize) -> String {
    match text.char_indices().nth(most) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text.to_owned(),
    }
}

/// `1 run`, `2 runs`.
pub(crate) fn counted(count: impl Into<u64>, noun: &str) -> String {
    match count.into() {
        1 => format!("1 {noun}"),
        count => format!("{count} {noun}s"),
    }
}

/// Widths that share 100 percent in proportion to `values`, of which each gets at least `least`.
pub(crate) fn shares(values: &[f64], least: f64) -> Vec<f64> {
    let least = least.min(100.0 / values.len().max(1) as f64);
    let total: f64 = values.iter().sum();
    if total <= 0.0 {
        return values.iter().map(|_| 100.0 / values.len() as f64).collect();
    }
    let is_small = |value: f64, total: f64, room: f64| value / total * room < least;
    // Those that get the least leave less for the others, of which more may then be small.
    let (mut room, mut rest) = (100.0, total);
    let mut small = vec![false; values.len()];
    loop {
        let found = (0..values.len()).find(|&at| !small[at] && is_small(values[at], rest, room));
        let Some(at) = found else { break };
        small[at] = true;
        room -= least;
        rest -= values[at];
    }
    let width = |(value, small): (&f64, &bool)| if *small { least } else { value / rest * room };
    values.iter().zip(&small).map(width).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_short() {
        for (value, expected) in [(0.0, "0"), (33.333_333, "33.33"), (5.5, "5.5"), (100.0, "100"), (-0.001, "0")] {
            assert_eq!(number(value), expected);
        }
    }

    #[test]
    fn shares_are_in_proportion_and_none_vanishes() {
        assert_eq!(shares(&[1.0, 3.0], 2.0), [25.0, 75.0]);
        assert_eq!(shares(&[], 2.0), Vec::<f64>::new());
        assert_eq!(shares(&[0.0, 0.0], 2.0), [50.0, 50.0]);
        let widths = shares(&[1.0, 10_800.0, 0.0, 60.0], 3.0);
        assert_eq!((widths[0], widths[2], widths[3]), (3.0, 3.0, 3.0));
        assert!((widths.iter().sum::<f64>() - 100.0).abs() < 1e-9);
        let many = shares(&[1.0; 200], 3.0);
        assert!((many.iter().sum::<f64>() - 100.0).abs() < 1e-6, "they share what there is");
    }

    #[test]
    fn whatever_a_name_is_it_stays_text() {
        let nasty = "<script>\"'&";
        let figure = Figure {
            id: "x",
            title: nasty.to_owned(),
            summary: nasty.to_owned(),
            drawing: Drawing {
                width: None,
                height: 10,
                marks: vec![
                    Mark::text(0.0, 5.0, "start", nasty).titled(nasty).leading_to(format!("/x?{nasty}")),
                    Mark::new(
                        "area",
                        Shape::Area {
                            x: 0.0,
                            y: 0.0,
                            width: 1.0,
                            height: 1.0,
                            label: nasty.into(),
                            detail: nasty.into(),
                        },
                    ),
                ],
            },
            legend: vec![Key::new("good", "✓", nasty)],
            table: Some(Table {
                head: vec!["Name"],
                rows: vec![TableRow { name: nasty.into(), href: nasty.into(), cells: vec![nasty.into()] }],
            }),
            note: nasty.to_owned(),
        };
        let html = figure.to_string();
        assert!(!html.contains("<script") && !html.contains("=\"/x?<"), "{html}");
        let row = Row { name: nasty.into(), href: nasty.into(), words: nasty.into(), drawings: Vec::new() };
        let html = Rows { id: "x", rows: vec![row], ..Rows::default() }.to_string();
        assert!(!html.contains("<script"), "{html}");
    }
}
