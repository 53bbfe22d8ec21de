//! `/app/{organization}/workspaces/{workspace}/outputs/history`: every change of a workspace's outputs, what they were after
//! one, and what differs between two.

use askama::Template;
use axum::extract::{Path, Query, State};
use axum::http::StatusCode;
use axum::response::Response;
use jiff::Timestamp;
use serde::Deserialize;
use serde_json::value::RawValue;
use taco_control_plane::{ComparedOutput, Error, OutputAtCommit, OutputCommitView};
use taco_domain::graph::output_commit::OutputDifference;
use taco_graph_picture::words::OutputChange;

use crate::error::PageError;
use crate::navigation::WorkspaceSection;
use crate::page::Layout;
use crate::pagination::{self, Pagination};
use crate::text::{self, Moment};
use crate::visitor::Visitor;
use crate::workspace::{address_of, named};
use crate::{Web, page};

/// Changes that a row names.
const NAMED_CHANGES: usize = 12;
/// Characters of a value.
const LONGEST_VALUE: usize = 2000;

#[derive(Template)]
#[template(path = "output_history.html")]
struct HistoryPage {
    layout: Layout,
    address: String,
    name: String,
    rows: Vec<CommitRow>,
    pages: Pagination,
    shown: Option<ShownCommit>,
    compared: Option<ShownComparison>,
    wanted: HistoryQuery,
    /// Why two commits could not be compared.
    complaint: Option<String>,
    now: Timestamp,
}

/// Query of the page's address.
#[derive(Deserialize, Default)]
#[serde(default)]
pub(crate) struct HistoryQuery {
    /// Number of a commit whose outputs are wanted.
    commit: String,
    from: String,
    to: String,
    page: String,
}

/// One output commit of the list.
pub(crate) struct CommitRow {
    pub(crate) number: u32,
    /// Of its outputs.
    pub(crate) address: String,
    /// Of what it changed.
    pub(crate) comparison: String,
    pub(crate) at: Moment,
    pub(crate) by: String,
    pub(crate) run: Option<(String, String)>,
    pub(crate) state_address: String,
    pub(crate) changes: Vec<ChangeMark>,
    pub(crate) more: usize,
    /// The outputs cannot be told apart.
    pub(crate) is_opaque: bool,
}

/// One changed output.
pub(crate) struct ChangeMark {
    /// Class of the sign.
    pub(crate) class: &'static str,
    pub(crate) sign: &'static str,
    pub(crate) name: String,
    /// What changed, in words; empty where the sign says it.
    pub(crate) what: String,
}

struct ShownCommit {
    number: u32,
    outputs: Vec<ShownOutput>,
}

struct ShownOutput {
    name: String,
    kind: String,
    value: ShownText,
}

struct ShownComparison {
    from: u32,
    to: u32,
    /// They differ, and cannot be told apart.
    as_a_whole: bool,
    outputs: Vec<ShownDifference>,
}

struct ShownDifference {
    mark: ChangeMark,
    before: Option<ShownText>,
    after: Option<ShownText>,
}

/// A value, or why there is none.
pub(crate) enum ShownText {
    Value(String),
    Hint(&'static str),
}

impl ShownText {
    fn of(value: Option<&RawValue>, is_sensitive: bool) -> Self {
        match value {
            _ if is_sensitive => Self::Hint("sensitive: hidden"),
            Some(value) => Self::Value(crate::pictures::shortened(&text::plain(value.get()), LONGEST_VALUE)),
            None => Self::Hint("you may not read this state, or it was deleted"),
        }
    }
}

impl ChangeMark {
    fn new(name: &str, change: OutputChange, what: String) -> Self {
        let (class, sign) = match change {
            OutputChange::Added => ("added", "+"),
            OutputChange::Removed => ("removed", "−"),
            OutputChange::Type | OutputChange::Value | OutputChange::Sensitivity => ("changed", "~"),
        };
        Self { class, sign, name: text::plain(name), what }
    }

