//! A state that someone brings along: what `terraform state push` sends, pasted into the page of all states.

use std::convert::Infallible;

use axum::body::Bytes;
use axum::extract::{Path, State};
use axum::http::StatusCode;
use axum::response::Response;
use futures::stream;
use serde::Deserialize;
use taco_control_plane::{Error, NewState, WorkspaceView};

use crate::Web;
use crate::error::PageError;
use crate::flash::Flash;
use crate::form::{Complaint, Ticked, VisitorForm, typed};
use crate::states::{self, StatesQuery};
use crate::visitor::Visitor;
use crate::workspace::{address_of, named};

/// So large may a state be. What is larger goes through `terraform state push`, which does not fill our memory.
const MAX_STATE_BYTES: usize = 4 * 1024 * 1024;
/// Forms write most bytes that are no letters as three, and have other fields.
pub(crate) const MAX_FORM_BYTES: usize = 3 * MAX_STATE_BYTES + 64 * 1024;

/// Below the list of states.
pub(crate) struct UploadBox {
    /// `Ok` if the visitor can upload one now, otherwise the reason why not.
    pub(crate) choice: Result<(), String>,
    pub(crate) complaint: Complaint,
    pub(crate) largest: String,
}

impl UploadBox {
    pub(crate) fn of(visitor: &Visitor, workspace: &WorkspaceView, complaint: Complaint) -> Self {
        let largest = crate::text::size(MAX_STATE_BYTES as u64);
        Self { choice: workspace.state_upload_choice(&visitor.caller), complaint, largest }
    }
}

#[derive(Deserialize, Default)]
#[serde(default)]
pub(crate) struct UploadForm {
    state: String,
    force: Ticked,
}

/// `POST /app/{organization}/workspaces/{workspace}/states`
pub(crate) async fn upload(
    State(web): State<Web>,
    Path(path): Path<(String, String)>,
    VisitorForm(visitor, form): VisitorForm<UploadForm>,
) -> Result<Response, PageError> {
    let view = web.control_plane.workspace_with_states(&visitor.caller, &named(path.clone())).await?;
    let body = stream::iter([Ok::<_, Infallible>(Bytes::from(typed(&form.state)))]);
    let describe = || Ok::<_, Error>(NewState { force: Some(form.force.0), ..NewState::default() });
    match web.control_plane.write_state(&visitor.caller, view.workspace.id, body, describe).await {
        Ok(written) => {
            let was_there = view.workspace.current_state_version == Some(written.version.id);
            let address = format!("{}/states/{}", address_of(&view), written.version.id);
            let text = match was_there {
                true => "No change: this is already the current state.".to_owned(),
                false => format!("State uploaded as serial {}.", written.version.serial),
            };
            Ok(Flash::says(text).redirect_to(&address))
        }
        // What was sent is not shown again: it may hold secrets, and others look at screens too.
        Err(Error::Invalid { detail, .. } | Error::Conflict(detail)) => {
            let complaint = Complaint::about_field("state", detail);
            states::render(&web, &visitor, path, StatesQuery::default(), complaint, StatusCode::UNPROCESSABLE_ENTITY)
                .await
        }
        Err(other) => Err(other.into()),
    }
}
