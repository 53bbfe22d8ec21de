//! `taco state lock` and `unlock`

use reqwest::Method;
use serde_json::json;

use super::States;
use crate::commands::done;
use crate::failure::{Failure, Kind};

/// The server's refusal tells who holds the lock, since when and from where.
async fn act(
    states: &States<'_>,
    action: &str,
    body: &serde_json::Value,
) -> Result<crate::resource::Resource, Failure> {
    let path = ["workspaces", states.id(), "actions", action];
    let subject = format!("workspace {}", states.name);
    crate::api::one(states.session.api.send(&subject, Method::POST, &path, body).await?)
}

pub(super) async fn lock(states: &States<'_>, reason: Option<&str>) -> Result<(), Failure> {
    let locked = act(states, "lock", &json!({ "reason": reason })).await;
    let locked = locked.map_err(|failure| with_unlock_hint(states, failure))?;
    let sentence = format!("Locked {}. `taco state unlock --ws {}` unlocks it.", states.name, states.name);
    done(states.session, &locked, &sentence)
}

pub(super) async fn unlock(states: &States<'_>, force: bool) -> Result<(), Failure> {
    let action = if force { "force-unlock" } else { "unlock" };
    let unlocked = act(states, action, &json!({})).await.map_err(|failure| with_unlock_hint(states, failure))?;
    done(states.session, &unlocked, &format!("Unlocked {}.", states.name))
}

/// Tells how to get past someone's lock, if that is what is in the way.
fn with_unlock_hint(states: &States<'_>, failure: Failure) -> Failure {
    if !failure.says("is locked by") {
        return failure;
    }
    let hint = || format!("wait, or break the lock with `taco state unlock --force --ws {}`", states.name);
    failure.hint_if(Kind::Conflict, hint)
}

/// Does something for which the workspace must be locked. A lock that is there already stays: if it is ours, the server
/// lets us pass; if not, it says whose it is.
pub(super) async fn while_locked<T>(
    states: &States<'_>,
    reason: &str,
    deed: impl Future<Output = Result<T, Failure>>,
) -> Result<T, Failure> {
    let way_out = |failure| with_unlock_hint(states, failure);
    if states.is_locked() {
        return deed.await.map_err(way_out);
    }
    act(states, "lock", &json!({ "reason": reason })).await.map_err(way_out)?;
    let done = deed.await;
    let stays_locked = |failure: Failure| {
        let name = &states.name;
        // A server waits a minute for a state that was announced before it lets go of its lock.
        let hint =
            format!("{name} stays locked: `taco state unlock --ws {name}` unlocks it, if need be after a minute");
        failure.hint(hint)
    };
    match (act(states, "unlock", &json!({})).await, done) {
        (Ok(_), done) => done,
        // Someone was faster.
        (Err(failure), done) if failure.says("already unlocked") => done,
        (Err(failure), Ok(_)) | (Err(_), Err(failure)) => Err(stays_locked(failure)),
    }
}
