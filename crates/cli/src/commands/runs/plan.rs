//! The plan of a run, with its attributes.

use std::io::{self, Write};

use serde_json::Value;

use super::Runs;
use crate::colour::Painter;
use crate::failure::Failure;
use crate::plan_text::Plan;
use crate::resource::{Document, Resource};

/// Plans of more than this are not downloaded: the page shows them.
const MAX_PLAN_BYTES: usize = 64 * 1024 * 1024;

/// The plan, if there is one that somebody may see.
pub(super) async fn read(runs: &Runs<'_>, run: &Resource, beside: &Document) -> Result<Option<Plan>, Failure> {
    let Some(plan) = beside.related(run, "plan").filter(|plan| plan.get("status") == "finished") else {
        return Ok(None);
    };
    let subject = format!("plan of run {}", run.id());
    let path = ["plans", plan.id(), "json-output-redacted"];
    let Some(json) = runs.session.api.bytes(&subject, &path, MAX_PLAN_BYTES).await? else { return Ok(None) };
    Plan::parse(&json).map(Some).map_err(|error| Failure::error(format!("{subject} can't be read")).because(error))
}

fn text(run: &Resource, plan: &Plan, painter: Painter) -> String {
    plan.render(painter, run.get("refresh-only") == &Value::Bool(true))
}

/// Prints a plan that was asked for.
pub(super) fn print(runs: &Runs<'_>, run: &Resource, plan: &Plan) -> Result<(), Failure> {
    Ok(write!(io::stdout().lock(), "{}", text(run, plan, runs.session.screen.painter()))?)
}

/// Prints the plan. One that cannot be had is no reason to stop: the page has it.
pub(super) async fn show(runs: &Runs<'_>, run: &Resource, beside: &Document) -> Result<(), Failure> {
    if let Some(text) = fetched(runs, run, beside, runs.session.screen.painter()).await {
        writeln!(io::stdout().lock(), "{text}")?;
    }
    Ok(())
}

/// Shows the plan to the person who is asked whether to apply it.
pub(super) async fn show_before_question(runs: &Runs<'_>, run: &Resource, beside: &Document) {
    if let Some(text) = fetched(runs, run, beside, runs.session.painter_of_errors).await {
        eprintln!("{text}");
    }
}

async fn fetched(runs: &Runs<'_>, run: &Resource, beside: &Document, painter: Painter) -> Option<String> {
    match read(runs, run, beside).await {
        Ok(plan) => plan.map(|plan| text(run, &plan, painter)),
        Err(failure) => {
            let page = runs.page(run, beside);
            eprintln!("The plan can't be shown here ({}). See {page}", failure.summary());
            None
        }
    }
}
