//! Forms about dependencies: declare one, mute it, say what a change of it does, acknowledge it.

use axum::extract::{Path, State};
use axum::response::Response;
use serde::Deserialize;
use taco_control_plane::{DependencyPatch, DependencyView, NewDependency};
use taco_domain::graph::dependency::DependencyId;

use crate::Web;
use crate::dependencies;
use crate::error::PageError;
use crate::flash::Flash;
use crate::form::{Complaint, Nothing, VisitorForm};
use crate::navigation::workspace_address;
use crate::visitor::Visitor;
use crate::workspace::named;

/// Fields next to which the form can show an error.
const FIELDS: [&str; 2] = ["producer", "outputs"];

/// A form that says that the workspace uses another's outputs.
#[derive(Clone, Deserialize, Default)]
#[serde(default)]
pub(crate) struct Declaration {
    pub(crate) producer: String,
    /// Names, separated by commas, blanks or lines; empty is all.
    pub(crate) outputs: String,
    #[serde(skip)]
    pub(crate) complaint: Complaint,
}

impl Declaration {
    fn request(&self) -> NewDependency {
        let names = self.outputs.split([',', ' ', '\n', '\r', '\t']).filter(|name| !name.is_empty());
        let names: std::collections::BTreeSet<String> = names.map(str::to_owned).collect();
        NewDependency {
            producer: self.producer.trim().to_owned(),
            outputs: Some(names).filter(|names| !names.is_empty()),
            place: None,
        }
    }
}

/// A dependency of a workspace, as paths name it.
#[derive(Deserialize)]
pub(crate) struct Place {
    organization: String,
    workspace: String,
    dependency: String,
}

impl Place {
    fn id(&self) -> Result<DependencyId, PageError> {
        self.dependency.parse().map_err(|_| PageError::not_found("dependency"))
    }

    fn done(&self, flash: String) -> Response {
        let address = workspace_address(&self.organization, &self.workspace);
        Flash::says(flash).redirect_to(&format!("{address}/dependencies"))
    }
}

/// A form with a reason, which may be left out.
#[derive(Deserialize, Default)]
#[serde(default)]
pub(crate) struct WithReason {
    reason: String,
}

impl WithReason {
    fn text(&self) -> Option<String> {
        Some(self.reason.trim().to_owned()).filter(|reason| !reason.is_empty())
    }
}

#[derive(Deserialize)]
pub(crate) struct Policy {
    policy: String,
}

/// `POST …/dependencies`
pub(crate) async fn declare(
    State(web): State<Web>,
    Path(path): Path<(String, String)>,
    VisitorForm(visitor, form): VisitorForm<Declaration>,
) -> Result<Response, PageError> {
    let workspace = named(path.clone());
    match web.control_plane.declare_dependency(&visitor.caller, &workspace, form.request()).await {
        Ok(view) => {
            let flash =
                Flash::says(format!("Declared that {} uses outputs of {}.", view.edge.consumer, view.edge.producer));
            Ok(flash.redirect_to(&format!("{}/dependencies", workspace_address(&path.0, &path.1))))
        }
        Err(error) => {
            let form = Declaration { complaint: Complaint::of(error, &FIELDS)?, ..form };
            dependencies::show_again(&web, &visitor, path, form).await
        }
    }
}

async fn update(
    web: &Web,
    visitor: &Visitor,
    place: &Place,
    patch: DependencyPatch,
) -> Result<DependencyView, PageError> {
    Ok(web.control_plane.update_dependency(&visitor.caller, place.id()?, patch).await?)
}

/// `POST …/dependencies/{dependency}/policy`
pub(crate) async fn set_policy(
    State(web): State<Web>,
    Path(place): Path<Place>,
    VisitorForm(visitor, form): VisitorForm<Policy>,
) -> Result<Response, PageError> {
    let patch = DependencyPatch { policy: Some(form.policy), ..DependencyPatch::default() };
    let view = update(&web, &visitor, &place, patch).await?;
    Ok(place.done(format!("Dependency on {} saved.", view.edge.producer)))
}

/// `POST …/dependencies/{dependency}/mute`
pub(crate) async fn mute(
    State(web): State<Web>,
    Path(place): Path<Place>,
    VisitorForm(visitor, form): VisitorForm<WithReason>,
) -> Result<Response, PageError> {
    let patch = DependencyPatch { muted: Some(true), reason: form.text(), policy: None };
    let view = update(&web, &visitor, &place, patch).await?;
    Ok(place.done(format!("Dependency on {} muted.", view.edge.producer)))
}

/// `POST …/dependencies/{dependency}/unmute`
pub(crate) async fn unmute(
    State(web): State<Web>,
    Path(place): Path<Place>,
    VisitorForm(visitor, Nothing {}): VisitorForm<Nothing>,
) -> Result<Response, PageError> {
    let patch = DependencyPatch { muted: Some(false), ..DependencyPatch::default() };
    let view = update(&web, &visitor, &place, patch).await?;
    Ok(place.done(format!("Dependency on {} counts again.", view.edge.producer)))
}

/// `POST …/dependencies/{dependency}/acknowledge`
pub(crate) async fn acknowledge(
    State(web): State<Web>,
    Path(place): Path<Place>,
    VisitorForm(visitor, form): VisitorForm<WithReason>,
) -> Result<Response, PageError> {
    let view = web.control_plane.acknowledge_dependency(&visitor.caller, place.id()?, form.text()).await?;
    Ok(place.done(format!("Outputs of {} acknowledged.", view.edge.producer)))
}

/// `POST …/dependencies/{dependency}/trigger`
pub(crate) async fn trigger(
    State(web): State<Web>,
    Path(place): Path<Place>,
    VisitorForm(visitor, Nothing {}): VisitorForm<Nothing>,
) -> Result<Response, PageError> {
    let view = web.control_plane.dependency(&visitor.caller, place.id()?).await?;
    let made = web.control_plane.trigger_over_dependency(&visitor.caller, &view).await?;
    Ok(place.done(format!(
        "Applies of {} that change outputs which {} uses now start a run.",
        made.source.name, made.workspace.name
    )))
}

/// `POST …/dependencies/{dependency}/remove`
pub(crate) async fn remove(
    State(web): State<Web>,
    Path(place): Path<Place>,
    VisitorForm(visitor, Nothing {}): VisitorForm<Nothing>,
) -> Result<Response, PageError> {
    web.control_plane.delete_dependency(&visitor.caller, place.id()?).await?;
    Ok(place.done("Declaration removed.".to_owned()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_outputs_are_separated_by_whatever_people_type() {
        let form = Declaration {
            producer: " network ".into(),
            outputs: "vpc_id, subnets\r\ncidr".into(),
            ..Declaration::default()
        };
        let request = form.request();
        assert_eq!(request.producer, "network");
        assert_eq!(Vec::from_iter(request.outputs.expect("names")), ["cidr", "subnets", "vpc_id"]);
        assert!(Declaration::default().request().outputs.is_none());
    }
}
