//! `/app/{organization}/workspaces/{workspace}/runs/new`: starts a run of the latest configuration.

use askama::Template;
use axum::extract::{Path, State};
use axum::http::StatusCode;
use axum::response::{IntoResponse, Redirect, Response};
use serde::Deserialize;
use taco_control_plane::WorkspaceView;
use taco_domain::permission::Action;
use taco_domain::run::RunSource;
use taco_domain::run_request::RunRequest;

use crate::error::PageError;
use crate::form::{Complaint, VisitorForm};
use crate::navigation::{WorkspaceSection, workspace_address};
use crate::page::Layout;
use crate::run::page::address_of;
use crate::runs::WorkspacePath;
use crate::text::Moment;
use crate::visitor::Visitor;
use crate::{Web, notice, page};

/// What the form holds, and holds again after a mistake.
#[derive(Clone, Default, Deserialize)]
#[serde(default)]
pub(crate) struct NewRunForm {
    kind: String,
    message: String,
    /// One address on each line.
    targets: String,
    replace: String,
    auto_apply: String,
}

/// The kinds of runs, as the form offers them.
const KINDS: [(&str, &str, &str); 5] = [
    ("plan-and-apply", "Plan and apply", "Plans, and applies once someone has confirmed it."),
    ("plan-only", "Plan only", "Shows what would change. It waits for nobody and blocks nobody."),
    ("refresh-only", "Refresh only", "Takes over into the state what changed outside, and changes nothing else."),
    ("destroy", "Destroy", "Plans to destroy everything that this workspace manages."),
    ("empty-apply", "Empty apply", "Applies even if nothing changes, for instance to upgrade the state's format."),
];

impl NewRunForm {
    fn request(&self) -> RunRequest {
        let lines = |text: &str| {
            let lines: Vec<String> =
                text.lines().map(|line| line.trim().to_owned()).filter(|line| !line.is_empty()).collect();
            (!lines.is_empty()).then_some(lines)
        };
        let is = |kind: &str| (self.kind == kind).then_some(true);
        let message = self.message.trim();
        RunRequest {
            message: (!message.is_empty()).then(|| message.to_owned()),
            plan_only: is("plan-only"),
            refresh_only: is("refresh-only"),
            is_destroy: is("destroy"),
            allow_empty_apply: is("empty-apply"),
            auto_apply: (!self.auto_apply.is_empty()).then_some(true),
            target_addrs: lines(&self.targets),
            replace_addrs: lines(&self.replace),
            ..RunRequest::default()
        }
    }
}

struct Kind {
    value: &'static str,
    name: &'static str,
    hint: &'static str,
    chosen: bool,
}

struct Configuration {
    id: String,
    made: Moment,
    by: String,
}

#[derive(Template)]
#[template(path = "new_run.html")]
struct NewRunPage {
    layout: Layout,
    now: jiff::Timestamp,
    address: String,
    kinds: Vec<Kind>,
    configuration: Option<Configuration>,
    /// Why nothing can be started.
    refusal: Option<String>,
    /// Why it cannot apply by itself.
    no_auto_apply: Option<String>,
    form: NewRunForm,
    complaint: Complaint,
}

fn render(
    web: &Web,
    visitor: &Visitor,
    view: &WorkspaceView,
    form: NewRunForm,
    complaint: Complaint,
    status: StatusCode,
) -> Response {
    let (organization, workspace) = (view.open.entry().name.as_str(), view.workspace.name.as_str());
    let chosen = if form.kind.is_empty() { KINDS[0].0 } else { form.kind.as_str() };
    let kind = |(value, name, hint)| Kind { value, name, hint, chosen: value == chosen };
    let configuration = view.open.state.usable_configuration(view.workspace.id).map(|version| Configuration {
        id: version.id.to_string(),
        made: Moment(version.created_at),
        by: view.open.name_of(&version.created_by),
    });
    let apply = visitor.caller.may(Action::ApplyRun, view.resource());
    let page = NewRunPage {
        layout: Layout::for_visitor(web, visitor).in_workspace(organization, workspace, WorkspaceSection::Runs),
        now: web.control_plane.now(),
        address: format!("{}/runs", workspace_address(organization, workspace)),
        kinds: KINDS.map(kind).into(),
        configuration,
        refusal: web.control_plane.new_run_refusal(&visitor.caller, view),
        no_auto_apply: (!apply.allowed).then(|| apply.reason.into_owned()),
        form,
        complaint,
    };
    page::render(status, &page)
}

/// `GET …/runs/new`
pub(crate) async fn show(
    State(web): State<Web>,
    visitor: Visitor,
    Path(path): Path<WorkspacePath>,
) -> Result<Response, PageError> {
    let view = web.control_plane.workspace(&visitor.caller, &path.reference()).await?;
    Ok(render(&web, &visitor, &view, NewRunForm::default(), Complaint::default(), StatusCode::OK))
}

/// `POST …/runs/new`
pub(crate) async fn start(
    State(web): State<Web>,
    Path(path): Path<WorkspacePath>,
    VisitorForm(visitor, form): VisitorForm<NewRunForm>,
) -> Result<Response, PageError> {
    let view = web.control_plane.workspace(&visitor.caller, &path.reference()).await?;
    if !KINDS.iter().any(|(value, ..)| *value == form.kind) {
        return Err(PageError::bad_request("Choose one of the kinds of runs that the form offers."));
    }
    let request = RunRequest { workspace: Some(view.workspace.id), ..form.request() };
    match web.control_plane.create_run(&visitor.caller, request, RunSource::Page).await {
        Ok(made) => Ok(Redirect::to(&notice::with(&address_of(&made), "started")).into_response()),
        Err(error) => {
            let complaint = Complaint::of(error, &["message", "target-addrs", "replace-addrs", "is-destroy"])?;
            Ok(render(&web, &visitor, &view, form, complaint, StatusCode::UNPROCESSABLE_ENTITY))
        }
    }
}
