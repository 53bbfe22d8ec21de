//! `taco state`

mod contents;
mod difference;
mod lock;
mod transfer;
mod versions;

pub(super) use difference::shown;

use std::path::PathBuf;

use clap::{Args, Subcommand};
use serde_json::Value;

use super::workspaces;
use crate::EXIT_CODES;
use crate::api::one;
use crate::confirmation::Confirmation;
use crate::failure::{Failure, Kind};
use crate::process_env::ProcessEnv;
use crate::resource::{Document, Resource};
use crate::session::{Flags, Session, WorkspaceName};
use crate::state_file::StateFile;

/// Inspect, download, upload, compare, roll back and lock states
#[derive(Args, Debug)]
#[command(after_help = format!("\
A VERSION is an id such as sv-4Tk9mXbq7cWvZpHn, a serial such as 12, or `current`.

Examples:
  taco state ls --ws acme/network
  taco state pull > backup.tfstate
  taco state diff 11 12
  taco state rollback 11 --yes
  taco state lock --reason 'moving to another region'

{EXIT_CODES}"))]
pub struct Arguments {
    #[command(flatten)]
    flags: Flags,
    #[command(subcommand)]
    verb: Verb,
}

#[derive(Subcommand, Debug)]
enum Verb {
    /// List the resources in a state
    Ls {
        /// State version
        #[arg(default_value = "current")]
        version: String,
    },
    /// Show a state, or one resource in it
    Show {
        #[arg(help = "Address of a resource, such as aws_instance.web[0]")]
        address: Option<String>,
        /// State version
        #[arg(long, default_value = "current")]
        version: String,
        /// Show sensitive values too
        #[arg(long)]
        sensitive: bool,
        /// Open the state's page in the browser
        #[arg(long, conflicts_with = "address")]
        web: bool,
    },
    /// Download a state, byte by byte
    Pull {
        /// State version
        #[arg(default_value = "current")]
        version: String,
    },
    /// Upload a state from a file
    Push {
        /// File, or `-` for standard input
        file: PathBuf,
        /// Accept a serial that is not higher, or another lineage
        #[arg(long)]
        force: bool,
    },
    /// List all versions, newest first
    Versions,
    /// Compare two versions
    Diff {
        /// Older version [default: the one before NEW]
        old: Option<String>,
        /// Newer version
        #[arg(default_value = "current")]
        new: String,
    },
    /// Roll back: make an older version the current one again
    Rollback {
        /// State version to go back to
        version: String,
        #[command(flatten)]
        confirmation: Confirmation,
    },
    /// Lock the workspace; if it is locked, say who holds the lock
    Lock {
        /// Reason for the lock
        #[arg(long, value_name = "TEXT")]
        reason: Option<String>,
    },
    /// Unlock the workspace
    Unlock {
        /// Unlock even if someone else holds the lock
        #[arg(long)]
        force: bool,
    },
}

pub(crate) async fn run(arguments: &Arguments, process_env: &ProcessEnv) -> Result<(), Failure> {
    let session = Session::open(&arguments.flags, process_env).await?;
    let name = session.target.workspace(None)?;
    let (workspace, beside) = workspaces::find(&session, &name).await?;
    let states = States { session: &session, name, workspace, beside };
    match &arguments.verb {
        Verb::Ls { version } => contents::list(&states, version).await,
        Verb::Show { address: None, version, web, .. } => contents::show(&states, version, *web).await,
        Verb::Show { address: Some(address), version, sensitive, .. } => {
            contents::show_resource(&states, version, address, *sensitive).await
        }
        Verb::Pull { version } => transfer::pull(&states, version).await,
        Verb::Push { file, force } => transfer::push(&states, file, *force).await,
        Verb::Versions => versions::list(&states).await,
        Verb::Diff { old, new } => difference::show(&states, old.as_deref(), new).await,
        Verb::Rollback { version, confirmation } => versions::roll_back(&states, version, confirmation).await,
        Verb::Lock { reason } => lock::lock(&states, reason.as_deref()).await,
        Verb::Unlock { force } => lock::unlock(&states, *force).await,
    }
}

/// The states of one workspace.
struct States<'a> {
    session: &'a Session,
    name: WorkspaceName,
    workspace: Resource,
    /// Response with the resources included with the workspace.
    beside: Document,
}

impl States<'_> {
    fn id(&self) -> &str {
        self.workspace.id()
    }

    fn is_locked(&self) -> bool {
        self.workspace.get("locked") == &Value::Bool(true)
    }

    /// The version that an argument means: an id, a serial, or `current`.
    async fn version(&self, word: &str) -> Result<Resource, Failure> {
        let (api, name) = (&self.session.api, &self.name);
        if word == "current" {
            let path = ["workspaces", self.id(), "current-state-version"];
            return one(api.get(&format!("state of {name}"), &path, &[]).await.map_err(|failure| {
                failure
                    .hint_if(Kind::NotFound, || format!("{name} has no state yet; `taco state push FILE` uploads one"))
            })?);
        }
        let subject = format!("state version {word} of {name}");
        if word.starts_with("sv-") {
            let version = one(api.get(&subject, &["state-versions", word], &[]).await?)?;
            // An id says enough; this catches a slip of the hand between two workspaces.
            return match version.related_id("workspace") {
                Some(owner) if owner != self.id() => Err(Failure::new(Kind::NotFound, format!("{subject}: not found"))
                    .because("it belongs to another workspace")
                    .hint("choose that one with --ws")),
                _ => Ok(version),
            };
        }
        let Ok(serial) = word.parse::<u64>() else {
            return Err(Failure::usage(format!("{word:?} is no state version"))
                .hint("write an id such as sv-4Tk9mXbq7cWvZpHn, a serial such as 12, or `current`"));
        };
        let found = self.versions().await?.into_iter().find(|version| version.get("serial").as_u64() == Some(serial));
        found.ok_or_else(|| {
            Failure::new(Kind::NotFound, format!("{subject}: not found"))
                .because("no version has this serial")
                .hint(format!("`taco state versions --ws {name}` lists them"))
        })
    }

    /// All versions whose content is there, the newest first.
    async fn versions(&self) -> Result<Vec<Resource>, Failure> {
        let path = ["workspaces", self.id(), "state-versions"];
        let subject = format!("state versions of {}", self.name);
        let all = self.session.api.list(&subject, &path, &[]).await?.data;
        Ok(all.into_iter().filter(|version| version.get("status") == "finalized").collect())
    }

    fn subject(&self, version: &Resource) -> String {
        format!("state version {} of {}", version.id(), self.name)
    }

    /// The content of a version.
    async fn bytes(&self, version: &Resource) -> Result<Vec<u8>, Failure> {
        let subject = self.subject(version);
        match version.get("hosted-state-download-url").as_str() {
            Some(address) => self.session.api.download(&subject, address).await,
            None => Err(Failure::error(format!("{subject} has no content"))
                .because(format!("it is {}", version.text("status").replace('_', " ")))),
        }
    }

    /// The content of a version, to look into.
    async fn file(&self, version: &Resource) -> Result<StateFile, Failure> {
        let subject = self.subject(version);
        StateFile::parse(&self.bytes(version).await?, &subject)?.readable(&subject)
    }
}
