//! `/app/{organization}/settings/policies/{policy}`: one policy and its code.

use askama::Template;
use axum::extract::{Path, State};
use axum::http::StatusCode;
use axum::response::Response;
use taco_control_plane::{Error, PolicyView};
use taco_domain::permission::Decision;
use taco_domain::policy::PolicyId;
use taco_domain::policy_words::PolicyKind;

use crate::error::PageError;
use crate::flash::Flash;
use crate::form::{Complaint, Nothing, VisitorForm, typed};
use crate::navigation::Section;
use crate::page::Layout;
use crate::policies::{HERE, PolicyForm, address_of};
use crate::rail::Rail;
use crate::visitor::Visitor;
use crate::{Web, page};

#[derive(Template)]
#[template(path = "policy.html")]
struct PolicyPage {
    layout: Layout,
    rail: Rail,
    address: String,
    right: Decision,
    id: PolicyId,
    name: String,
    is_evaluated: bool,
    syntax: Option<&'static str>,
    sets: usize,
    form: PolicyForm,
}

async fn find(web: &Web, visitor: &Visitor, id: &str) -> Result<PolicyView, PageError> {
    let id: PolicyId = id.parse().map_err(|_| PageError::not_found("policy"))?;
    Ok(web.control_plane.policy(&visitor.caller, id).await?)
}

impl PolicyPage {
    async fn of(web: &Web, visitor: &Visitor, view: &PolicyView) -> Result<Self, PageError> {
        let organization = view.org.entry().name.to_string();
        let policy = &view.policy;
        let code = match web.control_plane.policy_code(&visitor.caller, policy.id).await {
            Ok(code) => String::from_utf8_lossy(&code).into_owned(),
            Err(Error::NotFound(_)) => String::new(),
            Err(error) => return Err(error.into()),
        };
        Ok(Self {
            layout: Layout::for_visitor(web, visitor).in_organization(&organization, Section::Settings),
            rail: Rail::of_organization(&view.org, &visitor.caller, HERE),
            address: format!("{}/{}", address_of(&organization), policy.id),
            right: view.may_manage(&visitor.caller),
            id: policy.id,
            name: policy.name.to_string(),
            is_evaluated: policy.kind == PolicyKind::Opa,
            syntax: policy.code.as_ref().and_then(|code| code.syntax).map(|syntax| syntax.as_str()),
            sets: view.set_count(),
            form: PolicyForm {
                name: policy.name.to_string(),
                description: policy.description.clone(),
                query: policy.query.clone().unwrap_or_default(),
                level: policy.level.to_string(),
                code,
                complaint: Complaint::default(),
            },
        })
    }
}

/// `GET /app/{organization}/settings/policies/{policy}`
pub(crate) async fn show(
    State(web): State<Web>,
    visitor: Visitor,
    Path((_, policy)): Path<(String, String)>,
) -> Result<Response, PageError> {
    let view = find(&web, &visitor, &policy).await?;
    Ok(page::render(StatusCode::OK, &PolicyPage::of(&web, &visitor, &view).await?))
}

/// `POST /app/{organization}/settings/policies/{policy}`
pub(crate) async fn update(
    State(web): State<Web>,
    Path((_, policy)): Path<(String, String)>,
    VisitorForm(visitor, form): VisitorForm<PolicyForm>,
) -> Result<Response, PageError> {
    let view = find(&web, &visitor, &policy).await?;
    let page = PolicyPage::of(&web, &visitor, &view).await?;
    let patch = taco_domain::policy::PolicyPatch { name: None, kind: None, ..form.patch() };
    let code = typed(&form.code).replace("\r\n", "\n");
    let updated = async {
        let id = view.policy.id;
        // Code that does not compile changes nothing.
        if code != page.form.code {
            web.control_plane.upload_policy(&visitor.caller, id, code.into()).await?;
        }
        web.control_plane.update_policy(&visitor.caller, id, patch).await
    };
    match updated.await {
        Ok(_) => Ok(Flash::saved("Policy", &page.name).redirect_to(&page.address)),
        Err(error) => {
            let complaint = Complaint::of(error, &["description", "query", "enforcement-level"])?;
            let form = PolicyForm { complaint, name: page.name.clone(), ..form };
            Ok(page::render(StatusCode::UNPROCESSABLE_ENTITY, &PolicyPage { form, ..page }))
        }
    }
}

/// `POST /app/{organization}/settings/policies/{policy}/delete`
pub(crate) async fn delete(
    State(web): State<Web>,
    Path((organization, policy)): Path<(String, String)>,
    VisitorForm(visitor, Nothing {}): VisitorForm<Nothing>,
) -> Result<Response, PageError> {
    let view = find(&web, &visitor, &policy).await?;
    web.control_plane.delete_policy(&visitor.caller, view.policy.id).await?;
    Ok(Flash::deleted("Policy", view.policy.name.as_str()).redirect_to(&address_of(&organization)))
}
