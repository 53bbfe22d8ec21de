//! The one way to change records of an organization for a caller: permission, uniqueness, references and idempotency are
//! decided in the transaction, and the snapshot then shows what came of it. See
//! `docs/decisions/0032-one-way-to-change-a-record.md`.

use std::any::{Any, type_name};
use std::ops::{Deref, DerefMut};

use jiff::Timestamp;
use serde::Serialize;
use serde::de::DeserializeOwned;
use taco_boxed::boxed;
use taco_domain::OrganizationState;
use taco_domain::id::{ProjectId, WorkspaceId};
use taco_domain::permission::{Action, Resource};
use taco_domain::project::Project;
use taco_domain::workspace::Workspace;
use taco_ledger::Transaction;
use taco_tables::{Holds, OnDelete, Record, Tables as _, VisitTable};

use crate::caller::Caller;
use crate::control_plane::{ControlPlane, OrganizationSnapshot};
use crate::error::Error;
use crate::find::find;
use crate::history::ToChange;
use crate::idempotency::idempotent;
use crate::workspace_view::WorkspaceRef;

/// A transaction in a caller's name. What it does not know about callers, it leaves to [`Transaction`].
pub(crate) struct Tx<'a> {
    transaction: &'a mut Transaction<OrganizationState>,
    caller: &'a Caller,
}

impl Deref for Tx<'_> {
    type Target = Transaction<OrganizationState>;

    fn deref(&self) -> &Self::Target {
        self.transaction
    }
}

impl DerefMut for Tx<'_> {
    fn deref_mut(&mut self) -> &mut Self::Target {
        self.transaction
    }
}

impl<'a> Tx<'a> {
    pub(crate) fn caller(&self) -> &'a Caller {
        self.caller
    }

    /// The whole organization, for [`Self::require`].
    pub(crate) fn organization(&self) -> Resource<'_> {
        Resource::Organization(self.state())
    }

    /// May the caller? To one who may not know of the place, it is the `R` of the request that is not found.
    pub(crate) fn require<R: Record>(&self, action: Action, resource: Resource<'_>) -> Result<(), Error> {
        self.caller.require(action, resource, R::NOUN)
    }

    /// The record with this id.
    pub(crate) fn get<R: Record>(&self, id: &R::Id) -> Result<R, Error>
    where
        OrganizationState: Holds<R>,
    {
        find(self.state(), id, R::NOUN).cloned()
    }

    /// The workspace that an `R` belongs to, if the caller may do this there. To one who may not know of it, it is the
    /// `R` that is not found.
    pub(crate) fn workspace_of<R: Record>(&self, id: &WorkspaceId, action: Action) -> Result<Workspace, Error> {
        let workspace: &Workspace = find(self.state(), id, R::NOUN)?;
        self.require::<R>(action, Resource::Workspace(self.state(), workspace))?;
        Ok(workspace.clone())
    }

    /// The workspace that a request names, if the caller may do this there.
    pub(crate) fn workspace(&self, wanted: &WorkspaceRef, action: Action) -> Result<Workspace, Error> {
        let workspace = wanted.find_in(self.state())?.ok_or(Error::NotFound(Workspace::NOUN))?;
        self.require::<Workspace>(action, Resource::Workspace(self.state(), workspace))?;
        Ok(workspace.clone())
    }

    /// The project with this id, if the caller may do this there.
    pub(crate) fn project(&self, id: &ProjectId, action: Action) -> Result<Project, Error> {
        self.project_of::<Project>(id, action)
    }

    /// The project that an `R` belongs to, as [`Self::workspace_of`].
    pub(crate) fn project_of<R: Record>(&self, id: &ProjectId, action: Action) -> Result<Project, Error> {
        let project: &Project = find(self.state(), id, R::NOUN)?;
        self.require::<R>(action, Resource::Project(self.state(), project))?;
        Ok(project.clone())
    }

    /// Puts a record, unless another has what is declared to be unique.
    pub(crate) fn put_unique<R: Record>(&mut self, record: R) -> Result<R, Error>
    where
        OrganizationState: Holds<R>,
    {
        if let Some(attribute) = self.state().table().unique_conflict(&record) {
            return Err(Error::name_taken(attribute));
        }
        self.put(&record);
        Ok(record)
    }

    /// Deletes a record that is there, and does to those that name it what they declare.
    pub(crate) fn delete<R: Record>(&mut self, id: &R::Id) -> Result<(), Error>
    where
        OrganizationState: Holds<R>,
    {
        find::<R, _>(self.state(), id, R::NOUN)?;
        delete_with_references::<R>(self.transaction, id)
    }
}

