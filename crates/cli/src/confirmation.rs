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
        Self::put(session, deed)?;
        let mut answer = String::new();
        io::stdin().lock().read_line(&mut answer)?;
        judge(&answer)
    }

    /// The same while something else listens to Ctrl-C, which is a no then.
    pub(crate) async fn ask_until_interrupted(&self, session: &Session, deed: &str) -> Result<(), Failure> {
        if self.yes {
            return Ok(());
        }
        Self::put(session, deed)?;
        let (sender, answer) = tokio::sync::oneshot::channel();
        // Nobody can end the reading; the process ends without it.
        std::thread::spawn(move || {
            let mut answer = String::new();
            let read = io::stdin().lock().read_line(&mut answer).map(|_| answer);
            let _ = sender.send(read);
        });
        tokio::select! {
            answer = answer => judge(&answer.map_err(io::Error::other)??),
            _ = tokio::signal::ctrl_c() => {
                eprintln!();
                judge("")
            }
        }
    }

    fn put(session: &Session, deed: &str) -> Result<(), Failure> {
        if !session.may_ask() {
            return Err(Failure::usage(format!("confirmation required to {deed}"))
                .because("there is no terminal to ask on, or --no-input was given")
                .hint("add --yes"));
        }
        let mut err = io::stderr().lock();
        write!(err, "Do you want to {deed}? [y/N] ")?;
        Ok(err.flush()?)
    }
}

fn judge(answer: &str) -> Result<(), Failure> {
    match answer.trim().to_ascii_lowercase().as_str() {
        "y" | "yes" => Ok(()),
        _ => Err(Failure::new(Kind::Canceled, "Canceled.")),
    }
}
