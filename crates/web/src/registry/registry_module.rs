//! `/app/{organization}/registry/modules/{module}`: one module at one version.

use askama::Template;
use axum::extract::{Path, Query, State};
use axum::http::StatusCode;
use axum::response::Response;
use jiff::Timestamp;
use serde::Deserialize;
use taco_control_plane::{
    DeprecationPatch, Input, ModuleDocs, ModulePart, ModuleRef, ModuleVersionPatch, ModuleVersionView, ModuleView,
    Output, RequiredProvider, Resource,
};
use taco_domain::module_version::{ModuleVersion, ModuleVersionStatus};
use taco_domain::terraform_files::quoted;

use crate::error::PageError;
use crate::flash::Flash;
use crate::form::{Complaint, Nothing, VisitorForm, typed};
use crate::markdown::{SafeHtml, safe_html};
use crate::navigation::{Section, workspace_address};
use crate::page::Layout;
use crate::registry::{address_of, host};
use crate::text::{Moment, plain};
use crate::visitor::Visitor;
use crate::{Web, page};

#[derive(Template)]
#[template(path = "registry_module.html")]
struct ModulePage {
    layout: Layout,
    now: Timestamp,
    /// Address of the module's page.
    address: String,
    name: String,
    source: String,
    is_public: bool,
    /// The version that is shown.
    shown: Option<Shown>,
    versions: Vec<VersionRow>,
    usage: String,
    submodules: Vec<Part>,
    examples: Vec<Part>,
    uses: Vec<UseRow>,
    refusal: Option<String>,
    complaint: Complaint,
    reason: String,
    link: String,
}

struct Shown {
    version: String,
    published: Moment,
    by: String,
    deprecation: Option<(String, Option<String>)>,
    readme: Option<SafeHtml>,
    part: Part,
}

/// One directory with a module in it.
struct Part {
    path: String,
    readme: Option<SafeHtml>,
    required: Vec<InputRow>,
    optional: Vec<InputRow>,
    outputs: Vec<Output>,
    providers: Vec<RequiredProvider>,
    resources: Vec<Resource>,
    calls: Vec<(String, String, String)>,
    unreadable: Vec<(String, String)>,
    engines: String,
}

struct InputRow {
    name: String,
    constraint: String,
    default: Option<String>,
    description: String,
    notes: Vec<String>,
}

struct VersionRow {
    version: String,
    /// In sentences: `version 1.0.0`.
    title: String,
    address: String,
    delete_address: String,
    is_shown: bool,
    status: &'static str,
    error: Option<String>,
    is_deprecated: bool,
    published: Moment,
}

struct UseRow {
    workspace: String,
    address: String,
    versions: String,
}

impl InputRow {
    fn of(input: &Input) -> Self {
        let mut notes = Vec::new();
        if input.sensitive {
            notes.push("Sensitive.".to_owned());
        }
        if input.ephemeral {
            notes.push("Ephemeral: not kept in plans and states.".to_owned());
        }
        if !input.nullable {
            notes.push("Not null.".to_owned());
        }
        notes.extend(input.validations.iter().map(|message| plain(message)));
        Self {
            name: plain(&input.name),
            constraint: plain(&input.constraint),
            default: input.default.as_deref().map(plain),
            description: plain(&input.description),
            notes,
        }
    }
}

impl Part {
    fn of(part: &ModulePart) -> Self {
        let inputs = |required: bool| {
            part.inputs.iter().filter(|input| input.is_required() == required).map(InputRow::of).collect()
        };
        let output = |it: &Output| Output {
            name: plain(&it.name),
            description: plain(&it.description),
            sensitive: it.sensitive,
        };
        let provider = |it: &RequiredProvider| RequiredProvider {
            name: plain(&it.name),
            source: plain(&it.source),
            version: plain(&it.version),
        };
        let resource = |it: &Resource| Resource { kind: plain(&it.kind), name: plain(&it.name), data: it.data };
        Self {
            path: plain(&part.path),
            readme: part.readme.as_deref().map(safe_html),
            required: inputs(true),
            optional: inputs(false),
            outputs: part.outputs.iter().map(output).collect(),
            providers: part.providers.iter().map(provider).collect(),
            resources: part.resources.iter().map(resource).collect(),
            calls: part
                .module_calls
                .iter()
                .map(|it| (plain(&it.name), plain(&it.source), plain(&it.version)))
                .collect(),
            unreadable: part.unreadable.iter().map(|it| (plain(&it.file), plain(&it.reason))).collect(),
            engines: plain(&part.required_versions.join(", ")),
        }
    }
}

