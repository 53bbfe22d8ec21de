//! Rules for every variable and set, whichever owner it has, and their cleanup when their owner is deleted.

use taco_domain::OrganizationState;
use taco_domain::id::{ProjectId, VariableSetId, WorkspaceId};
use taco_domain::variable::{Variable, VariableOwner};
use taco_domain::variable_set::VariableSet;
use taco_ledger::Transaction;

use crate::error::Error;

pub(crate) fn check_unique(state: &OrganizationState, variable: &Variable) -> Result<(), Error> {
    let place = (variable.owner, variable.key.clone(), variable.category);
    match state.variables.by().owner_and_key.first(&place) {
        Some(other) if other.id != variable.id => Err(Error::name_taken("key", "Key")),
        _ => Ok(()),
    }
}

/// Deletes what belonged to something that goes.
pub(crate) fn delete_variables_of(tx: &mut Transaction<OrganizationState>, owner: VariableOwner) {
    let variables: Vec<_> = tx.state().variables_of(owner).map(|variable| variable.id).collect();
    for id in variables {
        tx.delete::<Variable>(&id);
    }
}

/// Takes a workspace that goes out of all sets.
pub(crate) fn forget_workspace(tx: &mut Transaction<OrganizationState>, workspace: WorkspaceId) {
    let sets = &tx.state().variable_sets;
    let sets: Vec<VariableSet> = sets.by().workspace.get(&workspace).cloned().collect();
    for mut set in sets {
        set.workspaces.remove(&workspace);
        tx.put(&set);
    }
}

/// Takes a project that goes out of all sets, and deletes those that it owns.
pub(crate) fn forget_project(tx: &mut Transaction<OrganizationState>, project: ProjectId) {
    let sets = &tx.state().variable_sets;
    let owned: Vec<VariableSetId> = sets.by().parent.get(&project).map(|record| record.id).collect();
    let applied: Vec<VariableSet> = sets.by().project.get(&project).cloned().collect();
    for mut set in applied {
        set.projects.remove(&project);
        tx.put(&set);
    }
    for id in owned {
        delete_set(tx, id);
    }
}

pub(crate) fn delete_set(tx: &mut Transaction<OrganizationState>, id: VariableSetId) {
    delete_variables_of(tx, VariableOwner::VariableSet(id));
    tx.delete::<VariableSet>(&id);
}
