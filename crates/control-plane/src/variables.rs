//! Variables of workspaces and of variable sets: create, list, read, change, delete, and hand to a run.

pub(crate) mod bindings;
pub(crate) mod bound_output_cache;
pub(crate) mod bound_values;
pub(crate) mod variable_imports;
pub(crate) mod variable_sets;

use taco_boxed::boxed;
use taco_domain::OrganizationState;
use taco_domain::id::VariableId;
use taco_domain::permission::{Action, Resource};
use taco_domain::variable::{StoredValue, Variable, VariableOwner, VariablePatch, Vault};
use taco_domain::variable_precedence::{EffectiveValue, JobVariable, variables_for_run};
use taco_domain::workspace::Workspace;
use taco_tables::Record as _;

use crate::bindings::check_not_bound;
use crate::caller::Caller;
use crate::control_plane::{ControlPlane, OrganizationSnapshot};
use crate::error::Error;
use crate::variable_sets::{require_read_set, require_write_set};
use crate::workspace_view::{WorkspaceRef, WorkspaceView};

/// Limit for the variables of a workspace or a variable set.
const MAX_VARIABLES: usize = 1_000;

/// Reference to a variable in a path.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct VariableRef {
    pub id: VariableId,
    /// Owner that the path names, if any.
    pub owner: Option<VariableOwner>,
}

/// Seals one variable's value. Sealing takes chance, which a decision must not take: so what will have to be sealed is
/// sealed beforehand.
pub(crate) struct Prepared<'a> {
    pub(crate) control_plane: &'a ControlPlane,
    pub(crate) id: VariableId,
    /// The text, and what it is when sealed.
    pub(crate) sealed: Option<(String, String)>,
}

impl<'a> Prepared<'a> {
    /// `before` is the variable as it looks now, if there is one.
    pub(crate) fn new(
        control_plane: &'a ControlPlane,
        id: VariableId,
        patch: &VariablePatch,
        before: Option<&Variable>,
    ) -> Self {
        let sensitive = patch.sensitive.unwrap_or(before.is_some_and(Variable::sensitive));
        let sent = patch.value.as_ref().map(|value| value.as_deref().unwrap_or_default());
        let blank = before.is_none().then_some("");
        let text = sent.or(before.and_then(Variable::shown_value)).or(blank).filter(|_| sensitive);
        let sealed = text.map(|text| (text.to_owned(), control_plane.seal(&id.to_string(), text)));
        Self { control_plane, id, sealed }
    }
}

impl Vault for Prepared<'_> {
    type Error = Error;

    fn seal(&self, plain: &str) -> Result<String, Error> {
        match &self.sealed {
            Some((text, sealed)) if text == plain => Ok(sealed.clone()),
            _ => Err(Error::Conflict("The variable changed while this request was on its way: try again".to_owned())),
        }
    }

    fn open(&self, sealed: &str) -> Result<String, Error> {
        self.control_plane.unseal(&self.id.to_string(), sealed)
    }
}

impl WorkspaceView {
    /// Its own variables by key, if the caller may read them.
    pub fn variables_seen_by(&self, caller: &Caller) -> impl Iterator<Item = &Variable> {
        let may_see = caller.may(Action::ReadVariables, self.resource()).allowed;
        self.org.state.variables_of(VariableOwner::Workspace(self.workspace.id)).filter(move |_| may_see)
    }
}

#[boxed]
impl ControlPlane {
    pub(crate) async fn organization_of_owner(
        &self,
        caller: &Caller,
        owner: VariableOwner,
    ) -> Result<OrganizationSnapshot, Error> {
        match owner {
            VariableOwner::Workspace(id) => {
                self.authorized_organization(caller, id.organization_prefix(), "workspace").await
            }
            VariableOwner::VariableSet(id) => {
                self.authorized_organization(caller, id.organization_prefix(), "variable set").await
            }
        }
    }

