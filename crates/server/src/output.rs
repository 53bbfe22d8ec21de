//! What commands print: a table for people, tab-separated lines for a pipe, JSON for programs.

use std::io::{self, IsTerminal, Write};

use comfy_table::Table;
use comfy_table::presets::NOTHING;

/// Prints rows under their headings.
pub(crate) fn table<const COLUMNS: usize>(
    headings: [&str; COLUMNS],
    rows: impl IntoIterator<Item = [String; COLUMNS]>,
) -> io::Result<()> {
    let mut out = io::stdout().lock();
    if out.is_terminal() {
        let mut table = Table::new();
        table.load_style(NOTHING).set_header(headings).add_rows(rows);
        for column in table.column_iter_mut() {
            column.set_padding((0, 2));
        }
        return writeln!(out, "{}", table.trim_fmt());
    }
    writeln!(out, "{}", headings.join("\t"))?;
    rows.into_iter().try_for_each(|row| writeln!(out, "{}", row.map(|cell| cell.replace(['\t', '\n'], " ")).join("\t")))
}

/// Prints a JSON document.
pub(crate) fn json(document: &serde_json::Value) -> io::Result<()> {
    writeln!(io::stdout().lock(), "{document:#}")
}
