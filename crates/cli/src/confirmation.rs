//! Asks before something is lost.

use std::io::{self, BufRead, Write};

use clap::Args;

use crate::failure::{Failure, Kind};
use crate::session::Session;

#[derive(Args, Debug)]
pub(crate) struct Confirmation {
    /// Don't ask for confirmation
    #[arg(long, short)]
    yes: bool,
}

impl Confirmation {
    /// True if nobody is asked.
    pub(crate) fn is_given(&self) -> bool {
        self.yes
    }

    /// Goes on only if someone wants it. `deed` completes "do you want to …".
    pub(crate) fn ask(&self, session: &Session, deed: &str) -> Result<(), Failure> {
        if self.yes {
            return Ok(());
        }
        if !session.may_ask() {
            return Err(Failure::usage(format!("confirmation required to {deed}"))
                .because("there is no terminal to ask on, or --no-input was given")
                .hint("add --yes"));
        }
        let mut err = io::stderr().lock();
        write!(err, "Do you want to {deed}? [y/N] ")?;
        err.flush()?;
        let mut answer = String::new();
        io::stdin().lock().read_line(&mut answer)?;
        match answer.trim().to_ascii_lowercase().as_str() {
            "y" | "yes" => Ok(()),
            _ => Err(Failure::new(Kind::Canceled, "Canceled.")),
        }
    }
}
