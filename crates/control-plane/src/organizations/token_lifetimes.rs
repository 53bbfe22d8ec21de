//! Limits of an organization on the lifetime of tokens.

use taco_boxed::boxed;
use taco_domain::id::TokenLifetimeId;
use taco_domain::organization::Organization;
use taco_domain::permission::Action;
use taco_domain::token::TokenKind;
use taco_domain::token_lifetime::{LIMITED, TokenLifetime, TokenLifetimePatch, word_of};
use taco_tables::Record as _;

use crate::caller::Caller;
use crate::control_plane::{ControlPlane, OrganizationSnapshot};
use crate::error::Error;

/// The limit of one kind of tokens.
#[derive(Clone, Copy, Debug)]
pub struct TokenLifetimeView {
    pub id: TokenLifetimeId,
    pub kind: TokenKind,
    pub lifetime: TokenLifetime,
}

#[boxed]
impl ControlPlane {
    /// The limits of all kinds, including those that are not set.
    pub async fn token_lifetimes(&self, caller: &Caller, organization: &str) -> Result<Vec<TokenLifetimeView>, Error> {
        let org = self.organization_named(caller, organization).await?;
        caller.require(Action::UpdateOrganization, org.resource(), Organization::NOUN)?;
        all_of(&org)
    }

    /// Sets the limits of some kinds, and tells all of them.
    pub async fn update_token_lifetimes(
        &self,
        caller: &Caller,
        organization: &str,
        patches: Vec<TokenLifetimePatch>,
    ) -> Result<Vec<TokenLifetimeView>, Error> {
        let (mut org, now) = (self.organization_named(caller, organization).await?, self.now());
        let change = org.change(caller, "organization.update", now, move |tx| {
            tx.require::<Organization>(Action::UpdateOrganization, tx.organization())?;
            let before = tx.state().organization().ok_or(Error::NotFound(Organization::NOUN))?;
            let after = before.with_token_lifetimes(&patches, now)?;
            tx.put(&after);
            Ok(())
        });
        change.await?;
        all_of(&org)
    }
}

fn all_of(org: &OrganizationSnapshot) -> Result<Vec<TokenLifetimeView>, Error> {
    let organization = org.state.organization().ok_or(Error::NotFound(Organization::NOUN))?;
    let view = |kind| TokenLifetimeView {
        id: TokenLifetimeId::derived(organization.id.organization_prefix(), word_of(kind)),
        kind,
        lifetime: organization.token_lifetime(kind),
    };
    Ok(LIMITED.into_iter().map(view).collect())
}
