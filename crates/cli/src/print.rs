//! Output formats of all commands: a table for people, tab-separated lines for a pipe, JSON for programs.

use std::io::{self, IsTerminal, Write};

use jiff::Timestamp;
use serde_json::Value;
use unicode_width::{UnicodeWidthChar, UnicodeWidthStr};

use crate::colour::{Colour, Painter};
use crate::status;
use crate::time_text;

/// Width of a table where the terminal does not say how wide it is.
const USUAL_WIDTH: usize = 120;

/// The last column is not cut below this.
const MIN_LAST_COLUMN: usize = 16;

/// One field of a table.
#[derive(Clone, Debug)]
pub enum Cell {
    Text(String),
    /// A point in time, as servers send it.
    Time(String),
    /// Status of a run, a phase, an agent or a check, as servers send it.
    Status(String),
    /// Something to act on: a word that the reader should not overlook.
    Marked(String),
}

impl From<String> for Cell {
    fn from(text: String) -> Self {
        Self::Text(text)
    }
}

impl From<&str> for Cell {
    fn from(text: &str) -> Self {
        Self::Text(text.to_owned())
    }
}

/// Standard output as it is: a terminal or not, with colours or without.
#[derive(Clone, Copy, Debug)]
pub struct Screen {
    is_terminal: bool,
    painter: Painter,
    width: usize,
    now: Timestamp,
}

impl Screen {
    pub(crate) fn new(colours: bool) -> Self {
        let width = terminal_size::terminal_size().map(|(width, _)| usize::from(width.0));
        let is_terminal = io::stdout().is_terminal();
        Self {
            is_terminal,
            painter: Painter { on: colours },
            width: width.unwrap_or(USUAL_WIDTH),
            now: time_text::now(),
        }
    }

    pub(crate) fn is_terminal(&self) -> bool {
        self.is_terminal
    }

    pub(crate) fn painter(&self) -> Painter {
        self.painter
    }

    /// Columns of the terminal, where there is one.
    pub(crate) fn width(&self) -> Option<usize> {
        self.is_terminal.then_some(self.width)
    }

    /// Prints rows under their headings.
    pub(crate) fn table<C: Into<Cell>, const COLUMNS: usize>(
        &self,
        headings: [&str; COLUMNS],
        rows: impl IntoIterator<Item = [C; COLUMNS]>,
    ) -> io::Result<()> {
        let rows = rows.into_iter().map(|row| row.map(Into::into));
        let text = if self.is_terminal { self.in_columns(headings, rows) } else { self.tab_separated(headings, rows) };
        io::stdout().lock().write_all(text.as_bytes())
    }

    /// Prints what there is to know about one thing; on a terminal, fields without a value are left out.
    pub(crate) fn fields(&self, fields: Vec<(&str, Cell)>) -> io::Result<()> {
        if !self.is_terminal {
            return self.table(["FIELD", "VALUE"], fields.into_iter().map(|(name, value)| [Cell::from(name), value]));
        }
        let shown: Vec<_> = fields.iter().map(|(name, cell)| (*name, self.shown(cell))).collect();
        let width = shown.iter().map(|(name, _)| name.width()).max().unwrap_or_default();
        let mut out = io::stdout().lock();
        for (name, (text, colour)) in shown.into_iter().filter(|(_, (text, _))| !text.is_empty()) {
            let padding = " ".repeat(width - name.width() + 2);
            writeln!(
                out,
                "{}{padding}{}",
                self.painter.paint(name, Colour::Dim),
                self.painter.paint_if(&text, colour)
            )?;
        }
        Ok(())
    }

    /// A cell for people, and its colour.
    fn shown(&self, cell: &Cell) -> (String, Option<Colour>) {
        match cell {
            Cell::Text(text) => (on_one_line(text), None),
            Cell::Time(text) => (on_one_line(&time_text::ago(text, self.now)), None),
            Cell::Status(text) => (on_one_line(&status::in_words(text)), status::colour(text)),
            Cell::Marked(text) => (on_one_line(text), Some(Colour::Yellow)),
        }
    }

    fn in_columns<const COLUMNS: usize>(
        &self,
        headings: [&str; COLUMNS],
        rows: impl Iterator<Item = [Cell; COLUMNS]>,
    ) -> String {
        let rows: Vec<[(String, Option<Colour>); COLUMNS]> =
            rows.map(|row| row.map(|cell| self.shown(&cell))).collect();
        let widest = |column: usize| {
            let cells = rows.iter().map(|row| row[column].0.width());
            cells.chain([headings[column].width()]).max().unwrap_or_default()
        };
        let widths: [usize; COLUMNS] = std::array::from_fn(widest);
        let before_last: usize = widths.iter().take(COLUMNS.saturating_sub(1)).map(|width| width + 2).sum();
        let room = self.width.saturating_sub(before_last).max(MIN_LAST_COLUMN);
        let mut text = String::new();
        let mut line = |cells: [(String, Option<Colour>); COLUMNS]| {
            let mut line = String::new();
            for (column, (cell, colour)) in cells.into_iter().enumerate() {
                let cell = if column + 1 == COLUMNS { cut(&cell, room) } else { cell };
                line.push_str(&self.painter.paint_if(&cell, colour));
                line.push_str(&" ".repeat(widths[column].saturating_sub(cell.width()) + 2));
            }
            text.push_str(line.trim_end());
            text.push('\n');
        };
        line(headings.map(|heading| (heading.to_owned(), Some(Colour::Dim))));
        rows.into_iter().for_each(line);
        text
    }

