//! `/app/{organization}/workspaces/{workspace}`: what a workspace is and how it is doing.

use std::sync::Arc;

use askama::Template;
use axum::extract::{Path, Query, State};
use axum::http::HeaderMap;
use axum::response::{Redirect, Response};
use jiff::Timestamp;
use taco_control_plane::{Error, LockChoices, WorkspaceRef, WorkspaceView};
use taco_domain::Author;
use taco_domain::execution::ExecutionMode;
use taco_domain::permission::Action;
use taco_domain::run::Run;
use taco_domain::state_file::ResourceSummary;
use taco_graph_picture::Look;

use crate::badge::Badge;
use crate::error::PageError;
use crate::live::Version;
use crate::markdown::{SafeHtml, safe_html};
use crate::navigation::{WorkspaceSection, organization_address, run_address, workspace_address};
use crate::page::Layout;
use crate::pictures::Figure;
use crate::pictures::pages::{WorkspacePictures, resource_types};
use crate::state_parts::{OutputRows, ResourceQuery, Resources, ShownValue};
use crate::text::{self, Moment};
use crate::visitor::Visitor;
use crate::words::list_title;
use crate::workspace_query::WorkspaceQuery;
use crate::{Web, terraform};

#[derive(Template)]
#[template(path = "workspace.html", blocks = ["live"])]
struct WorkspacePage {
    layout: Layout,
    version: Version,
    /// Reason why the visitor cannot start a run.
    start_refusal: Option<String>,
    address: String,
    facts: Facts,
    run: Option<LatestRun>,
    lock: Option<LockLine>,
    choices: LockChoices,
    state: Option<StateLine>,
    resources: Result<Resources, String>,
    outputs: Result<OutputRows, String>,
    /// How fresh it is, and why; nothing if the visitor may not know.
    freshness: Option<(Look, String)>,
    /// Address at which outputs are revealed, and the reason if they cannot be.
    overview: String,
    reveal: Result<(), String>,
    readme: Option<SafeHtml>,
    cloud_block: String,
    host_block: Option<String>,
    now: Timestamp,
    pictures: WorkspacePictures,
    types: Option<Figure>,
}

struct Facts {
    id: String,
    name: String,
    description: String,
    project: String,
    project_address: String,
    /// With the address of the list of those that carry it.
    tags: Vec<(String, String)>,
    engine: String,
    execution: String,
    working_directory: String,
    auto_apply: bool,
    created: Moment,
}

struct LatestRun {
    badge: Badge,
    address: String,
    id: String,
    message: String,
    by: String,
    created: Moment,
}

struct LockLine {
    /// Kind of holder, where its name does not say it.
    kind: Option<&'static str>,
    holder: String,
    /// Address of the run that holds it, if one does.
    run_address: Option<String>,
    since: Moment,
    from: Option<String>,
    reason: Option<String>,
    /// Self-description of a client of the `http` backend.
    client: Option<String>,
}

struct StateLine {
    serial: u64,
    address: String,
    changed: Moment,
}

/// Reference to a workspace from a page's path.
pub(crate) fn named((organization, name): (String, String)) -> WorkspaceRef {
    WorkspaceRef::Named { organization, name }
}

/// The address of a workspace's page.
pub(crate) fn address_of(view: &WorkspaceView) -> String {
    workspace_address(view.org.entry().name.as_str(), view.workspace.name.as_str())
}

/// `GET /app/{organization}/{workspace}`: what the CLIs print.
pub(crate) async fn redirect(
    State(web): State<Web>,
    visitor: Visitor,
    Path(path): Path<(String, String)>,
) -> Result<Redirect, PageError> {
    let view = web.control_plane.workspace(&visitor.caller, &named(path)).await?;
    Ok(Redirect::to(&address_of(&view)))
}

/// `GET /app/{organization}/workspaces/{workspace}`
pub(crate) async fn show(
    State(web): State<Web>,
    visitor: Visitor,
    Path(path): Path<(String, String)>,
    Query(query): Query<ResourceQuery>,
    headers: HeaderMap,
) -> Result<Response, PageError> {
    let version = Version::current(&web, &visitor, &path.0).await?;
    if version.is_known(&headers) {
        return Ok(version.not_modified());
    }
    let wanted_workspace = named(path);
    let view = web.control_plane.workspace(&visitor.caller, &wanted_workspace).await?;
    let outputs = web.control_plane.current_outputs(&visitor.caller, &wanted_workspace);
    let readme = web.control_plane.readme(&visitor.caller, &wanted_workspace);
    let why = web.control_plane.why(&visitor.caller, &wanted_workspace);
    let (outputs, resources, readme, why) = tokio::join!(outputs, summary(&web, &visitor, &view), readme, why);
    let freshness = explained(why)?.ok().map(|why| {
        let first = why.sentences.into_iter().next().unwrap_or_default();
        (Look::of_freshness(why.freshness), first)
    });
    let outputs = explained(outputs)?.map(OutputRows::of);
    let resources = explained(resources)?;
    let state = view.current_state_version().map(|version| format!("{}/states/{}", address_of(&view), version.id));
    let state = state.unwrap_or_default();
    let types = resources.as_ref().ok().and_then(|summary| resource_types(summary));
    let pictures = WorkspacePictures::of(&web, &visitor, &view, &address_of(&view)).await;
    let resources = resources.map(|summary| Resources::of(&summary, query, &address_of(&view), &state));
    let readme = readme?.map(|text| safe_html(&text));
    let page = WorkspacePage {
        readme,
        pictures,
        types,
        freshness,
        ..overview(&web, &visitor, version, &view, resources, outputs)
    };
    Ok(page.version.answer(&headers, &page.as_live(), &page))
}

