//! Output formats of all commands: a table for people, tab-separated lines for a pipe, JSON for programs.

use std::io::{self, IsTerminal, Write};

use comfy_table::Table;
use comfy_table::presets::NOTHING;
use serde_json::Value;

/// Prints rows under their headings.
pub fn table<const COLUMNS: usize>(
    headings: [&str; COLUMNS],
    rows: impl IntoIterator<Item = [String; COLUMNS]>,
) -> io::Result<()> {
    let rows = rows.into_iter().map(|row| row.map(|cell| on_one_line(&cell)));
    let mut out = io::stdout().lock();
    let text = if out.is_terminal() { in_columns(headings, rows) } else { tab_separated(headings, rows) };
    out.write_all(text.as_bytes())
}

fn in_columns<const COLUMNS: usize>(
    headings: [&str; COLUMNS],
    rows: impl Iterator<Item = [String; COLUMNS]>,
) -> String {
    let mut table = Table::new();
    table.load_style(NOTHING).set_header(headings).add_rows(rows);
    for column in table.column_iter_mut() {
        column.set_padding((0, 2));
    }
    format!("{}\n", table.trim_fmt())
}

fn tab_separated<const COLUMNS: usize>(
    headings: [&str; COLUMNS],
    rows: impl Iterator<Item = [String; COLUMNS]>,
) -> String {
    let mut text = format!("{}\n", headings.join("\t"));
    for row in rows {
        text.push_str(&row.join("\t"));
        text.push('\n');
    }
    text
}

/// Names and values may hold anything: none of it may break a row or steer the terminal.
fn on_one_line(cell: &str) -> String {
    cell.chars().map(|letter| if letter.is_control() { ' ' } else { letter }).collect()
}

/// Prints a JSON document.
pub fn json(document: &Value) -> io::Result<()> {
    writeln!(io::stdout().lock(), "{document:#}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_terminal_gets_columns_as_wide_as_what_is_in_them() {
        let rows = [["network", "", "yes"], ["größe-\u{1f32e}", "2 spaces", "no"]];
        let rows = rows.map(|row| row.map(on_one_line));
        let expected = "\
NAME      WHAT      LOCKED
network             yes
größe-\u{1f32e}  2 spaces  no
";
        assert_eq!(in_columns(["NAME", "WHAT", "LOCKED"], rows.into_iter()), expected);
        assert_eq!(in_columns(["NAME", "LOCKED"], std::iter::empty()), "NAME  LOCKED\n");
        let hostile = ["\u{1b}[2Jgone\r\nbye".to_owned(), "x\ty".to_owned()].map(|cell| on_one_line(&cell));
        assert_eq!(in_columns(["A", "B"], [hostile].into_iter()), "A              B\n [2Jgone  bye  x y\n");
    }

    #[test]
    fn a_pipe_gets_a_line_of_headings_and_a_line_per_row() {
        let rows = [["a".to_owned(), on_one_line("b\tc\nd\u{1b}")]];
        assert_eq!(tab_separated(["ONE", "TWO"], rows.into_iter()), "ONE\tTWO\na\tb c d \n");
    }
}
