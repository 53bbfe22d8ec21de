//! `taco retention`

use clap::{Args, Subcommand};
use reqwest::Method;
use serde_json::{Value, json};

use super::{done, gone, workspaces};
use crate::EXIT_CODES;
use crate::api::{about, one};
use crate::confirmation::Confirmation;
use crate::failure::{Failure, Kind};
use crate::output;
use crate::process_env::ProcessEnv;
use crate::session::{Flags, Session};

const DELETE_OLDER: &str = "data-retention-policy-delete-olders";
const DONT_DELETE: &str = "data-retention-policy-dont-deletes";

/// Manage for how long old states and configurations are kept
#[derive(Args, Debug)]
#[command(after_help = format!("\
Days count from the moment when something newer took the place of a state or a configuration. What is current is never deleted.

Examples:
  taco retention preview --ws acme/network --days 90
  taco retention set 90 --ws acme/network
  taco retention set 365 --all-workspaces --org acme
  taco retention hold --ws acme/network

{EXIT_CODES}"))]
pub struct Arguments {
    #[command(flatten)]
    flags: Flags,
    #[command(subcommand)]
    verb: Verb,
}

#[derive(Subcommand, Debug)]
enum Verb {
    /// Show the policy
    Show {
        #[command(flatten)]
        place: Place,
    },
    /// Delete data so many days after it was replaced
    Set {
        /// Days, at least 1
        days: i64,
        #[command(flatten)]
        place: Place,
        #[command(flatten)]
        confirmation: Confirmation,
    },
    /// Keep everything, whatever the organization's policy says
    Hold {
        #[command(flatten)]
        place: Place,
    },
    /// Remove the policy
    Rm {
        #[command(flatten)]
        place: Place,
    },
    /// List what would be deleted now; nothing is
    Preview {
        /// Days of a policy that is not set yet [default: the policy that holds]
        #[arg(long, value_name = "DAYS")]
        days: Option<i64>,
    },
}

/// Whose policy it is.
#[derive(Args, Debug)]
struct Place {
    /// Of all workspaces of the organization that have no policy of their own, and not of one workspace
    #[arg(long)]
    all_workspaces: bool,
}

/// A workspace or an organization, as it was found.
struct Owner {
    path: [String; 2],
    name: String,
}

impl Owner {
    async fn workspace(session: &Session) -> Result<Self, Failure> {
        let wanted = session.target.workspace(None)?;
        let workspace = workspaces::find(session, &wanted).await?.0;
        Ok(Self { path: ["workspaces".to_owned(), workspace.id().to_owned()], name: wanted.to_string() })
    }

    fn policy(&self) -> [&str; 4] {
        [&self.path[0], &self.path[1], "relationships", "data-retention-policy"]
    }
}

impl Place {
    async fn find(&self, session: &Session) -> Result<Owner, Failure> {
        if !self.all_workspaces {
            return Owner::workspace(session).await;
        }
        let organization = session.target.organization(None)?;
        let path = ["organizations".to_owned(), organization.clone()];
        Ok(Owner { path, name: format!("organization {organization}") })
    }
}

pub(crate) async fn run(arguments: &Arguments, process_env: &ProcessEnv) -> Result<(), Failure> {
    let session = Session::open(&arguments.flags, process_env).await?;
    match &arguments.verb {
        Verb::Show { place } => show(&session, &place.find(&session).await?).await,
        Verb::Set { days, place, confirmation } => {
            let owner = place.find(&session).await?;
            let name = &owner.name;
            confirmation.ask(&session, &format!("delete data of {name} for good {days} days after it was replaced"))?;
            let body = about(DELETE_OLDER, json!({ "delete-older-than-n-days": days }), json!({}));
            set(&session, &owner, &body, &format!("Data of {name} is deleted {days} days after it was replaced.")).await
        }
        Verb::Hold { place } => {
            let owner = place.find(&session).await?;
            let body = about(DONT_DELETE, json!({}), json!({}));
            set(&session, &owner, &body, &format!("{} keeps everything.", owner.name)).await
        }
        Verb::Rm { place } => {
            let owner = place.find(&session).await?;
            session.api.delete(&format!("retention policy of {}", owner.name), &owner.policy()).await?;
            gone(&session, &owner.path[1], &format!("Removed the retention policy of {}.", owner.name))
        }
        Verb::Preview { days } => preview(&session, &Owner::workspace(&session).await?, *days).await,
    }
}

async fn set(session: &Session, owner: &Owner, body: &Value, sentence: &str) -> Result<(), Failure> {
    let subject = format!("retention policy of {}", owner.name);
    let policy = one(session.api.send(&subject, Method::POST, &owner.policy(), body).await?)?;
    done(session, &policy, sentence)
}

async fn show(session: &Session, owner: &Owner) -> Result<(), Failure> {
    let subject = format!("retention policy of {}", owner.name);
    match session.api.get(&subject, &owner.policy(), &[]).await {
        Ok(document) => {
            let policy = one(document)?;
            if session.json {
                return output::json(&policy.plain());
            }
            let sentence = match policy.get("delete-older-than-n-days").as_i64() {
                Some(days) => format!("Data of {} is deleted {days} days after it was replaced.", owner.name),
                None => format!("{} keeps everything.", owner.name),
            };
            output::line(&sentence)
        }
        Err(failure) => Err(failure.hint_if(Kind::NotFound, || {
            "`taco retention set DAYS` sets one; without any, everything is kept".to_owned()
        })),
    }
}

async fn preview(session: &Session, owner: &Owner, days: Option<i64>) -> Result<(), Failure> {
    let days = days.map(|days| days.to_string());
    let query: Vec<(&str, &str)> = days.iter().map(|days| ("delete-older-than-n-days", days.as_str())).collect();
    let path = [owner.path[0].as_str(), owner.path[1].as_str(), "data-retention-preview"];
    let subject = format!("data of {}", owner.name);
    let found = one(session.api.get(&subject, &path, &query).await?)?;
    if session.json {
        return output::json(&found.plain());
    }
    let states = found.related_ids("state-versions").map(|id| ["state", id]);
    let configurations = found.related_ids("configuration-versions").map(|id| ["configuration", id]);
    let rows: Vec<[&str; 2]> = states.chain(configurations).collect();
    session.table(["KIND", "ID"], rows.into_iter(), "Nothing would be deleted.")
}
