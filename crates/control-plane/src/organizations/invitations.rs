//! Invitations: someone is asked to join an organization, and joins when they accept.
//!
//! The inviter learns nothing about who has an account. Two things open an invitation: its link, which the inviter
//! passes on, and the address, where a site admin has vouched that it is the user's. See
//! `docs/decisions/0023-invitations-are-accepted.md`.

use std::collections::BTreeSet;

use taco_boxed::boxed;
use taco_domain::id::{MembershipId, OrganizationId, TeamId, UserId};
use taco_domain::invitation::{InvitationLink, InvitationText};
use taco_domain::membership::{Membership, MembershipStatus};
use taco_domain::name::Email;
use taco_domain::organization::Organization;
use taco_domain::secret::SecretHash;
use taco_domain::user::User;
use taco_domain::{OrganizationState, Site};
use taco_ledger::View;
use taco_tables::Record as _;

use crate::caller::Caller;
use crate::control_plane::{ControlPlane, OrganizationSnapshot};
use crate::error::Error;
use crate::owners::require_choice_of;
use crate::teams::{KnownTeams, MembershipView, membership_view};

const WHAT: &str = "invitation";

/// An invitation that was made or renewed.
#[derive(Clone)]
pub struct MadeInvitation {
    pub view: MembershipView,
    /// Secret of its link, for the inviter. It is shown once: a repeated request gets `None`.
    pub text: Option<InvitationText>,
}

/// An invitation, as the invited person names it.
#[derive(Clone, Debug)]
pub enum InvitationRef {
    /// One that the caller's verified address was invited with.
    Membership(MembershipId),
    Link(InvitationText),
}

/// An invitation as the invited person sees it.
#[derive(Clone)]
pub struct InvitationView {
    pub membership: Membership,
    pub organization: String,
}

/// Lookup of an invitation in a transaction.
struct Search {
    by: InvitationKey,
    user: User,
    site: View<Site>,
    now: jiff::Timestamp,
}

#[derive(Clone, Copy)]
enum InvitationKey {
    Membership(MembershipId),
    Link(SecretHash),
}

impl Search {
    /// The invitation, if it waits for an answer and is open to the user.
    fn find<'a>(&self, state: &'a OrganizationState) -> Result<&'a Membership, Error> {
        let found = match self.by {
            InvitationKey::Membership(id) => {
                state.memberships.get(&id).filter(|membership| membership.is_offered_to(&self.user, &self.site))
            }
            InvitationKey::Link(hash) => {
                let found = state.memberships.by().link.first(&hash);
                found.filter(|membership| membership.link.is_some_and(|link| link.is_open(self.now)))
            }
        };
        found.ok_or(Error::NotFound(WHAT))
    }
}

#[boxed]
impl ControlPlane {
    /// Invites someone by their address, whether or not an account has it.
    pub async fn create_invitation(
        &self,
        caller: &Caller,
        organization: &str,
        email: &str,
        teams: BTreeSet<TeamId>,
    ) -> Result<MadeInvitation, Error> {
        let mut org = self.organization_named(caller, organization).await?;
        let email: Email = email.parse()?;
        let (text, link) = self.invitation_link(org.id());
        let new = Membership {
            id: MembershipId::within(org.id().organization_prefix(), self.random()),
            // No user has this id, so that it tells nothing and opens nothing, also to servers of earlier versions.
            user: UserId::from_random(self.random()),
            email,
            status: MembershipStatus::Invited,
            teams,
            created_at: self.now(),
            link: Some(link),
        };
        let change = org.change(caller, "membership.create", self.now(), move |tx| {
            require_choice_of::<Organization>(tx, &new.teams)?;
            let state = tx.state();
            if state.memberships.by().email.first(&new.email.key()).is_some() {
                return Err(Error::invalid("email", "Email has already been taken: they are a member, or invited"));
            }
            if let Some(unknown) = new.teams.iter().find(|team| !state.teams.contains(team)) {
                return Err(Error::Invalid {
                    pointer: "/data/relationships/teams".to_owned(),
                    detail: format!("The team {unknown} does not exist in this organization"),
                });
            }
            tx.put(&new);
            Ok(new.clone())
        });
        let membership = change.await?;
        Ok(made(caller, &org, membership, link, text))
    }

    /// Makes another link for an invitation; the one before ends.
    pub async fn renew_invitation(&self, caller: &Caller, id: MembershipId) -> Result<MadeInvitation, Error> {
        let mut org = self.authorized_organization(caller, id.organization_prefix(), Membership::NOUN).await?;
        let (text, link) = self.invitation_link(org.id());
        let change = org.change_with_secret(caller, "membership.renew-link", move |tx| {
            let membership: Membership = tx.get(&id)?;
            require_choice_of::<Membership>(tx, &membership.teams)?;
            if !membership.is_pending(&tx.caller().site) {
                return Err(Error::Conflict("They are a member already: nobody needs a link".to_owned()));
            }
            let renewed = Membership { link: Some(link), ..membership };
            tx.put(&renewed);
            Ok(renewed)
        });
        let membership = change.await?;
        Ok(made(caller, &org, membership, link, text))
    }

