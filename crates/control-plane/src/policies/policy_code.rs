//! Code of policies in the bucket, and whether it compiles.

use std::collections::BTreeMap;

use bytes::Bytes;
use taco_boxed::boxed;
use taco_domain::policy_words::{PolicyFile, PolicySyntax};
use taco_domain::run_status::RunStatus;
use taco_ledger::{Key, LedgerName, layout};
use taco_opa::{CheckError, RegoSyntax, check};

use crate::blob_error::{blob_error, broken};
use crate::control_plane::{ControlPlane, OrganizationSnapshot};
use crate::error::Error;

pub(crate) const MAX_POLICY_BYTES: usize = taco_opa::MAX_POLICY_BYTES;
/// Modules of a set are stored as JSON, in which a character may take six bytes.
const MAX_STORED_BYTES: usize = 6 * MAX_POLICY_BYTES + 1024 * 1024;

/// Code of a policy, or of a version of a set.
pub(crate) fn policy_key(ledger: &LedgerName, blob: &str) -> Key {
    layout::blob(ledger, "policies", blob)
}

#[boxed]
impl ControlPlane {
    /// Compiles Rego where this server has `opa`, and says in which syntax it is. Where it has not, agents find out.
    pub(crate) async fn check_rego(&self, modules: BTreeMap<String, String>) -> Result<Option<PolicySyntax>, Error> {
        let Some(program) = self.shared.opa.clone() else { return Ok(None) };
        let _place = self.shared.archive_readers.stored.acquire().await.map_err(|closed| broken(closed.to_string()))?;
        let checking = tokio::task::spawn_blocking(move || check(&program, &modules));
        match checking.await.map_err(|error| broken(error.to_string()))? {
            Ok(RegoSyntax::V0) => Ok(Some(PolicySyntax::V0)),
            Ok(RegoSyntax::V1) => Ok(Some(PolicySyntax::V1)),
            Err(error @ CheckError::DoesNotCompile(_)) => {
                Err(Error::Invalid { pointer: String::new(), detail: format!("The policy does not compile: {error}") })
            }
            Err(CheckError::Failed(error)) if error.kind() == std::io::ErrorKind::TimedOut => Err(Error::Invalid {
                pointer: String::new(),
                detail: format!("The policy cannot be compiled: {error}"),
            }),
            Err(CheckError::Failed(error)) => {
                tracing::warn!(
                    event = "policy_check_failed", %error,
                    "policies are stored without having been compiled: opa does not work on this server"
                );
                Ok(None)
            }
        }
    }

    /// Stores code under a name that nothing else has.
    pub(crate) async fn store_policy_code(
        &self,
        org: &OrganizationSnapshot,
        of: &str,
        code: Bytes,
        syntax: Option<PolicySyntax>,
    ) -> Result<PolicyFile, Error> {
        let attempt = taco_domain::policy::PolicyId::from_random(self.random());
        let blob = format!("{of}-{}", attempt.characters());
        let stored = self.blobs().store_bytes(&policy_key(org.ledger.name(), &blob), code).await.map_err(blob_error)?;
        Ok(PolicyFile { blob, size: stored.size, sha256: stored.sha256, syntax })
    }

    pub(crate) async fn read_policy_code(&self, org: &OrganizationSnapshot, file: &PolicyFile) -> Result<Bytes, Error> {
        let key = policy_key(org.ledger.name(), &file.blob);
        let found = self.blobs().read_bytes(&key, MAX_STORED_BYTES).await.map_err(blob_error)?;
        found.ok_or(Error::NotFound("policy code"))
    }

    /// Removes code that was replaced, unless a plan that is under way is to be judged by it.
    pub(crate) async fn remove_unused_code(&self, org: &OrganizationSnapshot, blob: &str) {
        let planning = org.state.runs.iter().filter(|run| run.status == RunStatus::Planning);
        let mut sets = planning.filter_map(|run| run.policies.as_ref()).flat_map(|policies| &policies.sets);
        let is_used = sets.any(|set| {
            let own = set.policies.iter().filter_map(|policy| policy.code.as_ref());
            own.chain(&set.code).any(|file| file.blob == blob)
        });
        if !is_used {
            self.remove_blob(&policy_key(org.ledger.name(), blob)).await;
        }
    }
}
