//! `taco notification`

use clap::{Args, Subcommand};
use reqwest::Method;
use serde_json::{Value, json};

use super::{done, gone, plain_list, projects, workspaces};
use crate::EXIT_CODES;
use crate::api::{about, one};
use crate::confirmation::Confirmation;
use crate::failure::{Failure, Kind};
use crate::output;
use crate::process_env::ProcessEnv;
use crate::resource::Resource;
use crate::session::{Flags, Session};
use crate::spelling_hints::did_you_mean;

const KIND: &str = "notification-configurations";

/// Manage notifications about runs of a workspace or a project
#[derive(Args, Debug)]
#[command(after_help = format!("\
Examples:
  taco notification create ops --ws acme/network --url https://hooks.example.com/taco --on run:errored
  taco notification create chat --project prod --type slack --url https://hooks.slack.com/services/…
  taco notification create mail --type email --email ops@example.com
  taco notification ls --ws acme/network
  taco notification test ops --ws acme/network

{EXIT_CODES}"))]
pub struct Arguments {
    #[command(flatten)]
    flags: Flags,
    #[command(subcommand)]
    verb: Verb,
}

#[derive(Subcommand, Debug)]
enum Verb {
    /// List notifications, with what was answered last
    Ls {
        #[command(flatten)]
        place: Place,
    },
    /// Create a notification; the destination has to answer a test
    Create {
        /// Name of the notification
        name: String,
        #[command(flatten)]
        place: Place,
        /// generic, slack, microsoft-teams or email
        #[arg(long = "type", value_name = "TYPE", default_value = "generic")]
        destination: String,
        /// Address of the webhook
        #[arg(long, value_name = "URL", required_unless_present = "email")]
        url: Option<String>,
        /// File with the token that signs webhooks
        #[arg(long, value_name = "FILE")]
        token_file: Option<std::path::PathBuf>,
        /// Address that gets email; repeat for several
        #[arg(long, value_name = "ADDRESS")]
        email: Vec<String>,
        /// When to send it, such as run:errored; repeat for several [default: needs_attention, completed and errored]
        #[arg(long = "on", value_name = "TRIGGER")]
        triggers: Vec<String>,
        /// Create it without enabling it: nothing is sent, and no test
        #[arg(long)]
        disabled: bool,
    },
    /// Send a test
    Test {
        /// Notification, by name or ID
        notification: String,
        #[command(flatten)]
        place: Place,
    },
    /// Delete a notification
    Rm {
        /// Notification, by name or ID
        notification: String,
        #[command(flatten)]
        place: Place,
        #[command(flatten)]
        confirmation: Confirmation,
    },
}

/// What the notifications are about.
#[derive(Args, Debug)]
struct Place {
    /// Of all workspaces of this project, by name or ID, and not of one workspace
    #[arg(long, value_name = "PROJECT")]
    project: Option<String>,
}

/// A workspace or a project, as it was found.
struct Holder {
    path: [String; 2],
    name: String,
}

impl Place {
    async fn find(&self, session: &Session) -> Result<Holder, Failure> {
        match &self.project {
            Some(name) => {
                let organization = session.target.organization(None)?;
                let project = projects::find(session, &organization, name).await?;
                let path = ["projects".to_owned(), project.id().to_owned()];
                Ok(Holder { path, name: format!("project {}", project.text("name")) })
            }
            None => {
                let wanted = session.target.workspace(None)?;
                let workspace = workspaces::find(session, &wanted).await?.0;
                let path = ["workspaces".to_owned(), workspace.id().to_owned()];
                Ok(Holder { path, name: wanted.to_string() })
            }
        }
    }
}

impl Holder {
    fn path(&self) -> [&str; 3] {
        [&self.path[0], &self.path[1], KIND]
    }

    async fn all(&self, session: &Session) -> Result<Vec<Resource>, Failure> {
        let subject = format!("notifications of {}", self.name);
        Ok(session.api.list(&subject, &self.path(), &[]).await?.data)
    }

