//! Formats of records and messages, read from the source, and their frozen samples in `migrations-in-bucket/`.

pub mod coverage;
pub mod frozen;
pub mod generate;
pub mod roots;
pub mod shape;
pub mod source;

use serde_json::Value;

use coverage::{Facts, Shown};
use roots::Root;
use shape::Shapes;

const HEAD_OF_SHAPES: &str = "\
# The shape of everything that this version stores in the bucket, says to its agents or notes on their disks.
# `cargo xtask samples` writes this file, tests/formats compares it with the source. See README.md.
";

/// Facts in those samples of a kind that this version could have written.
pub fn shown_today(shapes: &Shapes, root: &Root) -> Facts {
    let shown = frozen::samples(&root.name).into_iter().filter_map(|sample| {
        let shown = show(shapes, root, &sample).ok()?;
        shown.missing.is_empty().then_some(shown.facts)
    });
    shown.flatten().collect()
}

/// Facts in one sample.
pub fn show(shapes: &Shapes, root: &Root, sample: &str) -> Result<Shown, String> {
    let value: Value = serde_json::from_str(sample).map_err(|error| error.to_string())?;
    shapes.show(&root.shape, &value)
}

/// The text of `shapes.txt`.
pub fn text_of(shapes: &Shapes) -> String {
    format!("{HEAD_OF_SHAPES}\n{}", shapes.text())
}