    fn of(name: &str, difference: &OutputDifference) -> Self {
        let (before, after) = (difference.before.as_ref(), difference.after.as_ref());
        let what = match (difference.change, before, after) {
            (OutputChange::Type, Some(before), Some(after)) => format!(
                "{} → {}",
                crate::pictures::shortened(&before.detailed_type, 40),
                crate::pictures::shortened(&after.detailed_type, 40)
            ),
            (OutputChange::Sensitivity, _, Some(after)) if after.sensitive => "now sensitive".to_owned(),
            (OutputChange::Sensitivity, ..) => "no longer sensitive".to_owned(),
            _ => String::new(),
        };
        Self::new(name, difference.change, what)
    }
}

impl CommitRow {
    /// `overview` is the address of the workspace.
    pub(crate) fn of(view: &OutputCommitView, overview: &str) -> Self {
        let OutputCommitView { commit, maker } = view;
        let history = format!("{overview}/outputs/history");
        let number = commit.number;
        Self {
            number,
            address: format!("{history}?commit={number}#outputs"),
            comparison: format!("{history}?from={}&to={number}#comparison", number - 1),
            at: Moment(commit.at),
            by: maker.name.clone().unwrap_or_default(),
            run: maker.run.map(|id| (id.to_string(), format!("{overview}/runs/{id}"))),
            state_address: format!("{overview}/states/{}", commit.state_version),
            changes: commit
                .changes
                .iter()
                .take(NAMED_CHANGES)
                .map(|(name, change)| ChangeMark::of(name, change))
                .collect(),
            more: commit.changes.len().saturating_sub(NAMED_CHANGES),
            is_opaque: commit.opaque.is_some(),
        }
    }
}

impl From<OutputAtCommit> for ShownOutput {
    fn from(output: OutputAtCommit) -> Self {
        Self {
            name: text::plain(&output.name),
            value: ShownText::of(output.value.as_deref(), output.sensitive),
            kind: crate::pictures::shortened(output.detailed_type.trim_matches('"'), 80),
        }
    }
}

impl From<ComparedOutput> for ShownDifference {
    fn from(output: ComparedOutput) -> Self {
        let value = |value: &Option<Box<RawValue>>| ShownText::of(value.as_deref(), output.sensitive);
        Self {
            before: (output.change != OutputChange::Added).then(|| value(&output.before)),
            after: (output.change != OutputChange::Removed).then(|| value(&output.after)),
            mark: ChangeMark::new(&output.name, output.change, String::new()),
        }
    }
}

/// `GET /app/{organization}/workspaces/{workspace}/outputs/history`
pub(crate) async fn show(
    State(web): State<Web>,
    visitor: Visitor,
    Path(path): Path<(String, String)>,
    Query(wanted): Query<HistoryQuery>,
) -> Result<Response, PageError> {
    let (plane, caller) = (&web.control_plane, &visitor.caller);
    let workspace = named(path);
    let view = plane.workspace_with_outputs(caller, &workspace).await?;
    let listed = plane.output_commits(caller, &workspace, pagination::asked_for(&wanted.page)).await?;
    let shown = match wanted.commit.parse() {
        Ok(number) => {
            let found = plane.outputs_at_commit(caller, &workspace, Some(number)).await?;
            Some(ShownCommit { number, outputs: found.outputs.into_iter().map(ShownOutput::from).collect() })
        }
        Err(_) => None,
    };
    let (compared, complaint) = match (wanted.from.parse(), wanted.to.parse()) {
        (Ok(from), Ok(to)) => match plane.compare_outputs(caller, &workspace, (from, to), &[]).await {
            Ok(found) => {
                let as_a_whole = found.changed && found.changes.is_empty();
                let outputs = found.changes.into_iter().map(ShownDifference::from).collect();
                (Some(ShownComparison { from, to, as_a_whole, outputs }), None)
            }
            Err(Error::Invalid { detail, .. }) => (None, Some(text::plain(&detail))),
            Err(other) => return Err(other.into()),
        },
        _ => (None, None),
    };
    let (organization, overview) = (view.org.entry().name.as_str(), address_of(&view));
    let address = format!("{overview}/outputs/history");
    let layout = Layout::for_visitor(&web, &visitor);
    let page = HistoryPage {
        layout: layout.in_workspace(organization, &view.workspace, WorkspaceSection::Dependencies),
        name: view.workspace.name.to_string(),
        rows: listed.items.iter().map(|view| CommitRow::of(view, &overview)).collect(),
        pages: Pagination::of(&listed, |number| format!("{address}?page={number}")),
        shown,
        compared,
        wanted,
        complaint,
        now: web.control_plane.now(),
        address,
    };
    Ok(page::render(StatusCode::OK, &page))
}