    async fn notification(&self, session: &Session, wanted: &str) -> Result<Resource, Failure> {
        let all = self.all(session).await?;
        let same = |found: &&Resource| found.id() == wanted || found.text("name") == wanted;
        all.iter().find(same).cloned().ok_or_else(|| {
            let names = all.iter().filter_map(|one| one.get("name").as_str());
            Failure::new(Kind::NotFound, format!("notification {wanted}: not found"))
                .because(format!("it is not among those of {}", self.name))
                .hint(did_you_mean(wanted, names, || "`taco notification ls` lists them".to_owned()))
        })
    }
}

pub(crate) async fn run(arguments: &Arguments, process_env: &ProcessEnv) -> Result<(), Failure> {
    let session = Session::open(&arguments.flags, process_env).await?;
    match &arguments.verb {
        Verb::Ls { place } => list(&session, &place.find(&session).await?).await,
        Verb::Create { name, place, destination, url, token_file, email, triggers, disabled } => {
            let token = match token_file {
                Some(file) => Some(read_token(file)?),
                None => None,
            };
            let attributes = json!({
                "name": name,
                "destination-type": destination,
                "enabled": !disabled,
                "url": url,
                "token": token,
                "email-addresses": email,
                "triggers": if triggers.is_empty() { default_triggers() } else { json!(triggers) },
            });
            create(&session, &place.find(&session).await?, name, attributes).await
        }
        Verb::Test { notification, place } => {
            let found = place.find(&session).await?.notification(&session, notification).await?;
            let subject = format!("test of notification {}", found.text("name"));
            let path = [KIND, found.id(), "actions", "verify"];
            let verified = one(session.api.send(&subject, Method::POST, &path, &json!({})).await?)?;
            done(&session, &verified, &format!("Test of notification {} delivered.", found.text("name")))
        }
        Verb::Rm { notification, place, confirmation } => {
            let found = place.find(&session).await?.notification(&session, notification).await?;
            let name = found.text("name");
            confirmation.ask(&session, &format!("delete notification {name}"))?;
            session.api.delete(&format!("notification {name}"), &[KIND, found.id()]).await?;
            gone(&session, found.id(), &format!("Deleted notification {name}."))
        }
    }
}

fn default_triggers() -> Value {
    json!(["run:needs_attention", "run:completed", "run:errored"])
}

/// The token is in a file: other users see a process's flags.
fn read_token(file: &std::path::Path) -> Result<String, Failure> {
    let text = std::fs::read_to_string(file);
    let text = text.map_err(|error| Failure::error(format!("{}: {error}", file.display())))?;
    Ok(text.trim_end_matches(['\n', '\r']).to_owned())
}

async fn list(session: &Session, holder: &Holder) -> Result<(), Failure> {
    let all = holder.all(session).await?;
    if session.json {
        return output::json(&plain_list(&all));
    }
    let row = |one: &Resource| {
        let answer = &one.get("delivery-responses")[0];
        let last = match (answer["successful"].as_str(), answer["code"].as_str()) {
            (Some("true"), _) => "delivered".to_owned(),
            (Some(_), Some(code)) if !code.is_empty() => format!("failed ({code})"),
            (Some(_), _) => "failed".to_owned(),
            (None, _) => String::new(),
        };
        let triggers: Vec<&str> =
            one.get("triggers").as_array().into_iter().flatten().filter_map(Value::as_str).collect();
        [
            output::text(one, "name"),
            one.id().into(),
            output::text(one, "destination-type"),
            output::text(one, "enabled"),
            triggers.join(",").into(),
            last.into(),
        ]
    };
    let if_empty = "No notifications. `taco notification create NAME --url URL` creates one.";
    session.table(["NAME", "NOTIFICATION", "TYPE", "ENABLED", "TRIGGERS", "LAST ANSWER"], all.iter().map(row), if_empty)
}

async fn create(session: &Session, holder: &Holder, name: &str, attributes: Value) -> Result<(), Failure> {
    let body = about(KIND, attributes, json!({}));
    let subject = format!("notification {name} of {}", holder.name);
    let created = one(session.api.send(&subject, Method::POST, &holder.path(), &body).await?)?;
    done(session, &created, &format!("Created notification {name} ({}) of {}.", created.id(), holder.name))
}
