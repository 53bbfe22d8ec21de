//! `/app/{organization}/workspaces/{workspace}/states/{id}/diff`: what changed between two versions of a state.

use askama::Template;
use axum::extract::{Query, State};
use axum::http::StatusCode;
use axum::response::Response;
use serde::Deserialize;
use taco_control_plane::Compared;
use taco_domain::id::StateVersionId;
use taco_domain::state_diff::{Change, Difference};

use crate::error::PageError;
use crate::navigation::WorkspaceSection;
use crate::page::Layout;
use crate::state::{Other, StatePath, find, others};
use crate::state_parts::shortened;
use crate::states::StateRow;
use crate::text_diff::{self, Line};
use crate::visitor::Visitor;
use crate::workspace::address_of;
use crate::{Web, page};

/// Of more things that differ, only the first are shown.
const MAX_SHOWN_DIFFERENCES: usize = 500;

#[derive(Template)]
#[template(path = "state_diff.html")]
struct StateDiffPage {
    layout: Layout,
    /// Of the version that is looked at.
    address: String,
    after: StateRow,
    before: Option<StateRow>,
    others: Vec<Other>,
    shown: Shown,
}

enum Shown {
    /// There is nothing to compare with, or it cannot be done.
    Nothing(String),
    Tree(Tree),
    Json(Vec<Line>),
}

impl Shown {
    fn is_json(&self) -> bool {
        matches!(self, Self::Json(_))
    }
}

pub(crate) struct Tree {
    /// The word and how many.
    pub(crate) counts: [(&'static str, usize); 3],
    pub(crate) unchanged: usize,
    pub(crate) modules: Vec<(String, Vec<Row>)>,
    pub(crate) outputs: Vec<Row>,
    pub(crate) left_out: usize,
}

pub(crate) struct Row {
    pub(crate) address: String,
    pub(crate) sign: &'static str,
    pub(crate) word: &'static str,
    pub(crate) class: &'static str,
    pub(crate) attributes: Vec<(String, Option<String>, Option<String>)>,
}

impl Row {
    fn of(difference: &Difference) -> Self {
        let (sign, word, class) = in_words(difference.change);
        let attributes = difference.attributes.iter().map(|attribute| {
            let shown = |value: &Option<String>| value.as_deref().map(shortened);
            (shortened(&attribute.path), shown(&attribute.before), shown(&attribute.after))
        });
        Self { address: shortened(&difference.address), sign, word, class, attributes: attributes.collect() }
    }
}

fn in_words(change: Change) -> (&'static str, &'static str, &'static str) {
    match change {
        Change::Added => ("+", "added", "added"),
        Change::Removed => ("−", "removed", "removed"),
        Change::Changed => ("~", "changed", "changed"),
    }
}

impl Tree {
    pub(crate) fn of(compared: &Compared) -> Self {
        let diff = &compared.diff;
        let count =
            |change| (in_words(change).1, diff.resources.iter().filter(|resource| resource.change == change).count());
        let mut modules: Vec<(String, Vec<Row>)> = Vec::new();
        for resource in diff.resources.iter().take(MAX_SHOWN_DIFFERENCES) {
            match modules.last_mut() {
                Some((module, rows)) if *module == resource.module => rows.push(Row::of(resource)),
                _ => modules.push((resource.module.clone(), vec![Row::of(resource)])),
            }
        }
        Self {
            counts: [Change::Added, Change::Changed, Change::Removed].map(count),
            unchanged: diff.unchanged,
            modules,
            outputs: diff.outputs.iter().take(MAX_SHOWN_DIFFERENCES).map(Row::of).collect(),
            left_out: diff.resources.len().saturating_sub(MAX_SHOWN_DIFFERENCES),
        }
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.modules.is_empty() && self.outputs.is_empty()
    }
}

#[derive(Deserialize, Default)]
#[serde(default)]
pub(crate) struct DiffQuery {
    /// The version to compare with; the one before where it is empty.
    against: String,
    view: String,
}

/// `GET /app/{organization}/workspaces/{workspace}/states/{id}/diff`
pub(crate) async fn show(
    State(web): State<Web>,
    visitor: Visitor,
    path: StatePath,
    Query(wanted): Query<DiffQuery>,
) -> Result<Response, PageError> {
    let (workspace, after) = find(&web, &visitor, path).await?;
    let against: Option<StateVersionId> = match wanted.against.as_str() {
        "" => web.control_plane.state_before(&after).await?,
        id => Some(id.parse().map_err(|_| PageError::not_found("state version"))?),
    };
    let overview = address_of(&workspace);
    let (before, shown) = match against {
        None => (None, Shown::Nothing("This is the first version: there is none before it.".to_owned())),
        Some(before) => {
            let comparison = web.control_plane.compare_states(&visitor.caller, before, after.version.id).await?;
            let shown = match comparison.result {
                Err(refusal) => Shown::Nothing(refusal.to_string()),
                Ok(compared) if wanted.view == "json" => Shown::Json(json_lines(compared).await),
                Ok(compared) => Shown::Tree(Tree::of(&compared)),
            };
            (Some(StateRow::of(&comparison.before, &overview)), shown)
        }
    };
    let organization = workspace.org.entry().name.as_str();
    let page = StateDiffPage {
        layout: Layout::for_visitor(&web, &visitor)
            .in_workspace(organization, &workspace.workspace, WorkspaceSection::States)
            .called(after.version.id, &format!("Serial {}", after.version.serial)),
        address: format!("{overview}/states/{}", after.version.id),
        after: StateRow::of(&after, &overview),
        before,
        others: others(&web, &visitor, &after, against).await?,
        shown,
    };
    Ok(page::render(StatusCode::OK, &page))
}

/// On a thread of its own: large texts take their time.
async fn json_lines(compared: Compared) -> Vec<Line> {
    let work = move || text_diff::lines(&compared.before.pretty(), &compared.after.pretty());
    tokio::task::spawn_blocking(work).await.unwrap_or_default()
}