    /// The variables of a workspace or a variable set by key: all of them, because clients do not ask for pages.
    pub async fn variables(&self, caller: &Caller, owner: VariableOwner) -> Result<Vec<Variable>, Error> {
        let org = self.organization_of_owner(caller, owner).await?;
        require_read(caller, &org.state, owner)?;
        Ok(org.state.variables_of(owner).cloned().collect())
    }

    /// The variables of a workspace that a query names.
    pub async fn variables_in(&self, caller: &Caller, wanted: &WorkspaceRef) -> Result<Vec<Variable>, Error> {
        let id = self.find_workspace(caller, wanted).await?.workspace.id;
        self.variables(caller, VariableOwner::Workspace(id)).await
    }

    /// The variables that a run in the workspace would have, also from sets: of several with one key the one that counts.
    pub async fn effective_variables(&self, caller: &Caller, wanted: &WorkspaceRef) -> Result<Vec<Variable>, Error> {
        let view = self.find_workspace(caller, wanted).await?;
        caller.require(Action::ReadVariables, view.resource(), "workspace")?;
        let state = &view.org.state;
        let effective = variables_for_run(state, &view.workspace, &[]);
        let records = effective.iter().filter_map(|variable| variable.id.and_then(|id| state.variables.get(&id)));
        Ok(records.cloned().collect())
    }

    /// The workspace of a page about variables: the caller may see them all, those of its sets too. Which they are,
    /// `variables_reaching` tells.
    pub async fn workspace_with_variables(
        &self,
        caller: &Caller,
        wanted: &WorkspaceRef,
    ) -> Result<WorkspaceView, Error> {
        let view = self.find_workspace(caller, wanted).await?;
        caller.require(Action::ReadVariables, view.resource(), "workspace")?;
        Ok(view)
    }

    pub async fn variable(&self, caller: &Caller, wanted: VariableRef) -> Result<Variable, Error> {
        let org = self.authorized_organization(caller, wanted.id.organization_prefix(), Variable::NOUN).await?;
        let variable = found(&org.state, wanted)?;
        require_read(caller, &org.state, variable.owner)?;
        Ok(variable)
    }

    pub async fn create_variable(
        &self,
        caller: &Caller,
        owner: VariableOwner,
        patch: VariablePatch,
    ) -> Result<Variable, Error> {
        let mut org = self.organization_of_owner(caller, owner).await?;
        require_write(caller, &org.state, owner)?;
        let variable = self.new_variable(&org, owner, &patch)?;
        org.change(caller, "variable.create", self.now(), move |tx| {
            require_write(tx.caller(), tx.state(), owner)?;
            check_room(tx.state(), owner)?;
            check_not_bound(tx.state(), tx.caller(), owner, &variable.key, variable.category)?;
            tx.put_unique(variable.clone())
        })
        .await
    }

    /// A variable that is not yet anywhere. Whether its key is free, the commit finds out.
    pub(crate) fn new_variable(
        &self,
        org: &OrganizationSnapshot,
        owner: VariableOwner,
        patch: &VariablePatch,
    ) -> Result<Variable, Error> {
        let id = VariableId::within(org.id().organization_prefix(), self.random());
        patch.create(id, owner, self.now(), &Prepared::new(self, id, patch, None))
    }

    pub async fn update_variable(
        &self,
        caller: &Caller,
        wanted: VariableRef,
        patch: VariablePatch,
    ) -> Result<Variable, Error> {
        let mut org = self.authorized_organization(caller, wanted.id.organization_prefix(), Variable::NOUN).await?;
        let before = found(&org.state, wanted)?;
        require_write(caller, &org.state, before.owner)?;
        let sealed = Prepared::new(self, wanted.id, &patch, Some(&before)).sealed;
        let control_plane = self.clone();
        org.change(caller, "variable.update", self.now(), move |tx| {
            let variable = found(tx.state(), wanted)?;
            require_write(tx.caller(), tx.state(), variable.owner)?;
            let vault = Prepared { control_plane: &control_plane, id: wanted.id, sealed: sealed.clone() };
            let changed = patch.apply(&variable, &vault)?;
            check_not_bound(tx.state(), tx.caller(), changed.owner, &changed.key, changed.category)?;
            tx.put_unique(changed)
        })
        .await
    }

