//! Navigation in a page's header, and which entry is the current one.

/// The parts of an organization that the header leads to.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Section {
    Dashboard,
    Workspaces,
    Graph,
    Runs,
    Queue,
    Projects,
    VariableSets,
    Agents,
    Registry,
    Settings,
}

impl Section {
    const ALL: [(Self, &'static str, &'static str); 10] = [
        (Self::Dashboard, "Dashboard", ""),
        (Self::Workspaces, "Workspaces", "/workspaces"),
        (Self::Graph, "Graph", "/graph"),
        (Self::Runs, "Runs", "/runs"),
        (Self::Queue, "Queue", "/queue"),
        (Self::Projects, "Projects", "/projects"),
        (Self::VariableSets, "Variable sets", "/variable-sets"),
        (Self::Agents, "Agents", "/agents"),
        (Self::Registry, "Registry", "/registry"),
        (Self::Settings, "Settings", "/settings"),
    ];
}

/// The parts of a workspace.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum WorkspaceSection {
    Overview,
    Runs,
    States,
    Dependencies,
    Variables,
    Settings,
}

impl WorkspaceSection {
    const ALL: [(Self, &'static str, &'static str); 6] = [
        (Self::Overview, "Overview", ""),
        (Self::Runs, "Runs", "/runs"),
        (Self::States, "States", "/states"),
        (Self::Dependencies, "Dependencies", "/dependencies"),
        (Self::Variables, "Variables", "/variables"),
        (Self::Settings, "Settings", "/settings"),
    ];
}

impl Section {
    /// The part that a path below an organization belongs to.
    pub(crate) fn of_path(first: &str) -> Self {
        let found = Self::ALL.into_iter().find(|(_, _, path)| path.strip_prefix('/') == Some(first));
        found.map_or(Self::Dashboard, |(section, ..)| section)
    }
}

impl WorkspaceSection {
    /// The part that a path below a workspace belongs to. Configurations are reached through runs, and the history
    /// of outputs through dependencies.
    pub(crate) fn of_path(first: &str) -> Self {
        let found = Self::ALL.into_iter().find(|(_, _, path)| path.strip_prefix('/') == Some(first));
        let found = found.map(|(section, ..)| section);
        found.unwrap_or(match first {
            "configurations" => Self::Runs,
            "outputs" => Self::Dependencies,
            _ => Self::Overview,
        })
    }
}

/// One step of the way to a page. The last one is the page itself and has no address.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Crumb {
    pub(crate) name: String,
    pub(crate) address: Option<String>,
    /// What its part of the path is, under which a page may give it a better name.
    segment: String,
}

impl Crumb {
    pub(crate) fn is_called(&mut self, segment: &str, name: &str) {
        if self.segment == segment {
            name.clone_into(&mut self.name);
        }
    }
}

/// Parts of paths that have a page, and its name.
const PARTS: [(&str, &str); 35] = [
    ("workspaces", "Workspaces"),
    ("runs", "Runs"),
    ("states", "States"),
    ("graph", "Graph"),
    ("dependencies", "Dependencies"),
    ("history", "Output history"),
    ("configurations", "Configurations"),
    ("variables", "Variables"),
    ("variable-sets", "Variable sets"),
    ("projects", "Projects"),
    ("agents", "Agents"),
    ("registry", "Registry"),
    ("providers", "Providers"),
    ("settings", "Settings"),
    ("members", "Members"),
    ("teams", "Teams"),
    ("tags", "Tags"),
    ("audit", "Audit log"),
    ("resources", "Resources"),
    ("new", "New"),
    ("diff", "Compare"),
    ("import", "Import"),
    ("restore", "Roll back"),
    ("execution", "Execution"),
    ("locking", "Locking"),
    ("sharing", "Remote state sharing"),
    ("triggers", "Run triggers"),
    ("delete", "Delete"),
    ("tokens", "Tokens"),
    ("ssh-keys", "SSH keys"),
    ("policies", "Policies"),
    ("walks", "Walks"),
    ("notifications", "Notifications"),
    ("run-tasks", "Run tasks"),
    ("retention", "Data retention"),
];

/// Parts of paths that lead nowhere by themselves.
const NO_PAGES: [&str; 6] = ["pools", "modules", "outputs", "log", "plan", "sets"];

