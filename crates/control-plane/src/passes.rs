//! Passes: texts that open one object for one purpose, for a while, to whoever has them. Some requests of terraform
//! carry no token, so the address itself has to be the credential.

use std::fmt;

use jiff::{SignedDuration, Timestamp};
use subtle::ConstantTimeEq;

use crate::control_plane::ControlPlane;
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
}

impl Pass {
    /// The object that it opens, if it is for this purpose.
    pub(crate) fn object<I: std::str::FromStr>(&self, purpose: PassPurpose) -> Result<I, Error> {
        let object = (self.purpose == purpose).then(|| self.object.parse().ok()).flatten();
        object.ok_or(Error::NotFound("object"))
    }
}

impl ControlPlane {
    /// A text that opens `object` for `purpose` until `lifetime` is over. It can stand in the path of an address.
    ///
    /// It is good to the end of a minute, so that what shows it can be said again within the minute.
    pub fn issue_pass(&self, purpose: PassPurpose, object: impl fmt::Display, lifetime: SignedDuration) -> String {
        let end = self.now().checked_add(lifetime.min(LONGEST)).unwrap_or(Timestamp::MAX).as_second();
        let end = (end.div_euclid(60) + 1) * 60;
        format!("{end}-{}", self.pass_signature(purpose, &object.to_string(), end))
    }

    /// Whether the text opens `object` for `purpose` now. The refusal does not tell what is wrong with it.
    pub fn check_pass(&self, purpose: PassPurpose, object: &str, text: &str) -> Result<Pass, Error> {
        let refused = Error::NotFound("object");
        let Some((end, signature)) = text.split_once('-') else { return Err(refused) };
        let Ok(end) = end.parse::<i64>() else { return Err(refused) };
        let expected = self.pass_signature(purpose, object, end);
        let genuine: bool = expected.as_bytes().ct_eq(signature.as_bytes()).into();
        if !genuine || end <= self.now().as_second() {
            return Err(refused);
        }
        Ok(Pass { purpose, object: object.to_owned() })
    }

    fn pass_signature(&self, purpose: PassPurpose, object: &str, end: i64) -> String {
        self.hash_key().hash("pass", &format!("{}\0{object}\0{end}", purpose.words())).to_string()
    }
}
