//! Query of the graph's address: which part of it, and what boxes stand for.

use serde::{Deserialize, Serialize};
use taco_graph_picture::{Filter, Graph, Grouping};

#[derive(Clone, Serialize, Deserialize, Default, PartialEq, Eq, Debug)]
#[serde(default)]
pub(crate) struct GraphQuery {
    #[serde(skip_serializing_if = "String::is_empty")]
    pub(crate) project: String,
    /// As `key` or `key:value`.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub(crate) tag: String,
    #[serde(skip_serializing_if = "String::is_empty")]
    pub(crate) prefix: String,
    /// `1`: only what is stale or broken.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub(crate) stale: String,
    #[serde(skip_serializing_if = "String::is_empty")]
    pub(crate) around: String,
    #[serde(skip_serializing_if = "String::is_empty")]
    pub(crate) hops: String,
    /// Word of [`Groups`]; empty is whatever can be looked at.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub(crate) group: String,
    #[serde(skip_serializing_if = "String::is_empty")]
    pub(crate) page: String,
}

/// What a box stands for.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Groups {
    Workspaces,
    Projects,
    Prefixes,
}

impl Groups {
    pub(crate) const ALL: [Self; 3] = [Self::Workspaces, Self::Projects, Self::Prefixes];

    pub(crate) fn word(&self) -> &'static str {
        match self {
            Self::Workspaces => "workspaces",
            Self::Projects => "projects",
            Self::Prefixes => "prefixes",
        }
    }

    pub(crate) fn name(&self) -> &'static str {
        match self {
            Self::Workspaces => "Workspace",
            Self::Projects => "Project",
            Self::Prefixes => "Beginning of names",
        }
    }

    pub(crate) fn grouping(self) -> Grouping {
        match self {
            Self::Workspaces => Grouping::Units,
            Self::Projects => Grouping::Projects,
            Self::Prefixes => Grouping::Prefixes,
        }
    }
}

impl GraphQuery {
    pub(crate) fn filter(&self) -> Filter {
        let given = |text: &String| Some(text.trim().to_owned()).filter(|text| !text.is_empty());
        Filter {
            project: given(&self.project),
            tag: given(&self.tag),
            prefix: given(&self.prefix),
            stale: !self.stale.is_empty(),
            around: given(&self.around),
            hops: self.hops.parse().ok(),
        }
    }

    /// True if it leaves something out.
    pub(crate) fn narrows(&self) -> bool {
        self.filter().narrows()
    }

    /// What was chosen, or what can be looked at.
    pub(crate) fn groups(&self, graph: &Graph) -> Groups {
        let chosen = Groups::ALL.into_iter().find(|groups| groups.word() == self.group);
        chosen.unwrap_or_else(|| match Grouping::fitting(graph) {
            Grouping::Units => Groups::Workspaces,
            Grouping::Projects => Groups::Projects,
            Grouping::Prefixes => Groups::Prefixes,
        })
    }

    /// The query for one group alone.
    pub(crate) fn within(&self, groups: Groups, name: &str) -> Self {
        let query = Self { group: String::new(), page: String::new(), ..self.clone() };
        match groups {
            Groups::Workspaces => Self { around: name.to_owned(), ..query },
            Groups::Projects => Self { project: name.to_owned(), ..query },
            Groups::Prefixes => Self { prefix: name.to_owned(), ..query },
        }
    }

    pub(crate) fn on_page(&self, number: usize) -> Self {
        Self { page: number.to_string(), ..self.clone() }
    }

    pub(crate) fn in_address(&self) -> String {
        serde_html_form::to_string(self).unwrap_or_default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_says_what_is_wanted_and_no_more() {
        let wanted = GraphQuery { project: "a&b".into(), group: "projects".into(), ..GraphQuery::default() };
        assert_eq!(wanted.in_address(), "project=a%26b&group=projects");
        assert_eq!(wanted.within(Groups::Prefixes, "prod").in_address(), "project=a%26b&prefix=prod");
        assert!(wanted.narrows() && !GraphQuery { hops: "1".into(), ..GraphQuery::default() }.narrows());
    }
}
