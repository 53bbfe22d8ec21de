//! `taco run watch`

use std::process::ExitCode;
use std::time::Duration;

use clap::Args;

use super::logs::{self, Phase};
use super::tasks::ToldTasks;
use super::{Runs, changes, contract, may, plan, policies, waits};
use crate::failure::{Failure, Kind};
use crate::output;
use crate::resource::{Document, Resource};
use crate::status;

/// Interval of asking for a run that waits.
const RUN_POLL_INTERVAL: Duration = Duration::from_millis(500);

/// Exit code of `terraform plan -detailed-exitcode`: it succeeded, and there are changes.
const CHANGES_EXIT_CODE: u8 = 2;

/// Exit code that shells give to what Ctrl-C ended.
const INTERRUPTED_EXIT_CODE: u8 = 130;

#[derive(Args, Clone, Default, Debug)]
pub(super) struct Options {
    /// Stop watching after this time, such as 90s, 15m or 2h; the run continues
    #[arg(long, value_name = "TIME", value_parser = duration)]
    pub(super) timeout: Option<Duration>,
    /// True after confirming a plan, which people have seen by then.
    #[arg(skip)]
    pub(super) after_plan: bool,
    /// True if a person is asked for approval afterwards, and needs no hint how to give it.
    #[arg(skip)]
    pub(super) asks_later: bool,
}

/// A number of seconds, minutes or hours; without a unit they are seconds.
fn duration(text: &str) -> Result<Duration, String> {
    let (number, unit) = text.split_at(text.trim_end_matches(|letter: char| letter.is_ascii_alphabetic()).len());
    let seconds = match unit {
        "" | "s" => 1,
        "m" => 60,
        "h" => 3600,
        _ => 0,
    };
    match number.parse::<u64>().ok().and_then(|number| number.checked_mul(seconds)) {
        Some(seconds) if seconds > 0 => Ok(Duration::from_secs(seconds)),
        _ => Err("write it as 90s, 15m or 2h".to_owned()),
    }
}

/// A time that nothing would use was meant in another way.
pub(super) fn check(watches: bool, options: &Options) -> Result<(), Failure> {
    if options.timeout.is_some() && !watches {
        return Err(Failure::usage("nothing is watched").because("--timeout ends the watching").hint("add --watch"));
    }
    Ok(())
}

/// Tells what a run does until it is over or needs someone. Ctrl-C ends the watching, not the run.
pub(super) async fn watch(runs: &Runs<'_>, id: &str, options: &Options) -> Result<ExitCode, Failure> {
    let time_is_up = async {
        match options.timeout {
            Some(time) => tokio::time::sleep(time).await,
            None => std::future::pending().await,
        }
    };
    tokio::select! {
        ended = watch_until_settled(runs, id, options) => ended,
        () = time_is_up => {
            Err(Failure::new(Kind::Timeout, format!("run {id} is not over after the time that --timeout allows"))
                .because("the run continues")
                .hint(format!("`taco run watch {id}` shows it again, `taco run cancel {id}` stops it")))
        }
        _ = tokio::signal::ctrl_c() => {
            if runs.session.is_local() {
                return interrupt(runs, id).await;
            }
            eprintln!("\nThe run continues. `taco run watch {id}` shows it again, `taco run cancel {id}` stops it.");
            Ok(ExitCode::from(INTERRUPTED_EXIT_CODE))
        }
    }
}

/// True if Ctrl-C has ended the watching.
pub(super) fn is_interrupted(code: ExitCode) -> bool {
    code == ExitCode::from(INTERRUPTED_EXIT_CODE)
}

