//! Uploads of states that this server is taking.

use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};

use taco_domain::id::StateVersionId;

use crate::error::Error;
use crate::signed_url_token::SignedUrlPurpose;

/// So many uploads to one address are taken at a time. A client whose connection broke begins anew before its server has
/// noticed; more than a few of those are no accident, and each may fill the bucket with a whole state.
const UPLOADS_AT_ONCE: usize = 4;

/// The uploads that this server is taking, by what they are and of which version.
#[derive(Default)]
pub(crate) struct UploadsUnderWay(Mutex<HashMap<(SignedUrlPurpose, StateVersionId), usize>>);

/// One of them, until it is dropped.
pub(crate) struct UploadUnderWay<'a> {
    all: &'a UploadsUnderWay,
    key: (SignedUrlPurpose, StateVersionId),
}

impl UploadsUnderWay {
    pub(crate) fn begin(
        &self,
        purpose: SignedUrlPurpose,
        version: StateVersionId,
    ) -> Result<UploadUnderWay<'_>, Error> {
        let mut all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let key = (purpose, version);
        let count = all.entry(key).or_default();
        if *count >= UPLOADS_AT_ONCE {
            return Err(Error::Conflict(format!(
                "{UPLOADS_AT_ONCE} uploads of this state are already in progress: wait until one of them is finished"
            )));
        }
        *count += 1;
        Ok(UploadUnderWay { all: self, key })
    }
}

impl Drop for UploadUnderWay<'_> {
    fn drop(&mut self) {
        let mut all = self.all.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(count) = all.get_mut(&self.key) {
            *count -= 1;
            if *count == 0 {
                all.remove(&self.key);
            }
        }
    }
}
