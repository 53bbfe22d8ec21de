//! Bindings on the page of a workspace's variables: bind one to an output, remove that again.

use axum::extract::{Path, State};
use axum::http::StatusCode;
use axum::response::Response;
use serde::Deserialize;
use taco_control_plane::{BindingView, NewBinding};
use taco_domain::binding::BindingId;

use crate::Web;
use crate::error::PageError;
use crate::flash::Flash;
use crate::form::{Complaint, Nothing, VisitorForm};
use crate::navigation::workspace_address;
use crate::text;
use crate::variable_form::category_word;
use crate::variable_holder::{Holder, Place};
use crate::variables;
use crate::visitor::Visitor;

/// Fields next to which the form can show an error.
const FIELDS: &[&str] = &["key", "category", "producer", "output"];

/// Content of the form.
#[derive(Clone, Default, Deserialize)]
#[serde(default)]
pub(crate) struct BindingForm {
    pub(crate) key: String,
    pub(crate) category: String,
    pub(crate) producer: String,
    pub(crate) output: String,
    #[serde(skip)]
    pub(crate) complaint: Complaint,
}

impl BindingForm {
    fn request(&self) -> NewBinding {
        NewBinding {
            key: self.key.clone(),
            category: Some(self.category.clone()).filter(|category| !category.is_empty()),
            producer: self.producer.clone(),
            output: self.output.clone(),
        }
    }
}

/// A binding as the page lists it.
pub(crate) struct BindingRow {
    pub(crate) key: String,
    pub(crate) category: &'static str,
    pub(crate) producer: String,
    /// Of the producer's outputs, for those who may see it.
    pub(crate) producer_address: Option<String>,
    pub(crate) output: String,
    pub(crate) problem: Option<String>,
    pub(crate) is_overridden: bool,
    pub(crate) delete: String,
}

impl BindingRow {
    /// `bindings` is the address of all of them.
    pub(crate) fn of(view: &BindingView, bindings: &str) -> Self {
        let organization = view.org.entry().name.as_str();
        let address = || format!("{}/outputs/history", workspace_address(organization, &view.producer));
        Self {
            key: view.binding.key.clone(),
            category: category_word(view.binding.category),
            producer: text::plain(&view.producer),
            producer_address: view.sees_producer.then(address),
            output: text::plain(&view.binding.output),
            problem: view.problem.as_deref().map(text::plain),
            is_overridden: view.is_overridden,
            delete: format!("{bindings}/{}/delete", view.binding.id),
        }
    }

    /// What its dialog asks about.
    pub(crate) fn subject(&self) -> String {
        format!("{}, {}", self.key, self.category)
    }
}

/// `POST …/bindings`
pub(crate) async fn create(
    State(web): State<Web>,
    Path(place): Path<Place>,
    VisitorForm(visitor, form): VisitorForm<BindingForm>,
) -> Result<Response, PageError> {
    let holder = Holder::find(&web, &visitor, &place).await?;
    match web.control_plane.create_binding(&visitor.caller, &place.workspace()?, form.request()).await {
        Ok(view) => {
            let binding = &view.binding;
            let says = format!("{} bound to {} of {}.", binding.key, text::plain(&binding.output), view.producer);
            Ok(Flash::says(says).redirect_to(&holder.page))
        }
        Err(error) => {
            let form = BindingForm { complaint: Complaint::of(error, FIELDS)?, ..form };
            variables::page_of(&web, &visitor, holder, form, StatusCode::UNPROCESSABLE_ENTITY)
        }
    }
}

/// A binding in an address.
#[derive(Deserialize)]
pub(crate) struct BindingPath {
    organization: String,
    workspace: String,
    binding: String,
}

/// `POST …/bindings/{binding}/delete`
pub(crate) async fn delete(
    State(web): State<Web>,
    Path(path): Path<BindingPath>,
    VisitorForm(visitor, Nothing {}): VisitorForm<Nothing>,
) -> Result<Response, PageError> {
    let id: BindingId = path.binding.parse().map_err(|_| PageError::not_found("binding"))?;
    let key = key_of(&web, &visitor, id).await?;
    web.control_plane.delete_binding(&visitor.caller, id).await?;
    let page = format!("{}/variables", workspace_address(&path.organization, &path.workspace));
    Ok(Flash::deleted("Binding of", &key).redirect_to(&page))
}

async fn key_of(web: &Web, visitor: &Visitor, id: BindingId) -> Result<String, PageError> {
    Ok(web.control_plane.binding(&visitor.caller, id).await?.binding.key)
}
