//! Buckets as servers leave them that know nothing of the graph: with states, and without output commits and evidence.

use serde_json::Value;
use taco_domain::OrganizationState;
use taco_domain::graph::consumption::Consumption;
use taco_domain::graph::dependency::Dependency;
use taco_domain::graph::output_commit::{OutputCommit, WorkspaceOutputs};
use taco_ledger::{Intent, Transaction};

use crate::api_server::ApiServer;

impl ApiServer {
    /// Leaves the bucket of the only organization as it was before there was a graph.
    pub async fn forget_graph(&self) {
        self.change_graph(|tx| {
            let commits: Vec<_> = tx.state().output_commits.iter().map(|commit| commit.id).collect();
            commits.iter().for_each(|id| tx.delete::<OutputCommit>(id));
            let outputs: Vec<_> = tx.state().workspace_outputs.iter().map(|outputs| outputs.workspace).collect();
            outputs.iter().for_each(|id| tx.delete::<WorkspaceOutputs>(id));
            let consumptions: Vec<_> = tx.state().consumptions.iter().map(|known| known.workspace).collect();
            consumptions.iter().for_each(|id| tx.delete::<Consumption>(id));
            let edges: Vec<_> = tx.state().dependencies.iter().map(|edge| edge.id).collect();
            edges.iter().for_each(|id| tx.delete::<Dependency>(id));
        })
        .await;
    }

    /// Writes a state as if this were a server of an older version, which makes no output commit.
    pub async fn given_state_as_before(&self, workspace: &str, state: &Value) {
        let id = workspace.parse().expect("an id");
        let ledger = self.keyed_ledger().await;
        let before = ledger.read().await.expect("a state");
        let known: Vec<OutputCommit> = before.output_commits.by().workspace.under(&id).cloned().collect();
        let outputs = before.workspace_outputs.get(&id).cloned();
        self.given_state(workspace, state).await;
        self.change_graph(move |tx| {
            let now: Vec<OutputCommit> = tx.state().output_commits.by().workspace.under(&id).cloned().collect();
            for made in now.iter().filter(|made| !known.contains(made)) {
                tx.delete::<OutputCommit>(&made.id);
            }
            match &outputs {
                Some(outputs) => tx.put(outputs),
                None => tx.delete::<WorkspaceOutputs>(&id),
            }
        })
        .await;
    }

    async fn change_graph(&self, change: impl Fn(&mut Transaction<OrganizationState>) + Send + 'static) {
        let ledger = self.keyed_ledger().await;
        let intent = Intent { actor: "older".to_owned(), action: "graph.forget", request: None };
        let changed = ledger.commit(intent, move |tx| {
            change(tx);
            Ok::<_, std::convert::Infallible>(())
        });
        changed.await.expect("a commit");
    }
}
