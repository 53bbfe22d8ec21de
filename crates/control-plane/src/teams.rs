//! Teams and memberships.

pub(crate) mod owners;
pub(crate) mod team_access;
pub(crate) mod team_members;

use std::collections::{BTreeMap, BTreeSet};

use serde::Deserialize;
use taco_boxed::boxed;
use taco_domain::OrganizationState;
use taco_domain::attribute::nullable;
use taco_domain::id::{MembershipId, TeamId};
use taco_domain::membership::{Membership, MembershipStatus};
use taco_domain::permission::{Action, Actor, Resource, covers, covers_in_organization};
use taco_domain::team::{Team, TeamVisibility};
use taco_domain::user::User;
use taco_tables::Record as _;

use crate::caller::Caller;
use crate::change::Tx;
use crate::control_plane::{ControlPlane, OrganizationSnapshot};
use crate::error::Error;
use crate::owners::{check_owners_left, choosing, require_choice_of};
use crate::page::{Listed, PageRequest};

/// A team with its members, as a door shows it.
#[derive(Clone)]
pub struct TeamView {
    pub team: Team,
    pub org: OrganizationSnapshot,
    pub members: Vec<MembershipView>,
}

/// Rights of a caller to change a team.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct TeamRights {
    pub change_members: bool,
    pub delete: bool,
    pub change_organization_access: bool,
    pub manage_token: bool,
    pub change_visibility: bool,
}

impl TeamView {
    /// True for the team whose members may do everything.
    pub fn is_owners(&self) -> bool {
        self.org.state.is_owners(self.team.id)
    }

    /// Rights of the caller to change it. The owners' team is changed by owners alone, and never deleted.
    pub fn rights(&self, caller: &Caller) -> TeamRights {
        let state = &self.org.state;
        let may = |action| caller.may(action, self.org.resource()).allowed;
        let is_owners = state.is_owners(self.team.id);
        let manages = may(Action::ManageTeams);
        TeamRights {
            change_members: may(choosing(state, [&self.team.id])),
            delete: manages && !is_owners,
            change_organization_access: may(Action::ManageOrganizationAccess) && !is_owners,
            manage_token: may(token_action(state, self.team.id)) && covers(&caller.actor, state, &self.team),
            change_visibility: manages && !is_owners,
        }
    }
}

/// Permission needed to manage a team's tokens. A token of the owners can do everything, so that is for owners.
pub(crate) fn token_action(state: &OrganizationState, team: TeamId) -> Action {
    if state.is_owners(team) { Action::ManageOwners } else { Action::ManageTeams }
}

/// The attributes of a request that makes or changes a team, spelled as on the wire.
#[derive(Clone, Default, Deserialize, Debug)]
#[serde(rename_all = "kebab-case", default)]
pub struct TeamPatch {
    pub name: Option<String>,
    pub visibility: Option<TeamVisibility>,
    /// Only the flags that it names change.
    pub organization_access: Option<BTreeMap<String, bool>>,
    #[serde(deserialize_with = "nullable")]
    pub sso_team_id: Option<Option<String>>,
    pub allow_member_token_management: Option<bool>,
}

impl TeamPatch {
    fn apply(&self, mut team: Team) -> Result<Team, Error> {
        if let Some(name) = &self.name {
            team.name = name.parse()?;
        }
        team.visibility = self.visibility.unwrap_or(team.visibility);
        if let Some(asked) = &self.organization_access {
            let mut access = serde_json::to_value(team.organization_access).unwrap_or_default();
            for (flag, value) in asked {
                access[flag] = (*value).into();
            }
            team.organization_access = serde_json::from_value(access).unwrap_or(team.organization_access);
        }
        team.sso_team_id = self.sso_team_id.clone().unwrap_or(team.sso_team_id);
        team.allow_member_token_management =
            self.allow_member_token_management.unwrap_or(team.allow_member_token_management);
        Ok(team)
    }
}

/// Filter for teams.
#[derive(Clone, Default, Debug)]
pub struct TeamFilter {
    /// Exactly one of these names.
    pub names: Vec<String>,
    /// A part of the name.
    pub query: Option<String>,
}

impl TeamFilter {
    fn takes(&self, team: &Team) -> bool {
        (self.names.is_empty() || self.names.iter().any(|name| name == team.name.as_str()))
            && self.query.as_ref().is_none_or(|part| team.name.key().as_str().contains(&part.to_lowercase()))
    }
}

/// A membership with its user, if it has one yet.
#[derive(Clone)]
pub struct MembershipView {
    /// Of its teams, those that the caller may know of.
    pub membership: Membership,
    pub user: Option<User>,
    pub org: OrganizationSnapshot,
}

impl MembershipView {
    pub fn teams(&self) -> impl Iterator<Item = &Team> {
        self.membership.teams.iter().filter_map(|id| self.org.state.teams.get(id))
    }
}

