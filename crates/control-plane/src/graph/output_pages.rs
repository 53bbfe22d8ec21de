//! Pages of output commits: the older ones of a workspace leave memory for a blob in the bucket.

use bytes::Bytes;
use taco_boxed::boxed;
use taco_domain::OrganizationState;
use taco_domain::graph::output_commit::{LIVE_COMMITS, OutputCommit, OutputCommitPage, WorkspaceOutputs};
use taco_domain::id::WorkspaceId;
use taco_ledger::Transaction;

use crate::blob_error::blob_error;
use crate::control_plane::{ControlPlane, OrganizationSnapshot};
use crate::error::Error;
use crate::graph::output_history::output_page_key;

/// A page with fewer commits is written anew with those that follow.
const COMMITS_PER_PAGE: u32 = 1_000;
/// Workspaces whose commits are moved in one go.
const WORKSPACES_AT_ONCE: usize = 16;

#[boxed]
impl ControlPlane {
    /// Moves old output commits of some workspaces into pages. True if there may be more to do.
    pub(crate) async fn page_output_commits(&self, org: &OrganizationSnapshot) -> Result<bool, Error> {
        let state = org.last_seen();
        let due: Vec<WorkspaceId> =
            state.workspace_outputs.iter().filter(|outputs| is_due(outputs)).map(|outputs| outputs.workspace).collect();
        let more = due.len() > WORKSPACES_AT_ONCE;
        for workspace in due.into_iter().take(WORKSPACES_AT_ONCE) {
            self.page_commits_of(org, workspace).await?;
        }
        Ok(more)
    }

    async fn page_commits_of(&self, org: &OrganizationSnapshot, workspace: WorkspaceId) -> Result<(), Error> {
        let state = org.last_seen();
        let Some(outputs) = state.workspace_outputs.get(&workspace).filter(|outputs| is_due(outputs)) else {
            return Ok(());
        };
        let last = outputs.number - LIVE_COMMITS;
        let live = state.output_commits.by().workspace.under(&workspace);
        let leaving: Vec<OutputCommit> = live.filter(|commit| commit.number <= last).cloned().collect();
        let Some(first) = leaving.first().map(|commit| commit.number) else { return Ok(()) };
        // The newest page grows until it is full.
        let open = outputs.pages.last().filter(|page| page.last - page.first + 1 < COMMITS_PER_PAGE).cloned();
        let mut commits = match &open {
            Some(page) => self.read_output_commits(org, page).await?,
            None => Vec::new(),
        };
        let first = commits.first().map_or(first, |commit| commit.number);
        commits.extend(leaving.iter().cloned());
        let blob = format!("{}-{first}-{last}", workspace.characters());
        let bytes = serde_json::to_vec(&commits).map_err(|error| Error::Sealed(error.to_string()))?;
        self.blobs().store_bytes(&output_page_key(org, &blob), Bytes::from(bytes)).await.map_err(blob_error)?;
        let (page, replaced) = (OutputCommitPage { blob, first, last }, open.clone());
        let decide = move |tx: &mut Transaction<OrganizationState>| {
            let Some(outputs) = tx.state().workspace_outputs.get(&workspace).cloned() else { return Ok(false) };
            // Another server may have been first; then its page has the same commits under the same name.
            if outputs.pages.contains(&page) {
                return Ok(false);
            }
            let mut pages = outputs.pages.clone();
            pages.retain(|old| Some(old) != replaced.as_ref());
            if pages.last().is_some_and(|before| before.last >= page.first) {
                return Ok(false);
            }
            pages.push(page.clone());
            tx.put(&WorkspaceOutputs { pages, ..outputs });
            for commit in &leaving {
                tx.delete::<OutputCommit>(&commit.id);
            }
            Ok(true)
        };
        let moved = org.commit(Self::own_intent("outputs.page"), decide).await?;
        if let Some(page) = open.filter(|_| moved) {
            self.remove_blob(&output_page_key(org, &page.blob)).await;
        }
        Ok(())
    }
}

/// True if twice as many commits are in memory as stay there.
fn is_due(outputs: &WorkspaceOutputs) -> bool {
    let paged = outputs.pages.last().map_or(0, |page| page.last);
    outputs.number.saturating_sub(paged) >= 2 * LIVE_COMMITS
}
