//! Events and comments of a run.

use taco_boxed::boxed;
use taco_domain::comment::Comment;
use taco_domain::id::{CommentId, RunEventId, RunId};
use taco_domain::permission::Action;
use taco_domain::run::{Run, RunHistoryEntry};
use taco_tables::Record as _;

use crate::caller::Caller;
use crate::control_plane::ControlPlane;
use crate::error::Error;
use crate::history::ToChange;
use crate::runs::RunView;

/// Something that happened to a run.
#[derive(Clone, Debug)]
pub struct RunEventView {
    pub id: RunEventId,
    pub entry: RunHistoryEntry,
    pub comment: Option<Comment>,
}

impl RunView {
    /// Events, oldest first.
    pub fn events(&self) -> Vec<RunEventView> {
        let comment = |id: &CommentId| self.org.state.comments.get(id).cloned();
        let entries = self.run.history.iter().enumerate();
        let view = |(index, entry): (usize, &RunHistoryEntry)| RunEventView {
            id: self.run.event_id(index),
            comment: entry.comment.as_ref().and_then(comment),
            entry: entry.clone(),
        };
        entries.map(view).collect()
    }

    /// Comments, oldest first.
    pub fn comments(&self) -> Vec<Comment> {
        self.org.state.comments.by().run.under(&self.run.id).cloned().collect()
    }
}

#[boxed]
impl ControlPlane {
    /// One event, by an id that leads to its run.
    pub async fn run_event(&self, caller: &Caller, id: RunEventId) -> Result<RunEventView, Error> {
        let what = "run event";
        let org = self.authorized_organization(caller, id.organization_prefix(), what).await?;
        let org = self.with_history(org, id).await?;
        let run = org.state.run_with_event(id).map(|(run, _)| run.id).ok_or(Error::NotFound(what))?;
        let events = self.run(caller, run).await.map_err(|error| not_found(error, what))?.events();
        events.into_iter().find(|event| event.id == id).ok_or(Error::NotFound(what))
    }

    pub async fn comment(&self, caller: &Caller, id: CommentId) -> Result<Comment, Error> {
        let what = Comment::NOUN;
        let org = self.authorized_organization(caller, id.organization_prefix(), what).await?;
        let org = self.with_history(org, id).await?;
        let comment = org.get::<Comment>(&id)?.clone();
        self.run(caller, comment.run).await.map_err(|error| not_found(error, what))?;
        Ok(comment)
    }

    /// Adds a remark to a run.
    pub async fn create_comment(&self, caller: &Caller, run: RunId, body: String) -> Result<Comment, Error> {
        let mut org = self.authorized_organization(caller, run.organization_prefix(), Run::NOUN).await?;
        let comment = self.new_comment(caller, run, Some(body))?.ok_or(Error::NotFound(Run::NOUN))?;
        let record = ToChange::new(run, Action::QueuePlan, Run::NOUN);
        let change = self.change_restored(caller, &mut org, record, "run.comment", move |tx| {
            let mut run: Run = tx.get(&comment.run)?;
            tx.workspace_of::<Run>(&run.workspace, Action::QueuePlan)?;
            run.note("commented", comment.created_by, comment.created_at);
            if let Some(entry) = run.history.last_mut() {
                entry.comment = Some(comment.id);
            }
            tx.put(&comment);
            tx.put(&run);
            Ok(comment.clone())
        });
        change.await
    }
}

/// A refusal that names what was asked for, not what it belongs to.
fn not_found(error: Error, what: &'static str) -> Error {
    match error {
        Error::NotFound(_) => Error::NotFound(what),
        other => other,
    }
}
