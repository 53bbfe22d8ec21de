//! Output of commands. A reader who goes away is no failure; see [`Failure`].

use std::io::{self, Write};

use serde_json::Value;

use crate::failure::Failure;
use crate::print;

/// Prints rows under their headings.
pub(crate) fn table<const COLUMNS: usize>(
    headings: [&str; COLUMNS],
    rows: impl IntoIterator<Item = [String; COLUMNS]>,
) -> Result<(), Failure> {
    Ok(print::table(headings, rows)?)
}

/// Prints what there is to know about one thing.
pub(crate) fn fields(fields: &[(&str, String)]) -> Result<(), Failure> {
    table(["FIELD", "VALUE"], fields.iter().map(|(name, value)| [(*name).to_owned(), value.clone()]))
}

/// Prints a JSON document.
pub(crate) fn json(document: &Value) -> Result<(), Failure> {
    Ok(print::json(document)?)
}

/// Prints a sentence.
pub(crate) fn line(text: &str) -> Result<(), Failure> {
    Ok(writeln!(io::stdout().lock(), "{text}")?)
}

/// Prints bytes as they are.
pub(crate) fn bytes(bytes: &[u8]) -> Result<(), Failure> {
    let mut out = io::stdout().lock();
    out.write_all(bytes)?;
    Ok(out.flush()?)
}
