//! Navigation in a page's header, and which entry is the current one.

/// The parts of an organization that the header leads to.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Section {
    Dashboard,
    Workspaces,
    Runs,
    Queue,
    Projects,
    VariableSets,
    Agents,
    Settings,
}

impl Section {
    const ALL: [(Self, &'static str, &'static str); 8] = [
        (Self::Dashboard, "Dashboard", ""),
        (Self::Workspaces, "Workspaces", "/workspaces"),
        (Self::Runs, "Runs", "/runs"),
        (Self::Queue, "Queue", "/queue"),
        (Self::Projects, "Projects", "/projects"),
        (Self::VariableSets, "Variable sets", "/variable-sets"),
        (Self::Agents, "Agents", "/agents"),
        (Self::Settings, "Settings", "/settings"),
    ];
}

/// The parts of a workspace.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum WorkspaceSection {
    Overview,
    Runs,
    States,
    Variables,
    Settings,
}

impl WorkspaceSection {
    const ALL: [(Self, &'static str, &'static str); 5] = [
        (Self::Overview, "Overview", ""),
        (Self::Runs, "Runs", "/runs"),
        (Self::States, "States", "/states"),
        (Self::Variables, "Variables", "/variables"),
        (Self::Settings, "Settings", "/settings"),
    ];
}

/// One link of a navigation.
pub(crate) struct Tab {
    pub(crate) name: &'static str,
    pub(crate) address: String,
    pub(crate) is_here: bool,
}

/// Links to parts of one thing.
pub(crate) struct Tabs {
    /// Name of the thing that the tabs belong to.
    pub(crate) name: String,
    pub(crate) address: String,
    pub(crate) tabs: Vec<Tab>,
}

impl Tabs {
    pub(crate) fn of_organization(organization: &str, here: Option<Section>) -> Self {
        Self::new(organization, organization_address(organization), &Section::ALL, here)
    }

    pub(crate) fn of_workspace(organization: &str, workspace: &str, here: WorkspaceSection) -> Self {
        let address = workspace_address(organization, workspace);
        Self::new(workspace, address, &WorkspaceSection::ALL, Some(here))
    }

    fn new<S: Copy + PartialEq>(
        name: &str,
        address: String,
        all: &[(S, &'static str, &'static str)],
        here: Option<S>,
    ) -> Self {
        let tab = |(section, name, path): &(S, &'static str, &'static str)| Tab {
            name,
            address: format!("{address}{path}"),
            is_here: here == Some(*section),
        };
        Self { name: name.to_owned(), tabs: all.iter().map(tab).collect(), address }
    }
}

/// Names of organizations and workspaces need no escaping in an address: see `taco_domain::name`.
pub(crate) fn organization_address(organization: &str) -> String {
    format!("/app/{organization}")
}

pub(crate) fn workspace_address(organization: &str, workspace: &str) -> String {
    format!("/app/{organization}/workspaces/{workspace}")
}

pub(crate) fn run_address(organization: &str, workspace: &str, run: impl std::fmt::Display) -> String {
    format!("/app/{organization}/workspaces/{workspace}/runs/{run}")
}

pub(crate) fn variable_set_address(organization: &str, set: impl std::fmt::Display) -> String {
    format!("/app/{organization}/variable-sets/{set}")
}