    pub async fn delete_variable(&self, caller: &Caller, wanted: VariableRef) -> Result<(), Error> {
        let mut org = self.authorized_organization(caller, wanted.id.organization_prefix(), Variable::NOUN).await?;
        org.change(caller, "variable.delete", self.now(), move |tx| {
            let variable = found(tx.state(), wanted)?;
            require_write(tx.caller(), tx.state(), variable.owner)?;
            tx.delete::<Variable>(&variable.id)
        })
        .await
    }

    /// Variables of a run in the workspace, with sealed values opened: only for the agent that executes it.
    /// `run_variables` came with the run; their values are expressions. Those that are bound to outputs are not among them.
    pub(crate) fn job_variables(
        &self,
        state: &OrganizationState,
        workspace: &Workspace,
        run_variables: &[(String, String)],
    ) -> Result<Vec<JobVariable>, Error> {
        let effective = variables_for_run(state, workspace, run_variables).into_iter();
        let opened = effective.filter_map(|variable| {
            let value = match (&variable.value, variable.id) {
                (EffectiveValue::Bound(_), _) => return None,
                (EffectiveValue::Stored(StoredValue::Sealed(sealed)), Some(id)) => {
                    match self.unseal(&id.to_string(), sealed) {
                        Ok(value) => value,
                        Err(error) => return Some(Err(in_variable(&variable.key, error))),
                    }
                }
                (EffectiveValue::Stored(StoredValue::Plain(value) | StoredValue::Sealed(value)), _) => value.clone(),
            };
            Some(Ok(variable.opened(value)))
        });
        opened.collect()
    }
}

/// Adds the variable's key to an error.
fn in_variable(key: &str, error: Error) -> Error {
    match error {
        Error::Sealed(why) => Error::Sealed(format!("the variable {key}: {why}")),
        other => other,
    }
}

fn found(state: &OrganizationState, wanted: VariableRef) -> Result<Variable, Error> {
    let variable = state.variables.get(&wanted.id).cloned().ok_or(Error::NotFound(Variable::NOUN))?;
    let as_named = match wanted.owner {
        Some(owner) => variable.owner == owner,
        // The paths that name no owner are older than variable sets.
        None => matches!(variable.owner, VariableOwner::Workspace(_)),
    };
    if as_named { Ok(variable) } else { Err(Error::NotFound(Variable::NOUN)) }
}

pub(crate) fn require_read(caller: &Caller, state: &OrganizationState, owner: VariableOwner) -> Result<(), Error> {
    match owner {
        VariableOwner::Workspace(id) => {
            let workspace = state.workspaces.get(&id).ok_or(Error::NotFound(Workspace::NOUN))?;
            caller.require(Action::ReadVariables, Resource::Workspace(state, workspace), "workspace")
        }
        VariableOwner::VariableSet(id) => require_read_set(caller, state, id).map(drop),
    }
}

pub(crate) fn require_write(caller: &Caller, state: &OrganizationState, owner: VariableOwner) -> Result<(), Error> {
    match owner {
        VariableOwner::Workspace(id) => {
            let workspace = state.workspaces.get(&id).ok_or(Error::NotFound(Workspace::NOUN))?;
            caller.require(Action::WriteVariables, Resource::Workspace(state, workspace), "workspace")
        }
        VariableOwner::VariableSet(id) => require_write_set(caller, state, id).map(drop),
    }
}