impl VersionRow {
    fn of(version: &ModuleVersion, address: &str, shown: Option<&str>) -> Self {
        Self {
            version: version.version.to_string(),
            title: format!("version {}", version.version),
            delete_address: format!("{address}/versions/{}/delete", version.version),
            address: format!("{address}?version={}", version.version.as_str().replace('+', "%2B")),
            is_shown: shown == Some(version.version.as_str()),
            status: match version.status {
                ModuleVersionStatus::Ok => "",
                ModuleVersionStatus::Pending => "waiting for its archive",
                ModuleVersionStatus::RegIngressFailed => "upload failed",
            },
            error: version.error.as_deref().map(plain),
            is_deprecated: version.deprecation.is_some(),
            published: Moment(version.updated_at),
        }
    }
}

/// Block with which a configuration calls the module.
fn usage(host: &str, view: &ModuleView, version: Option<&str>, docs: &ModuleDocs) -> String {
    let module = &view.module;
    let address = format!("{}/{}/{}", view.namespace(), module.name, module.provider);
    let source = if module.namespace.is_some() { address } else { format!("{host}/{address}") };
    let mut lines =
        vec![format!("module {} {{", quoted(module.name.as_str())), format!("  source  = {}", quoted(&source))];
    lines.extend(version.map(|version| format!("  version = {}", quoted(version))));
    let required: Vec<&Input> = docs.root.inputs.iter().filter(|input| input.is_required()).collect();
    if !required.is_empty() {
        lines.push(String::new());
        let width = required.iter().map(|input| input.name.len()).max().unwrap_or_default();
        lines.extend(required.iter().map(|input| {
            let kind = input.constraint.lines().next().unwrap_or_default();
            format!("  {:width$} = # {}", plain(&input.name), plain(if kind.is_empty() { "any" } else { kind }))
        }));
    }
    lines.push("}".to_owned());
    lines.join("\n")
}

#[derive(Default, Deserialize)]
#[serde(default)]
pub(crate) struct ModuleQuery {
    version: String,
}

#[derive(Deserialize)]
pub(crate) struct ModulePath {
    organization: String,
    module: String,
}

fn module_ref(id: &str) -> Result<ModuleRef, PageError> {
    id.parse().map(ModuleRef::Id).map_err(|_| PageError::not_found("module"))
}

async fn render(
    web: &Web,
    visitor: &Visitor,
    path: &ModulePath,
    version: &str,
    complaint: Complaint,
    form: &DeprecationForm,
) -> Result<ModulePage, PageError> {
    let wanted = module_ref(&path.module)?;
    let view = web.control_plane.registry_module(&visitor.caller, &wanted).await?;
    let organization = view.org.entry().name.to_string();
    if organization != path.organization {
        return Err(PageError::not_found("module"));
    }
    let version = match version {
        "" => view.latest().cloned(),
        text => view.versions().into_iter().find(|it| it.version.as_str() == text).cloned(),
    };
    let (shown, docs) = match version {
        None => (None, ModuleDocs::default()),
        Some(version) => {
            let view = ModuleVersionView { version, module: view.clone() };
            let docs = web.control_plane.module_docs(&view).await?.unwrap_or_default();
            (Some(view.version), docs)
        }
    };
    let address = format!("{}/modules/{}", address_of(&organization), view.module.id);
    let name = format!("{}/{}", view.module.name, view.module.provider);
    let right = view.may_manage(&visitor.caller);
    let number = shown.as_ref().map(|version| version.version.to_string());
    let use_row = |found: taco_control_plane::ModuleUse| UseRow {
        workspace: found.workspace.name.to_string(),
        address: workspace_address(&organization, found.workspace.name.as_str()),
        versions: found
            .versions
            .iter()
            .map(|version| if version.is_empty() { "any version".to_owned() } else { plain(version) })
            .collect::<Vec<_>>()
            .join(", "),
    };
    Ok(ModulePage {
        layout: Layout::for_visitor(web, visitor)
            .in_organization(&organization, Section::Registry)
            .called(view.module.id, &name),
        now: web.control_plane.now(),
        source: format!("{}/{name}", view.namespace()),
        is_public: view.module.namespace.is_some(),
        usage: usage(&host(web), &view, number.as_deref(), &docs),
        versions: view.versions().into_iter().map(|it| VersionRow::of(it, &address, number.as_deref())).collect(),
        submodules: docs.submodules.iter().map(Part::of).collect(),
        examples: docs.examples.iter().map(Part::of).collect(),
        uses: web.control_plane.module_uses(&visitor.caller, &view).into_iter().map(use_row).collect(),
        shown: shown.map(|version| Shown {
            version: version.version.to_string(),
            published: Moment(version.updated_at),
            by: plain(&view.org.name_of(&version.created_by)),
            deprecation: version.deprecation.as_ref().map(|it| (plain(&it.reason), it.link.clone())),
            readme: docs.root.readme.as_deref().map(safe_html),
            part: Part::of(&docs.root),
        }),
        refusal: (!right.allowed).then(|| right.reason.into_owned()),
        address,
        name,
        complaint,
        reason: form.reason.clone(),
        link: form.link.clone(),
    })
}

