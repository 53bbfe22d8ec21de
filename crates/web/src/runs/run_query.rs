//! Query of a list of runs: the filter in its address.

use jiff::civil::Date;
use serde::Deserialize;
use taco_control_plane::RunFilter;
use taco_domain::run::RunSource;
use taco_domain::run_status::RunStatus;
use url::form_urlencoded::Serializer;

use crate::words::source_words;

/// The fields of the address. What is empty is not asked for.
#[derive(Clone, PartialEq, Eq, Default, Deserialize, Debug)]
#[serde(default)]
pub(crate) struct RunQuery {
    /// A part of the message or the id.
    pub(crate) search: String,
    pub(crate) status: String,
    pub(crate) source: String,
    /// A day in UTC, such as `2026-11-17`.
    pub(crate) day: String,
    pub(crate) page: String,
}

/// A group of statuses as a link.
pub(crate) struct StatusChip {
    pub(crate) name: &'static str,
    pub(crate) query: String,
    pub(crate) chosen: bool,
}

/// A day that the list is filtered by.
pub(crate) struct ChosenDay {
    pub(crate) name: String,
    /// What is asked for without it.
    pub(crate) query: String,
}

/// A source to choose from.
pub(crate) struct SourceChoice {
    pub(crate) value: String,
    pub(crate) name: &'static str,
    pub(crate) chosen: bool,
}

/// Groups of statuses that people look for.
const STATUSES: &[(&str, &str, &[RunStatus])] = {
    use RunStatus as S;
    &[
        ("", "All", &[]),
        ("waiting", "Needs approval", &[S::Planned, S::PolicyOverride, S::PlannedAndSaved]),
        (
            "busy",
            "Queued or running",
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
        ("done", "Applied or finished", &[S::Applied, S::PlannedAndFinished]),
        ("stopped", "Discarded or canceled", &[S::Discarded, S::Canceled]),
    ]
};

const SOURCES: [RunSource; 6] = [
    RunSource::Cloud,
    RunSource::Terraform,
    RunSource::Page,
    RunSource::Api,
    RunSource::ConfigurationVersion,
    RunSource::RunTrigger,
];

impl RunQuery {
    /// The same choice in the form of an address, without what is empty.
    pub(crate) fn in_address(&self) -> String {
        let Self { search, status, source, day, page } = self;
        let fields = [("search", search), ("status", status), ("source", source), ("day", day), ("page", page)];
        let mut address = Serializer::new(String::new());
        address.extend_pairs(fields.into_iter().filter(|(_, value)| !value.is_empty()));
        address.finish()
    }

    pub(crate) fn on_page(&self, number: usize) -> Self {
        Self { page: number.to_string(), ..self.clone() }
    }

    /// True if the query filters the list at all.
    pub(crate) fn narrows(&self) -> bool {
        !(self.search.is_empty() && self.status.is_empty() && self.source.is_empty() && self.day.is_empty())
    }

    /// Filter for the control plane. An unknown group matches nothing.
    pub(crate) fn filter(&self) -> RunFilter {
        let group = STATUSES.iter().find(|(value, ..)| *value == self.status);
        let statuses = match group {
            Some((_, _, statuses)) => statuses.iter().map(ToString::to_string).collect(),
            None => vec![self.status.clone()],
        };
        let given = |text: &str| Some(text.trim().to_owned()).filter(|text| !text.is_empty());
        RunFilter {
            statuses,
            sources: given(&self.source).into_iter().collect(),
            text: given(&self.search),
            timeframe: self.date().map(|day| day.to_string()),
            ..RunFilter::default()
        }
    }

    fn date(&self) -> Option<Date> {
        self.day.trim().parse().ok()
    }

    /// The day whose runs are wanted, and the address of the list without it.
    pub(crate) fn chosen_day(&self) -> Option<ChosenDay> {
        let query = Self { day: String::new(), page: String::new(), ..self.clone() }.in_address();
        Some(ChosenDay { name: self.date()?.strftime("%-d %b %Y").to_string(), query })
    }

    pub(crate) fn chips(&self) -> Vec<StatusChip> {
        let chip = |(value, name, _): &(&str, &'static str, _)| StatusChip {
            name,
            query: Self { status: (*value).to_owned(), page: String::new(), ..self.clone() }.in_address(),
            chosen: self.status == *value,
        };
        STATUSES.iter().map(chip).collect()
    }

    pub(crate) fn sources(&self) -> Vec<SourceChoice> {
        let choice = |source: RunSource| SourceChoice {
            value: source.to_string(),
            name: source_words(source),
            chosen: self.source == source.to_string(),
        };
        SOURCES.into_iter().map(choice).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_status_is_in_one_group() {
        for status in RunStatus::ALL {
            let groups = STATUSES.iter().filter(|(_, _, statuses)| statuses.contains(&status));
            assert_eq!(groups.count(), 1, "{status}");
        }
    }

    #[test]
    fn an_address_becomes_a_filter_and_back() {
        let query = RunQuery { search: " a&b ".into(), status: "errored".into(), ..RunQuery::default() };
        let filter = query.filter();
        assert_eq!((filter.statuses, filter.text), (vec!["errored".to_owned()], Some("a&b".to_owned())));
        assert_eq!(query.on_page(3).in_address(), "search=+a%26b+&status=errored&page=3");
        let nonsense = RunQuery { status: "nonsense".into(), ..RunQuery::default() };
        assert_eq!(nonsense.filter().statuses, ["nonsense"]);
        assert!(query.chips().iter().any(|chip| chip.chosen && chip.name == "Failed"));
        let day = RunQuery { day: "2026-11-17".into(), ..query };
        assert_eq!(day.filter().timeframe.as_deref(), Some("2026-11-17"));
        let chosen = day.chosen_day().expect("a day");
        assert_eq!((chosen.name.as_str(), chosen.query.as_str()), ("17 Nov 2026", "search=+a%26b+&status=errored"));
        assert!(RunQuery { day: "yesterday".into(), ..day }.filter().timeframe.is_none());
    }
}
