//! Rights of a team in the whole organization, as pages name them.

use std::collections::BTreeMap;

use serde_json::Value;
use taco_domain::team::OrganizationAccess;

/// A right with its name on the wire.
struct Right {
    flag: &'static str,
    name: &'static str,
    hint: &'static str,
}

/// Rights in use. Those for policies, modules, providers and run tasks have nothing to act on yet.
const RIGHTS: &[Right] = &[
    Right { flag: "read-workspaces", name: "View all workspaces", hint: "" },
    Right { flag: "read-projects", name: "View all projects", hint: "" },
    Right {
        flag: "manage-workspaces",
        name: "Manage all workspaces",
        hint: "Create, edit and delete workspaces, with full access to them.",
    },
    Right {
        flag: "manage-projects",
        name: "Manage all projects",
        hint: "Create, edit and delete projects, with their workspaces and team access.",
    },
    Right { flag: "manage-agent-pools", name: "Manage agent pools", hint: "" },
    Right { flag: "manage-vcs-settings", name: "Manage SSH keys", hint: "" },
    Right { flag: "manage-membership", name: "Manage members", hint: "Invite and remove people who are not owners." },
    Right { flag: "manage-teams", name: "Manage teams", hint: "Create, edit and delete teams, and see secret ones." },
    Right {
        flag: "manage-organization-access",
        name: "Manage access of teams to the organization",
        hint: "Never more than their own access.",
    },
];

/// A right, as a form offers it.
pub(crate) struct RightChoice {
    pub(crate) flag: &'static str,
    pub(crate) name: &'static str,
    pub(crate) hint: &'static str,
    pub(crate) chosen: bool,
}

fn is_granted(access: &Value, flag: &str) -> bool {
    access[flag].as_bool().unwrap_or_default()
}

pub(crate) fn choices(access: &OrganizationAccess) -> Vec<RightChoice> {
    let access = serde_json::to_value(access).unwrap_or_default();
    let choice = |right: &Right| RightChoice {
        flag: right.flag,
        name: right.name,
        hint: right.hint,
        chosen: is_granted(&access, right.flag),
    };
    RIGHTS.iter().map(choice).collect()
}

/// Names of the rights that a team has.
pub(crate) fn granted(access: &OrganizationAccess) -> Vec<&'static str> {
    choices(access).into_iter().filter(|right| right.chosen).map(|right| right.name).collect()
}

/// The change that a form asks for which names the chosen rights. Rights that it does not offer stay.
pub(crate) fn chosen(flags: &[String]) -> BTreeMap<String, bool> {
    RIGHTS.iter().map(|right| (right.flag.to_owned(), flags.iter().any(|flag| flag == right.flag))).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_right_is_one_of_the_record() {
        let access = serde_json::to_value(OrganizationAccess::default()).expect("JSON");
        for right in RIGHTS {
            assert!(access[right.flag].is_boolean(), "{}", right.flag);
        }
        let access = OrganizationAccess { manage_teams: true, ..OrganizationAccess::default() };
        assert_eq!(granted(&access), ["Manage teams"]);
        let wanted = chosen(&["manage-teams".to_owned(), "unknown".to_owned()]);
        assert!(wanted["manage-teams"] && !wanted["read-projects"] && !wanted.contains_key("unknown"));
    }
}