fn delete_with_references<R: Record>(tx: &mut Transaction<OrganizationState>, id: &R::Id) -> Result<(), Error>
where
    OrganizationState: Holds<R>,
{
    if !has_the_id_of_another::<R>() {
        let mut deletion = Deletion { tx, id, noun: R::NOUN, outcome: Ok(()) };
        OrganizationState::visit_tables(&mut deletion);
        deletion.outcome?;
    }
    tx.delete::<R>(id);
    Ok(())
}

/// True for records that have the id of what they belong to: whoever names that id means the other one.
fn has_the_id_of_another<R: Record>() -> bool {
    let own = type_name::<R::Id>();
    R::references().iter().any(|reference| reference.to == own && matches!(reference.on_delete, OnDelete::Cascade(_)))
}

/// Visits all records that name one which is about to be deleted.
struct Deletion<'a> {
    tx: &'a mut Transaction<OrganizationState>,
    id: &'a dyn Any,
    noun: &'static str,
    outcome: Result<(), Error>,
}

impl VisitTable<OrganizationState> for Deletion<'_> {
    fn visit<R: Record>(&mut self)
    where
        OrganizationState: Holds<R>,
    {
        if self.outcome.is_ok() {
            self.outcome = R::references().iter().try_for_each(|reference| self.follow(&reference.on_delete));
        }
    }
}

impl Deletion<'_> {
    fn follow<R: Record>(&mut self, on_delete: &OnDelete<R>) -> Result<(), Error>
    where
        OrganizationState: Holds<R>,
    {
        let table = self.tx.state().table();
        match on_delete {
            OnDelete::Cascade(find) => {
                find(table, self.id).iter().try_for_each(|id| delete_with_references::<R>(self.tx, id))
            }
            OnDelete::Unlink(unlinked) => {
                unlinked(table, self.id).iter().for_each(|record| self.tx.put(record));
                Ok(())
            }
            OnDelete::Restrict(is_named) if is_named(table, self.id) => {
                Err(Error::Conflict(format!("The {} cannot be deleted: a {} needs it", self.noun, R::NOUN)))
            }
            OnDelete::Restrict(_) | OnDelete::Keep(_) => Ok(()),
        }
    }
}

/// Lets `decide` know the caller.
fn for_caller<T>(
    caller: &Caller,
    mut decide: impl FnMut(&mut Tx<'_>) -> Result<T, Error> + Send + 'static,
) -> impl FnMut(&mut Transaction<OrganizationState>) -> Result<T, Error> + Send + 'static {
    let caller = caller.clone();
    move |transaction| decide(&mut Tx { transaction, caller: &caller })
}

#[boxed]
impl OrganizationSnapshot {
    /// Changes the organization in the caller's name, once for each request that has an idempotency key, and shows it as
    /// it is then. `decide` may run several times, on newer states: it decides from its argument alone. Ids, times and
    /// secrets are made before it.
    pub(crate) async fn change<T>(
        &mut self,
        caller: &Caller,
        action: &'static str,
        now: Timestamp,
        decide: impl FnMut(&mut Tx<'_>) -> Result<T, Error> + Send + 'static,
    ) -> Result<T, Error>
    where
        T: Serialize + DeserializeOwned + Send + 'static,
    {
        let outcome = self.commit(caller.intent(action), idempotent(caller, now, for_caller(caller, decide))).await?;
        self.state = self.last_seen();
        Ok(outcome)
    }

    /// The same for a verb that hands out a secret. It is shown once and never stored, so that the outcome cannot be
    /// remembered: a repeated request makes another secret.
    pub(crate) async fn change_with_secret<T: Send + 'static>(
        &mut self,
        caller: &Caller,
        action: &'static str,
        decide: impl FnMut(&mut Tx<'_>) -> Result<T, Error> + Send + 'static,
    ) -> Result<T, Error> {
        let outcome = self.commit(caller.intent(action), for_caller(caller, decide)).await?;
        self.state = self.last_seen();
        Ok(outcome)
    }
}

#[boxed]
impl ControlPlane {
    /// [`OrganizationSnapshot::change`] for a record that may have left memory: it is brought back first.
    pub(crate) async fn change_restored<T>(
        &self,
        caller: &Caller,
        org: &mut OrganizationSnapshot,
        record: ToChange,
        action: &'static str,
        decide: impl FnMut(&mut Tx<'_>) -> Result<T, Error> + Send + 'static,
    ) -> Result<T, Error>
    where
        T: Serialize + DeserializeOwned + Send + 'static,
    {
        let decide = idempotent(caller, self.now(), for_caller(caller, decide));
        let outcome = self.change_historic(caller, org, record, caller.intent(action), decide).await?;
        org.state = org.last_seen();
        Ok(outcome)
    }
}
