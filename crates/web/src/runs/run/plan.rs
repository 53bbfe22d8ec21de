//! `…/runs/{run}/plan/{form}`: what a plan found, as a file for programs.

use axum::body::Body;
use axum::extract::{Path, State};
use axum::http::header::{CONTENT_DISPOSITION, CONTENT_LENGTH, CONTENT_TYPE};
use axum::response::{IntoResponse, Response};
use serde::Deserialize;
use taco_control_plane::{PlanForm, PlanOutput, RunView};
use taco_domain::permission::Action;
use taco_domain::phase::PhaseStatus;

use crate::Web;
use crate::error::PageError;
use crate::run::page::{RunPath, address_of, find};
use crate::visitor::Visitor;

/// One of the files that the run's page links to.
pub(crate) struct PlanFile {
    pub(crate) address: String,
    pub(crate) words: &'static str,
    pub(crate) hint: &'static str,
}

impl PlanFile {
    /// Those that the visitor may have, once there are any.
    pub(crate) fn all_for(visitor: &Visitor, view: &RunView) -> Vec<Self> {
        if view.run.plan.status != PhaseStatus::Finished {
            return Vec::new();
        }
        let at = |form: &str| format!("{}/plan/{form}", address_of(view));
        let redacted =
            Self { address: at("redacted"), words: "Redacted JSON", hint: "What sensitive values are is left out" };
        let whole = Self {
            address: at("whole"),
            words: "Full JSON (contains secrets)",
            hint: "It holds everything, sensitive values too",
        };
        let may_have_all = visitor.caller.may(Action::ReadWholePlan, view.resource()).allowed;
        if may_have_all { vec![redacted, whole] } else { vec![redacted] }
    }
}

#[derive(Deserialize)]
pub(crate) struct FormPath {
    form: String,
}

/// `GET …/runs/{run}/plan/{form}`
pub(crate) async fn download(
    State(web): State<Web>,
    visitor: Visitor,
    Path(path): Path<RunPath>,
    Path(FormPath { form: name }): Path<FormPath>,
) -> Result<Response, PageError> {
    let form = match name.as_str() {
        "redacted" => PlanForm::Redacted,
        "whole" => PlanForm::Json,
        _ => return Err(PageError::not_found("page")),
    };
    let view = find(&web, &visitor, &path).await?;
    match web.control_plane.plan_output(&visitor.caller, view.run.plan_id(), form).await? {
        PlanOutput::Ready(download) => {
            let headers = [
                (CONTENT_TYPE, "application/json".to_owned()),
                (CONTENT_LENGTH, download.size.to_string()),
                (CONTENT_DISPOSITION, format!("attachment; filename=\"{}-plan-{name}.json\"", view.run.id)),
            ];
            Ok((headers, Body::from_stream(download.body)).into_response())
        }
        PlanOutput::NotYet => Err(PageError::not_found("plan")),
    }
}
