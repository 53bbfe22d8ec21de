//! Filter and sort order for the workspaces of an organization.

use std::cmp::Reverse;

use taco_boxed::boxed;
use taco_domain::OrganizationState;
use taco_domain::id::ProjectId;
use taco_domain::permission::{Action, Resource};
use taco_domain::tag;
use taco_domain::workspace::Workspace;

use crate::caller::Caller;
use crate::control_plane::ControlPlane;
use crate::error::Error;
use crate::page::{Listed, PageRequest};
use crate::workspace_view::WorkspaceView;

/// Filter for the workspaces of an organization.
#[derive(Clone, Default, Debug)]
pub struct WorkspaceFilter {
    /// A part of the name.
    pub name: Option<String>,
    /// The name, with `*` as a wildcard.
    pub wildcard_name: Option<String>,
    pub project: Option<ProjectId>,
    /// All of these keys.
    pub tags: Vec<String>,
    /// None of these keys.
    pub exclude_tags: Vec<String>,
    /// All of these, with the value where there is one.
    pub tagged: Vec<(String, Option<String>)>,
    /// The statuses that the current run may have.
    pub current_run: Vec<String>,
    /// Only those that someone or some run has locked.
    pub locked: bool,
    pub order: WorkspaceOrder,
}

/// In which order a list is.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub enum WorkspaceOrder {
    #[default]
    Name,
    NameReversed,
    /// Oldest first. A client that reads page after page meets each workspace once, whatever changes meanwhile.
    Age,
    /// By when the current run was made. Workspaces without one come last.
    CurrentRun,
    CurrentRunReversed,
    /// By when the state changed last, or the workspace was made where it has none.
    LatestStateChange,
    LatestStateChangeReversed,
    /// Most recently changed first.
    LatestChange,
    MostResources,
}

impl WorkspaceFilter {
    fn takes_all(&self) -> bool {
        let Self { name, wildcard_name, project, tags, exclude_tags, tagged, current_run, locked, order: _ } = self;
        name.is_none()
            && wildcard_name.is_none()
            && project.is_none()
            && tags.is_empty()
            && exclude_tags.is_empty()
            && tagged.is_empty()
            && current_run.is_empty()
            && !locked
    }

    fn takes(&self, state: &OrganizationState, workspace: &Workspace) -> bool {
        let name = workspace.name.key();
        let no_tags = tag::Tags::new();
        let project = state.projects.get(&workspace.project).map_or(&no_tags, |project| &project.tags);
        let carries = |key: &str, value: Option<&str>| tag::matches(&workspace.tags, project, key, value);
        self.name.as_ref().is_none_or(|part| name.as_str().contains(&part.to_lowercase()))
            && self
                .wildcard_name
                .as_ref()
                .is_none_or(|pattern| matches_wildcard(&pattern.to_lowercase(), name.as_str()))
            && self.project.is_none_or(|project| workspace.project == project)
            && (!self.locked || workspace.lock.is_some())
            && self.tags.iter().all(|key| carries(key, None))
            && !self.exclude_tags.iter().any(|key| carries(key, None))
            && self.tagged.iter().all(|(key, value)| carries(key, value.as_deref()))
            && (self.current_run.is_empty() || self.has_such_a_run(state, workspace))
    }

    fn has_such_a_run(&self, state: &OrganizationState, workspace: &Workspace) -> bool {
        let status = state.current_run(workspace.id).map(|run| run.status.to_string());
        status.is_some_and(|status| self.current_run.contains(&status))
    }
}

/// `*` matches any text, anywhere in the pattern.
fn matches_wildcard(pattern: &str, name: &str) -> bool {
    let mut parts = pattern.split('*');
    let first = parts.next().unwrap_or_default();
    let Some(mut rest) = name.strip_prefix(first) else { return false };
    let mut parts: Vec<&str> = parts.collect();
    let Some(last) = parts.pop() else { return rest.is_empty() };
    for part in parts {
        match rest.find(part) {
            Some(at) => rest = &rest[at + part.len()..],
            None => return false,
        }
    }
    rest.ends_with(last)
}

