//! Filter for a list of runs, in the terms of Terraform Cloud.

use jiff::Timestamp;
use jiff::civil::Date;
use jiff::tz::TimeZone;
use taco_domain::id::RunId;
use taco_domain::run::{Run, RunOptions};
use taco_domain::run_status::RunStatus;
use taco_domain::wait_reason::pool_for;
use taco_domain::workspace::Workspace;
use taco_domain::{Author, OrganizationState, Site};
use taco_history::Row;

use crate::history::options_of;

/// Every filter that is not empty has to match. An unknown value matches nothing.
#[derive(Clone, Default, Debug)]
pub struct RunFilter {
    pub statuses: Vec<String>,
    /// `final`, `non_final`, `discardable`.
    pub status_groups: Vec<String>,
    /// For instance `tfe-api`.
    pub sources: Vec<String>,
    /// For instance `plan_only`.
    pub operations: Vec<String>,
    pub workspaces: Vec<String>,
    pub agent_pools: Vec<String>,
    /// A year, a day in UTC such as `2026-11-17`, or `year` for the one before today.
    pub timeframe: Option<String>,
    /// A part of the id or of the message.
    pub text: Option<String>,
    /// A part of its creator's name.
    pub user: Option<String>,
    /// Of a repository; no run here comes from one yet.
    pub commit: Option<String>,
}

impl RunFilter {
    pub(crate) fn takes(&self, state: &OrganizationState, site: &Site, workspace: &Workspace, run: &Run) -> bool {
        !self.takes_nothing()
            && self.takes_status(run.status_on_the_wire())
            && (self.sources.is_empty() || self.takes_source(&run.source.to_string()))
            && self.takes_workspace(state, workspace)
            && self.takes_options(&run.options)
            && self.takes_year(run.created_at)
            && self.takes_text(run.id, &run.options.message)
            && self.takes_author(site, Some(run.created_by))
    }

    /// The same for a run that is in history.
    pub(crate) fn takes_row(
        &self,
        state: &OrganizationState,
        site: &Site,
        workspace: &Workspace,
        row: &Row<'_>,
        message: &str,
    ) -> bool {
        !self.takes_nothing()
            && self.takes_status(row.status)
            && self.takes_source(row.source)
            && self.takes_workspace(state, workspace)
            && self.takes_options(&options_of(row.flags))
            && self.takes_time(row.at)
            && RunId::from_bytes(row.id).is_ok_and(|id| self.takes_text(id, message))
            && (self.user.is_none() || self.takes_author(site, Author::spelled(row.author)))
    }

    /// True if it matches every run.
    pub(crate) fn is_empty(&self) -> bool {
        let Self { statuses, status_groups, sources, operations, workspaces, agent_pools, .. } = self;
        let lists = [statuses, status_groups, sources, operations, workspaces, agent_pools];
        let texts = [&self.timeframe, &self.text, &self.user, &self.commit];
        lists.into_iter().all(Vec::is_empty) && texts.into_iter().all(Option::is_none)
    }

    /// True if no run can match: none comes from a repository yet.
    pub(crate) fn takes_nothing(&self) -> bool {
        self.commit.is_some()
    }

    pub(crate) fn searches_texts(&self) -> bool {
        self.text.is_some()
    }

    /// As on the wire.
    pub(crate) fn takes_status(&self, status: &str) -> bool {
        let known = || serde_json::from_value::<RunStatus>(status.into()).ok();
        is_listed(&self.statuses, status)
            && fits_any(&self.status_groups, |group| match known() {
                Some(status) => is_in_group(status, group),
                // On the wire some runs have a status of their own: those that wait for a decision about their cost.
                None => is_in_group(RunStatus::Planned, group),
            })
    }

    pub(crate) fn takes_source(&self, source: &str) -> bool {
        is_listed(&self.sources, source)
    }

    pub(crate) fn takes_workspace(&self, state: &OrganizationState, workspace: &Workspace) -> bool {
        is_listed(&self.workspaces, workspace.name.as_str())
            && fits_any(&self.agent_pools, |name| uses_pool(state, workspace, name))
    }

    /// True if it matches the runs of every workspace.
    pub(crate) fn takes_every_workspace(&self) -> bool {
        self.workspaces.is_empty() && self.agent_pools.is_empty()
    }

    pub(crate) fn takes_options(&self, options: &RunOptions) -> bool {
        fits_any(&self.operations, |operation| is_operation(options, operation))
    }

    /// In nanoseconds.
    pub(crate) fn takes_time(&self, at: i64) -> bool {
        self.timeframe.is_none() || Timestamp::from_nanosecond(at.into()).is_ok_and(|at| self.takes_year(at))
    }

    fn takes_year(&self, at: Timestamp) -> bool {
        self.timeframe.as_ref().is_none_or(|frame| is_within(at, frame))
    }

    fn takes_text(&self, id: RunId, message: &str) -> bool {
        self.text_search().is_none_or(|search| search.finds(&id.to_bytes(), message))
    }

