//! Previews in walks that only plan: what a unit's plan announces is read from it once, and whoever is planned after it
//! reads the unit's state with these outputs.

use bytes::Bytes;
use futures::{StreamExt as _, TryStreamExt as _, future, stream};
use taco_boxed::boxed;
use taco_domain::OrganizationState;
use taco_domain::id::RunId;
use taco_domain::run::Run;
use taco_domain::state_version::StateVersion;
use taco_domain::walks::preview::{announced_outputs, overlaid};
use taco_domain::walks::walk::{Walk, WalkNode};
use taco_domain::walks::words::{WalkKind, WalkNodeState, WalkResult};
use taco_ledger::Transaction;
use taco_ledger::bucket::Download;

use crate::blob_error::blob_error;
use crate::control_plane::{ControlPlane, OrganizationSnapshot};
use crate::error::Error;
use crate::walks::nodes_of;

/// Maximum size of a state that is held in memory to be shown with other outputs.
const MAX_PREVIEWED_STATE: u64 = 64 * 1024 * 1024;

/// The run whose plan announces something, if the node has one and nobody has looked at it.
fn unread_plan(node: &WalkNode) -> Option<RunId> {
    let has_changes = node.state == WalkNodeState::Done && node.result == Some(WalkResult::Changed);
    node.runs.last().copied().filter(|_| has_changes && !node.is_plan_read)
}

/// The plan that a run is to be shown of the unit whose state this is.
fn plan_before<'a>(state: &'a OrganizationState, run: RunId, version: &StateVersion) -> Option<&'a Run> {
    let workspace = state.workspaces.get(&version.workspace)?;
    let is_current = workspace.current_state_version == Some(version.id);
    state.plan_shown_to(run, version.workspace).filter(|_| is_current)
}

#[boxed]
impl ControlPlane {
    /// Reads what plans of a walk announce. True if there was one to read.
    pub(crate) async fn read_announced(&self, org: &OrganizationSnapshot, walk: &Walk) -> Result<bool, Error> {
        if walk.kind != WalkKind::Plan {
            return Ok(false);
        }
        let (state, key) = (org.last_seen(), self.output_key(org));
        let unread: Vec<(WalkNode, RunId)> =
            nodes_of(&state, walk.id).filter_map(|node| Some((node.clone(), unread_plan(node)?))).collect();
        for (node, id) in &unread {
            let evidence = match state.runs.get(id) {
                Some(run) => self.plan_evidence(org, run).await?,
                None => None,
            };
            let announced = evidence.map(|evidence| announced_outputs(&key, &evidence.outputs));
            let (node, run) = (node.id, *id);
            let decide = move |tx: &mut Transaction<OrganizationState>| {
                let current = tx.state().walk_nodes.get(&node).cloned();
                if let Some(current) = current.filter(|current| unread_plan(current) == Some(run)) {
                    tx.put(&WalkNode { planned_outputs: announced.clone(), is_plan_read: true, ..current });
                }
                Ok::<_, Error>(())
            };
            org.commit(Self::own_intent("walk.preview"), decide).await?;
        }
        Ok(!unread.is_empty())
    }

    /// A state as a run reads it: in a walk that only plans, with the outputs that its unit's plan announces.
    pub(crate) async fn as_previewed(
        &self,
        org: &OrganizationSnapshot,
        run: RunId,
        version: &StateVersion,
        download: Download,
    ) -> Result<Download, Error> {
        let Some(plan) = plan_before(&org.state, run, version) else { return Ok(download) };
        if download.size > MAX_PREVIEWED_STATE {
            return Ok(download);
        }
        let Some(evidence) = self.plan_evidence(org, plan).await? else { return Ok(download) };
        let state: Vec<Bytes> = download.body.try_collect().await.map_err(|error| blob_error(error.into()))?;
        let state: Vec<u8> = state.concat();
        let shown = Bytes::from(overlaid(&state, &evidence.outputs).unwrap_or(state));
        Ok(Download { size: shown.len() as u64, body: stream::once(future::ready(Ok(shown))).boxed() })
    }
}
