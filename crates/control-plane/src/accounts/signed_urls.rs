//! Signed URLs: each opens one object for one purpose, for a while, to anyone who has it. Some requests of terraform
//! carry no token, so the URL itself has to be the credential.
//!
//! A signed URL says to whom it was issued, and opens nothing any more when they could not get it again: when their
//! token was revoked, or their right is gone.
//!
//! ```text
//! <end>_<holder>_<token or nothing>_<signature>
//! <end>-<signature>                              by servers that did not say to whom yet
//! ```

use std::fmt;

use jiff::{SignedDuration, Timestamp};
use subtle::ConstantTimeEq;
use taco_domain::id::WorkspaceId;
use taco_domain::permission::{Action, Actor, Resource};

use crate::caller::{Caller, RequestInfo};
use crate::control_plane::{ControlPlane, OrganizationSnapshot};
use crate::error::Error;
use crate::signed_url_token::{Holder, SignedUrlPurpose, SignedUrlToken};

/// Longest lifetime of a signed URL.
const MAX_URL_LIFETIME: SignedDuration = SignedDuration::from_hours(25);

impl ControlPlane {
    /// Holder of a signed URL with their current rights, if they may do this in the workspace; `None` for a token that
    /// does not say to whom it was issued.
    pub(crate) fn holder_of(
        &self,
        pass: &SignedUrlToken,
        org: &OrganizationSnapshot,
        action: Action,
        workspace: &WorkspaceId,
        what: &'static str,
    ) -> Result<Option<Caller>, Error> {
        let gone = || Error::NotFound(what);
        let Some(caller) = self.current_holder(pass, org, what)? else { return Ok(None) };
        let workspace = org.state.workspaces.get(workspace).ok_or_else(gone)?;
        // One error for all that can be wrong with a token.
        caller.require(action, Resource::Workspace(&org.state, workspace), what).map_err(|_| gone())?;
        Ok(Some(caller))
    }

    /// Holder of a signed URL, if they can still make requests; `None` for a token that does not say to whom it was
    /// issued.
    pub(crate) fn current_holder(
        &self,
        pass: &SignedUrlToken,
        org: &OrganizationSnapshot,
        what: &'static str,
    ) -> Result<Option<Caller>, Error> {
        let Some(holder) = &pass.holder else { return Ok(None) };
        let gone = || Error::NotFound(what);
        let mut caller = org.caller_for(&holder.author, RequestInfo::default()).ok_or_else(gone)?;
        if let Some(id) = &holder.token {
            let tokens = [&org.site().tokens, &org.state.tokens];
            let token = tokens.into_iter().find_map(|tokens| tokens.get(id)).ok_or_else(gone)?;
            token.check(self.now()).map_err(|_| gone())?;
            if let Actor::Team { from_organization, .. } = &mut caller.actor {
                *from_organization = token.is_from_organization();
            }
        }
        Ok(Some(Caller { token: holder.token, ..caller }))
    }
}

impl ControlPlane {
    /// A token that opens `object` for `purpose` until `lifetime` is over. It can be part of a URL's path.
    ///
    /// It is good to the end of a minute, so that what shows it can be said again within the minute.
    pub fn sign_url_token(
        &self,
        caller: &Caller,
        purpose: SignedUrlPurpose,
        object: impl fmt::Display,
        lifetime: SignedDuration,
    ) -> String {
        let end = self.now().checked_add(lifetime.min(MAX_URL_LIFETIME)).unwrap_or(Timestamp::MAX).as_second();
        let end = (end.div_euclid(60) + 1) * 60;
        let token = caller.token.map(|id| id.to_string()).unwrap_or_default();
        let holder = format!("{}_{token}", caller.author());
        format!("{end}_{holder}_{}", self.pass_signature(purpose, &object.to_string(), end, Some(&holder)))
    }

    /// Checks that the token is valid for `object` and `purpose` now. The refusal does not tell what is wrong with it.
    pub fn verify_url_token(
        &self,
        purpose: SignedUrlPurpose,
        object: &str,
        text: &str,
    ) -> Result<SignedUrlToken, Error> {
        let refused = Error::NotFound("object");
        let Some((end, holder, signature)) = parts(text) else { return Err(refused) };
        let Ok(end) = end.parse::<i64>() else { return Err(refused) };
        let expected = self.pass_signature(purpose, object, end, holder);
        let genuine: bool = expected.as_bytes().ct_eq(signature.as_bytes()).into();
        if !genuine || end <= self.now().as_second() {
            return Err(refused);
        }
        let holder = match holder.map(Holder::spelled) {
            Some(None) => return Err(refused),
            Some(holder) => holder,
            None => None,
        };
        Ok(SignedUrlToken { purpose, object: object.to_owned(), holder })
    }

    fn pass_signature(&self, purpose: SignedUrlPurpose, object: &str, end: i64, holder: Option<&str>) -> String {
        let holder = holder.map(|holder| format!("\0{holder}")).unwrap_or_default();
        self.hash_key().hash("pass", &format!("{}\0{object}\0{end}{holder}", purpose.words())).to_string()
    }
}

/// Expiry, holder and signature of a token.
fn parts(text: &str) -> Option<(&str, Option<&str>, &str)> {
    match text.split_once('_') {
        Some((end, rest)) => rest.rsplit_once('_').map(|(holder, signature)| (end, Some(holder), signature)),
        None => text.split_once('-').map(|(end, signature)| (end, None, signature)),
    }
}