    /// Search for runs by a text, if there is one.
    pub(crate) fn text_search(&self) -> Option<TextSearch> {
        self.text.as_ref().map(|text| TextSearch { text: text.to_lowercase() })
    }

    pub(crate) fn takes_author(&self, site: &Site, author: Option<Author>) -> bool {
        self.user.as_ref().is_none_or(|name| author.is_some_and(|author| is_user_named(site, author, name)))
    }
}

fn is_listed(list: &[String], word: &str) -> bool {
    list.is_empty() || list.iter().any(|one| one == word)
}

fn fits_any(list: &[String], fits: impl Fn(&str) -> bool) -> bool {
    list.is_empty() || list.iter().any(|one| fits(one))
}

fn is_in_group(status: RunStatus, group: &str) -> bool {
    match group {
        "final" => status.is_final(),
        "non_final" => !status.is_final(),
        "discardable" => status.is_discardable(),
        _ => false,
    }
}

fn is_operation(options: &RunOptions, operation: &str) -> bool {
    match operation {
        "plan_only" => options.plan_only,
        "save_plan" => options.save_plan,
        "refresh_only" => options.refresh_only,
        "destroy" => options.is_destroy,
        "empty_apply" => options.allow_empty_apply,
        "plan_and_apply" => !options.plan_only && !options.save_plan && !options.refresh_only && !options.is_destroy,
        _ => false,
    }
}

fn uses_pool(state: &OrganizationState, workspace: &Workspace, name: &str) -> bool {
    let pool = pool_for(state, workspace).and_then(|pool| state.agent_pools.get(&pool));
    pool.is_some_and(|pool| pool.name.as_str() == name)
}

fn is_within(at: Timestamp, frame: &str) -> bool {
    let made: Date = TimeZone::UTC.to_datetime(at).date();
    match (frame.parse::<i16>(), frame.parse::<Date>()) {
        (Ok(year), _) => made.year() == year,
        (_, Ok(day)) => made == day,
        _ => true,
    }
}

/// Looks for a text in messages and ids, in whatever case. There may be a million of them.
pub(crate) struct TextSearch {
    /// In lower case.
    text: String,
}

impl TextSearch {
    /// True if a run with these 16 characters and this message matches.
    pub(crate) fn finds(&self, characters: &[u8; 16], message: &str) -> bool {
        self.is_in(message) || self.is_in_id(characters)
    }

    fn is_in(&self, message: &str) -> bool {
        match message.is_ascii() {
            true => contains_ascii(message.as_bytes(), self.text.as_bytes()),
            false => message.to_lowercase().contains(&self.text),
        }
    }

    fn is_in_id(&self, characters: &[u8; 16]) -> bool {
        let mut id = *b"run-................";
        id[4..].copy_from_slice(characters);
        contains_ascii(&id, self.text.as_bytes())
    }
}

/// `part` is in lower case.
fn contains_ascii(whole: &[u8], part: &[u8]) -> bool {
    let Some((first, _)) = part.split_first() else { return true };
    let Some(last) = whole.len().checked_sub(part.len()) else { return false };
    let begins = |at: &usize| whole[*at].eq_ignore_ascii_case(first);
    (0..=last).filter(begins).any(|at| whole[at..at + part.len()].eq_ignore_ascii_case(part))
}

fn is_user_named(site: &Site, author: Author, name: &str) -> bool {
    let Author::User(user) = author else { return false };
    let user = site.users.get(&user);
    user.is_some_and(|user| user.username.as_str().to_lowercase().contains(&name.to_lowercase()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_day_is_one_in_utc() {
        let at = |text: &str| text.parse().expect("a timestamp");
        for (frame, moment, found) in [
            ("2026", "2026-01-01T00:00:00Z", true),
            ("2026", "2025-12-31T23:59:59Z", false),
            ("2026-11-17", "2026-11-17T00:00:00Z", true),
            ("2026-11-17", "2026-11-17T23:59:59.9Z", true),
            ("2026-11-17", "2026-11-18T00:00:00Z", false),
            ("year", "2026-11-18T00:00:00Z", true),
        ] {
            assert_eq!(is_within(at(moment), frame), found, "{frame} and {moment}");
        }
    }

    #[test]
    fn runs_are_found_by_a_part_of_their_message_or_id_in_whatever_case() {
        let id = *b"4Tk9mXbq7cWvZpHn";
        for (text, message, found) in [
            ("REPLICAS", "Raise the replicas", true),
            ("the rep", "Raise THE Replicas", true),
            ("replicass", "Raise the replicas", false),
            ("übers", "Eine Überschrift", true),
            ("überschrift", "An overview", false),
            ("", "", true),
            ("run-4tk9", "", true),
            ("wvzphn", "Raise", true),
            ("run-4tk9mxbq7cwvzphn0", "", false),
        ] {
            let filter = RunFilter { text: Some(text.to_owned()), ..RunFilter::default() };
            let search = filter.text_search().expect("there is a text");
            assert_eq!(search.finds(&id, message), found, "{text} in {message}");
        }
    }
}
