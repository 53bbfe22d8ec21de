//! Variables from a pasted file: a page that shows what they would change, and one button that does it.

use askama::Template;
use axum::extract::{Path, State};
use axum::http::StatusCode;
use axum::response::Response;
use serde::Deserialize;
use taco_control_plane::{Error, ImportPreview, PreviewedVariable, VariableImport};
use taco_domain::variable_file::VariableFormat;
use taco_domain::variable_import::ImportChange;

use crate::badge::Badge;
use crate::error::PageError;
use crate::flash::Flash;
use crate::form::{Complaint, Ticked, VisitorForm, typed};
use crate::page::Layout;
use crate::text;
use crate::variable_form::category_word;
use crate::variable_holder::{Holder, Place};
use crate::visitor::Visitor;
use crate::{Web, page};

/// Content of the form.
#[derive(Clone, Default, Deserialize)]
#[serde(default)]
pub(crate) struct ImportForm {
    pub(crate) format: String,
    pub(crate) text: String,
    pub(crate) sensitive: Ticked,
    #[serde(skip)]
    pub(crate) complaint: Complaint,
}

/// One variable that would be written.
struct Row {
    key: String,
    category: &'static str,
    hcl: bool,
    badge: Badge,
    value: Option<String>,
    value_before: Option<String>,
}

impl Row {
    fn of(variable: PreviewedVariable) -> Self {
        let plain = |value: String| text::plain(&value);
        let changed = variable.change == ImportChange::Changed;
        Self {
            category: category_word(variable.category),
            hcl: variable.hcl,
            badge: match variable.change {
                ImportChange::New => Badge::new("New", "+", "good"),
                ImportChange::Changed => Badge::new("Changes", "~", "asks"),
                ImportChange::Replaced => Badge::new("Replaces", "~", "asks"),
                ImportChange::Same => Badge::new("Same", "=", "off"),
            },
            value: variable.value.map(plain),
            value_before: variable.value_before.filter(|_| changed).map(plain),
            key: variable.key,
        }
    }
}

#[derive(Template)]
#[template(path = "variable_import.html")]
struct ImportPage {
    layout: Layout,
    holder: Holder,
    form: ImportForm,
    rows: Vec<Row>,
    /// Number of variables that would be written.
    writes: usize,
    /// Sealed import, for the confirming form.
    sealed: String,
}

impl ImportPage {
    fn again(web: &Web, visitor: &Visitor, holder: Holder, form: ImportForm) -> Response {
        let layout = holder.layout(web, visitor);
        // What was meant to be secret has to be pasted again.
        let text = if form.sensitive.0 { String::new() } else { form.text };
        let form = ImportForm { text, ..form };
        let page = Self { layout, holder, form, rows: Vec::new(), writes: 0, sealed: String::new() };
        page::render(StatusCode::UNPROCESSABLE_ENTITY, &page)
    }

    fn preview(web: &Web, visitor: &Visitor, holder: Holder, preview: ImportPreview) -> Response {
        let page = Self {
            layout: holder.layout(web, visitor),
            writes: preview.rows.iter().filter(|row| row.change != ImportChange::Same).count(),
            rows: preview.rows.into_iter().map(Row::of).collect(),
            sealed: preview.sealed,
            form: ImportForm::default(),
            holder,
        };
        page::render(StatusCode::OK, &page)
    }
}

/// `POST …/variables/import`
pub(crate) async fn preview(
    State(web): State<Web>,
    Path(place): Path<Place>,
    VisitorForm(visitor, form): VisitorForm<ImportForm>,
) -> Result<Response, PageError> {
    let holder = Holder::find(&web, &visitor, &place).await?;
    holder.require_right()?;
    let format = VariableFormat::ALL.into_iter().find(|format| format.word() == form.format);
    let Some(format) = format else {
        let complaint = Complaint::about_field("format", "Choose a format: .tfvars, .tfvars.json or .env");
        return Ok(ImportPage::again(&web, &visitor, holder, ImportForm { complaint, ..form }));
    };
    let import = VariableImport { format, text: typed(&form.text), sensitive: form.sensitive.0 };
    match web.control_plane.preview_import(&visitor.caller, holder.owner, import).await {
        Ok(preview) => Ok(ImportPage::preview(&web, &visitor, holder, preview)),
        Err(error) => {
            let complaint = Complaint::of(error, &["text"])?;
            Ok(ImportPage::again(&web, &visitor, holder, ImportForm { complaint, ..form }))
        }
    }
}

#[derive(Deserialize)]
pub(crate) struct Confirmation {
    #[serde(default)]
    sealed: String,
}

/// `POST …/variables/import/confirm`
pub(crate) async fn confirm(
    State(web): State<Web>,
    Path(place): Path<Place>,
    VisitorForm(visitor, form): VisitorForm<Confirmation>,
) -> Result<Response, PageError> {
    let holder = Holder::find(&web, &visitor, &place).await?;
    match web.control_plane.import_variables(&visitor.caller, holder.owner, &form.sealed).await {
        Ok(count) => {
            Ok(Flash::says(format!("{count} {} imported.", if count == 1 { "variable" } else { "variables" }))
                .redirect_to(&holder.page))
        }
        Err(error @ Error::Invalid { .. }) => {
            let complaint = Complaint::of(error, &["text"])?;
            Ok(ImportPage::again(&web, &visitor, holder, ImportForm { complaint, ..ImportForm::default() }))
        }
        Err(error) => Err(error.into()),
    }
}