    fn invitation_link(&self, organization: OrganizationId) -> (InvitationText, InvitationLink) {
        let text = InvitationText::new(organization, self.secret());
        let link = InvitationLink::new(text.hash(self.hash_key()), self.now());
        (text, link)
    }

    /// The invitations that wait for the caller's answer, by organization: those for their verified address.
    pub async fn invitations(&self, caller: &Caller) -> Result<Vec<InvitationView>, Error> {
        let user = self.account(caller).await?;
        if !user.has_verified_email() {
            return Ok(Vec::new());
        }
        let by_name = caller.site.organizations.by().name.iter().map(|record| record.id);
        let opened = self.open_organizations(caller, by_name).await?;
        let of_user = |org: &OrganizationSnapshot| {
            let found = org.state.memberships.by().email.first(&user.email.key())?;
            found.is_offered_to(&user, &caller.site).then(|| InvitationView::of(org, found.clone()))
        };
        Ok(opened.iter().filter_map(of_user).collect())
    }

    /// One invitation, if it is open to the caller. It changes nothing.
    pub async fn invitation(&self, caller: &Caller, invitation: &InvitationRef) -> Result<InvitationView, Error> {
        let (org, search) = self.search_invitation(caller, invitation).await?;
        Ok(InvitationView::of(&org, search.find(&org.state)?.clone()))
    }

    /// Makes the caller a member of the organization that invites them.
    pub async fn accept_invitation(
        &self,
        caller: &Caller,
        invitation: &InvitationRef,
    ) -> Result<InvitationView, Error> {
        let (mut org, search) = self.search_invitation(caller, invitation).await?;
        let change = org.change(caller, "membership.accept", self.now(), move |tx| {
            let (state, user) = (tx.state(), search.user.id);
            if let Some(own) = state.membership_of(&user) {
                // Accepted before, and its answer was lost.
                if matches!(search.by, InvitationKey::Membership(id) if id == own.id) {
                    return Ok(own.clone());
                }
                search.find(state)?;
                return Err(Error::Conflict("You are a member of this organization already".to_owned()));
            }
            let accepted = search.find(state)?.accepted_by(user);
            tx.put(&accepted);
            Ok(accepted)
        });
        let accepted = change.await?;
        Ok(InvitationView::of(&org, accepted))
    }

    /// Does away with an invitation that the caller does not want.
    pub async fn decline_invitation(&self, caller: &Caller, invitation: &InvitationRef) -> Result<(), Error> {
        let (mut org, search) = self.search_invitation(caller, invitation).await?;
        org.change(caller, "membership.decline", self.now(), move |tx| {
            let id = search.find(tx.state())?.id;
            tx.delete::<Membership>(&id)
        })
        .await
    }

    /// The organization that an invitation belongs to, which the caller may not know of yet.
    async fn search_invitation(
        &self,
        caller: &Caller,
        invitation: &InvitationRef,
    ) -> Result<(OrganizationSnapshot, Search), Error> {
        let user = self.account(caller).await?;
        let gone = || Error::NotFound(WHAT);
        let (organization, by) = match invitation {
            InvitationRef::Membership(id) => {
                let entry = caller.site.organization_at(id.organization_prefix()).ok_or_else(gone)?;
                (entry.id, InvitationKey::Membership(*id))
            }
            InvitationRef::Link(text) => {
                let entry = caller.site.organizations.get(&text.organization).ok_or_else(gone)?;
                (entry.id, InvitationKey::Link(text.hash(self.hash_key())))
            }
        };
        let org = self.open_organization(&caller.site, organization).await?;
        Ok((org, Search { by, user, site: caller.site.clone(), now: self.now() }))
    }
}

impl InvitationView {
    fn of(org: &OrganizationSnapshot, membership: Membership) -> Self {
        Self { membership, organization: org.entry().name.to_string() }
    }
}

/// The response to the inviter. A repeated request finds the record of the first, whose link has another text.
fn made(
    caller: &Caller,
    org: &OrganizationSnapshot,
    membership: Membership,
    link: InvitationLink,
    text: InvitationText,
) -> MadeInvitation {
    let text = (membership.link == Some(link)).then_some(text);
    let view = membership_view(caller, org, &KnownTeams::of(caller, &org.state), membership);
    MadeInvitation { view, text }
}
