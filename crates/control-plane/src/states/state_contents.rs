//! Contents of states: outputs, resources, and a summary of the resources.

use std::sync::Arc;

use serde::Serialize;
use serde::de::IgnoredAny;
use serde_json::value::RawValue;
use taco_boxed::boxed;
use taco_domain::OrganizationState;
use taco_domain::id::{OutputId, StateVersionId};
use taco_domain::permission::{Action, Resource};
use taco_domain::state_file::{
    Contents, IndexKey, Mode, Output, PlainState, Resource as StateResource, ResourceSummary, StateFile,
};
use taco_domain::state_version::{OutputMetadata, Revealed, StateVersion, StateVersionStatus, output_id};
use taco_ledger::Transaction;

use crate::caller::Caller;
use crate::control_plane::ControlPlane;
use crate::error::Error;
use crate::history::ToChange;
use crate::page::{Listed, PageRequest};
use crate::secret_reads::SecretRead;
use crate::state_versions::{StateVersionView, WHAT};
use crate::workspace_view::WorkspaceRef;

/// One output with its value, as far as the caller may see it.
#[derive(Clone, Debug)]
pub struct OutputView {
    pub id: OutputId,
    pub name: String,
    pub sensitive: bool,
    pub type_name: &'static str,
    pub detailed_type: Option<Box<RawValue>>,
    pub value: Option<Box<RawValue>>,
}

impl OutputView {
    /// True if it shows a sensitive value.
    fn is_secret(&self) -> bool {
        self.sensitive && self.value.is_some()
    }
}

/// One resource of a workspace's current state.
#[derive(Clone, Serialize, Debug)]
#[serde(rename_all = "kebab-case")]
pub struct ResourceView {
    #[serde(skip)]
    pub id: String,
    pub address: String,
    pub name: String,
    pub created_at: String,
    pub updated_at: String,
    pub module: String,
    pub provider: String,
    pub provider_type: String,
    pub modified_by_state_version_id: StateVersionId,
    pub name_index: Option<String>,
}

/// However many resources a state has, no more of their addresses are held in memory.
const MOST_ADDRESSES: usize = 10_000;

/// Addresses of what a state manages, gathered while it flows by.
#[derive(Default)]
struct Addresses(Vec<String>);

impl Extend<StateResource> for Addresses {
    fn extend<I: IntoIterator<Item = StateResource>>(&mut self, resources: I) {
        for resource in resources.into_iter().filter(|resource| resource.mode == Mode::Managed) {
            let room = MOST_ADDRESSES - self.0.len();
            self.0.extend(resource.instances.iter().take(room).map(|index| resource.address(index.as_ref())));
        }
    }
}

#[boxed]
impl ControlPlane {
    /// Summary of a state's resources.
    pub async fn resource_summary(&self, view: &StateVersionView) -> Result<Arc<ResourceSummary>, Error> {
        let version = &view.version;
        if version.status != StateVersionStatus::Finalized {
            return Ok(Arc::default());
        }
        if let Some(known) = self.shared.summaries.get(version.id) {
            return Ok(known);
        }
        let file: StateFile<IgnoredAny, ResourceSummary> = self.read_state(&view.org, version).await?;
        let summary = match file.contents {
            Contents::Plain(plain) => plain.resources,
            Contents::Encrypted => ResourceSummary::default(),
        };
        Ok(self.shared.summaries.insert(version.id, summary))
    }

    /// All outputs of a state version, by name. Values of sensitive ones take the right to read the whole state.
    pub async fn outputs(&self, caller: &Caller, id: StateVersionId) -> Result<Vec<OutputView>, Error> {
        let org = self.authorized_organization(caller, id.organization_prefix(), WHAT).await?;
        let org = self.with_history(org, id).await?;
        let version = org.state.state_versions.get(&id).cloned().ok_or(Error::NotFound(WHAT))?;
        let owner = org.state.workspaces.get(&version.workspace).ok_or(Error::NotFound(WHAT))?;
        let resource = Resource::Workspace(&org.state, owner);
        caller.require(Action::ReadOutputs, resource, WHAT)?;
        let sensitive_too = caller.may(Action::ReadState, resource).allowed;
        let view = StateVersionView { version, org: org.clone() };
        if !sensitive_too {
            return self.read_outputs(&view).await;
        }
        let values = self.output_values(&view).await?;
        if values.iter().any(OutputView::is_secret) {
            self.record_secret_read(&org, caller, SecretRead::Outputs(id)).await;
        }
        Ok(values)
    }

