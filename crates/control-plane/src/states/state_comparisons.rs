//! Two versions of a state side by side, with what is sensitive hidden.

use bytes::BytesMut;
use futures::TryStreamExt;
use taco_boxed::boxed;
use taco_domain::id::StateVersionId;
use taco_domain::json_tree::JsonTree;
use taco_domain::state_diff::{StateDiff, compare};
use taco_domain::state_mask::mask;
use taco_domain::state_version::{StateVersion, StateVersionStatus};

use crate::blob_error::{blob_error, broken};
use crate::caller::Caller;
use crate::control_plane::ControlPlane;
use crate::error::Error;
use crate::secret_reads::SecretRead;
use crate::state_versions::{StateVersionView, WHAT};

/// Larger states are not compared: both have to be in memory at once, many times over.
const MEBIBYTES: u64 = 16;

#[derive(Clone)]
pub struct StateComparison {
    pub before: StateVersionView,
    pub after: StateVersionView,
    pub result: Result<Compared, Incomparable>,
}

#[derive(Clone, Debug)]
pub struct Compared {
    pub diff: StateDiff,
    /// Both trees with sensitive values hidden.
    pub before: JsonTree,
    pub after: JsonTree,
}

/// Reason why two states cannot be compared here.
#[derive(Clone, PartialEq, Eq, thiserror::Error, Debug)]
pub enum Incomparable {
    #[error("The state with serial {0} is larger than {MEBIBYTES} MiB, too large to show here: download it")]
    TooLarge(u64),
    #[error("The state with serial {0} was encrypted by its client: only whoever has the key can read it")]
    Encrypted(u64),
    #[error("The data of the state with serial {0} was deleted")]
    Deleted(u64),
    #[error("The state with serial {0} cannot be read: {1}")]
    Unreadable(u64, String),
}

#[boxed]
impl ControlPlane {
    /// Changes between two versions of one workspace's state.
    pub async fn compare_states(
        &self,
        caller: &Caller,
        before: StateVersionId,
        after: StateVersionId,
    ) -> Result<StateComparison, Error> {
        let (before, after) = (self.state_version(caller, before).await?, self.state_version(caller, after).await?);
        if before.version.workspace != after.version.workspace {
            return Err(Error::NotFound(WHAT));
        }
        let result = match check(&before.version).and_then(|()| check(&after.version)) {
            Err(refusal) => Err(refusal),
            Ok(()) => {
                for view in [&before, &after] {
                    self.record_secret_read(&view.org, caller, SecretRead::State(view.version.id)).await;
                }
                let bytes = (self.whole_state(&before).await?, self.whole_state(&after).await?);
                let serials = (before.version.serial, after.version.serial);
                let task = tokio::task::spawn_blocking(move || compared(serials, &bytes.0, &bytes.1));
                task.await.map_err(|error| broken(error.to_string()))?
            }
        };
        Ok(StateComparison { before, after, result })
    }

    pub(crate) async fn whole_state(&self, view: &StateVersionView) -> Result<BytesMut, Error> {
        let download = self.read_state_bytes(&view.org, &view.version).await?;
        download.body.try_collect().await.map_err(|error| blob_error(error.into()))
    }
}

pub(crate) fn check(version: &StateVersion) -> Result<(), Incomparable> {
    match version {
        _ if version.status != StateVersionStatus::Finalized => Err(Incomparable::Deleted(version.serial)),
        _ if version.encrypted => Err(Incomparable::Encrypted(version.serial)),
        _ if version.size > MEBIBYTES * 1024 * 1024 => Err(Incomparable::TooLarge(version.serial)),
        _ => Ok(()),
    }
}

fn compared(serials: (u64, u64), before: &[u8], after: &[u8]) -> Result<Compared, Incomparable> {
    let read = |serial: u64, bytes: &[u8]| {
        let tree = JsonTree::parse(bytes).map_err(|error| Incomparable::Unreadable(serial, error.to_string()))?;
        Ok(mask(tree))
    };
    let (before, after) = (read(serials.0, before)?, read(serials.1, after)?);
    Ok(Compared { diff: compare(&before, &after), before, after })
}
