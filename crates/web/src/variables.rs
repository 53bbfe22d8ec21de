//! `/app/{organization}/workspaces/{workspace}/variables`: what runs of a workspace get, and from where.

pub(crate) mod bindings;
pub(crate) mod variable_form;
pub(crate) mod variable_holder;
pub(crate) mod variable_import;
pub(crate) mod variable_set;
pub(crate) mod variable_sets;

use askama::Template;
use axum::extract::{Path, State};
use axum::http::StatusCode;
use axum::response::Response;

use taco_control_plane::WorkspaceView;
use taco_domain::variable::{Variable, VariableCategory, VariableOwner};
use taco_domain::variable_precedence::{Overriding, ReachingVariable};

use crate::bindings::{BindingForm, BindingRow};
use crate::error::PageError;
use crate::navigation::{variable_set_address, workspace_address};
use crate::page::Layout;
use crate::variable_form::{VariableForm, category_word};
use crate::variable_holder::{Holder, Place, Subject};
use crate::variable_import::ImportForm;
use crate::visitor::Visitor;
use crate::{Web, page, text};

/// A variable as a list shows it.
pub(crate) struct Row {
    pub(crate) key: String,
    /// Address of the page to edit it.
    pub(crate) address: String,
    /// `None` where it is sensitive.
    pub(crate) value: Option<String>,
    pub(crate) category: &'static str,
    pub(crate) hcl: bool,
    pub(crate) description: String,
    /// Origin of the variable that overrides it.
    pub(crate) overridden_by: Option<String>,
}

impl Row {
    pub(crate) fn of(variable: &Variable, address: String) -> Self {
        Self {
            key: variable.key.clone(),
            address,
            value: variable.shown_value().map(text::plain),
            category: category_word(variable.category),
            hcl: variable.hcl && variable.category == VariableCategory::Terraform,
            description: text::plain(&variable.description),
            overridden_by: None,
        }
    }
}

/// A variable that comes with a set.
struct SharedRow {
    row: Row,
    set_name: String,
    set_address: String,
}

#[derive(Template)]
#[template(path = "variables.html")]
struct VariablesPage {
    layout: Layout,
    holder: Holder,
    own: Vec<Row>,
    shared: Vec<SharedRow>,
    form: VariableForm,
    import: ImportForm,
    bound: Vec<BindingRow>,
    /// Address of the bindings.
    bindings: String,
    binding: BindingForm,
    /// Names of workspaces whose outputs may be bound to.
    others: Vec<String>,
}

/// Workspaces that the form proposes.
const PROPOSED_WORKSPACES: usize = 300;

/// `GET /app/{organization}/workspaces/{workspace}/variables`
pub(crate) async fn list(
    State(web): State<Web>,
    visitor: Visitor,
    Path(place): Path<Place>,
) -> Result<Response, PageError> {
    let holder = Holder::find(&web, &visitor, &place).await?;
    page_of(&web, &visitor, holder, BindingForm::default(), StatusCode::OK)
}

/// The page, with what was wrong with a binding.
pub(crate) fn page_of(
    web: &Web,
    visitor: &Visitor,
    holder: Holder,
    binding: BindingForm,
    status: StatusCode,
) -> Result<Response, PageError> {
    let Subject::Workspace(view) = &holder.subject else { return Err(PageError::not_found("workspace")) };
    let organization = &holder.organization;
    let (mut own, mut shared) = (Vec::new(), Vec::new());
    for reaching in view.variables_reaching() {
        let ReachingVariable { variable, set, overridden_by } = reaching;
        let overridden_by = overridden_by.map(|winner| origin_in_words(view, winner));
        let base = match set {
            None => holder.variables.clone(),
            Some(set) => format!("{}/variables", variable_set_address(organization, set.id)),
        };
        let row = Row { overridden_by, ..Row::of(variable, format!("{base}/{}", variable.id)) };
        match set {
            None => own.push(row),
            Some(set) => shared.push(SharedRow {
                row,
                set_name: set.name.to_string(),
                set_address: variable_set_address(organization, set.id),
            }),
        }
    }
    let bindings = format!("{}/bindings", workspace_address(organization, view.workspace.name.as_str()));
    let bound = view.bindings_seen_by(&visitor.caller);
    let bound = bound.iter().map(|binding| BindingRow::of(binding, &bindings)).collect();
    let others = view.neighbours(&visitor.caller, PROPOSED_WORKSPACES);
    let layout = holder.layout(web, visitor);
    let (form, import) = (VariableForm::default(), ImportForm::default());
    let page = VariablesPage { layout, holder, own, shared, form, import, bound, bindings, binding, others };
    Ok(page::render(status, &page))
}

/// Completes "overridden by".
fn origin_in_words(view: &WorkspaceView, winner: Overriding<'_>) -> String {
    let variable = match winner {
        Overriding::Variable(variable) => variable,
        Overriding::Binding(_) => return "a binding".to_owned(),
    };
    match variable.owner {
        VariableOwner::Workspace(_) => "the workspace".to_owned(),
        VariableOwner::VariableSet(id) => {
            let name = view.variable_set_of(variable).map_or_else(|| id.to_string(), |set| set.name.to_string());
            format!("the set {name}")
        }
    }
}
