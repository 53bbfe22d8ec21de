//! Tokens in signed URLs: each opens one object for one purpose, for a while, to anyone who has it.

use taco_domain::Author;
use taco_domain::id::TokenId;

use crate::error::Error;

/// Purpose of a signed URL: the one thing that its holder may do.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum SignedUrlPurpose {
    DownloadState,
    UploadState,
    DownloadJsonState,
    UploadJsonState,
    UploadConfiguration,
    ReadPlanLog,
    ReadApplyLog,
    UploadModule,
    DownloadModule,
    UploadChecksums,
    DownloadChecksums,
    UploadSignature,
    DownloadSignature,
    UploadProvider,
    DownloadProvider,
    UploadPolicySet,
}

impl SignedUrlPurpose {
    pub(crate) fn words(self) -> &'static str {
        match self {
            Self::DownloadState => "GET state",
            Self::UploadState => "PUT state",
            Self::DownloadJsonState => "GET json-state",
            Self::UploadJsonState => "PUT json-state",
            Self::UploadConfiguration => "PUT configuration",
            Self::ReadPlanLog => "GET plan log",
            Self::ReadApplyLog => "GET apply log",
            Self::UploadModule => "PUT module",
            Self::DownloadModule => "GET module",
            Self::UploadChecksums => "PUT provider checksums",
            Self::DownloadChecksums => "GET provider checksums",
            Self::UploadSignature => "PUT provider signature",
            Self::DownloadSignature => "GET provider signature",
            Self::UploadProvider => "PUT provider",
            Self::DownloadProvider => "GET provider",
            Self::UploadPolicySet => "PUT policy set",
        }
    }
}

/// A token that was verified. Only `ControlPlane::verify_url_token` makes one.
#[derive(Clone, Debug)]
pub struct SignedUrlToken {
    pub(crate) purpose: SignedUrlPurpose,
    pub(crate) object: String,
    /// `None` for one of a server that did not say to whom yet.
    pub(crate) holder: Option<Holder>,
}

/// Holder of a token, to whom it was issued.
#[derive(Clone, Debug)]
pub(crate) struct Holder {
    pub(crate) author: Author,
    pub(crate) token: Option<TokenId>,
}

impl SignedUrlToken {
    /// The object that it opens, if it is for this purpose.
    pub(crate) fn object<I: std::str::FromStr>(&self, purpose: SignedUrlPurpose) -> Result<I, Error> {
        let object = (self.purpose == purpose).then(|| self.object.parse().ok()).flatten();
        object.ok_or(Error::NotFound("object"))
    }
}

impl Holder {
    pub(crate) fn spelled(text: &str) -> Option<Self> {
        let (author, token) = text.split_once('_')?;
        let token = match token {
            "" => None,
            token => Some(token.parse().ok()?),
        };
        Some(Self { author: Author::spelled(author)?, token })
    }
}
