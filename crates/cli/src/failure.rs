//! Failure of a command, in at most three lines: what, why, what to do.

use std::fmt;
use std::io;
use std::process::ExitCode;

use taco_words::lock_text;

/// Sorted by what a script can do about it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Kind {
    /// The reader of our output has seen enough, as in `taco … | head`.
    NobodyReads,
    /// A person said no.
    Canceled,
    Error,
    Usage,
    NotFound,
    Conflict,
    Unreachable,
    Timeout,
}

#[derive(Debug)]
pub(crate) struct Failure {
    pub(crate) kind: Kind,
    what: String,
    why: Option<String>,
    hint: Option<String>,
}

impl Failure {
    pub(crate) fn new(kind: Kind, what: impl Into<String>) -> Self {
        Self { kind, what: what.into(), why: None, hint: None }
    }

    pub(crate) fn error(what: impl Into<String>) -> Self {
        Self::new(Kind::Error, what)
    }

    pub(crate) fn usage(what: impl Into<String>) -> Self {
        Self::new(Kind::Usage, what)
    }

    pub(crate) fn because(self, why: impl fmt::Display) -> Self {
        let why = Some(why.to_string()).filter(|why| !why.is_empty());
        Self { why, ..self }
    }

    /// Adds a hint what to do about it.
    pub(crate) fn hint(self, hint: impl Into<String>) -> Self {
        Self { hint: Some(hint.into()), ..self }
    }

    /// Adds a hint what to do about it, if it is of this kind.
    pub(crate) fn hint_if(self, kind: Kind, hint: impl FnOnce() -> String) -> Self {
        if self.kind == kind { self.hint(hint()) } else { self }
    }

    /// What it is and why, on one line.
    pub(crate) fn summary(&self) -> String {
        let why = self.why.as_ref().map(|why| format!(": {}", one_line(&lock_text::for_people(why))));
        let why = why.unwrap_or_default();
        format!("{}{why}", one_line(&self.what))
    }

    pub(crate) fn is(&self, kind: Kind) -> bool {
        self.kind == kind
    }

    /// True if nobody is logged in, so that nothing can be found.
    pub(crate) fn is_about_login(&self) -> bool {
        self.hint.as_ref().is_some_and(|hint| hint.contains("taco login"))
    }

    /// True if the reason contains this text.
    pub(crate) fn says(&self, words: &str) -> bool {
        self.why.as_ref().is_some_and(|why| why.contains(words))
    }

    /// The reason, or what failed where no reason is known.
    pub(crate) fn reason(&self) -> &str {
        self.why.as_deref().unwrap_or(&self.what)
    }

    /// Says it, and returns what the process ends with.
    pub(crate) fn report(&self) -> ExitCode {
        let code = match self.kind {
            Kind::NobodyReads => return ExitCode::SUCCESS,
            Kind::Canceled => {
                eprintln!("{}", one_line(&self.what));
                return ExitCode::FAILURE;
            }
            Kind::Error => 1,
            Kind::Usage => 2,
            Kind::NotFound => 3,
            Kind::Conflict => 4,
            Kind::Unreachable => 5,
            // Of `timeout`, which ends a program that takes too long.
            Kind::Timeout => 124,
        };
        eprintln!("{self}");
        ExitCode::from(code)
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "error: {}", one_line(&self.what))?;
        for more in [&self.why, &self.hint].into_iter().flatten() {
            write!(formatter, "\n  {}", one_line(&lock_text::for_people(more)))?;
        }
        Ok(())
    }
}

/// Texts come from servers too: each keeps to its line, and cannot steer the terminal.
fn one_line(text: &str) -> String {
    let words: Vec<_> = text.split_whitespace().collect();
    words.join(" ").chars().filter(|letter| !letter.is_control()).collect()
}

impl From<io::Error> for Failure {
    fn from(error: io::Error) -> Self {
        match error.kind() {
            io::ErrorKind::BrokenPipe => Self::new(Kind::NobodyReads, "nobody reads"),
            _ => Self::error(error.to_string()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_is_what_why_and_what_to_do_in_three_lines() {
        let failure = Failure::error("this").because("that\nand \u{1b}[31mthat").hint("try again");
        assert_eq!(failure.to_string(), "error: this\n  that and [31mthat\n  try again");
        assert_eq!(Failure::error("this").because("").to_string(), "error: this");
    }

    #[test]
    fn a_hint_is_for_its_kind() {
        let conflict = || Failure::new(Kind::Conflict, "this");
        assert_eq!(conflict().hint_if(Kind::Conflict, || "wait".into()).to_string(), "error: this\n  wait");
        assert_eq!(conflict().hint_if(Kind::NotFound, || "wait".into()).to_string(), "error: this");
    }
}
