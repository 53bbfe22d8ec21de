//! `…/outputs/{output}/reveal`: the value of one sensitive output, for a visitor who asks to see it.

use askama::Template;
use axum::extract::{Path, State};
use axum::http::StatusCode;
use axum::response::Response;
use taco_domain::id::OutputId;
use taco_domain::permission::Action;

use crate::error::PageError;
use crate::form::{Nothing, VisitorForm};
use crate::navigation::{WorkspaceSection, organization_address};
use crate::page::Layout;
use crate::state_parts::whole_value;
use crate::workspace::{address_of, named};
use crate::{Web, page};

#[derive(Template)]
#[template(path = "output.html")]
struct OutputPage {
    layout: Layout,
    address: String,
    name: String,
    kind: &'static str,
    /// `None` where only its client can decrypt it.
    value: Option<String>,
    /// Address of the audit log, for who may read it.
    audit_log: Option<String>,
}

/// `POST /app/{organization}/workspaces/{workspace}/outputs/{output}/reveal`: no address leads to the value again.
pub(crate) async fn reveal(
    State(web): State<Web>,
    Path((organization, name, output)): Path<(String, String, String)>,
    VisitorForm(visitor, Nothing {}): VisitorForm<Nothing>,
) -> Result<Response, PageError> {
    let id: OutputId = output.parse().map_err(|_| PageError::not_found("output"))?;
    let workspace = web.control_plane.workspace_with_states(&visitor.caller, &named((organization, name))).await?;
    // Before anything is revealed: the page says whose output it is.
    if !workspace.has_output(&id) {
        return Err(PageError::not_found("output"));
    }
    let output = web.control_plane.reveal_output(&visitor.caller, id).await?;
    let organization = workspace.org.entry().name.as_str();
    let reads_log = visitor.caller.may(Action::ReadAuditTrail, workspace.org.resource()).allowed;
    let page = OutputPage {
        layout: Layout::for_visitor(&web, &visitor).in_workspace(
            organization,
            &workspace.workspace,
            WorkspaceSection::Overview,
        ),
        address: address_of(&workspace),
        name: output.name,
        kind: output.type_name,
        audit_log: reads_log.then(|| format!("{}/settings/audit?kind=secrets", organization_address(organization))),
        value: output.value.map(|value| whole_value(value.get())),
    };
    Ok(page::render(StatusCode::OK, &page))
}