/// Each run is handed all variables of its workspace, and lists of them have no pages.
pub(crate) fn check_room(state: &OrganizationState, owner: VariableOwner) -> Result<(), Error> {
    if state.variables_of(owner).nth(MAX_VARIABLES - 1).is_none() {
        return Ok(());
    }
    let whose = match owner {
        VariableOwner::Workspace(_) => "A workspace",
        VariableOwner::VariableSet(_) => "A variable set",
    };
    let detail = format!("{whose} has at most {MAX_VARIABLES} variables: delete some, or use several variable sets");
    Err(Error::invalid("key", detail))
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use jiff::Timestamp;
    use taco_domain::id::{OrganizationId, ProjectId, WorkspaceId};
    use taco_domain::variable::VariableCategory;
    use taco_ledger::{Clock, Environment, MasterKey, MasterKeys, ObjectBucket, Options, Peers, SharedRng};

    use super::*;
    use crate::control_plane::Settings;

    #[derive(Debug)]
    struct Standstill;

    impl Clock for Standstill {
        fn now(&self) -> Timestamp {
            Timestamp::UNIX_EPOCH
        }
    }

    async fn control_plane(secret: &str) -> ControlPlane {
        let rng = SharedRng::from_seed(1);
        let environment = Environment {
            bucket: Arc::new(ObjectBucket::in_memory()),
            clock: Arc::new(Standstill),
            rng: rng.clone(),
            server: "server".to_owned(),
            peers: Peers::none(),
        };
        let key = MasterKey::from_secret(secret).expect("long enough");
        let master_keys = Arc::new(MasterKeys::new(key, Vec::new(), rng));
        let settings = Settings {
            master_keys,
            site_token: None,
            ledger: Options::default(),
            timeouts: crate::Timeouts::default(),
            limits: crate::Limits::default(),
            history: crate::HistorySettings::default(),
            hosts: Vec::new(),
            notifications: crate::NotificationSettings::default(),
            opa: None,
        };
        ControlPlane::open(environment, settings).await.expect("a control plane")
    }

    fn workspace() -> Workspace {
        let prefix = OrganizationId::from_random([7; 16]).organization_prefix();
        let (id, project) = (WorkspaceId::within(prefix, [1; 16]), ProjectId::within(prefix, [2; 16]));
        Workspace::new(id, "web".parse().expect("legal"), project, Timestamp::UNIX_EPOCH)
    }

    fn given(control_plane: &ControlPlane, json: &str) -> OrganizationState {
        let patch: VariablePatch = serde_json::from_str(json).expect("attributes");
        let workspace = workspace();
        let id = VariableId::within(workspace.id.organization_prefix(), [3; 16]);
        let vault = Prepared::new(control_plane, id, &patch, None);
        let made = patch.create(id, VariableOwner::Workspace(workspace.id), Timestamp::UNIX_EPOCH, &vault);
        let mut state = OrganizationState::default();
        state.variables.put(&made.expect("legal")).expect("put");
        state
    }

    #[tokio::test]
    async fn a_run_gets_what_was_sealed() {
        let control_plane = control_plane("a master key with more than enough characters").await;
        let json = r#"{"key":"TOKEN","value":"s3cr3t","category":"env","sensitive":true}"#;
        let state = given(&control_plane, json);
        let sent = [("region".to_owned(), "\"eu\"".to_owned())];
        let variables = control_plane.job_variables(&state, &workspace(), &sent).expect("opened");
        let [secret, region] = variables.as_slice() else { panic!("{variables:?}") };
        assert_eq!((secret.value.as_str(), secret.sensitive, secret.category), ("s3cr3t", true, VariableCategory::Env));
        assert_eq!((region.value.as_str(), region.hcl, region.sensitive), ("\"eu\"", true, false));
        assert!(!format!("{variables:?}").contains("s3cr3t"));
    }

    #[tokio::test]
    async fn a_value_that_no_key_opens_is_an_error() {
        let one = control_plane("a master key with more than enough characters").await;
        let other = control_plane("another master key, also with enough characters").await;
        let state = given(&one, r#"{"key":"k","value":"s3cr3t","category":"env","sensitive":true}"#);
        assert!(matches!(other.job_variables(&state, &workspace(), &[]), Err(Error::Sealed(_))));
    }
}
