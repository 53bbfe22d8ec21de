//! Why a unit is as fresh as it is: which producer changed which output, by whose run, and against what the unit last
//! applied. In sentences for people, in fields for scripts.

use jiff::Timestamp;
use serde::Serialize;
use taco_boxed::boxed;
use taco_domain::graph::dependency::Dependency;
use taco_domain::graph::output_commit::OutputCommitNumber;
use taco_domain::graph::status::{EdgeState, MovedOutput};
use taco_domain::graph::words::{ConsumedBy, EdgeStatus, Freshness, Grade, OutputChange};
use taco_domain::permission::Action;
use taco_domain::workspace::Workspace;

use crate::caller::Caller;
use crate::control_plane::{ControlPlane, OrganizationSnapshot};
use crate::error::Error;
use crate::graph::graph_view::Eyes;
use crate::workspace_view::WorkspaceRef;

/// Why a unit is as fresh as it is.
#[derive(Clone, Serialize, Debug)]
pub struct Why {
    pub unit: String,
    pub freshness: Freshness,
    /// All of it in sentences.
    pub sentences: Vec<String>,
    /// One for each producer that is not as the unit last applied it, or of which nothing proves that it is.
    pub reasons: Vec<Reason>,
}

/// One producer's part in it.
#[derive(Clone, Serialize, Debug)]
pub struct Reason {
    pub producer: String,
    pub outputs: Vec<ChangedOutput>,
    pub status: EdgeStatus,
    /// False where it is only probable.
    pub certain: bool,
    pub muted: bool,
    pub sentence: String,
}

/// One output that changed after the unit's last effective apply.
#[derive(Clone, Serialize, Debug)]
pub struct ChangedOutput {
    pub name: String,
    pub change: OutputChange,
    pub from_commit: Option<OutputCommitNumber>,
    pub to_commit: Option<OutputCommitNumber>,
    pub run: Option<String>,
    pub by: Option<String>,
    pub at: Option<Timestamp>,
}

#[boxed]
impl ControlPlane {
    /// Why a workspace is as fresh as it is.
    pub async fn why(&self, caller: &Caller, workspace: &WorkspaceRef) -> Result<Why, Error> {
        let view = self.workspace_with_runs(caller, workspace).await?;
        let org = self.with_evidence(view.org).await?;
        let workspace = org.get::<Workspace>(&view.workspace.id)?;
        Ok(why(&org, caller, workspace))
    }
}

pub(crate) fn why(org: &OrganizationSnapshot, caller: &Caller, workspace: &Workspace) -> Why {
    let eyes = Eyes { state: &org.state, caller };
    let freshness = org.state.freshness(workspace);
    let mut reasons = Vec::new();
    let mut assumed = false;
    for edge in org.state.dependencies_of(workspace.id) {
        let state = org.state.edge_state(edge);
        assumed |= edge.consumed.as_ref().is_some_and(|consumed| consumed.assumed);
        if state.status != EdgeStatus::Fresh {
            reasons.push(reason(org, &eyes, edge, &state));
        }
    }
    reasons.sort_by_key(|reason| (reason.muted, rank(reason.status), reason.producer.clone()));
    let mut sentences = vec![opening(org, &eyes, workspace, freshness, assumed)];
    sentences.extend(reasons.iter().map(|reason| reason.sentence.clone()));
    Why { unit: workspace.name.to_string(), freshness, sentences, reasons }
}

/// What asks for more attention comes first.
fn rank(status: EdgeStatus) -> u8 {
    match status {
        EdgeStatus::Missing => 0,
        EdgeStatus::Retyped => 1,
        EdgeStatus::Stale => 2,
        EdgeStatus::Unbound => 3,
        EdgeStatus::Opaque => 4,
        EdgeStatus::Unknown => 5,
        EdgeStatus::Unobserved => 6,
        EdgeStatus::Fresh => 7,
    }
}

