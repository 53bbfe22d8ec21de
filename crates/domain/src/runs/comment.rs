use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use taco_tables::{Record, indexes, references};

use crate::attribute::InvalidAttribute;
use crate::author::Author;
use crate::id::{CommentId, RunId};

const MAX_COMMENT_BYTES: usize = 4096;

/// A remark about a run.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize, Debug)]
pub struct Comment {
    pub id: CommentId,
    pub run: RunId,
    pub body: String,
    pub created_at: Timestamp,
    pub created_by: Author,
}

/// A remark has some text, and not too much.
pub fn check_body(body: &str) -> Result<(), InvalidAttribute> {
    match body.len() {
        _ if body.trim().is_empty() => Err(InvalidAttribute::new("body", "Body can't be blank")),
        length if length > MAX_COMMENT_BYTES => {
            Err(InvalidAttribute::new("body", format!("Body has {length} bytes; {MAX_COMMENT_BYTES} are allowed")))
        }
        _ => Ok(()),
    }
}

impl Record for Comment {
    const KIND: &'static str = "comment";
    type Id = CommentId;
    type Indexes = CommentIndexes;

    fn id(&self) -> &CommentId {
        &self.id
    }

    references! {
        "run": RunId, cascade(|comments, id| comments.by().run.under(id));
    }
}

indexes! {
    pub struct CommentIndexes for Comment {
        /// Oldest first within a run.
        pub run: (RunId, Timestamp) => |comment| [(comment.run, comment.created_at)];
    }
}
