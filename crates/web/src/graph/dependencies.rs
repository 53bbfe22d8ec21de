//! `/app/{organization}/workspaces/{workspace}/dependencies`: why a workspace is as fresh as it is, what it uses and what uses
//! it, and what people say of that.

use askama::Template;
use axum::extract::{Path, State};
use axum::http::StatusCode;
use axum::response::Response;
use jiff::Timestamp;
use taco_control_plane::{
    DependencyDirection, DependencyView, Error, OutputCommitView, PageRequest, Why, WorkspaceView,
};
use taco_domain::permission::{Action, Decision};
use taco_graph_picture::words::EdgePolicy;
use taco_graph_picture::{Filter, Grouping, Look};

use crate::dependency_forms::Declaration;
use crate::error::PageError;
use crate::graph::GraphView;
use crate::navigation::{WorkspaceSection, organization_address, workspace_address};
use crate::output_history::CommitRow;
use crate::page::Layout;
use crate::text::{self, Moment};
use crate::visitor::Visitor;
use crate::workspace::{address_of, named};
use crate::{Web, page};

/// Output commits that the page shows; their own page has all.
const SHOWN_COMMITS: usize = 5;
/// Outputs that a row names.
const NAMED_OUTPUTS: usize = 8;
/// Resources that a row names.
const NAMED_USERS: usize = 3;

#[derive(Template)]
#[template(path = "dependencies.html")]
struct DependenciesPage {
    layout: Layout,
    /// Of this page.
    address: String,
    /// Of the workspace.
    overview: String,
    graph_address: String,
    name: String,
    look: Look,
    why: Why,
    picture: Option<GraphView>,
    upstream: Vec<DependencyRow>,
    downstream: Vec<DependencyRow>,
    /// More than the page shows.
    more_upstream: usize,
    more_downstream: usize,
    right: Decision,
    form: Declaration,
    /// Names of workspaces that may be declared as producers.
    others: Vec<String>,
    policies: [EdgePolicy; 3],
    commits: Result<Vec<CommitRow>, String>,
    now: Timestamp,
}

/// One dependency, as seen from one of its ends.
struct DependencyRow {
    /// Of its forms.
    address: String,
    /// The unit at the other end.
    other: String,
    other_address: Option<String>,
    look: Look,
    outputs: String,
    known_by: String,
    users: String,
    since: Moment,
    policy: EdgePolicy,
    is_muted: bool,
    /// Why it is muted.
    mute_reason: String,
    /// By whom it was declared.
    declared_by: Option<String>,
    /// Someone said that the consumer is up to date.
    acknowledged: Option<String>,
    /// The producer has outputs that can be acknowledged.
    can_be_acknowledged: bool,
    /// A run trigger would keep the workspace up to date, and there is none.
    proposes_trigger: bool,
}

impl DependencyRow {
    /// Address of one of its forms.
    fn action(&self, verb: &str) -> String {
        format!("{}/{verb}", self.address)
    }

    /// What a dialog asks before it is done.
    fn question(&self, deed: &str) -> String {
        format!("{deed} {}?", self.other)
    }

    fn of(view: &DependencyView, direction: DependencyDirection, page: &str) -> Self {
        let DependencyView { dependency, edge, org, .. } = view;
        let organization = org.entry().name.as_str();
        let (other, is_seen) = match direction {
            DependencyDirection::Upstream => (&edge.producer, view.sees_producer),
            DependencyDirection::Downstream => (&edge.consumer, view.sees_consumer),
        };
        let grades: Vec<&str> = edge.grades.iter().map(|grade| grade.word()).collect();
        let reason = |reason: &Option<String>| reason.as_deref().map(text::plain).unwrap_or_default();
        let consumed = dependency.consumed.as_ref().filter(|consumed| consumed.reason.is_some());
        let outputs = &edge.outputs;
        Self {
            address: format!("{page}/{}", dependency.id),
            other: text::plain(other),
            other_address: is_seen.then(|| format!("{}/dependencies", workspace_address(organization, other))),
            look: Look::of_edge(edge),
            outputs: if outputs.is_empty() { "not known".to_owned() } else { some_of(outputs, NAMED_OUTPUTS) },
            known_by: grades.join(", "),
            users: some_of(&edge.users, NAMED_USERS),
            since: Moment(dependency.since()),
            policy: dependency.policy,
            is_muted: dependency.muted.is_some(),
            mute_reason: dependency.muted.as_ref().map(|muted| reason(&muted.reason)).unwrap_or_default(),
            declared_by: dependency.declared.as_ref().map(|said| org.name_of(&said.by)),
            acknowledged: consumed
                .map(|consumed| format!("{}: {}", org.name_of(&consumed.by), reason(&consumed.reason))),
            proposes_trigger: edge.proposes_trigger && direction == DependencyDirection::Upstream,
            can_be_acknowledged: edge.is_stale() || edge.status == taco_graph_picture::words::EdgeStatus::Unknown,
        }
    }
}