/// The first sentence.
fn opening(
    org: &OrganizationSnapshot,
    eyes: &Eyes<'_>,
    workspace: &Workspace,
    freshness: Freshness,
    assumed: bool,
) -> String {
    let name = &workspace.name;
    let edges = eyes.state.dependencies_of(workspace.id).count();
    let effective = eyes.state.consumptions.get(&workspace.id).and_then(|known| known.effective.as_ref());
    let applied = effective.map_or_else(String::new, |effective| {
        format!(" Its last effective apply was {}, by {}.", moment(effective.at), org.name_of(&effective.by))
    });
    let unreadable = eyes.state.consumptions.get(&workspace.id).and_then(|known| known.unreadable.as_ref());
    let text = match freshness {
        Freshness::NeverApplied => return format!("{name} was never applied: it has no state."),
        Freshness::Clean if edges == 0 => format!("{name} is clean: it uses no other workspace's outputs."),
        Freshness::Clean if assumed => {
            format!(
                "{name} is taken to be clean: it read the newest outputs, though no resource shows that it used them."
            )
        }
        Freshness::Clean => {
            format!("{name} is clean: every output that it uses is the one that it last applied against.")
        }
        Freshness::Stale => {
            format!("{name} is stale: outputs that it uses have changed since its last effective apply.")
        }
        Freshness::Broken => format!("{name} is broken: outputs that it uses are gone or have another type."),
        Freshness::MayChange => {
            format!("{name} may change: a plan that nobody applied yet changes outputs that it uses.")
        }
        Freshness::Unknown => match unreadable {
            Some(why) => format!("It is unknown whether {name} is up to date: {why}."),
            None if !eyes.state.is_examined(workspace) => {
                format!("It is unknown whether {name} is up to date: its newest state is still being examined.")
            }
            None => format!("It is unknown whether {name} is up to date."),
        },
    };
    text + &applied
}

fn moment(at: Timestamp) -> String {
    at.strftime("%Y-%m-%d %H:%M UTC").to_string()
}

fn reason(org: &OrganizationSnapshot, eyes: &Eyes<'_>, edge: &Dependency, state: &EdgeState) -> Reason {
    let outputs: Vec<ChangedOutput> = match eyes.sees_outputs(edge) {
        true => state.moved.iter().map(|moved| changed_output(org, eyes, edge, moved)).collect(),
        false => Vec::new(),
    };
    let producer = eyes.producer(edge);
    let muted = !edge.counts();
    let mut sentence = sentence(edge, state, &producer, &outputs);
    if muted {
        sentence.push_str(" This does not count: the edge is muted.");
    }
    Reason { producer, outputs, status: state.status, certain: state.certain, muted, sentence }
}

fn changed_output(
    org: &OrganizationSnapshot,
    eyes: &Eyes<'_>,
    edge: &Dependency,
    moved: &MovedOutput,
) -> ChangedOutput {
    let commit = edge.producer.zip(moved.to).and_then(|(producer, number)| eyes.state.output_commit(producer, number));
    let sees_runs = edge
        .producer
        .and_then(|id| eyes.state.workspaces.get(&id))
        .is_some_and(|producer| eyes.may(Action::ReadRuns, producer));
    ChangedOutput {
        name: moved.name.clone(),
        change: moved.change,
        from_commit: moved.from,
        to_commit: moved.to,
        run: commit.filter(|_| sees_runs).and_then(|commit| commit.run).map(|run| run.to_string()),
        by: commit.filter(|_| sees_runs).map(|commit| org.name_of(&commit.by)),
        at: commit.map(|commit| commit.at),
    }
}

fn sentence(edge: &Dependency, state: &EdgeState, producer: &str, outputs: &[ChangedOutput]) -> String {
    let probably = if state.certain { "" } else { "probably " };
    let against = match edge.consumed.as_ref().map(|consumed| (consumed.how, consumed.commit)) {
        Some((ConsumedBy::Acknowledged, Some(commit))) => {
            format!("; someone acknowledged commit {commit} for this workspace")
        }
        Some((_, Some(commit))) => format!("; this workspace last applied against commit {commit}"),
        Some((_, None)) => "; this workspace last applied against older values".to_owned(),
        None => "; this workspace was not seen to apply it".to_owned(),
    };
    match state.status {
        EdgeStatus::Fresh => format!("{producer} is as this workspace last applied it."),
        EdgeStatus::Stale | EdgeStatus::Missing | EdgeStatus::Retyped if outputs.is_empty() => {
            format!("{producer} {probably}changed outputs that this workspace uses{against}.")
        }
        EdgeStatus::Stale | EdgeStatus::Missing | EdgeStatus::Retyped => {
            let listed: Vec<String> = outputs.iter().take(5).map(clause).collect();
            let more = match outputs.len().saturating_sub(5) {
                0 => String::new(),
                more => format!(", and {more} more"),
            };
            format!("{producer} {probably}{}{more}{against}.", listed.join(", "))
        }
        EdgeStatus::Unbound if edge.producer.is_some() => {
            format!("{producer} was never applied, so it has no outputs yet.")
        }
        EdgeStatus::Unbound => format!("{producer} is no workspace here: its outputs are not known."),
        EdgeStatus::Unobserved => {
            format!("Someone declared that this workspace uses {producer}; no read of it was seen.")
        }
        EdgeStatus::Opaque => {
            format!("The outputs of {producer} cannot be read: its state is encrypted or has too many.")
        }
        EdgeStatus::Unknown if edge.is_bound_anew() => {
            let bound = edge.observed.get(&Grade::Binding).map(|seen| seen.users.join(", ")).unwrap_or_default();
            format!(
                "Variables of this workspace ({bound}) are bound to outputs of {producer}, and no run has applied them yet."
            )
        }
        EdgeStatus::Unknown => {
            format!("Nothing proves against which outputs of {producer} this workspace was last applied.")
        }
    }
}

