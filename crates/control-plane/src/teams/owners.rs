//! Owners of an organization: who makes them, and that one is left.

use std::collections::BTreeSet;

use taco_domain::OrganizationState;
use taco_domain::id::{MembershipId, TeamId};
use taco_domain::permission::Action;
use taco_tables::Record;

use crate::change::Tx;
use crate::error::Error;

/// Permission needed to choose who is in these teams.
pub(crate) fn choosing<'a>(state: &OrganizationState, teams: impl IntoIterator<Item = &'a TeamId>) -> Action {
    // Who may manage members may not make owners of them, nor of themselves: that is for owners.
    if teams.into_iter().any(|team| state.is_owners(*team)) { Action::ManageOwners } else { Action::ManageMembership }
}

/// May the caller choose who is in these teams? If they may not know, it is the `R` of the request that is not found.
pub(crate) fn require_choice_of<R: Record>(tx: &Tx<'_>, teams: &BTreeSet<TeamId>) -> Result<(), Error> {
    tx.require::<R>(choosing(tx.state(), teams), tx.organization())
}

/// An organization without an owner could not be helped by anyone in it.
pub(crate) fn check_owners_left(state: &OrganizationState, leaving: &BTreeSet<MembershipId>) -> Result<(), Error> {
    let Some(owners) = owners_team(state) else { return Ok(()) };
    let owners = state.memberships.by().team.get(&owners);
    // Someone who was invited to be one may never come.
    let owners = owners.filter(|membership| membership.is_in_effect());
    let owners: BTreeSet<MembershipId> = owners.map(|membership| membership.id).collect();
    if !owners.is_empty() && owners.is_subset(leaving) {
        return Err(Error::Conflict("The last owner cannot leave: make someone else an owner first".to_owned()));
    }
    Ok(())
}

fn owners_team(state: &OrganizationState) -> Option<TeamId> {
    state.organization().map(|organization| organization.owners_team)
}
