//! Members of a team.

use std::collections::BTreeSet;

use taco_boxed::boxed;
use taco_domain::OrganizationState;
use taco_domain::attribute::shown;
use taco_domain::id::{MembershipId, TeamId};
use taco_domain::membership::Membership;
use taco_domain::name::Username;
use taco_domain::permission::{Action, Decision, Resource};
use taco_domain::team::Team;
use taco_tables::Record as _;

use crate::caller::Caller;
use crate::change::Tx;
use crate::control_plane::ControlPlane;
use crate::error::Error;
use crate::owners::{check_owners_left, choosing, require_choice_of};
use crate::teams::{KnownTeams, MembershipView, TeamView};

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
        let mut org = self.authorized_organization(caller, team.organization_prefix(), Team::NOUN).await?;
        org.change(caller, "team.add-members", self.now(), move |tx| {
            require_members_of(tx, team)?;
            for (index, member) in members.iter().enumerate() {
                let found = member.find(tx.caller(), tx.state());
                let mut membership = found.ok_or_else(|| member.unknown(index))?.clone();
                membership.teams.insert(team);
                tx.put(&membership);
            }
            Ok(())
        })
        .await
    }

    /// Takes members out of a team; they stay members of the organization. Those who are not in it are not missed.
    pub async fn remove_team_members(
        &self,
        caller: &Caller,
        team: TeamId,
        members: Vec<MemberRef>,
    ) -> Result<(), Error> {
        let mut org = self.authorized_organization(caller, team.organization_prefix(), Team::NOUN).await?;
        org.change(caller, "team.remove-members", self.now(), move |tx| {
            require_members_of(tx, team)?;
            let found = members.iter().filter_map(|member| member.find(tx.caller(), tx.state()));
            let leaving: Vec<Membership> = found.filter(|member| member.teams.contains(&team)).cloned().collect();
            if tx.state().is_owners(team) {
                check_owners_left(tx.state(), &leaving.iter().map(|membership| membership.id).collect())?;
            }
            for mut membership in leaving {
                membership.teams.remove(&team);
                tx.put(&membership);
            }
            Ok(())
        })
        .await
    }
}

/// Changes of someone's teams.
#[boxed]
impl ControlPlane {
    /// Replaces the teams of a member, as far as the caller knows of them: secret teams of others stay.
    pub async fn set_member_teams(
        &self,
        caller: &Caller,
        id: MembershipId,
        teams: BTreeSet<TeamId>,
    ) -> Result<(), Error> {
        let mut org = self.authorized_organization(caller, id.organization_prefix(), Membership::NOUN).await?;
        org.change(caller, "membership.update", self.now(), move |tx| {
            tx.require::<Membership>(Action::ManageMembership, tx.organization())?;
            let mut membership: Membership = tx.get(&id)?;
            let known = KnownTeams::of(tx.caller(), tx.state());
            if teams.iter().any(|team| !known.contains(tx.state(), team)) {
                return Err(Error::invalid("teams", "There is no such team"));
            }
            let hidden = membership.teams.iter().filter(|team| !known.contains(tx.state(), team));
            let after: BTreeSet<TeamId> = hidden.chain(&teams).copied().collect();
            let changed = membership.teams.symmetric_difference(&after).copied().collect();
            require_choice_of::<Membership>(tx, &changed)?;
            if changed.iter().any(|team| tx.state().is_owners(*team) && membership.teams.contains(team)) {
                check_owners_left(tx.state(), &BTreeSet::from([id]))?;
            }
            membership.teams = after;
            tx.put(&membership);
            Ok(())
        })
        .await
    }
}

/// May the caller choose who is in the team, and know of it?
fn require_members_of(tx: &Tx<'_>, team: TeamId) -> Result<(), Error> {
    tx.require::<Team>(Action::ManageMembership, tx.organization())?;
    if !KnownTeams::of(tx.caller(), tx.state()).contains(tx.state(), &team) {
        return Err(Error::NotFound(Team::NOUN));
    }
    require_choice_of::<Team>(tx, &BTreeSet::from([team]))
}

impl MembershipView {
    /// Decision about its removal by the caller.
    pub fn removal(&self, caller: &Caller) -> Decision {
        let state = &self.org.state;
        // Of its teams, this view has only those that the caller knows.
        let action = state.memberships.get(&self.membership.id).map(|whole| choosing(state, &whole.teams));
        let decision = caller.may(action.unwrap_or(Action::ManageMembership), Resource::Organization(state));
        let last_owner = check_owners_left(state, &BTreeSet::from([self.membership.id])).is_err();
        decision.unless(last_owner.then_some("The last owner cannot be removed: add another owner first"))
    }
}

/// Decisions about a team's members, for pages that say beforehand why something is not possible.
impl TeamView {
    /// Decision about adding and removing members.
    pub fn choice_of_members(&self, caller: &Caller) -> Decision {
        caller.may(choosing(&self.org.state, [&self.team.id]), self.org.resource())
    }

    /// Decision about removing this member from the team.
    pub fn removal_of_member(&self, caller: &Caller, member: MembershipId) -> Decision {
        let state = &self.org.state;
        let is_last = state.is_owners(self.team.id) && check_owners_left(state, &BTreeSet::from([member])).is_err();
        let reason = is_last.then_some("The last owner cannot be removed: add another owner first");
        self.choice_of_members(caller).unless(reason)
    }
}
