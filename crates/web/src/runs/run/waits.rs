//! Reasons why a run does not move, as sentences with links to what it waits for.

use taco_control_plane::RunView;
use taco_domain::Author;
use taco_domain::run_status::RunStatus;
use taco_domain::wait_reason::WaitReason;
use taco_domain::workspace::Workspace;

use crate::badge::Badge;
use crate::navigation::{organization_address, run_address, workspace_address};
use crate::text::{Moment, plain};

/// A sentence, with a link to what it is about.
#[derive(Debug)]
pub(crate) struct Wait {
    pub(crate) words: String,
    pub(crate) link: Option<Link>,
}

#[derive(Debug)]
pub(crate) struct Link {
    pub(crate) name: String,
    pub(crate) address: String,
}

impl Wait {
    pub(crate) fn of(view: &RunView, reason: &WaitReason) -> Self {
        Self::within(view.org.entry().name.as_str(), &view.workspace, reason)
    }

    /// The reason of a run of this workspace.
    pub(crate) fn within(organization: &str, owner: &Workspace, reason: &WaitReason) -> Self {
        let workspace = owner.name.as_str();
        let link = |name: &str, address: String| Some(Link { name: name.to_owned(), address });
        match reason {
            WaitReason::RunAhead { run, status, ahead } => {
                let status = match status {
                    RunStatus::Planned | RunStatus::PlannedAndSaved => "awaiting approval".to_owned(),
                    other => Badge::of_run(*other).word.to_lowercase(),
                };
                let words = match ahead {
                    1 => format!("Waiting for 1 earlier run (currently {status})."),
                    ahead => format!("Waiting for {ahead} earlier runs (currently {status})."),
                };
                Self { words, link: link(&run.to_string(), run_address(organization, workspace, run)) }
            }
            WaitReason::Locked { holder, since, note } => {
                let note = note.as_ref().map(|note| format!(" ({})", plain(note))).unwrap_or_default();
                let words = format!("The workspace is locked by {holder} since {}{note}.", Moment(*since).text());
                let lock = owner.lock.as_ref();
                let link = match lock.map(|lock| lock.holder) {
                    Some(Author::Run(run)) => link("View run", run_address(organization, workspace, run)),
                    _ => link("View workspace", workspace_address(organization, workspace)),
                };
                Self { words, link }
            }
            WaitReason::NoAgent { pool: Some(pool), pool_name } => {
                let name = pool_name.as_deref().unwrap_or("its pool");
                let address = format!("{}/agents/pools/{pool}", organization_address(organization));
                Self { words: format!("No agents online in pool {name}."), link: link("Start one →", address) }
            }
            WaitReason::PoolRefuses { pool, .. } => {
                let address = format!("{}/agents/pools/{pool}", organization_address(organization));
                Self { words: sentence(&reason.in_words()), link: link("View pool", address) }
            }
            WaitReason::PolicyOverride => Self {
                words: "Mandatory policies failed: somebody who may has to override them, or discard the run."
                    .to_owned(),
                link: None,
            },
            WaitReason::Approval => Self { words: "Awaiting approval.".to_owned(), link: None },
            WaitReason::NoAgent { pool: None, .. } | WaitReason::AgentsBusy { .. } | WaitReason::Tasks { .. } => {
                Self { words: sentence(&reason.in_words()), link: None }
            }
        }
    }
}

/// With a capital at its beginning and a point at its end.
pub(crate) fn sentence(words: &str) -> String {
    let mut characters = words.chars();
    let first = characters.next().map(|first| first.to_uppercase().to_string()).unwrap_or_default();
    let end = if words.ends_with('.') { "" } else { "." };
    format!("{first}{}{end}", characters.as_str())
}