/// Cancels a run that nobody else would go on with, as terraform ends when it is interrupted. What applies may finish what
/// it has begun.
async fn interrupt(runs: &Runs<'_>, id: &str) -> Result<ExitCode, Failure> {
    eprintln!(
        "\nInterrupted: the run is canceled. Ctrl-C again stops at once, and then not all that it did may be in the state."
    );
    let ending = async {
        let mut is_asked = false;
        loop {
            let (run, beside) = runs.read(id).await?;
            if !is_asked && (may(&run, "is-cancelable") || may(&run, "is-discardable")) {
                let action = if may(&run, "is-cancelable") { "cancel" } else { "discard" };
                // It may have ended meanwhile.
                is_asked = runs.act(&run, action, &serde_json::json!({})).await.is_ok();
            } else if ending(&run, &beside, &Options { asks_later: true, ..Options::default() }).is_some() {
                return Ok(());
            }
            tokio::time::sleep(runs.session.poll_interval(RUN_POLL_INTERVAL)).await;
        }
    };
    tokio::select! {
        ended = ending => ended.map(|()| ExitCode::from(INTERRUPTED_EXIT_CODE)),
        // The process that watches over the engine ends it when this one is gone.
        _ = tokio::signal::ctrl_c() => std::process::exit(INTERRUPTED_EXIT_CODE.into()),
    }
}

async fn watch_until_settled(runs: &Runs<'_>, id: &str, options: &Options) -> Result<ExitCode, Failure> {
    let (mut told, mut told_tasks) = (String::new(), ToldTasks::default());
    let mut logged = if options.after_plan { vec![Phase::Plan] } else { Vec::new() };
    // A page lives no longer than its server.
    let (mut shows_page, mut shows_plan) =
        (!runs.session.quiet && !runs.session.json && !runs.session.is_local(), false);
    loop {
        let (run, beside) = runs.read(id).await?;
        if std::mem::take(&mut shows_page) {
            output::line(runs.page(&run, &beside).as_str())?;
        }
        // The log ends a moment before the plan does.
        if shows_plan && beside.related(&run, "plan").is_some_and(is_over) {
            shows_plan = false;
            plan::show(runs, &run, &beside).await?;
        }
        // What is told about a plan comes after it.
        if !(runs.session.json || shows_plan || next_log(&run, &beside, &logged).is_some()) {
            told_tasks.tell(runs, &run).await?;
        }
        let phase = next_log(&run, &beside, &logged).filter(|_| !runs.session.quiet && !runs.session.json);
        // What came of a phase is told after its log, also if it was quicker than we are.
        let line = in_words(&run, &beside);
        // The agent within this process is there in a moment.
        let is_about_agent = runs.session.is_local() && waits_for_agent(&run);
        let over = phase.is_some_and(|phase| beside.related(&run, phase.name()).is_some_and(is_over));
        if line != told && !over && !is_about_agent {
            let line = if runs.session.json { run.plain().to_string() } else { line.clone() };
            output::line(&line)?;
        }
        if !over {
            told = line;
        }
        if let Some(phase) = phase {
            // It returns when the phase is over.
            let is_structured = logs::follow(runs, id, phase, logs::Shown::WithoutPlan).await?;
            // A log that is plain text has the whole plan in it.
            shows_plan = phase == Phase::Plan && is_structured;
            logged.push(phase);
            continue;
        }
        if let Some(ended) = ending(&run, &beside, options) {
            return ended;
        }
        tokio::time::sleep(runs.session.poll_interval(RUN_POLL_INTERVAL)).await;
    }
}

fn in_words(run: &Resource, beside: &Document) -> String {
    // "Needs approval" says already what it waits for.
    let waits = if may(run, "is-confirmable") { String::new() } else { waits(run) };
    let details = [changes(run, beside), waits];
    let details = details.into_iter().filter(|detail| !detail.is_empty()).collect::<Vec<_>>().join("; ");
    let separator = if details.is_empty() { "" } else { ": " };
    format!("Run {} {}{separator}{details}", run.id(), status::sentence(&run.text("status")))
}

/// True if nothing but an agent is missing.
fn waits_for_agent(run: &Resource) -> bool {
    let reasons = run.get("taco-wait-reasons").as_array().map(Vec::as_slice).unwrap_or_default();
    !reasons.is_empty() && reasons.iter().all(|reason| reason["reason"] == "no-agent")
}

fn is_over(phase: &Resource) -> bool {
    ["finished", "errored", "canceled"].contains(&phase.text("status").as_str())
}