/// Filter for memberships.
#[derive(Clone, Default, Debug)]
pub struct MembershipFilter {
    pub emails: Vec<String>,
    pub status: Option<MembershipStatus>,
    /// A part of the name or of the address.
    pub query: Option<String>,
}

#[boxed]
impl ControlPlane {
    /// The teams that the caller may know of, by name.
    pub async fn teams(
        &self,
        caller: &Caller,
        organization: &str,
        filter: &TeamFilter,
        page: PageRequest,
    ) -> Result<Listed<TeamView>, Error> {
        let org = self.organization_named(caller, organization).await?;
        caller.require(Action::ReadDirectory, org.resource(), "organization")?;
        let teams = &org.state.teams;
        let by_name = teams.by().name.iter();
        let known = KnownTeams::of(caller, &org.state);
        let wanted = |team: &&Team| filter.takes(team) && known.contains(&org.state, &team.id);
        let listed = Listed::from_all(by_name.filter(wanted), page).cloned();
        Ok(listed.map(|team| team_view(caller, &org, team)))
    }

    pub async fn team(&self, caller: &Caller, id: TeamId) -> Result<TeamView, Error> {
        let org = self.authorized_organization(caller, id.organization_prefix(), Team::NOUN).await?;
        let team = org.known_team(caller, &id).cloned().ok_or(Error::NotFound(Team::NOUN))?;
        Ok(team_view(caller, &org, team))
    }

    pub async fn create_team(&self, caller: &Caller, organization: &str, patch: TeamPatch) -> Result<TeamView, Error> {
        let mut org = self.organization_named(caller, organization).await?;
        let name = patch.name.as_deref().unwrap_or_default().parse()?;
        let new = Team::new(TeamId::within(org.id().organization_prefix(), self.random()), name, self.now());
        let change = org.change(caller, "team.create", self.now(), move |tx| {
            tx.require::<Team>(Action::ManageTeams, tx.organization())?;
            put_patched(tx, &new, &patch)
        });
        let team = change.await?;
        Ok(team_view(caller, &org, team))
    }

    pub async fn update_team(&self, caller: &Caller, id: TeamId, patch: TeamPatch) -> Result<TeamView, Error> {
        let mut org = self.authorized_organization(caller, id.organization_prefix(), Team::NOUN).await?;
        let change = org.change(caller, "team.update", self.now(), move |tx| {
            tx.require::<Team>(Action::ManageTeams, tx.organization())?;
            if tx.state().is_owners(id) {
                return Err(Error::Conflict("The owners' team cannot be changed: owners may do everything".to_owned()));
            }
            let before = tx.get(&id)?;
            put_patched(tx, &before, &patch)
        });
        let team = change.await?;
        Ok(team_view(caller, &org, team))
    }

    /// Deletes a team with its tokens and its rights. Its members stay members of the organization.
    pub async fn delete_team(&self, caller: &Caller, id: TeamId) -> Result<(), Error> {
        let mut org = self.authorized_organization(caller, id.organization_prefix(), Team::NOUN).await?;
        org.change(caller, "team.delete", self.now(), move |tx| {
            tx.require::<Team>(Action::ManageTeams, tx.organization())?;
            if tx.state().is_owners(id) {
                return Err(Error::Conflict("The owners' team cannot be deleted".to_owned()));
            }
            tx.delete::<Team>(&id)
        })
        .await
    }

    /// An organization's members, by address.
    pub async fn memberships(
        &self,
        caller: &Caller,
        organization: &str,
        filter: &MembershipFilter,
        page: PageRequest,
    ) -> Result<Listed<MembershipView>, Error> {
        let org = self.organization_named(caller, organization).await?;
        caller.require(Action::ReadDirectory, org.resource(), "organization")?;
        let memberships = &org.state.memberships;
        let by_email = memberships.by().email.iter();
        let query = filter.query.as_deref().unwrap_or_default().to_lowercase();
        let wanted = |membership: &&Membership| {
            let email = membership.email.key();
            let username = membership_user(caller, membership).map(|user| user.username.key());
            (filter.emails.is_empty() || filter.emails.iter().any(|wanted| wanted.to_lowercase() == email.as_str()))
                && filter.status.is_none_or(|status| status == status_of(caller, membership))
                && (email.as_str().contains(&query)
                    || username.is_some_and(|username| username.as_str().contains(&query)))
        };
        let listed = Listed::from_all(by_email.filter(wanted), page).cloned();
        let known = KnownTeams::of(caller, &org.state);
        Ok(listed.map(|membership| membership_view(caller, &org, &known, membership)))
    }

