//! `…/states/{id}/restore`: what a rollback would change, and the rollback.

use askama::Template;
use axum::extract::State;
use axum::http::StatusCode;
use axum::response::Response;

use crate::error::PageError;
use crate::flash::Flash;
use crate::form::{Nothing, VisitorForm};
use crate::navigation::WorkspaceSection;
use crate::page::Layout;
use crate::state::{StatePath, find};
use crate::state_diff::Tree;
use crate::states::StateRow;
use crate::visitor::Visitor;
use crate::workspace::address_of;
use crate::{Web, page};

#[derive(Template)]
#[template(path = "state_restore.html")]
struct RestorePage {
    layout: Layout,
    /// Of the version to restore.
    address: String,
    wanted: StateRow,
    current: Option<StateRow>,
    choice: Result<(), String>,
    /// From the current state to the wanted one, or the reason why they cannot be compared.
    changes: Result<Tree, String>,
}

/// `GET /app/{organization}/workspaces/{workspace}/states/{id}/restore`
pub(crate) async fn show(State(web): State<Web>, visitor: Visitor, path: StatePath) -> Result<Response, PageError> {
    let (workspace, wanted) = find(&web, &visitor, path).await?;
    let overview = address_of(&workspace);
    let (current, changes) = match workspace.current_state_version().map(|version| version.id) {
        Some(current) if current != wanted.version.id => {
            let compared = web.control_plane.compare_states(&visitor.caller, current, wanted.version.id).await?;
            let changes = compared.result.map(|compared| Tree::of(&compared)).map_err(|refusal| refusal.to_string());
            (Some(StateRow::of(&compared.before, &overview)), changes)
        }
        _ => (None, Err("It is the current state already.".to_owned())),
    };
    let organization = workspace.org.entry().name.as_str();
    let page = RestorePage {
        layout: Layout::for_visitor(&web, &visitor)
            .in_workspace(organization, &workspace.workspace, WorkspaceSection::States)
            .called(wanted.version.id, &format!("Serial {}", wanted.version.serial)),
        address: format!("{overview}/states/{}", wanted.version.id),
        choice: wanted.restore_choice(&visitor.caller),
        wanted: StateRow::of(&wanted, &overview),
        current,
        changes,
    };
    Ok(page::render(StatusCode::OK, &page))
}

/// `POST /app/{organization}/workspaces/{workspace}/states/{id}/restore`
pub(crate) async fn restore(
    State(web): State<Web>,
    path: StatePath,
    VisitorForm(visitor, Nothing {}): VisitorForm<Nothing>,
) -> Result<Response, PageError> {
    let (workspace, state) = find(&web, &visitor, path).await?;
    let (id, from) = (workspace.workspace.id, state.version.id);
    let restored = web.control_plane.lock_and_restore_state(&visitor.caller, id, from).await?;
    let address = format!("{}/states/{}", address_of(&workspace), restored.version.id);
    let text = format!("State restored from serial {} as serial {}.", state.version.serial, restored.version.serial);
    Ok(Flash::says(text).redirect_to(&address))
}