    /// All outputs of a state version, by name, without values of sensitive ones.
    pub async fn outputs_without_secrets(&self, caller: &Caller, id: StateVersionId) -> Result<Vec<OutputView>, Error> {
        let org = self.authorized_organization(caller, id.organization_prefix(), WHAT).await?;
        let org = self.with_history(org, id).await?;
        let version = org.state.state_versions.get(&id).cloned().ok_or(Error::NotFound(WHAT))?;
        let owner = org.state.workspaces.get(&version.workspace).ok_or(Error::NotFound(WHAT))?;
        caller.require(Action::ReadOutputs, Resource::Workspace(&org.state, owner), WHAT)?;
        self.read_outputs(&StateVersionView { version, org: org.clone() }).await
    }

    /// The outputs of a workspace's current state, without values of sensitive ones; none if it has no state.
    pub async fn current_outputs(&self, caller: &Caller, workspace: &WorkspaceRef) -> Result<Vec<OutputView>, Error> {
        let view = self.find_workspace(caller, workspace).await?;
        caller.require(Action::ReadOutputs, view.resource(), "workspace")?;
        match view.org.state.current_state_version(&view.workspace).cloned() {
            Some(version) => self.read_outputs(&StateVersionView { version, org: view.org }).await,
            None => Ok(Vec::new()),
        }
    }

    /// One output with its value. A sensitive one takes the right to read the whole state.
    pub async fn output(&self, caller: &Caller, id: OutputId) -> Result<OutputView, Error> {
        let what = "output";
        let org = self.authorized_organization(caller, id.organization_prefix(), what).await?;
        let org = self.with_history(org, id).await?;
        let version = org.state.state_versions.by().output.first(&id);
        let version = version.cloned().ok_or(Error::NotFound(what))?;
        let owner = org.state.workspaces.get(&version.workspace).ok_or(Error::NotFound(what))?;
        let resource = Resource::Workspace(&org.state, owner);
        caller.require(Action::ReadOutputs, resource, what)?;
        let sensitive_too = caller.may(Action::ReadState, resource).allowed;
        let of = version.id;
        let mut values = self.output_values(&StateVersionView { version, org: org.clone() }).await?;
        let at = values.iter().position(|output| output.id == id).ok_or(Error::NotFound(what))?;
        let mut output = values.swap_remove(at);
        if output.sensitive && !sensitive_too {
            output.value = None;
        }
        if output.is_secret() {
            self.record_secret_read(&org, caller, SecretRead::Outputs(of)).await;
        }
        Ok(output)
    }

    /// The value of one sensitive output for someone who wants to see it. That they did is in the log before they do, each
    /// time: a request that is repeated is not remembered.
    pub async fn reveal_output(&self, caller: &Caller, id: OutputId) -> Result<OutputView, Error> {
        let what = "output";
        let org = self.authorized_organization(caller, id.organization_prefix(), what).await?;
        let (intent, looker, at) = (caller.intent("output.reveal"), caller.clone(), self.now());
        let record = ToChange::new(id, Action::ReadState, what);
        let decide = move |tx: &mut Transaction<OrganizationState>| {
            let state = tx.state();
            let version = state.state_versions.by().output.first(&id);
            let version = version.cloned().ok_or(Error::NotFound(what))?;
            let owner = state.workspaces.get(&version.workspace).ok_or(Error::NotFound(what))?;
            looker.require(Action::ReadState, Resource::Workspace(state, owner), what)?;
            let times = version.revealed.as_ref().map_or(0, |before| before.times) + 1;
            let revealed = Some(Revealed { output: id, by: looker.author(), at, times });
            let version = StateVersion { revealed, ..version };
            tx.put(&version);
            Ok(version)
        };
        let version = self.change_historic(caller, &org, record, intent, decide).await?;
        let view = StateVersionView { version, org: org.clone() };
        let values = self.output_values(&view).await?;
        values.into_iter().find(|output| output.id == id).ok_or(Error::NotFound(what))
    }

    async fn read_outputs(&self, view: &StateVersionView) -> Result<Vec<OutputView>, Error> {
        let mut outputs = self.output_values(view).await?;
        for output in &mut outputs {
            if output.sensitive {
                output.value = None;
            }
        }
        Ok(outputs)
    }

