//! `taco run logs`

use std::io::{self, Write};

use clap::{Args, ValueEnum};
use url::Url;

use super::Runs;
use crate::failure::{Failure, Kind};
use crate::log_lines::{self, LogLines};
use crate::resource::Resource;
use crate::session::Session;
use crate::status;

/// Size of a log chunk in one request.
const LOG_CHUNK_BYTES: usize = 64 * 1024;

#[derive(Args, Debug)]
pub(super) struct Logs {
    /// Run [default: the workspace's latest]
    run: Option<String>,
    /// Only the log of this phase
    #[arg(long, value_enum)]
    phase: Option<Phase>,
    /// Follow the log until the phase is over
    #[arg(long, short)]
    follow: bool,
}

#[derive(Clone, Copy, PartialEq, Eq, ValueEnum, Debug)]
pub(super) enum Phase {
    Plan,
    Apply,
}

impl Phase {
    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Plan => "plan",
            Self::Apply => "apply",
        }
    }
}

pub(super) async fn print(runs: &Runs<'_>, wanted: &Logs) -> Result<(), Failure> {
    let (run, beside) = runs.find(wanted.run.as_deref()).await?;
    let begun = |phase: Phase| {
        beside.related(&run, phase.name()).is_some_and(|phase| {
            let waited = phase.get("taco-waits").as_array().is_some_and(|waits| !waits.is_empty());
            waited || !["pending", "queued", "unreachable"].contains(&phase.text("status").as_str())
        })
    };
    let phases = match wanted.phase {
        Some(phase) => vec![phase],
        // A plan that has not begun is waited for; an apply only if it is on its way.
        None if wanted.follow && !begun(Phase::Apply) => vec![Phase::Plan],
        None => [Phase::Plan, Phase::Apply].into_iter().filter(|phase| begun(*phase)).collect(),
    };
    let there = phases.iter().any(|phase| begun(*phase));
    if !there && !wanted.follow {
        let id = run.id();
        return Err(Failure::new(Kind::NotFound, format!("run {id} has no such log yet"))
            .because(format!("the run {}", status::sentence(&run.text("status"))))
            .hint(format!("`taco run logs {id} --follow` waits for it; `taco run show {id}` says why it waits")));
    }
    for phase in phases {
        if wanted.follow {
            follow(runs, run.id(), phase, Shown::All).await?;
        } else {
            so_far(runs, run.id(), phase).await?;
        }
    }
    Ok(())
}

/// The phase, with the address of its log.
async fn read(runs: &Runs<'_>, run: &str, phase: Phase) -> Result<Resource, Failure> {
    let subject = format!("{} of run {run}", phase.name());
    crate::api::one(runs.session.api.get(&subject, &["runs", run, phase.name()], &[]).await?)
}

/// Some bytes of a log. A server lets one wait who has read everything and is to read more.
async fn piece(runs: &Runs<'_>, run: &str, phase: &Resource, offset: usize) -> Result<Vec<u8>, Failure> {
    let subject = format!("log of run {run}");
    let address = phase.text("log-read-url");
    let mut url = Url::parse(&address)
        .map_err(|error| Failure::error(format!("{subject}: the server gave a wrong address")).because(error))?;
    url.set_query(Some(&format!("limit={LOG_CHUNK_BYTES}&offset={offset}")));
    runs.session.api.download(&subject, url.as_str()).await
}

/// Lines of a log that are wanted.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Shown {
    All,
    /// What the plan would do is shown in another way.
    WithoutPlan,
}

fn show(session: &Session, lines: impl IntoIterator<Item = String>, shown: Shown) -> Result<(), Failure> {
    let mut out = io::stdout().lock();
    for line in lines {
        if shown == Shown::WithoutPlan && log_lines::is_part_of_plan(&line) {
            continue;
        }
        if session.json {
            writeln!(out, "{}", log_lines::as_json(&line))?;
        } else {
            writeln!(out, "{}", log_lines::as_text(&line, session.screen.painter()))?;
        }
    }
    Ok(out.flush()?)
}

async fn so_far(runs: &Runs<'_>, run: &str, phase: Phase) -> Result<(), Failure> {
    let phase = read(runs, run, phase).await?;
    let (mut log, mut offset) = (LogLines::default(), 0);
    loop {
        let bytes = piece(runs, run, &phase, offset).await?;
        offset += bytes.len();
        show(runs.session, log.add(&bytes), Shown::All)?;
        // Less than was asked for is all there is.
        if log.ended || bytes.len() < LOG_CHUNK_BYTES {
            return show(runs.session, log.finish(), Shown::All);
        }
    }
}

/// Prints a log until its phase is over. Returns whether its lines are terraform's JSON.
pub(super) async fn follow(runs: &Runs<'_>, run: &str, phase: Phase, shown: Shown) -> Result<bool, Failure> {
    let mut found = read(runs, run, phase).await?;
    let (mut log, mut offset, mut is_structured) = (LogLines::default(), 0, false);
    loop {
        let bytes = piece(runs, run, &found, offset).await?;
        offset += bytes.len();
        let lines = log.add(&bytes);
        is_structured |= lines.iter().any(|line| log_lines::is_structured(line));
        show(runs.session, lines, shown)?;
        if log.ended {
            show(runs.session, log.finish(), shown)?;
            return Ok(is_structured);
        }
        if bytes.is_empty() {
            let over = ["finished", "errored", "canceled", "unreachable"].contains(&found.text("status").as_str());
            if over {
                show(runs.session, log.finish(), shown)?;
                return Ok(is_structured);
            }
            // A phase whose agent is gone ends without the mark; and addresses do not live for ever.
            found = read(runs, run, phase).await?;
        }
    }
}
