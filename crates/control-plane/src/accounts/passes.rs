//! Passes: texts that open one object for one purpose, for a while, to whoever has them. Some requests of terraform
//! carry no token, so the address itself has to be the credential.
//!
//! A pass says to whom it was issued, and opens nothing any more when they could not get it again: when their token was
//! revoked, or their right is gone.
//!
//! ```text
//! <end>_<holder>_<token or nothing>_<signature>
//! <end>-<signature>                              by servers that did not say to whom yet
//! ```

use std::fmt;

use jiff::{SignedDuration, Timestamp};
use subtle::ConstantTimeEq;
use taco_domain::Author;
use taco_domain::id::{TokenId, WorkspaceId};
use taco_domain::permission::{Action, Actor, Resource};

use crate::caller::{Caller, RequestInfo};
use crate::control_plane::{ControlPlane, OpenOrganization};
use crate::error::Error;

/// No pass lives longer.
const LONGEST: SignedDuration = SignedDuration::from_hours(25);

/// What a pass lets its holder do.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum PassPurpose {
    DownloadState,
    UploadState,
    DownloadJsonState,
    UploadJsonState,
    UploadConfiguration,
    ReadPlanLog,
    ReadApplyLog,
}

impl PassPurpose {
    fn words(self) -> &'static str {
        match self {
            Self::DownloadState => "GET state",
            Self::UploadState => "PUT state",
            Self::DownloadJsonState => "GET json-state",
            Self::UploadJsonState => "PUT json-state",
            Self::UploadConfiguration => "PUT configuration",
            Self::ReadPlanLog => "GET plan log",
            Self::ReadApplyLog => "GET apply log",
        }
    }
}

/// A pass that was checked. Only [`ControlPlane::check_pass`] makes one.
#[derive(Clone, Debug)]
pub struct Pass {
    purpose: PassPurpose,
    object: String,
    /// `None` for one of a server that did not say to whom yet.
    holder: Option<Holder>,
}

/// To whom a pass was issued.
#[derive(Clone, Debug)]
struct Holder {
    author: Author,
    token: Option<TokenId>,
}

impl Pass {
    /// The object that it opens, if it is for this purpose.
    pub(crate) fn object<I: std::str::FromStr>(&self, purpose: PassPurpose) -> Result<I, Error> {
        let object = (self.purpose == purpose).then(|| self.object.parse().ok()).flatten();
        object.ok_or(Error::NotFound("object"))
    }
}

impl ControlPlane {
    /// Whoever has the pass, as they are by now, if they may do this in the workspace; `None` for a pass that does not say
    /// to whom it was issued.
    pub(crate) fn holder_of(
        &self,
        pass: &Pass,
        open: &OpenOrganization,
        action: Action,
        workspace: &WorkspaceId,
        what: &'static str,
    ) -> Result<Option<Caller>, Error> {
        let Some(holder) = &pass.holder else { return Ok(None) };
        let gone = || Error::NotFound(what);
        let mut caller = open.caller_for(&holder.author, RequestInfo::default()).ok_or_else(gone)?;
        if let Some(id) = &holder.token {
            let tokens = [&open.site().tokens, &open.state.tokens];
            let token = tokens.into_iter().find_map(|tokens| tokens.get(id)).ok_or_else(gone)?;
            token.check(self.now()).map_err(|_| gone())?;
            if let Actor::Team { from_organization, .. } = &mut caller.actor {
                *from_organization = token.is_from_organization();
            }
        }
        let workspace = open.state.workspaces.get(workspace).ok_or_else(gone)?;
        // One answer for all that can be wrong with a pass.
        caller.require(action, Resource::Workspace(&open.state, workspace), what).map_err(|_| gone())?;
        Ok(Some(Caller { token: holder.token, ..caller }))
    }
}

impl ControlPlane {
    /// A text that opens `object` for `purpose` until `lifetime` is over. It can stand in the path of an address.
    ///
    /// It is good to the end of a minute, so that what shows it can be said again within the minute.
    pub fn issue_pass(
        &self,
        caller: &Caller,
        purpose: PassPurpose,
        object: impl fmt::Display,
        lifetime: SignedDuration,
    ) -> String {
        let end = self.now().checked_add(lifetime.min(LONGEST)).unwrap_or(Timestamp::MAX).as_second();
        let end = (end.div_euclid(60) + 1) * 60;
        let token = caller.token.map(|id| id.to_string()).unwrap_or_default();
        let holder = format!("{}_{token}", caller.author());
        format!("{end}_{holder}_{}", self.pass_signature(purpose, &object.to_string(), end, Some(&holder)))
    }

    /// Whether the text opens `object` for `purpose` now. The refusal does not tell what is wrong with it.
    pub fn check_pass(&self, purpose: PassPurpose, object: &str, text: &str) -> Result<Pass, Error> {
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
        Ok(Pass { purpose, object: object.to_owned(), holder })
    }

    fn pass_signature(&self, purpose: PassPurpose, object: &str, end: i64, holder: Option<&str>) -> String {
        let holder = holder.map(|holder| format!("\0{holder}")).unwrap_or_default();
        self.hash_key().hash("pass", &format!("{}\0{object}\0{end}{holder}", purpose.words())).to_string()
    }
}

/// End, holder and signature of a pass.
fn parts(text: &str) -> Option<(&str, Option<&str>, &str)> {
    match text.split_once('_') {
        Some((end, rest)) => rest.rsplit_once('_').map(|(holder, signature)| (end, Some(holder), signature)),
        None => text.split_once('-').map(|(end, signature)| (end, None, signature)),
    }
}

impl Holder {
    fn spelled(text: &str) -> Option<Self> {
        let (author, token) = text.split_once('_')?;
        let token = match token {
            "" => None,
            token => Some(token.parse().ok()?),
        };
        Some(Self { author: Author::spelled(author)?, token })
    }
}
