//! Events and comments of a run.

use taco_boxed::boxed;
use taco_domain::comment::Comment;
use taco_domain::id::{CommentId, RunEventId, RunId};
use taco_domain::permission::{Action, Resource};
use taco_domain::run::Run;
use taco_domain::run::RunHistoryEntry;

use crate::caller::Caller;
use crate::control_plane::ControlPlane;
use crate::error::Error;
use crate::find::find;
use crate::history::ToChange;
use crate::idempotency::idempotent;
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
        let what = "comment";
        let org = self.authorized_organization(caller, id.organization_prefix(), what).await?;
        let org = self.with_history(org, id).await?;
        let comment = org.state.comments.get(&id).cloned().ok_or(Error::NotFound(what))?;
        self.run(caller, comment.run).await.map_err(|error| not_found(error, what))?;
        Ok(comment)
    }

    /// Adds a remark to a run.
    pub async fn create_comment(&self, caller: &Caller, run: RunId, body: String) -> Result<Comment, Error> {
        let what = "run";
        let org = self.authorized_organization(caller, run.organization_prefix(), what).await?;
        let comment = self.new_comment(caller, run, Some(body))?.ok_or(Error::NotFound(what))?;
        let asker = caller.clone();
        let decide = move |tx: &mut taco_ledger::Transaction<taco_domain::OrganizationState>| {
            let state = tx.state();
            let mut run = find::<Run, _>(state, &comment.run, what)?.clone();
            let workspace = state.workspaces.get(&run.workspace).ok_or(Error::NotFound(what))?;
            asker.require(Action::QueuePlan, Resource::Workspace(state, workspace), what)?;
            run.note("commented", comment.created_by, comment.created_at);
            if let Some(entry) = run.history.last_mut() {
                entry.comment = Some(comment.id);
            }
            tx.put(&comment);
            tx.put(&run);
            Ok(comment.clone())
        };
        let (record, decide) = (ToChange::new(run, Action::QueuePlan, what), idempotent(caller, self.now(), decide));
        self.change_historic(caller, &org, record, caller.intent("run.comment"), decide).await
    }
}

/// A refusal that names what was asked for, not what it belongs to.
fn not_found(error: Error, what: &'static str) -> Error {
    match error {
        Error::NotFound(_) => Error::NotFound(what),
        other => other,
    }
}
