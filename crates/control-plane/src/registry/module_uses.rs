//! Workspaces that use a module: those whose configuration calls it.

use taco_domain::configuration_version::ConfigurationVersion;
use taco_domain::permission::{Action, Resource};
use taco_domain::registry_address::ModuleSource;
use taco_domain::workspace::Workspace;

use crate::caller::Caller;
use crate::control_plane::ControlPlane;
use crate::registry_modules::ModuleView;

/// Host name that means the registry of whichever server reads the configuration.
const ANY_HOST: &str = "localterraform.com";

/// A workspace that calls a module.
#[derive(Clone, Debug)]
pub struct ModuleUse {
    pub workspace: Workspace,
    /// Constraints on the version, one for each call that has another.
    pub versions: Vec<String>,
}

impl ControlPlane {
    /// The workspaces whose next run would call a module, by name, as far as the caller may see them.
    pub fn module_uses(&self, caller: &Caller, view: &ModuleView) -> Vec<ModuleUse> {
        let state = &view.org.state;
        let (name, provider) = (view.module.name.as_str(), view.module.provider.as_str());
        let key = format!("{}/{name}/{provider}", view.namespace()).to_lowercase();
        let mut uses: Vec<ModuleUse> = Vec::new();
        for configuration in state.configuration_versions.by().called_module.get(&key) {
            let Some(workspace) = state.workspaces.get(&configuration.workspace) else { continue };
            let is_current = state.usable_configuration(workspace.id).is_some_and(|it| it.id == configuration.id);
            let is_seen = || caller.may(Action::ReadRuns, Resource::Workspace(state, workspace)).allowed;
            let versions = self.called_versions(configuration, &key);
            if is_current && !versions.is_empty() && is_seen() {
                uses.push(ModuleUse { workspace: workspace.clone(), versions });
            }
        }
        uses.sort_by_key(|one| one.workspace.name.key());
        uses
    }

    fn called_versions(&self, configuration: &ConfigurationVersion, key: &str) -> Vec<String> {
        let calls = configuration.contents.iter().flat_map(|contents| &contents.modules);
        let of_module = calls.filter(|call| {
            ModuleSource::parse(&call.source).is_some_and(|source| {
                let is_ours = source.host == ANY_HOST || self.shared.hosts.contains(&source.host);
                is_ours && source.key() == key
            })
        });
        let mut versions: Vec<String> = of_module.map(|call| call.version.clone()).collect();
        versions.sort();
        versions.dedup();
        versions
    }
}
