//! Query of a list of workspaces: the filter and sort order in its address.

use serde::Deserialize;
use taco_control_plane::{WorkspaceFilter, WorkspaceOrder};
use taco_domain::run_status::RunStatus;
use url::form_urlencoded::Serializer;

/// The fields of the address. What is empty is not asked for.
#[derive(Clone, PartialEq, Eq, Default, Deserialize, Debug)]
#[serde(default)]
pub(crate) struct WorkspaceQuery {
    /// A part of the name.
    pub(crate) search: String,
    pub(crate) status: String,
    /// `key` or `key:value`.
    pub(crate) tag: String,
    /// An id.
    pub(crate) project: String,
    pub(crate) sort: String,
    pub(crate) page: String,
}

/// One of the values that a field can have, as a link.
pub(crate) struct Choice {
    pub(crate) name: &'static str,
    pub(crate) value: &'static str,
    pub(crate) address: String,
    pub(crate) chosen: bool,
}

impl Choice {
    pub(crate) fn leading_to(self, address: String) -> Self {
        Self { address, ..self }
    }
}

/// Groups of statuses of the latest run that people look for.
const STATUSES: &[(&str, &str, &[RunStatus])] = {
    use RunStatus as S;
    &[
        ("", "All", &[]),
        ("waiting", "Needs approval", &[S::Planned, S::PolicyOverride, S::PlannedAndSaved]),
        (
            "busy",
            "In progress",
            &[
                S::Pending,
                S::PrePlanRunning,
                S::PlanQueued,
                S::Planning,
                S::PostPlanRunning,
                S::Confirmed,
                S::PreApplyRunning,
                S::ApplyQueued,
                S::Applying,
            ],
        ),
        ("errored", "Failed", &[S::Errored]),
        ("done", "Applied", &[S::Applied, S::PlannedAndFinished]),
        ("stopped", "Discarded or canceled", &[S::Discarded, S::Canceled]),
        (LOCKED, "Locked", &[]),
    ]
};

const LOCKED: &str = "locked";

const SORTS: &[(&str, &str, WorkspaceOrder)] = &[
    ("", "Name", WorkspaceOrder::Name),
    ("name-reversed", "Name (Z–A)", WorkspaceOrder::NameReversed),
    ("changed", "Last change", WorkspaceOrder::LatestChange),
    ("resources", "Most resources", WorkspaceOrder::MostResources),
];

impl WorkspaceQuery {
    pub(crate) fn tagged(tag: &str) -> Self {
        Self { tag: tag.to_owned(), ..Self::default() }
    }

    pub(crate) fn on_page(&self, number: usize) -> Self {
        Self { page: number.to_string(), ..self.clone() }
    }

    /// The same choice in the form of an address, without what is empty.
    pub(crate) fn in_address(&self) -> String {
        let Self { search, status, tag, project, sort, page } = self;
        let fields = [("search", search), ("status", status), ("tag", tag), ("project", project), ("sort", sort)];
        let mut address = Serializer::new(String::new());
        address.extend_pairs(fields.into_iter().chain([("page", page)]).filter(|(_, value)| !value.is_empty()));
        address.finish()
    }

    /// True if the query filters the list at all.
    pub(crate) fn narrows(&self) -> bool {
        !(self.search.is_empty() && self.status.is_empty() && self.tag.is_empty() && self.project.is_empty())
    }

    /// Filter for the control plane; `None` if nothing can match.
    pub(crate) fn filter(&self) -> Option<WorkspaceFilter> {
        let (_, _, statuses) = STATUSES.iter().find(|(value, ..)| *value == self.status)?;
        let project = match self.project.as_str() {
            "" => None,
            id => Some(id.parse().ok()?),
        };
        let tag = self.tag.trim();
        let tagged = match tag.split_once(':') {
            Some((key, value)) => (key.to_owned(), Some(value.to_owned())),
            None => (tag.to_owned(), None),
        };
        let search = self.search.trim();
        Some(WorkspaceFilter {
            name: (!search.is_empty()).then(|| search.to_owned()),
            project,
            tagged: if tag.is_empty() { Vec::new() } else { vec![tagged] },
            current_run: statuses.iter().map(ToString::to_string).collect(),
            locked: self.status == LOCKED,
            order: SORTS.iter().find(|(value, ..)| *value == self.sort).map(|(_, _, order)| *order).unwrap_or_default(),
            ..WorkspaceFilter::default()
        })
    }

    /// The statuses to choose from, with what each leads to.
    pub(crate) fn statuses(&self) -> impl Iterator<Item = (Choice, Self)> {
        let of = |(value, name, _): &(&'static str, &'static str, _)| {
            let chosen = self.status == *value;
            let wanted = Self { status: (*value).to_owned(), page: String::new(), ..self.clone() };
            (Choice { name, value, address: String::new(), chosen }, wanted)
        };
        STATUSES.iter().map(of)
    }

    /// The orders to choose from, with what each leads to.
    pub(crate) fn sorts(&self) -> impl Iterator<Item = (Choice, Self)> {
        let of = |(value, name, _): &(&'static str, &'static str, _)| {
            let chosen = self.sort == *value;
            let wanted = Self { sort: (*value).to_owned(), page: String::new(), ..self.clone() };
            (Choice { name, value, address: String::new(), chosen }, wanted)
        };
        SORTS.iter().map(of)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_status_of_a_run_is_under_one_choice() {
        for status in RunStatus::ALL {
            let choices = STATUSES.iter().filter(|(_, _, statuses)| statuses.contains(&status));
            assert_eq!(choices.count(), 1, "{status}");
        }
    }

    #[test]
    fn an_address_holds_what_was_chosen_and_nothing_empty() {
        let query = WorkspaceQuery { search: "a b&c".into(), tag: "env:prod".into(), ..WorkspaceQuery::default() };
        assert_eq!(query.in_address(), "search=a+b%26c&tag=env%3Aprod");
        assert_eq!(query.on_page(2).in_address(), "search=a+b%26c&tag=env%3Aprod&page=2");
        let (_, busy) = query.on_page(2).statuses().find(|(choice, _)| choice.value == "busy").expect("a choice");
        assert_eq!(busy.in_address(), "search=a+b%26c&status=busy&tag=env%3Aprod", "on the first page");
        assert!(query.narrows() && !WorkspaceQuery { sort: "changed".into(), ..WorkspaceQuery::default() }.narrows());
    }

    #[test]
    fn an_address_becomes_a_filter() {
        let query = WorkspaceQuery {
            search: " web ".into(),
            tag: "env:prod".into(),
            status: "errored".into(),
            ..WorkspaceQuery::default()
        };
        let filter = query.filter().expect("one that can fit");
        assert_eq!(filter.name.as_deref(), Some("web"));
        assert_eq!(filter.tagged, [("env".to_owned(), Some("prod".to_owned()))]);
        assert_eq!(filter.current_run, ["errored"]);
        assert_eq!(
            WorkspaceQuery { sort: "changed".into(), ..query }.filter().expect("one").order,
            WorkspaceOrder::LatestChange
        );
        assert!(WorkspaceQuery { status: "locked".into(), ..WorkspaceQuery::default() }.filter().expect("one").locked);
        for nonsense in [
            WorkspaceQuery { status: "nonsense".into(), ..WorkspaceQuery::default() },
            WorkspaceQuery { project: "nonsense".into(), ..WorkspaceQuery::default() },
        ] {
            assert!(nonsense.filter().is_none(), "{nonsense:?}");
        }
    }
}