/// `GET /app/{organization}/registry/modules/{module}`
pub(crate) async fn show(
    State(web): State<Web>,
    visitor: Visitor,
    Path(path): Path<ModulePath>,
    Query(query): Query<ModuleQuery>,
) -> Result<Response, PageError> {
    let form = DeprecationForm::default();
    let page = render(&web, &visitor, &path, &query.version, Complaint::default(), &form).await?;
    Ok(page::render(StatusCode::OK, &page))
}

#[derive(Default, Deserialize)]
#[serde(default)]
pub(crate) struct DeprecationForm {
    version: String,
    reason: String,
    link: String,
    /// Present if a deprecation is taken back.
    undo: String,
}

/// `POST /app/{organization}/registry/modules/{module}`: deprecates a version, or takes that back.
pub(crate) async fn deprecate(
    State(web): State<Web>,
    Path(path): Path<ModulePath>,
    VisitorForm(visitor, form): VisitorForm<DeprecationForm>,
) -> Result<Response, PageError> {
    let status = if form.undo.is_empty() { "Deprecated" } else { "Undeprecated" };
    let patch = DeprecationPatch {
        deprecated_status: Some(status.to_owned()),
        reason: Some(typed(&form.reason)),
        link: Some(form.link.trim().to_owned()),
    };
    let patch = ModuleVersionPatch { deprecation: Some(patch) };
    let wanted = module_ref(&path.module)?;
    match web.control_plane.update_module_version(&visitor.caller, &wanted, &form.version, patch).await {
        Ok(view) => {
            let address = format!("{}/modules/{}", address_of(&path.organization), path.module);
            let what = if form.undo.is_empty() { "deprecated" } else { "no longer deprecated" };
            let version = view.version.version.as_str().replace('+', "%2B");
            Ok(Flash::says(format!("Version {} is {what}.", view.version.version))
                .redirect_to(&format!("{address}?version={version}")))
        }
        Err(error) => {
            let complaint = Complaint::of(error, &["deprecation"])?;
            let page = render(&web, &visitor, &path, &form.version, complaint, &form).await?;
            Ok(page::render(StatusCode::UNPROCESSABLE_ENTITY, &page))
        }
    }
}

#[derive(Deserialize)]
pub(crate) struct VersionPath {
    organization: String,
    module: String,
    version: String,
}

/// `POST /app/{organization}/registry/modules/{module}/versions/{version}/delete`
pub(crate) async fn delete_version(
    State(web): State<Web>,
    Path(path): Path<VersionPath>,
    VisitorForm(visitor, Nothing {}): VisitorForm<Nothing>,
) -> Result<Response, PageError> {
    let wanted = module_ref(&path.module)?;
    web.control_plane.delete_module_version(&visitor.caller, &wanted, &path.version).await?;
    let registry = address_of(&path.organization);
    // With its last version the module is gone.
    let address = match web.control_plane.registry_module(&visitor.caller, &wanted).await {
        Ok(_) => format!("{registry}/modules/{}", path.module),
        Err(_) => registry,
    };
    Ok(Flash::deleted("Version", &path.version).redirect_to(&address))
}