/// The phase whose log is to be shown next: one that has begun, also if it is over already.
fn next_log(run: &Resource, beside: &Document, logged: &[Phase]) -> Option<Phase> {
    let next = [Phase::Plan, Phase::Apply].into_iter().find(|phase| !logged.contains(phase))?;
    let phase = beside.related(run, next.name())?;
    (phase.get("status") == "running" || is_over(phase)).then_some(next)
}

/// Result of watching, if the run rests.
fn ending(run: &Resource, beside: &Document, options: &Options) -> Option<Result<ExitCode, Failure>> {
    let status = run.text("status");
    let id = run.id();
    match status.as_str() {
        "applied" => Some(Ok(ExitCode::SUCCESS)),
        "planned_and_finished" if run.get("has-changes") == true => Some(Ok(ExitCode::from(CHANGES_EXIT_CODE))),
        "planned_and_finished" => Some(Ok(ExitCode::SUCCESS)),
        "errored" | "canceled" | "discarded" | "force_canceled" | "policy_soft_failed" => {
            let errors =
                ["plan", "apply"].map(|phase| beside.related(run, phase).map(|phase| phase.text("taco-error")));
            policies::print(run);
            let why = errors.into_iter().flatten().find(|error| !error.is_empty()).unwrap_or_default();
            let failure = Failure::error(format!("run {id} {}", status::sentence(&status))).because(why);
            Some(Err(failure.hint(format!("`taco run logs {id}` and `taco run show {id}` have details"))))
        }
        "policy_override" => {
            policies::print(run);
            eprintln!("`taco run override {id}` lets it go on, `taco run discard {id}` discards it.");
            Some(Ok(ExitCode::from(CHANGES_EXIT_CODE)))
        }
        _ if may(run, "is-confirmable") && options.asks_later => Some(Ok(ExitCode::from(CHANGES_EXIT_CODE))),
        _ if may(run, "is-confirmable") => {
            contract::print(run);
            // A run that waits for approval anyway needs no other word.
            let word =
                if contract::stops(run) && run.get("auto-apply") == true { " --accept-output-changes" } else { "" };
            eprintln!("`taco run apply {id}{word}` applies it, `taco run discard {id}` discards it.");
            Some(Ok(ExitCode::from(CHANGES_EXIT_CODE)))
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn code(status: &str, has_changes: bool, is_confirmable: bool) -> Option<String> {
        let attributes = json!({
            "status": status, "has-changes": has_changes, "actions": { "is-confirmable": is_confirmable },
        });
        let document = Document::from(json!({ "data": { "id": "run-1", "attributes": attributes } }));
        let ended = ending(&document.data[0], &document, &Options::default())?;
        Some(ended.map_or_else(|failure| failure.to_string(), |code| format!("{code:?}")))
    }

    #[test]
    fn a_time_has_a_unit() {
        for (text, seconds) in [("90", Some(90)), ("90s", Some(90)), ("15m", Some(900)), ("2h", Some(7200))] {
            assert_eq!(duration(text).ok().map(|time| time.as_secs()), seconds, "{text}");
        }
        for text in ["", "0", "m", "-1s", "1d", "1.5h", "99999999999999999999h", "18446744073709551615h"] {
            assert!(duration(text).is_err(), "{text}");
        }
    }

    #[test]
    fn it_ends_as_terraform_would() {
        let ends_with = |code: u8| Some(format!("{:?}", ExitCode::from(code)));
        assert_eq!(code("applied", true, false), ends_with(0));
        assert_eq!(code("planned_and_finished", false, false), ends_with(0));
        assert_eq!(code("planned_and_finished", true, false), ends_with(2));
        assert_eq!(code("planned", true, true), ends_with(2));
        assert_eq!(code("planned_and_saved", true, true), ends_with(2));
        assert_eq!(code("planning", false, false), None);
        assert_eq!(code("planned", true, false), None, "it applies by itself");
        for (status, words) in [("errored", "failed"), ("canceled", "was canceled"), ("discarded", "was discarded")] {
            let said = code(status, false, false).expect("it is over");
            assert!(said.starts_with(&format!("error: run run-1 {words}\n  `taco run logs")), "{said}");
        }
    }
}
