//! A server of a version that does not exist yet: it writes unknown fields into workspaces.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;

use serde::{Deserialize, Serialize};
use serde_json::Value;
use taco_ledger::{Environment, Intent, Ledger, Location, Options, Peers, Retrying, SharedRng, SystemClock};
use taco_tables::{Record, tables};

/// A workspace with all its fields.
#[derive(Clone, Serialize, Deserialize)]
pub struct NewerWorkspace {
    id: String,
    #[serde(flatten)]
    fields: BTreeMap<String, Value>,
}

impl Record for NewerWorkspace {
    const KIND: &'static str = "workspace";
    type Id = String;
    type Indexes = ();

    fn id(&self) -> &String {
        &self.id
    }
}

tables! {
    pub struct NewerState {
        workspaces: NewerWorkspace;
    }
}

/// Such a server at the ledger of one organization.
pub struct NewerServer(Ledger<NewerState>);

impl NewerServer {
    /// On a bucket in a directory. `organization` is the organization's id.
    pub async fn on(bucket: &Path, organization: &str) -> Self {
        let rng = SharedRng::from_seed(47);
        let bucket = Location::directory(bucket).open().expect("a directory");
        let environment = Environment {
            bucket: Arc::new(Retrying::new(Arc::new(bucket), rng.clone())),
            clock: Arc::new(SystemClock),
            rng,
            server: "newer".to_owned(),
            peers: Peers::fixed(1),
        };
        let name = organization.parse().expect("a legal name");
        Self(Ledger::open(environment, name, Options::default()).await.expect("a ledger"))
    }

    /// Changes the fields of a workspace.
    pub async fn change(&self, workspace: &str, change: impl Fn(&mut BTreeMap<String, Value>) + Send + 'static) {
        let intent = Intent { actor: "newer".to_owned(), action: "workspace.change", request: None };
        let id = workspace.to_owned();
        let done = self.0.commit(intent, move |tx| {
            let mut workspace = tx.state().workspaces.get(&id).cloned().ok_or(())?;
            change(&mut workspace.fields);
            tx.put(&workspace);
            Ok::<_, ()>(())
        });
        done.await.expect("a commit");
    }

    /// The fields of a workspace as they are stored now.
    pub async fn fields(&self, workspace: &str) -> BTreeMap<String, Value> {
        let view = self.0.read().await.expect("a read");
        view.workspaces.get(&workspace.to_owned()).expect("the workspace").fields.clone()
    }
}
