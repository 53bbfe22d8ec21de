//! Navigation beside the pages of settings: see `rail.html`.

use taco_control_plane::{Caller, OrganizationSnapshot};
use taco_domain::permission::Action;

use crate::navigation::{organization_address, workspace_address};

/// Links to the parts of some settings.
pub(crate) struct Rail {
    /// Name of the navigation.
    pub(crate) label: &'static str,
    pub(crate) links: Vec<RailLink>,
}

pub(crate) struct RailLink {
    pub(crate) name: &'static str,
    pub(crate) address: String,
    pub(crate) is_here: bool,
}

/// Name of a part, and the end of its address.
type Part = (&'static str, &'static str);

const ORGANIZATION: &[Part] = &[
    ("General", ""),
    ("Members", "/members"),
    ("Teams", "/teams"),
    ("Tokens", "/tokens"),
    ("Policies", "/policies"),
    ("SSH keys", "/ssh-keys"),
    ("Run tasks", "/run-tasks"),
    ("Tags", "/tags"),
    ("Data retention", "/retention"),
];
const AUDIT_LOG: Part = ("Audit log", "/audit");
const WORKSPACE: &[Part] = &[
    ("General", ""),
    ("Execution", "/execution"),
    ("Locking", "/locking"),
    ("Remote state", "/sharing"),
    ("Run triggers", "/triggers"),
    ("Run tasks", "/run-tasks"),
    ("Notifications", "/notifications"),
    ("Team access", "/teams"),
    ("Data retention", "/retention"),
    ("Delete", "/delete"),
];
const SITE: &[Part] = &[("Overview", ""), ("Users", "/users"), AUDIT_LOG];
const ACCOUNT: &[Part] = &[("Account", "/account"), ("Tokens", "/tokens"), ("Sessions", "/sessions")];

impl Rail {
    fn new(label: &'static str, address: &str, parts: impl IntoIterator<Item = Part>, here: &str) -> Self {
        let link = |(name, path)| RailLink { name, address: format!("{address}{path}"), is_here: path == here };
        Self { label, links: parts.into_iter().map(link).collect() }
    }

    /// Of an organization's settings. `here` is the end of the current page's address.
    pub(crate) fn of_organization(org: &OrganizationSnapshot, caller: &Caller, here: &str) -> Self {
        let address = format!("{}/settings", organization_address(org.entry().name.as_str()));
        let reads_log = caller.may(Action::ReadAuditTrail, org.resource()).allowed;
        Self::new("Settings", &address, ORGANIZATION.iter().copied().chain(reads_log.then_some(AUDIT_LOG)), here)
    }

    pub(crate) fn of_workspace(organization: &str, workspace: &str, here: &str) -> Self {
        let address = format!("{}/settings", workspace_address(organization, workspace));
        Self::new("Workspace settings", &address, WORKSPACE.iter().copied(), here)
    }

    pub(crate) fn of_site(here: &str) -> Self {
        Self::new("Site administration", "/app/admin", SITE.iter().copied(), here)
    }

    pub(crate) fn of_account(here: &str) -> Self {
        Self::new("Your account", "/app/settings", ACCOUNT.iter().copied(), here)
    }
}