/// `a, b and 3 more`.
pub(crate) fn some_of(texts: &[String], most: usize) -> String {
    let shown: Vec<String> = texts.iter().take(most).map(|text| text::plain(text)).collect();
    match texts.len().saturating_sub(most) {
        0 => shown.join(", "),
        more => format!("{} and {more} more", shown.join(", ")),
    }
}

/// `GET /app/{organization}/workspaces/{workspace}/dependencies`
pub(crate) async fn show(
    State(web): State<Web>,
    visitor: Visitor,
    Path(path): Path<(String, String)>,
) -> Result<Response, PageError> {
    let page = dependencies(&web, &visitor, path, Declaration::default()).await?;
    Ok(page::render(StatusCode::OK, &page))
}

/// The page again, with what was wrong with a declaration.
pub(crate) async fn show_again(
    web: &Web,
    visitor: &Visitor,
    path: (String, String),
    form: Declaration,
) -> Result<Response, PageError> {
    let page = dependencies(web, visitor, path, form).await?;
    Ok(page::render(StatusCode::UNPROCESSABLE_ENTITY, &page))
}

async fn dependencies(
    web: &Web,
    visitor: &Visitor,
    path: (String, String),
    form: Declaration,
) -> Result<DependenciesPage, PageError> {
    let (plane, caller) = (&web.control_plane, &visitor.caller);
    let wanted = named(path);
    let why = plane.why(caller, &wanted).await?;
    let view = plane.workspace_with_runs(caller, &wanted).await?;
    let first = PageRequest::new(1, PageRequest::LARGEST_SIZE);
    let organization = view.org.entry().name.as_str();
    // At once, so that one look into the bucket serves them all.
    let (upstream, downstream, graph, commits) = tokio::join!(
        plane.dependencies(caller, &wanted, DependencyDirection::Upstream, first),
        plane.dependencies(caller, &wanted, DependencyDirection::Downstream, first),
        plane.graph(caller, organization),
        plane.output_commits(caller, &wanted, PageRequest::new(1, SHOWN_COMMITS)),
    );
    let (upstream, downstream, (_, graph)) = (upstream?, downstream?, graph?);
    let commits = match commits {
        Ok(commits) => Ok(commits.items),
        Err(Error::Denied(reason)) => Err(reason),
        Err(other) => return Err(other.into()),
    };
    Ok(filled(web, visitor, &view, Facts { why, upstream, downstream, graph, commits }, form))
}

/// What the page is made from.
struct Facts {
    why: Why,
    upstream: taco_control_plane::Listed<DependencyView>,
    downstream: taco_control_plane::Listed<DependencyView>,
    graph: taco_graph_picture::Graph,
    commits: Result<Vec<OutputCommitView>, String>,
}

fn filled(web: &Web, visitor: &Visitor, view: &WorkspaceView, facts: Facts, form: Declaration) -> DependenciesPage {
    let Facts { why, upstream, downstream, graph, commits } = facts;
    let WorkspaceView { workspace, org } = view;
    let (organization, name) = (org.entry().name.as_str(), workspace.name.as_str());
    let overview = address_of(view);
    let address = format!("{overview}/dependencies");
    let near = Filter { around: Some(name.to_owned()), hops: Some(1), ..Filter::default() }.of(&graph);
    let rows = |listed: &taco_control_plane::Listed<DependencyView>, direction| -> Vec<DependencyRow> {
        listed.items.iter().map(|view| DependencyRow::of(view, direction, &address)).collect()
    };
    let has_picture = !near.edges.is_empty();
    DependenciesPage {
        layout: Layout::for_visitor(web, visitor).in_workspace(organization, workspace, WorkspaceSection::Dependencies),
        graph_address: format!("{}/graph?around={name}", organization_address(organization)),
        name: name.to_owned(),
        look: Look::of_freshness(why.freshness),
        picture: has_picture.then(|| GraphView::of(&near, Grouping::fitting(&near), organization, Some(name), None)),
        more_upstream: upstream.total - upstream.items.len(),
        more_downstream: downstream.total - downstream.items.len(),
        upstream: rows(&upstream, DependencyDirection::Upstream),
        downstream: rows(&downstream, DependencyDirection::Downstream),
        right: visitor.caller.may(Action::UpdateWorkspace, view.resource()),
        form,
        others: graph.units.iter().filter(|unit| unit.name != name).take(300).map(|unit| unit.name.clone()).collect(),
        policies: [EdgePolicy::Notify, EdgePolicy::Auto, EdgePolicy::Ignore],
        commits: commits.map(|commits| commits.iter().map(|view| CommitRow::of(view, &overview)).collect()),
        now: web.control_plane.now(),
        why,
        overview,
        address,
    }
}

/// What a policy does, as people read it.
pub(crate) fn policy_words(policy: &EdgePolicy) -> &'static str {
    match policy {
        EdgePolicy::Auto => "Start a run",
        EdgePolicy::Notify => "Show as stale",
        EdgePolicy::Ignore => "Ignore",
    }
}
