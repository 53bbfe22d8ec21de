//! One resource of a state, with what is sensitive hidden.

use taco_boxed::boxed;
use taco_domain::id::StateVersionId;
use taco_domain::json_tree::JsonTree;
use taco_domain::resource_detail::{ResourceDetail, resource_detail};
use taco_domain::state_mask::mask;

use crate::blob_error::broken;
use crate::caller::Caller;
use crate::control_plane::ControlPlane;
use crate::error::Error;
use crate::secret_reads::SecretRead;
use crate::state_comparisons::{Incomparable, check};
use crate::state_versions::StateVersionView;

/// A resource with its state, or the reason why it cannot be shown.
pub struct StateResource {
    pub state: StateVersionView,
    pub result: Result<ResourceDetail, Incomparable>,
}

#[boxed]
impl ControlPlane {
    /// The resource of a state that `address` names.
    pub async fn state_resource(
        &self,
        caller: &Caller,
        id: StateVersionId,
        address: String,
    ) -> Result<StateResource, Error> {
        let state = self.state_version(caller, id).await?;
        if let Err(refusal) = check(&state.version) {
            return Ok(StateResource { state, result: Err(refusal) });
        }
        self.record_secret_read(&state.org, caller, SecretRead::State(id)).await;
        let (bytes, serial) = (self.whole_state(&state).await?, state.version.serial);
        let read = tokio::task::spawn_blocking(move || {
            let tree = JsonTree::parse(&bytes).map_err(|error| Incomparable::Unreadable(serial, error.to_string()))?;
            Ok(resource_detail(&mask(tree), &address))
        });
        let result = match read.await.map_err(|error| broken(error.to_string()))? {
            Ok(found) => Ok(found.ok_or(Error::NotFound("resource"))?),
            Err(refusal) => Err(refusal),
        };
        Ok(StateResource { state, result })
    }
}
