use std::borrow::Cow;
use std::time::Duration;

use taco_domain::InvalidAttribute;
use taco_domain::idempotency_record::KeyReused;
use taco_ledger::{BucketErrorKind, CommitError};

/// Reason why a verb failed, sorted by what the caller can do about it. The texts are for callers: they help and leak
/// nothing.
#[derive(Clone, thiserror::Error, Debug)]
pub enum Error {
    /// It is not there, or the caller may not know that it is: look elsewhere.
    #[error("{0} not found")]
    NotFound(&'static str),
    /// Fix the request.
    #[error("{detail}")]
    Invalid {
        /// JSON pointer into a JSON:API document, such as `/data/attributes/name`.
        pointer: String,
        detail: String,
    },
    /// Look again: things are not as the request takes them to be.
    #[error("{0}")]
    Conflict(String),
    /// Ask someone for the right. The caller may know that the thing exists.
    #[error("{0}")]
    Denied(String),
    /// Log in.
    #[error("{0}")]
    Unauthorized(String),
    /// Send less.
    #[error("the request is too large: at most {limit} bytes are taken")]
    TooLarge { limit: u64 },
    /// Wait and try again: the caller, or others who come from where they come from, asked for too much at once.
    #[error("{detail}")]
    TooManyRequests { detail: String, retry_after: Duration },
    /// Wait and try again. The cause is for the log.
    #[error("{}", unavailable_in_words(.0))]
    Unavailable(#[source] taco_ledger::Error),
    /// Call the site's operator. The cause is for the log.
    #[error("something stored is damaged; whoever runs this site finds the details in its log")]
    Corrupt(#[source] taco_ledger::Error),
    /// Call the site's operator: the master key is not the one that sealed it. The cause is for the log.
    #[error("something sealed cannot be opened; whoever runs this site finds the details in its log")]
    Sealed(String),
}

/// Reason why the bucket fails, as far as it helps a caller: no object, no path, no address.
fn unavailable_in_words(error: &taco_ledger::Error) -> Cow<'static, str> {
    let bucket = match error {
        taco_ledger::Error::Unavailable(bucket) => bucket,
        taco_ledger::Error::NewerRecord(_) => return error.to_string().into(),
        _ => return "the storage is unavailable at the moment; try again".into(),
    };
    let words = match (bucket.kind, bucket.is_write()) {
        (BucketErrorKind::Full, _) => {
            "the bucket's disk is full: what is stored can be read, and nothing can be written until whoever runs this \
             site has made room"
        }
        (BucketErrorKind::Denied, true) => {
            "the bucket refuses writes, because it is read-only or permission is denied: what is stored can be read, and \
             nothing can be written until whoever runs this site has mended that"
        }
        (BucketErrorKind::Denied, false) => {
            "the bucket denies access: whoever runs this site has to give the server the right to read it"
        }
        (BucketErrorKind::Refused, _) => "the bucket refuses this; whoever runs this site finds the details in its log",
        (BucketErrorKind::OutcomeUnknown, _) => "the storage is unavailable at the moment; try again",
    };
    words.into()
}

impl Error {
    /// An attribute that cannot be as it was sent.
    pub fn invalid(attribute: &'static str, detail: impl Into<String>) -> Self {
        InvalidAttribute::new(attribute, detail).into()
    }

    /// An attribute that something else has the same of, in the wording that clients know.
    pub fn name_taken(attribute: &'static str) -> Self {
        let (first, rest) = attribute.split_at(attribute.len().min(1));
        Self::invalid(attribute, format!("{}{rest} has already been taken", first.to_uppercase()))
    }
}

impl From<InvalidAttribute> for Error {
    fn from(invalid: InvalidAttribute) -> Self {
        Self::Invalid { pointer: invalid.pointer(), detail: invalid.detail }
    }
}

impl From<KeyReused> for Error {
    fn from(reused: KeyReused) -> Self {
        Self::Invalid { pointer: String::new(), detail: reused.to_string() }
    }
}

impl From<taco_ledger::Error> for Error {
    fn from(error: taco_ledger::Error) -> Self {
        use taco_ledger::Error as E;
        match error {
            E::Unavailable(_) | E::Busy { .. } | E::NewerRecord(_) => Self::Unavailable(error),
            E::Corrupt { .. } | E::NewerFormat { .. } | E::Broken(_) => Self::Corrupt(error),
        }
    }
}

impl From<CommitError<Self>> for Error {
    fn from(error: CommitError<Self>) -> Self {
        match error {
            CommitError::Decided(error) => error,
            CommitError::Ledger(error) => error.into(),
        }
    }
}
