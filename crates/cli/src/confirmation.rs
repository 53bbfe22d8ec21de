//! Asks before something is lost.

use std::io::{self, BufRead, IsTerminal, Write};

use clap::Args;

use crate::failure::{Failure, Kind};
use crate::session::Session;

#[derive(Args, Debug)]
pub(crate) struct Confirmation {
    /// Do not ask
    #[arg(long, short)]
    yes: bool,
}

impl Confirmation {
    /// Goes on only if someone wants it. `deed` completes "do you want to …".
    pub(crate) fn ask(&self, session: &Session, deed: &str) -> Result<(), Failure> {
        if self.yes {
            return Ok(());
        }
        if session.no_input || !(io::stdin().is_terminal() && io::stderr().is_terminal()) {
            return Err(Failure::usage(format!("it is not sure that you want to {deed}"))
                .because("there is no terminal to ask you on, or --no-input forbids it")
                .hint("add --yes"));
        }
        let mut err = io::stderr().lock();
        write!(err, "Do you want to {deed}? [y/N] ")?;
        err.flush()?;
        let mut answer = String::new();
        io::stdin().lock().read_line(&mut answer)?;
        match answer.trim().to_ascii_lowercase().as_str() {
            "y" | "yes" => Ok(()),
            _ => Err(Failure::new(Kind::Error, "nothing was done")),
        }
    }
}
