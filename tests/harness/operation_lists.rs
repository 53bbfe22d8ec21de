//! A ledger whose every operation can be found again: for tests that kill its writer.

use std::collections::BTreeSet;

use serde::{Deserialize, Serialize};
use taco_ledger::{CommitError, Intent, Ledger};
use taco_tables::{Record, tables};

/// A list that operations are appended to.
#[derive(Clone, Default, Serialize, Deserialize)]
pub struct OperationList {
    pub id: String,
    pub operations: Vec<String>,
}

impl OperationList {
    pub fn operations(&self) -> BTreeSet<String> {
        self.operations.iter().cloned().collect()
    }
}

impl Record for OperationList {
    const KIND: &'static str = "list";
    type Id = String;
    type Indexes = ();

    fn id(&self) -> &String {
        &self.id
    }
}

tables! {
    pub struct OperationLists {
        pub lists: OperationList;
    }
}

pub async fn append(ledger: &Ledger<OperationLists>, list: &str, operation: &str) -> Result<(), CommitError<()>> {
    let (id, operation) = (list.to_owned(), operation.to_owned());
    let intent = Intent { actor: "writer".into(), action: "list.append", request: Some(operation.clone()) };
    ledger
        .commit(intent, move |transaction| {
            let mut list = transaction.state().lists.get(&id).cloned().unwrap_or_default();
            list.id.clone_from(&id);
            list.operations.push(operation.clone());
            transaction.put(&list);
            Ok(())
        })
        .await
}