    pub async fn membership(&self, caller: &Caller, id: MembershipId) -> Result<MembershipView, Error> {
        let org = self.authorized_organization(caller, id.organization_prefix(), Membership::NOUN).await?;
        caller.require(Action::ReadDirectory, org.resource(), Membership::NOUN)?;
        let membership = org.get::<Membership>(&id)?.clone();
        Ok(membership_view(caller, &org, &KnownTeams::of(caller, &org.state), membership))
    }

    pub async fn delete_membership(&self, caller: &Caller, id: MembershipId) -> Result<(), Error> {
        let mut org = self.authorized_organization(caller, id.organization_prefix(), Membership::NOUN).await?;
        org.change(caller, "membership.delete", self.now(), move |tx| {
            let membership: Membership = tx.get(&id)?;
            require_choice_of::<Membership>(tx, &membership.teams)?;
            check_owners_left(tx.state(), &BTreeSet::from([id]))?;
            tx.delete::<Membership>(&id)
        })
        .await
    }
}

/// Puts the team as it is after a request.
fn put_patched(tx: &mut Tx<'_>, before: &Team, patch: &TeamPatch) -> Result<Team, Error> {
    let team = patch.apply(before.clone())?;
    if team.organization_access != before.organization_access {
        tx.require::<Team>(Action::ManageOrganizationAccess, tx.organization())?;
        check_gives_no_more(tx.caller(), tx.state(), before, &team)?;
    }
    tx.put_unique(team)
}

/// Callers cannot give a team more in the organization than they have there themselves. The organization's token, which
/// sets up teams, gives what it has not; it cannot use it, since no token that it makes may do more than it may.
fn check_gives_no_more(caller: &Caller, state: &OrganizationState, before: &Team, after: &Team) -> Result<(), Error> {
    let given = after.organization_access.beyond(&before.organization_access);
    if caller.actor.is_from_organization() || covers_in_organization(&caller.actor, state, &given) {
        return Ok(());
    }
    Err(Error::Denied("You may not give a team more rights in the organization than you have yourself".to_owned()))
}

#[boxed]
impl OrganizationSnapshot {
    /// A team, if the caller may know of it.
    pub fn known_team(&self, caller: &Caller, id: &TeamId) -> Option<&Team> {
        let is_known = KnownTeams::of(caller, &self.state).contains(&self.state, id);
        self.state.teams.get(id).filter(|_| is_known)
    }
}

/// Secret teams are known to their members and to those who manage teams.
pub(crate) enum KnownTeams {
    All,
    /// Those of the caller, and perhaps those that are no secret.
    Some {
        own: BTreeSet<TeamId>,
        visible: bool,
    },
}

impl KnownTeams {
    pub(crate) fn of(caller: &Caller, state: &OrganizationState) -> Self {
        let may = |action| caller.may(action, Resource::Organization(state)).allowed;
        if may(Action::ManageTeams) {
            return Self::All;
        }
        let own = match &caller.actor {
            Actor::User { id, .. } => state.membership_of(id).map(|membership| membership.teams.clone()),
            Actor::Team { team, .. } => Some(BTreeSet::from([*team])),
            _ => None,
        };
        Self::Some { own: own.unwrap_or_default(), visible: may(Action::ReadDirectory) }
    }

    pub(crate) fn contains(&self, state: &OrganizationState, id: &TeamId) -> bool {
        let Some(team) = state.teams.get(id) else { return false };
        match self {
            Self::All => true,
            Self::Some { own, visible } => {
                own.contains(id) || (*visible && team.visibility == TeamVisibility::Organization)
            }
        }
    }
}

/// As the API tells it.
fn status_of(caller: &Caller, membership: &Membership) -> MembershipStatus {
    if membership.is_pending(&caller.site) { MembershipStatus::Invited } else { MembershipStatus::Active }
}

pub(crate) fn membership_view(
    caller: &Caller,
    org: &OrganizationSnapshot,
    known: &KnownTeams,
    mut membership: Membership,
) -> MembershipView {
    membership.status = status_of(caller, &membership);
    membership.teams.retain(|team| known.contains(&org.state, team));
    let user = membership_user(caller, &membership).cloned();
    MembershipView { membership, user, org: org.clone() }
}

/// The account behind a membership. Behind an invitation there is none, even if someone has the address.
fn membership_user<'a>(caller: &'a Caller, membership: &Membership) -> Option<&'a User> {
    caller.site.users.get(&membership.user).filter(|_| membership.is_in_effect())
}

fn team_view(caller: &Caller, org: &OrganizationSnapshot, team: Team) -> TeamView {
    let state = &org.state;
    let members = state.memberships.by().team.get(&team.id).cloned();
    let known = KnownTeams::of(caller, state);
    let members = members.map(|membership| membership_view(caller, org, &known, membership)).collect();
    TeamView { team, org: org.clone(), members }
}
