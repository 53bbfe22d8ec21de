//! A ledger whose every operation can be found again: for tests that kill its writer.

use std::collections::BTreeSet;

use serde::{Deserialize, Serialize};
use taco_ledger::{CommitError, Intent, Ledger};
use taco_tables::{Record, tables};

/// A list that operations are appended to.
#[derive(Clone, Default, Serialize, Deserialize)]
pub struct Shelf {
    pub id: String,
    pub operations: Vec<String>,
}

impl Shelf {
    pub fn operations(&self) -> BTreeSet<String> {
        self.operations.iter().cloned().collect()
    }
}

impl Record for Shelf {
    const KIND: &'static str = "shelf";
    type Id = String;
    type Indexes = ();

    fn id(&self) -> &String {
        &self.id
    }
}

tables! {
    pub struct Shelves {
        pub shelves: Shelf;
    }
}

pub async fn append(ledger: &Ledger<Shelves>, shelf: &str, operation: &str) -> Result<(), CommitError<()>> {
    let (id, operation) = (shelf.to_owned(), operation.to_owned());
    let intent = Intent { actor: "writer".into(), action: "shelf.append", request: Some(operation.clone()) };
    ledger
        .commit(intent, move |transaction| {
            let mut shelf = transaction.state().shelves.get(&id).cloned().unwrap_or_default();
            shelf.id.clone_from(&id);
            shelf.operations.push(operation.clone());
            transaction.put(&shelf);
            Ok(())
        })
        .await
}