/// The way from the organization to the page at `path`. Pages that the tabs lead to have none, and those of a workspace
/// begin at the workspace: the header shows the rest.
pub(crate) fn crumbs(path: &str) -> Vec<Crumb> {
    let path = path.split(['?', '#']).next().unwrap_or_default();
    let segments: Vec<&str> = path.split('/').filter(|segment| !segment.is_empty()).collect();
    let ["app", _, rest @ ..] = segments.as_slice() else { return Vec::new() };
    // The workspace's tabs stand above its pages.
    let shown = if let ["workspaces", _, within @ ..] = rest { within } else { rest };
    // The rail beside settings shows which of them are here.
    if shown.len() < 2 || matches!(shown, ["settings", _]) {
        return Vec::new();
    }
    let above = segments.len() - shown.len();
    let steps = shown.iter().enumerate().filter(|(_, segment)| !NO_PAGES.contains(segment));
    // Output commits are reached from what depends on them.
    let parent = matches!(shown, ["outputs", "history"]).then(|| Crumb {
        name: "Dependencies".to_owned(),
        address: Some(format!("/{}/dependencies", segments[..above].join("/"))),
        segment: "dependencies".to_owned(),
    });
    // The variables of a set are on the set's own page.
    let steps = steps.filter(|(at, segment)| !(**segment == "variables" && *at > 0));
    let steps = steps.map(|(at, segment)| Crumb {
        name: PARTS.iter().find(|(part, _)| part == segment).map_or(*segment, |(_, name)| name).to_owned(),
        address: (at + 1 < shown.len()).then(|| format!("/{}", segments[..=above + at].join("/"))),
        segment: (*segment).to_owned(),
    });
    parent.into_iter().chain(steps).collect()
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
    pub(crate) fn of_organization(organization: &str, here: impl Into<Option<Section>>) -> Self {
        Self::new(organization, organization_address(organization), &Section::ALL, here.into())
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

    /// Name of the tab that the page belongs to.
    pub(crate) fn here(&self) -> &'static str {
        self.tabs.iter().find(|tab| tab.is_here).map_or("Menu", |tab| tab.name)
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

#[cfg(test)]
mod tests {
    use super::*;

    fn way(path: &str) -> Vec<(String, Option<String>)> {
        crumbs(path).into_iter().map(|crumb| (crumb.name, crumb.address)).collect()
    }

    #[test]
    fn a_page_below_a_tab_shows_the_way_to_it() {
        let step = |name: &str, address: &str| (name.to_owned(), Some(address.to_owned()));
        let here = |name: &str| (name.to_owned(), None);
        for tab in ["/app", "/app/acme", "/app/acme/runs", "/app/acme/workspaces/web", "/app/acme/workspaces/web/runs"]
        {
            assert_eq!(way(tab), [], "{tab}");
        }
        let runs = "/app/acme/workspaces/web/runs";
        assert_eq!(way(&format!("{runs}/run-1?view=console")), [step("Runs", runs), here("run-1")]);
        assert_eq!(way(&format!("{runs}/new")), [step("Runs", runs), here("New")]);
        assert_eq!(way("/app/acme/agents/pools/apool-1"), [step("Agents", "/app/acme/agents"), here("apool-1")]);
        let teams = "/app/acme/settings/teams";
        let way_to_team = [step("Settings", "/app/acme/settings"), step("Teams", teams), here("team-1")];
        assert_eq!(way(&format!("{teams}/team-1")), way_to_team);
        assert_eq!(way(teams), [], "the rail shows it");
        let web = "/app/acme/workspaces/web";
        let way_to_history = [step("Dependencies", &format!("{web}/dependencies")), here("Output history")];
        assert_eq!(way(&format!("{web}/outputs/history")), way_to_history);
        let sets = "/app/acme/variable-sets";
        let set = format!("{sets}/varset-1");
        let way_to_variable = [step("Variable sets", sets), step("varset-1", &set), here("var-1")];
        assert_eq!(way(&format!("{set}/variables/var-1")), way_to_variable);
    }

    #[test]
    fn a_path_belongs_to_a_tab() {
        assert!(Section::of_path("agents") == Section::Agents && Section::of_path("nothing") == Section::Dashboard);
        assert_eq!(WorkspaceSection::of_path("states"), WorkspaceSection::States);
        assert_eq!(WorkspaceSection::of_path("configurations"), WorkspaceSection::Runs);
    }
}