    async fn output_values(&self, view: &StateVersionView) -> Result<Vec<OutputView>, Error> {
        let version = &view.version;
        if !version.has_outputs() || version.status != StateVersionStatus::Finalized {
            return Ok(Vec::new());
        }
        if version.encrypted {
            return Ok(version.outputs.iter().map(encrypted).collect());
        }
        let file: StateFile = self.read_state(&view.org, version).await?;
        let Contents::Plain(plain) = file.contents else { return Ok(Vec::new()) };
        let of = |(name, output): (String, Output)| OutputView {
            id: output_id(version.id, &name),
            name,
            sensitive: output.sensitive,
            type_name: output.type_name(),
            value: Some(output.value),
            detailed_type: Some(output.detailed_type),
        };
        Ok(plain.outputs.into_iter().map(of).collect())
    }

    /// The addresses of what a workspace's current state manages, as engines take them: at most `limit`, and never more than
    /// 10,000.
    pub async fn resource_addresses(
        &self,
        caller: &Caller,
        workspace: &WorkspaceRef,
        limit: usize,
    ) -> Result<Vec<String>, Error> {
        let view = self.find_workspace(caller, workspace).await?;
        caller.require(Action::ReadState, view.resource(), "workspace")?;
        let current = view.org.state.current_state_version(&view.workspace).cloned();
        let Some(version) = current.filter(|version| version.status == StateVersionStatus::Finalized) else {
            return Ok(Vec::new());
        };
        let file: StateFile<IgnoredAny, Addresses> = self.read_state(&view.org, &version).await?;
        let Contents::Plain(plain) = file.contents else { return Ok(Vec::new()) };
        let mut addresses = plain.resources.0;
        addresses.truncate(limit);
        Ok(addresses)
    }

    /// Resources in a workspace's current state, by address.
    pub async fn workspace_resources(
        &self,
        caller: &Caller,
        workspace: &WorkspaceRef,
        page: PageRequest,
    ) -> Result<Listed<ResourceView>, Error> {
        let view = self.find_workspace(caller, workspace).await?;
        caller.require(Action::ReadState, view.resource(), "workspace")?;
        let Some(version) = view.org.state.current_state_version(&view.workspace).cloned() else {
            return Ok(Listed::from_all([], page));
        };
        let file: StateFile<IgnoredAny> = self.read_state(&view.org, &version).await?;
        let resources = match file.contents {
            Contents::Plain(plain) => resources_of(&plain, &version),
            Contents::Encrypted => Vec::new(),
        };
        Ok(Listed::from_all(resources, page))
    }
}

/// Without a detailed type, which lets tofu read the outputs from the state itself: it can decrypt it.
fn encrypted(output: &OutputMetadata) -> OutputView {
    let OutputMetadata { id, name, sensitive } = output.clone();
    OutputView { id, name, sensitive, type_name: "encrypted", detailed_type: None, value: None }
}

fn resources_of(state: &PlainState<IgnoredAny>, version: &StateVersion) -> Vec<ResourceView> {
    let mut views = Vec::new();
    for resource in state.resources.iter().filter(|resource| resource.mode == Mode::Managed) {
        for index in &resource.instances {
            let address = address_of(resource, index.as_ref());
            let date = version.created_at.to_string();
            views.push(ResourceView {
                id: OutputId::derived(
                    version.workspace.organization_prefix(),
                    &format!("{} {address}", version.workspace),
                )
                .to_string()
                .replace(OutputId::PREFIX, "wsr"),
                name: resource.name.clone(),
                created_at: date.clone(),
                updated_at: date,
                module: resource.module_name(),
                provider: provider_name(&resource.provider).to_owned(),
                provider_type: resource.qualified_type(),
                modified_by_state_version_id: version.id,
                name_index: index.as_ref().map(|index| index.to_string().trim_matches('"').to_owned()),
                address,
            });
        }
    }
    views.sort_by(|one, other| one.address.cmp(&other.address));
    views
}

/// A resource's address as Terraform Cloud lists it: without the parts `module`.
fn address_of(resource: &StateResource, index: Option<&IndexKey>) -> String {
    let within_module = StateResource { module: None, ..resource.clone() }.address(index);
    match &resource.module {
        Some(_) => format!("{}.{within_module}", resource.module_name()),
        None => within_module,
    }
}

/// `provider["registry.terraform.io/hashicorp/null"]` is called `hashicorp/null`.
fn provider_name(text: &str) -> &str {
    let source = text.split('"').nth(1).unwrap_or(text);
    source.split_once('/').map_or(source, |(_, name)| name)
}
