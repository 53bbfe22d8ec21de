use taco_tables::RecordKey;

use crate::bucket::{BucketError, BucketErrorKind, Key};

/// Error of a ledger, sorted by what can be done about it.
#[derive(Clone, thiserror::Error, Debug)]
pub enum Error {
    /// The bucket does not answer, is full or refuses us. A change that got this answer has happened either wholly
    /// or not at all; asking again is safe where the change recognises itself.
    #[error("the bucket is unavailable: {0}")]
    Unavailable(BucketError),
    /// Other servers kept winning the race for the next commit.
    #[error("the ledger {ledger} is too busy: other servers won every commit for {seconds} s")]
    Busy { ledger: String, seconds: u64 },
    /// An object is not what it has to be. Nothing is written until a person has looked.
    #[error("{object} is damaged: {why}. Nothing was changed; `taco doctor` tells more")]
    Corrupt { object: Key, why: String },
    /// The bucket was written by a newer taco.
    #[error(
        "{object} says that this bucket has format {found}, and this version of taco knows formats up to {known}: start a newer taco"
    )]
    NewerFormat { object: Key, found: u64, known: u64 },
    /// A record on which a change depends cannot be read by this version.
    #[error(
        "the {} {} was written by a newer server, or is damaged, and this one cannot read it: nothing that depends on it was changed. Ask a newer server, or upgrade this one",
        .0.kind, .0.id
    )]
    NewerRecord(RecordKey),
    /// A closure that decides broke down; the others of its batch are not harmed.
    #[error("an internal error: {0}")]
    Broken(String),
}

impl Error {
    pub(crate) fn corrupt(object: &Key, why: impl ToString) -> Self {
        Self::Corrupt { object: object.clone(), why: why.to_string() }
    }

    /// True if the same request may succeed later without anyone mending anything.
    pub fn is_transient(&self) -> bool {
        match self {
            Self::Unavailable(error) => error.kind == BucketErrorKind::OutcomeUnknown,
            Self::Busy { .. } => true,
            Self::Corrupt { .. } | Self::NewerFormat { .. } | Self::NewerRecord(_) | Self::Broken(_) => false,
        }
    }
}

impl From<BucketError> for Error {
    fn from(error: BucketError) -> Self {
        Self::Unavailable(error)
    }
}

/// Reason why a transaction did not happen.
#[derive(Clone, thiserror::Error, Debug)]
pub enum CommitError<E> {
    /// The closure decided against it.
    #[error("{0}")]
    Decided(E),
    #[error(transparent)]
    Ledger(#[from] Error),
}