#[boxed]
impl ControlPlane {
    /// The workspaces that the caller may see.
    pub async fn workspaces(
        &self,
        caller: &Caller,
        organization: &str,
        filter: &WorkspaceFilter,
        page: PageRequest,
    ) -> Result<Listed<WorkspaceView>, Error> {
        let org = self.organization_named(caller, organization).await?;
        let state = &org.state;
        let sees_all = caller.may(Action::ReadWorkspace, org.resource()).allowed;
        let view = |workspace: &Workspace| WorkspaceView { workspace: workspace.clone(), org: org.clone() };
        // The common cases cost the same in a large organization as in a small one.
        if sees_all && filter.takes_all() {
            let items = match filter.order {
                WorkspaceOrder::Name => Some(part_of(state.workspaces_by_name(), page)),
                WorkspaceOrder::NameReversed => Some(part_of(state.workspaces_by_name().rev(), page)),
                WorkspaceOrder::Age => Some(part_of(state.workspaces_by_age(), page)),
                _ => None,
            };
            if let Some(items) = items {
                return Ok(Listed { items, page, total: state.workspaces.len() }.map(view));
            }
        }
        let wanted = |workspace: &&Workspace| {
            filter.takes(state, workspace)
                && (sees_all || caller.may(Action::ReadWorkspace, Resource::Workspace(state, workspace)).allowed)
        };
        let by_name = || state.workspaces_by_name().filter(wanted);
        let listed = match filter.order {
            WorkspaceOrder::Name => Listed::from_all(by_name(), page),
            WorkspaceOrder::NameReversed => Listed::from_all(state.workspaces_by_name().rev().filter(wanted), page),
            WorkspaceOrder::Age => Listed::from_all(state.workspaces_by_age().filter(wanted), page),
            WorkspaceOrder::CurrentRun | WorkspaceOrder::CurrentRunReversed => {
                let reversed = filter.order == WorkspaceOrder::CurrentRunReversed;
                let key = |workspace: &Workspace| {
                    let made = state.current_run(workspace.id).map(|run| run.created_at.as_nanosecond());
                    (made.is_none(), made.map(|made| if reversed { -made } else { made }))
                };
                Listed::from_all(sorted_by_key(by_name(), key), page)
            }
            WorkspaceOrder::LatestStateChange => {
                Listed::from_all(sorted_by_key(by_name(), |workspace| state.latest_state_change(workspace)), page)
            }
            WorkspaceOrder::LatestStateChangeReversed => {
                let key = |workspace: &Workspace| Reverse(state.latest_state_change(workspace));
                Listed::from_all(sorted_by_key(by_name(), key), page)
            }
            WorkspaceOrder::LatestChange => {
                Listed::from_all(sorted_by_key(by_name(), |workspace| Reverse(state.latest_change(workspace))), page)
            }
            WorkspaceOrder::MostResources => {
                Listed::from_all(sorted_by_key(by_name(), |workspace| Reverse(workspace.resource_count)), page)
            }
        };
        Ok(listed.map(view))
    }
}

/// The items of a page, without a look at those behind it.
fn part_of<'a>(all: impl Iterator<Item = &'a Workspace>, page: PageRequest) -> Vec<&'a Workspace> {
    all.skip(page.skip()).take(page.size()).collect()
}

/// Stable sort by a key.
fn sorted_by_key<'a, K: Ord>(
    workspaces: impl Iterator<Item = &'a Workspace>,
    key: impl Fn(&Workspace) -> K,
) -> impl Iterator<Item = &'a Workspace> {
    let mut keyed: Vec<(K, &Workspace)> = workspaces.map(|workspace| (key(workspace), workspace)).collect();
    keyed.sort_by(|one, other| one.0.cmp(&other.0));
    keyed.into_iter().map(|(_, workspace)| workspace)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_star_stands_for_any_text() {
        for (pattern, name, expected) in [
            ("*-prod", "web-prod", true),
            ("*-prod", "web-prod-2", false),
            ("web-*", "web-prod", true),
            ("*eb*", "web-prod", true),
            ("w*-*d", "web-prod", true),
            ("web", "web", true),
            ("web", "web-prod", false),
            ("*", "", true),
            ("a*a", "a", false),
        ] {
            assert_eq!(matches_wildcard(pattern, name), expected, "{pattern} {name}");
        }
    }
}
