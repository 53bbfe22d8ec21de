//! Uses of tokens that are on their way into the ledger.

use std::collections::HashSet;
use std::sync::{Mutex, PoisonError};

use taco_domain::id::TokenId;

/// Tokens whose use is just being remembered, so that a burst of requests asks for one commit.
#[derive(Default)]
pub(crate) struct UsesInFlight(Mutex<HashSet<TokenId>>);

impl UsesInFlight {
    pub(crate) fn begin(&self, id: TokenId) -> bool {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).insert(id)
    }

    pub(crate) fn end(&self, id: TokenId) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).remove(&id);
    }
}
