//! Output of commands. A reader who goes away is no failure; see [`Failure`].

use std::io::{self, IsTerminal, Write};

use serde_json::Value;

use crate::failure::Failure;
use crate::print::{self, Cell};
use crate::resource::Resource;
use crate::session::Session;

impl Session {
    /// Prints rows under their headings. Where there are none, tells a person how to get the first.
    pub(crate) fn table<C: Into<Cell>, const COLUMNS: usize>(
        &self,
        headings: [&str; COLUMNS],
        rows: impl ExactSizeIterator<Item = [C; COLUMNS]>,
        if_empty: impl AsRef<str>,
    ) -> Result<(), Failure> {
        // Scripts get the headings and nothing else.
        if rows.len() == 0 && !self.quiet && (self.screen.is_terminal() || io::stderr().is_terminal()) {
            eprintln!("{}", if_empty.as_ref());
            if self.screen.is_terminal() {
                return Ok(());
            }
        }
        Ok(self.screen.table(headings, rows)?)
    }

    /// Prints what there is to know about one thing.
    pub(crate) fn fields<C: Into<Cell>>(
        &self,
        fields: impl IntoIterator<Item = (&'static str, C)>,
    ) -> Result<(), Failure> {
        Ok(self.screen.fields(fields.into_iter().map(|(name, value)| (name, value.into())).collect())?)
    }
}

/// The time in an attribute.
pub(crate) fn time(resource: &Resource, attribute: &str) -> Cell {
    Cell::Time(resource.text(attribute))
}

/// The status in an attribute.
pub(crate) fn status(resource: &Resource, attribute: &str) -> Cell {
    Cell::Status(resource.text(attribute))
}

/// An attribute as people read it.
pub(crate) fn text(resource: &Resource, attribute: &str) -> Cell {
    Cell::Text(resource.text(attribute))
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