/// One changed output, as a part of a sentence that begins with its producer.
fn clause(output: &ChangedOutput) -> String {
    let name = &output.name;
    let mut text = match output.change {
        OutputChange::Added => format!("added `{name}`"),
        OutputChange::Removed => format!("removed `{name}`"),
        OutputChange::Type => format!("changed the type of `{name}`"),
        OutputChange::Value => format!("changed `{name}`"),
        OutputChange::Sensitivity => format!("changed whether `{name}` is sensitive"),
    };
    if let Some(commit) = output.to_commit {
        text.push_str(&format!(" in commit {commit}"));
    }
    let by = output.by.as_ref().map(|by| format!("by {by}"));
    let at = output.at.map(moment);
    let details: Vec<String> = [by, output.run.clone(), at].into_iter().flatten().collect();
    if !details.is_empty() {
        text.push_str(&format!(" ({})", details.join(", ")));
    }
    text
}

/// Why a unit is as fresh as it is, in about five words.
pub(crate) fn short_reason(eyes: &Eyes<'_>, workspace: &Workspace, freshness: Freshness) -> String {
    let counting = || eyes.state.dependencies_of(workspace.id).filter(|edge| edge.counts());
    let worst = || {
        let edges = counting().map(|edge| (edge, eyes.state.edge_state(edge)));
        edges.filter(|(_, state)| state.freshness() == freshness).min_by_key(|(_, state)| rank(state.status))
    };
    match freshness {
        Freshness::NeverApplied => "has no state yet".to_owned(),
        Freshness::Clean => match counting().count() {
            0 => "uses no other workspace".to_owned(),
            1 => "1 producer, unchanged".to_owned(),
            number => format!("{number} producers, unchanged"),
        },
        Freshness::MayChange => "a plan may change it".to_owned(),
        Freshness::Unknown if !eyes.state.is_examined(workspace) => "not examined yet".to_owned(),
        Freshness::Stale | Freshness::Broken | Freshness::Unknown => {
            let Some((edge, state)) = worst() else { return String::new() };
            let producer = eyes.producer(edge);
            let probably = if state.certain { "" } else { "probably " };
            match (state.status, state.moved.first().filter(|_| eyes.sees_outputs(edge))) {
                (EdgeStatus::Unbound, _) if edge.producer.is_some() => format!("{producer} was never applied"),
                (EdgeStatus::Unbound, _) => format!("{producer} is not here"),
                (EdgeStatus::Unobserved, _) => format!("declared, no read of {producer} seen"),
                (EdgeStatus::Opaque, _) => format!("{producer} cannot be read"),
                (EdgeStatus::Unknown, None) if edge.is_bound_anew() => format!("bound to {producer}, not applied"),
                (_, Some(moved)) => {
                    let verb = match moved.change {
                        OutputChange::Removed => "removed",
                        OutputChange::Added => "added",
                        OutputChange::Type => "retyped",
                        OutputChange::Value | OutputChange::Sensitivity => "changed",
                    };
                    let more = match state.moved.len() {
                        1 => String::new(),
                        number => format!(" and {} more", number - 1),
                    };
                    format!("{producer} {probably}{verb} {}{more}", moved.name)
                }
                (EdgeStatus::Unknown, None) => format!("no proof for {producer}"),
                (_, None) => format!("{producer} {probably}changed"),
            }
        }
    }
}
