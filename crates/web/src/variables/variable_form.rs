//! One variable of a workspace or a variable set: add, edit, delete.

use askama::Template;
use axum::extract::{Path, State};
use axum::http::StatusCode;
use axum::response::Response;
use serde::Deserialize;
use taco_control_plane::Error;
use taco_domain::variable::{Variable, VariableCategory, VariablePatch};

use crate::error::PageError;
use crate::flash::Flash;
use crate::form::{Complaint, Nothing, Ticked, VisitorForm, typed};
use crate::page::Layout;
use crate::variable_holder::{Holder, Place};
use crate::visitor::Visitor;
use crate::{Web, page};

const FIELDS: &[&str] = &["key", "value", "category", "description", "sensitive"];

/// Content of the form.
#[derive(Clone, Default, Deserialize)]
#[serde(default)]
pub(crate) struct VariableForm {
    pub(crate) key: String,
    pub(crate) value: String,
    /// A sensitive value of several lines, which a password field cannot take.
    pub(crate) lines: String,
    pub(crate) description: String,
    pub(crate) category: String,
    pub(crate) hcl: Ticked,
    pub(crate) sensitive: Ticked,
    #[serde(skip)]
    pub(crate) complaint: Complaint,
}

pub(crate) fn category_word(category: VariableCategory) -> &'static str {
    match category {
        VariableCategory::Terraform => "terraform",
        VariableCategory::Env => "env",
    }
}

impl VariableForm {
    fn of(variable: &Variable) -> Self {
        Self {
            key: variable.key.clone(),
            value: variable.shown_value().unwrap_or_default().to_owned(),
            lines: String::new(),
            description: variable.description.clone(),
            category: category_word(variable.category).to_owned(),
            hcl: Ticked(variable.hcl),
            sensitive: Ticked(variable.sensitive()),
            complaint: Complaint::default(),
        }
    }

    /// The request. A sensitive variable that is there keeps its value where none was typed.
    fn patch(&self, before: Option<&Variable>) -> VariablePatch {
        let sensitive_before = before.is_some_and(Variable::sensitive);
        let value = if self.lines.is_empty() { typed(&self.value) } else { typed(&self.lines) };
        VariablePatch {
            key: Some(self.key.trim().to_owned()),
            value: (!sensitive_before || !value.is_empty()).then_some(Some(value)),
            description: Some(Some(self.description.trim().to_owned())),
            category: Some(self.category.clone()),
            hcl: Some(self.hcl.0),
            sensitive: (!sensitive_before).then_some(self.sensitive.0),
        }
    }

    /// The form again, with what is wrong. What was meant to be secret has to be typed again.
    fn complained(self, error: Error) -> Result<Self, PageError> {
        let complaint = Complaint::of(error, FIELDS)?;
        let value = if self.sensitive.0 { String::new() } else { self.value };
        Ok(Self { complaint, value, lines: String::new(), ..self })
    }
}

#[derive(Template)]
#[template(path = "variable.html")]
struct VariablePage {
    layout: Layout,
    holder: Holder,
    form: VariableForm,
    /// Address to which the form is submitted.
    action: String,
    /// It is there already.
    exists: bool,
    /// It is there and sensitive.
    sealed: bool,
}

impl VariablePage {
    fn new(web: &Web, visitor: &Visitor, holder: Holder, form: VariableForm, before: Option<&Variable>) -> Self {
        Self {
            layout: holder.layout(web, visitor),
            action: before.map_or(holder.variables.clone(), |variable| format!("{}/{}", holder.variables, variable.id)),
            exists: before.is_some(),
            sealed: before.is_some_and(Variable::sensitive),
            holder,
            form,
        }
    }
}

/// `POST …/variables`
pub(crate) async fn create(
    State(web): State<Web>,
    Path(place): Path<Place>,
    VisitorForm(visitor, form): VisitorForm<VariableForm>,
) -> Result<Response, PageError> {
    let holder = Holder::find(&web, &visitor, &place).await?;
    match web.control_plane.create_variable(&visitor.caller, holder.owner, form.patch(None)).await {
        Ok(_) => Ok(Flash::created("Variable", form.key.trim()).redirect_to(&holder.page)),
        Err(error) => {
            let form = form.complained(error)?;
            let page = VariablePage::new(&web, &visitor, holder, form, None);
            Ok(page::render(StatusCode::UNPROCESSABLE_ENTITY, &page))
        }
    }
}

/// `GET …/variables/{variable}`
pub(crate) async fn show(
    State(web): State<Web>,
    visitor: Visitor,
    Path(place): Path<Place>,
) -> Result<Response, PageError> {
    let holder = Holder::find(&web, &visitor, &place).await?;
    let variable = web.control_plane.variable(&visitor.caller, holder.variable(&place)?).await?;
    let page = VariablePage::new(&web, &visitor, holder, VariableForm::of(&variable), Some(&variable));
    Ok(page::render(StatusCode::OK, &page))
}

/// `POST …/variables/{variable}`
pub(crate) async fn update(
    State(web): State<Web>,
    Path(place): Path<Place>,
    VisitorForm(visitor, form): VisitorForm<VariableForm>,
) -> Result<Response, PageError> {
    let holder = Holder::find(&web, &visitor, &place).await?;
    let wanted = holder.variable(&place)?;
    let before = web.control_plane.variable(&visitor.caller, wanted).await?;
    match web.control_plane.update_variable(&visitor.caller, wanted, form.patch(Some(&before))).await {
        Ok(_) => Ok(Flash::saved("Variable", form.key.trim()).redirect_to(&holder.page)),
        Err(error) => {
            let form = VariableForm { sensitive: Ticked(form.sensitive.0 || before.sensitive()), ..form };
            let page = VariablePage::new(&web, &visitor, holder, form.complained(error)?, Some(&before));
            Ok(page::render(StatusCode::UNPROCESSABLE_ENTITY, &page))
        }
    }
}

/// `POST …/variables/{variable}/delete`
pub(crate) async fn delete(
    State(web): State<Web>,
    Path(place): Path<Place>,
    VisitorForm(visitor, Nothing {}): VisitorForm<Nothing>,
) -> Result<Response, PageError> {
    let holder = Holder::find(&web, &visitor, &place).await?;
    let wanted = holder.variable(&place)?;
    let variable = web.control_plane.variable(&visitor.caller, wanted).await?;
    web.control_plane.delete_variable(&visitor.caller, wanted).await?;
    Ok(Flash::deleted("Variable", &variable.key).redirect_to(&holder.page))
}
