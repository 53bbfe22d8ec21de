//! What holds for every variable, whoever owns it.

use taco_domain::OrganizationState;
use taco_domain::variable::{Variable, VariableOwner};
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
