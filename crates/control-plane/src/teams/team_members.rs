//! Members of a team.

use std::collections::BTreeSet;

use taco_boxed::boxed;
use taco_domain::OrganizationState;
use taco_domain::attribute::shown;
use taco_domain::id::{MembershipId, TeamId};
use taco_domain::membership::Membership;
use taco_domain::name::Username;
use taco_domain::permission::{Action, Decision, Resource};
use taco_ledger::Transaction;

use crate::caller::Caller;
use crate::control_plane::ControlPlane;
use crate::error::Error;
use crate::idempotency::idempotent;
use crate::owners::{check_owners_left, choosing, require_choice_of};
use crate::teams::{KnownTeams, MembershipView};

/// A member of the organization, as a request names them.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum MemberRef {
    Membership(MembershipId),
    /// As it was sent: an invalid name belongs to no user.
    Username(String),
}

impl MemberRef {
    fn find<'a>(&self, caller: &Caller, state: &'a OrganizationState) -> Option<&'a Membership> {
        match self {
            Self::Membership(id) => state.memberships.get(id),
            Self::Username(name) => {
                let username: Username = name.parse().ok()?;
                state.membership_of(&caller.site.user_named(&username)?.id)
            }
        }
    }

    fn unknown(&self, index: usize) -> Error {
        let who = match self {
            Self::Membership(id) => format!("The membership {id} does not exist in this organization"),
            Self::Username(name) => format!("{} is not a member of this organization: invite them first", shown(name)),
        };
        Error::Invalid { pointer: format!("/data/{index}/id"), detail: who }
    }
}

#[boxed]
impl ControlPlane {
    /// Puts members of the organization into a team. Those who are in it already stay.
    pub async fn add_team_members(&self, caller: &Caller, team: TeamId, members: Vec<MemberRef>) -> Result<(), Error> {
        let decide = move |asker: &Caller, state: &OrganizationState| {
            let mut changed = Vec::new();
            for (index, member) in members.iter().enumerate() {
                let mut membership = member.find(asker, state).ok_or_else(|| member.unknown(index))?.clone();
                if membership.teams.insert(team) {
                    changed.push(membership);
                }
            }
            Ok(changed)
        };
        self.change_team_members(caller, team, "team.add-members", decide).await
    }

    /// Takes members out of a team; they stay members of the organization. Those who are not in it are not missed.
    pub async fn remove_team_members(
        &self,
        caller: &Caller,
        team: TeamId,
        members: Vec<MemberRef>,
    ) -> Result<(), Error> {
        let decide = move |asker: &Caller, state: &OrganizationState| {
            let found = members.iter().filter_map(|member| member.find(asker, state));
            let mut changed: Vec<Membership> =
                found.filter(|membership| membership.teams.contains(&team)).cloned().collect();
            if state.is_owners(team) {
                check_owners_left(state, &changed.iter().map(|membership| membership.id).collect())?;
            }
            for membership in &mut changed {
                membership.teams.remove(&team);
            }
            Ok(changed)
        };
        self.change_team_members(caller, team, "team.remove-members", decide).await
    }

    async fn change_team_members(
        &self,
        caller: &Caller,
        team: TeamId,
        intent: &'static str,
        mut change: impl FnMut(&Caller, &OrganizationState) -> Result<Vec<Membership>, Error> + Send + 'static,
    ) -> Result<(), Error> {
        let what = "team";
        let org = self.authorized_organization(caller, team.organization_prefix(), what).await?;
        let asker = caller.clone();
        let decide = move |tx: &mut Transaction<OrganizationState>| {
            let state = tx.state();
            asker.require(Action::ManageMembership, Resource::Organization(state), what)?;
            if !KnownTeams::of(&asker, state).contains(state, &team) {
                return Err(Error::NotFound(what));
            }
            require_choice_of(&asker, state, &BTreeSet::from([team]), what)?;
            for membership in change(&asker, state)? {
                tx.put(&membership);
            }
            Ok(())
        };
        org.commit(caller.intent(intent), idempotent(caller, self.now(), decide)).await
    }
}

impl MembershipView {
    /// Decision about its removal by the caller.
    pub fn removal(&self, caller: &Caller) -> Decision {
        let state = &self.org.state;
        // Of its teams, this view has only those that the caller knows.
        let action = state.memberships.get(&self.membership.id).map(|whole| choosing(state, &whole.teams));
        caller.may(action.unwrap_or(Action::ManageMembership), Resource::Organization(state))
    }
}