/// A part that is out of the visitor's reach says so in its place; the page is there nevertheless.
fn explained<T>(part: Result<T, Error>) -> Result<Result<T, String>, PageError> {
    match part {
        Ok(part) => Ok(Ok(part)),
        Err(Error::Denied(reason)) => Ok(Err(reason)),
        Err(other) => Err(other.into()),
    }
}

async fn summary(web: &Web, visitor: &Visitor, view: &WorkspaceView) -> Result<Arc<ResourceSummary>, Error> {
    match web.control_plane.current_state_version(&visitor.caller, view.workspace.id).await {
        Ok(state) => web.control_plane.resource_summary(&state).await,
        // There is none yet.
        Err(Error::NotFound(_)) => Ok(Arc::default()),
        Err(other) => Err(other),
    }
}

fn overview(
    web: &Web,
    visitor: &Visitor,
    version: Version,
    view: &WorkspaceView,
    resources: Result<Resources, String>,
    outputs: Result<OutputRows, String>,
) -> WorkspacePage {
    let WorkspaceView { workspace, org } = view;
    let (organization, name) = (org.entry().name.as_str(), workspace.name.as_str());
    let state = view.current_state_version();
    WorkspacePage {
        layout: Layout::for_visitor(web, visitor).in_workspace(organization, workspace, WorkspaceSection::Overview),
        version,
        start_refusal: web.control_plane.new_run_refusal(&visitor.caller, view),
        address: address_of(view),
        facts: facts(view),
        run: view.current_run().map(|run| latest_run(view, run)),
        lock: lock_line(view),
        choices: view.lock_choices(&visitor.caller),
        state: state.map(|version| StateLine {
            serial: version.serial,
            address: format!("{}/states/{}", address_of(view), version.id),
            changed: Moment(version.created_at),
        }),
        resources,
        outputs,
        overview: address_of(view),
        reveal: may_reveal(visitor, view),
        freshness: None,
        readme: None,
        cloud_block: terraform::cloud_block(&web.address, organization, name),
        host_block: terraform::needed_host_block(&web.address),
        now: web.control_plane.now(),
        pictures: WorkspacePictures::default(),
        types: None,
    }
}

/// `Ok` if the visitor may see values of sensitive outputs, otherwise the reason why not.
pub(crate) fn may_reveal(visitor: &Visitor, view: &WorkspaceView) -> Result<(), String> {
    let decision = visitor.caller.may(Action::ReadState, view.resource());
    if decision.allowed { Ok(()) } else { Err(decision.reason.into_owned()) }
}

fn facts(view: &WorkspaceView) -> Facts {
    let WorkspaceView { workspace, org } = view;
    let list = format!("{}/workspaces", organization_address(org.entry().name.as_str()));
    let project = view.project();
    let execution = view.execution();
    let pool = view.agent_pool();
    let tags = workspace.tags.iter().map(|(key, value)| {
        let text = if value.is_empty() { key.to_string() } else { format!("{key}:{value}") };
        let address = format!("{list}?{}", WorkspaceQuery::tagged(&text).in_address());
        (text, address)
    });
    Facts {
        id: workspace.id.to_string(),
        name: workspace.name.to_string(),
        description: text::plain(&workspace.description),
        project: project.map(|project| project.name.to_string()).unwrap_or_default(),
        project_address: format!("{}/projects/{}", organization_address(org.entry().name.as_str()), workspace.project),
        tags: tags.collect(),
        engine: format!("{} {}", workspace.engine, workspace.terraform_version),
        execution: match pool {
            Some(pool) => format!("{} (pool {})", mode_words(execution.mode), pool.name),
            None => mode_words(execution.mode).to_owned(),
        },
        working_directory: text::plain(&workspace.working_directory),
        auto_apply: workspace.auto_apply,
        created: Moment(workspace.created_at),
    }
}

fn latest_run(view: &WorkspaceView, run: &Run) -> LatestRun {
    LatestRun {
        badge: Badge::of_run(run.status),
        address: run_address(view.org.entry().name.as_str(), view.workspace.name.as_str(), run.id),
        id: run.id.to_string(),
        message: list_title(&run.options),
        by: view.org.name_of(&run.created_by),
        created: Moment(run.created_at),
    }
}

fn lock_line(view: &WorkspaceView) -> Option<LockLine> {
    let lock = view.workspace.lock.as_ref()?;
    let run_address = match lock.holder {
        Author::Run(id) => Some(format!("{}/runs/{id}", address_of(view))),
        _ => None,
    };
    let client = lock.http.as_ref().map(|info| [info.who.as_str(), info.operation.as_str(), info.info.as_str()]);
    Some(LockLine {
        kind: (!matches!(lock.holder, Author::User(_) | Author::Run(_))).then(|| lock.holder.kind()),
        holder: text::plain(&lock.holder_name),
        run_address,
        since: Moment(lock.since),
        from: lock.from.as_deref().map(text::plain),
        reason: lock.reason.as_deref().map(text::plain),
        client: client.map(|parts| text::plain(parts.join(" ").trim())).filter(|text| !text.is_empty()),
    })
}

fn mode_words(mode: ExecutionMode) -> &'static str {
    match mode {
        ExecutionMode::Remote => "Remote",
        ExecutionMode::Local => "Local",
        ExecutionMode::Agent => "Agent",
    }
}