    fn tab_separated<const COLUMNS: usize>(
        &self,
        headings: [&str; COLUMNS],
        rows: impl Iterator<Item = [Cell; COLUMNS]>,
    ) -> String {
        let mut text = format!("{}\n", headings.join("\t"));
        for row in rows {
            let row = row.map(|cell| match cell {
                Cell::Text(text) | Cell::Status(text) | Cell::Marked(text) => on_one_line(&text),
                Cell::Time(text) => on_one_line(&time_text::whole_seconds(&text)),
            });
            text.push_str(&row.join("\t"));
            text.push('\n');
        }
        text
    }
}

/// A text of at most this width, with a mark where it was cut.
pub(crate) fn cut(text: &str, width: usize) -> String {
    if text.width() <= width {
        return text.to_owned();
    }
    let mut shown = String::new();
    let mut used = 1;
    for letter in text.chars() {
        used += letter.width().unwrap_or_default();
        if used > width {
            break;
        }
        shown.push(letter);
    }
    format!("{}…", shown.trim_end())
}

/// Names and values may hold anything: none of it may break a row or steer the terminal.
pub(crate) fn on_one_line(cell: &str) -> String {
    cell.chars().map(|letter| if letter.is_control() { ' ' } else { letter }).collect()
}

/// Prints rows under their headings, for commands that have no colours to choose.
pub fn table<C: Into<Cell>, const COLUMNS: usize>(
    headings: [&str; COLUMNS],
    rows: impl IntoIterator<Item = [C; COLUMNS]>,
) -> io::Result<()> {
    let set = |name: &str| std::env::var_os(name).is_some_and(|value| !value.is_empty());
    Screen::new(io::stdout().is_terminal() && !set("NO_COLOR")).table(headings, rows)
}

/// Prints a JSON document.
pub fn json(document: &Value) -> io::Result<()> {
    writeln!(io::stdout().lock(), "{document:#}")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn terminal(colours: bool) -> Screen {
        let now = "2026-11-17T12:00:00Z".parse().expect("a time");
        Screen { is_terminal: true, painter: Painter { on: colours }, width: 40, now }
    }

    fn cells<const COLUMNS: usize>(row: [&str; COLUMNS]) -> [Cell; COLUMNS] {
        row.map(Cell::from)
    }

    #[test]
    fn a_terminal_gets_columns_as_wide_as_what_is_in_them() {
        let rows = [["network", "", "yes"], ["größe-\u{1f32e}", "2 spaces", "no"]].map(cells);
        let expected = "\
NAME      WHAT      LOCKED
network             yes
größe-\u{1f32e}  2 spaces  no
";
        let screen = terminal(false);
        assert_eq!(screen.in_columns(["NAME", "WHAT", "LOCKED"], rows.into_iter()), expected);
        assert_eq!(screen.in_columns(["NAME", "LOCKED"], std::iter::empty()), "NAME  LOCKED\n");
        let hostile = cells(["\u{1b}[2Jgone\r\nbye", "x\ty"]);
        assert_eq!(screen.in_columns(["A", "B"], [hostile].into_iter()), "A              B\n [2Jgone  bye  x y\n");
    }

    #[test]
    fn the_last_column_is_cut_to_the_terminal() {
        let row = cells(["network", "a message that is longer than the terminal is wide"]);
        let text = terminal(false).in_columns(["NAME", "MESSAGE"], [row].into_iter());
        assert_eq!(text.lines().nth(1), Some("network  a message that is longer than…"));
        assert_eq!(cut("\u{1f32e}\u{1f32e}\u{1f32e}", 5), "\u{1f32e}\u{1f32e}…");
    }

    #[test]
    fn times_and_statuses_are_for_people_or_for_programs() {
        let row = || [Cell::Status("errored".into()), Cell::Time("2026-11-17T11:47:10.476579995Z".into())];
        let screen = terminal(true);
        let text = screen.in_columns(["STATUS", "CREATED"], [row()].into_iter());
        assert_eq!(text.lines().nth(1), Some("\u{1b}[31mfailed\u{1b}[0m  12 min ago"));
        let text = screen.tab_separated(["STATUS", "CREATED"], [row()].into_iter());
        assert_eq!(text, "STATUS\tCREATED\nerrored\t2026-11-17T11:47:10Z\n");
    }

    #[test]
    fn a_pipe_gets_a_line_of_headings_and_a_line_per_row() {
        let rows = [cells(["a", "b\tc\nd\u{1b}"])];
        assert_eq!(terminal(false).tab_separated(["ONE", "TWO"], rows.into_iter()), "ONE\tTWO\na\tb c d \n");
    }
}
