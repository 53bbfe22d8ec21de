//! `taco user`

use clap::{Args, Subcommand};
use reqwest::Method;
use serde_json::{Value, json};

use super::teams::Teams;
use super::{done, gone};
use crate::EXIT_CODES;
use crate::api::{about, one};
use crate::confirmation::Confirmation;
use crate::failure::{Failure, Kind};
use crate::output;
use crate::process_env::ProcessEnv;
use crate::resource::{Document, Resource};
use crate::session::{Flags, Session};
use crate::spelling_hints::did_you_mean;

/// Manage members of an organization and invitations, and suspend users of the site
#[derive(Args, Debug)]
#[command(visible_alias = "member", after_help = format!("\
No mail is sent: pass on the link that `invite` prints.

Examples:
  taco user ls --org acme
  taco user invite jane@acme.example --team operators
  taco user rm jane --yes
  taco user suspend jane

{EXIT_CODES}"))]
pub struct Arguments {
    #[command(flatten)]
    flags: Flags,
    #[command(subcommand)]
    verb: Verb,
}

#[derive(Subcommand, Debug)]
enum Verb {
    /// List members and invitations
    Ls,
    /// Invite someone, and print the link to pass on
    Invite {
        /// Email address
        email: String,
        /// Team to join, by name or ID; repeat for several
        #[arg(long, value_name = "TEAM")]
        team: Vec<String>,
    },
    /// Print a new link for an invitation; the earlier one stops working
    Reinvite {
        /// Email address, or ID of the invitation
        email: String,
    },
    /// Remove a member, or withdraw an invitation
    Rm {
        /// Username, email address or ID of the membership
        user: String,
        #[command(flatten)]
        confirmation: Confirmation,
    },
    /// Suspend a user of the site: their sessions and tokens stop working (site admins only)
    Suspend {
        /// Username, email address or ID
        user: String,
        #[command(flatten)]
        confirmation: Confirmation,
    },
    /// Let a suspended user log in again (site admins only)
    Resume {
        /// Username, email address or ID
        user: String,
    },
}

pub(crate) async fn run(arguments: &Arguments, process_env: &ProcessEnv) -> Result<(), Failure> {
    let session = Session::open(&arguments.flags, process_env).await?;
    let organization = match &arguments.verb {
        // Users of the site belong to no organization.
        Verb::Suspend { .. } | Verb::Resume { .. } => Default::default(),
        _ => session.target.organization(None)?,
    };
    let teams = Teams { session: &session, organization: &organization };
    match &arguments.verb {
        Verb::Ls => list(&teams).await,
        Verb::Invite { email, team } => invite(&teams, email, team).await,
        Verb::Reinvite { email } => {
            let (_, membership) = find(&teams, email).await?;
            let path = ["organization-memberships", membership.id(), "actions", "renew-invitation"];
            let subject = format!("invitation of {email}");
            print_link(&session, &one(session.api.send(&subject, Method::POST, &path, &json!({})).await?)?)
        }
        Verb::Rm { user, confirmation } => remove(&teams, user, confirmation).await,
        Verb::Suspend { user, confirmation } => suspend(&session, user, confirmation).await,
        Verb::Resume { user } => resume(&session, user).await,
    }
}

async fn memberships(teams: &Teams<'_>) -> Result<Document, Failure> {
    let path = ["organizations", teams.organization, "organization-memberships"];
    let subject = format!("members of organization {}", teams.organization);
    teams.session.api.list(&subject, &path, &[("include", "user")]).await
}

fn username(found: &Document, membership: &Resource) -> String {
    found.related(membership, "user").map(|user| user.text("username")).unwrap_or_default()
}

async fn list(teams: &Teams<'_>) -> Result<(), Failure> {
    let found = memberships(teams).await?;
    let all_teams = teams.all().await?;
    let names = |membership: &Resource| -> Vec<String> {
        let name = |id| all_teams.iter().find(|team| team.id() == id).map(|team| team.text("name"));
        membership.related_ids("teams").filter_map(name).collect()
    };
    if teams.session.json {
        let plain = |membership: &Resource| {
            let mut plain = membership.plain();
            plain["username"] = username(&found, membership).into();
            plain["teams"] = names(membership).into();
            plain
        };
        return output::json(&found.data.iter().map(plain).collect());
    }
    let row = |membership: &Resource| {
        let [email, name] = [membership.text("email"), username(&found, membership)];
        let (status, created) = (output::status(membership, "status"), output::time(membership, "created-at"));
        [name.into(), email.into(), status, names(membership).join(", ").into(), created, membership.id().into()]
    };
    let headings = ["USERNAME", "EMAIL", "STATUS", "TEAMS", "SINCE", "MEMBERSHIP"];
    let if_empty = "No members. `taco user invite EMAIL` invites one.";
    teams.session.table(headings, found.data.iter().map(row), if_empty)
}

/// The membership that a username, an address or an id means, and what to call it.
async fn find(teams: &Teams<'_>, word: &str) -> Result<(String, Resource), Failure> {
    let found = memberships(teams).await?;
    let names =
        |membership: &Resource| [username(&found, membership), membership.text("email"), membership.id().to_owned()];
    let same = |membership: &&Resource| names(membership).iter().any(|name| name.eq_ignore_ascii_case(word));
    if let Some(membership) = found.data.iter().find(same) {
        let name = names(membership).into_iter().find(|name| !name.is_empty()).unwrap_or_default();
        return Ok((name, membership.clone()));
    }
    let all: Vec<String> = found.data.iter().flat_map(|membership| names(membership).into_iter().take(2)).collect();
    let list = || format!("`taco user ls --org {}` lists members", teams.organization);
    Err(Failure::new(Kind::NotFound, format!("member {word}: not found"))
        .because(format!("nobody in organization {} has this name or address", teams.organization))
        .hint(did_you_mean(word, all.iter().map(String::as_str).filter(|name| !name.is_empty()), list)))
}

async fn invite(teams: &Teams<'_>, email: &str, names: &[String]) -> Result<(), Failure> {
    let mut wanted = Vec::new();
    for name in names {
        wanted.push(json!({ "type": "teams", "id": teams.find(name).await?.id() }));
    }
    let relationships = json!({ "teams": { "data": wanted } });
    let body = about("organization-memberships", json!({ "email": email }), relationships);
    let path = ["organizations", teams.organization, "organization-memberships"];
    let subject = format!("invitation of {email}");
    print_link(teams.session, &one(teams.session.api.send(&subject, Method::POST, &path, &body).await?)?)
}

/// Prints the link of an invitation, which no later answer has.
fn print_link(session: &Session, membership: &Resource) -> Result<(), Failure> {
    if session.json {
        return output::json(&membership.plain());
    }
    match membership.get("invitation-link") {
        Value::String(link) => {
            if !session.quiet {
                let expires = membership.text("invitation-link-expires-at");
                eprintln!("Invited {}. Send them this link, which works until {expires}:", membership.text("email"));
            }
            output::line(link)
        }
        _ => done(session, membership, &format!("Invited {}.", membership.text("email"))),
    }
}

async fn remove(teams: &Teams<'_>, user: &str, confirmation: &Confirmation) -> Result<(), Failure> {
    let (name, membership) = find(teams, user).await?;
    confirmation.ask(teams.session, &format!("remove {name} from organization {}", teams.organization))?;
    teams.session.api.delete(&format!("member {name}"), &["organization-memberships", membership.id()]).await?;
    gone(teams.session, membership.id(), &format!("Removed {name} from organization {}.", teams.organization))
}

/// The user of the site that a username, an address or an id means.
async fn site_user(session: &Session, word: &str) -> Result<Resource, Failure> {
    let subject = format!("user {word}");
    let found = session.api.list(&subject, &["admin", "users"], &[]).await?.data;
    let names = |user: &Resource| [user.text("username"), user.text("email"), user.id().to_owned()];
    if let Some(user) = found.iter().find(|user| names(user).iter().any(|name| name.eq_ignore_ascii_case(word))) {
        return Ok(user.clone());
    }
    let all: Vec<String> = found.iter().map(|user| user.text("username")).collect();
    Err(Failure::new(Kind::NotFound, format!("{subject}: not found"))
        .because("no user of this server has this name or address")
        .hint(did_you_mean(word, all.iter().map(String::as_str), || {
            "site admins see all users under /app/admin/users".into()
        })))
}

async fn act(session: &Session, user: &Resource, action: &str) -> Result<Resource, Failure> {
    let subject = format!("user {}", user.text("username"));
    let path = ["admin", "users", user.id(), "actions", action];
    one(session.api.send(&subject, Method::POST, &path, &json!({})).await?)
}

async fn suspend(session: &Session, word: &str, confirmation: &Confirmation) -> Result<(), Failure> {
    let user = site_user(session, word).await?;
    let name = user.text("username");
    confirmation.ask(session, &format!("suspend {name}, whose sessions and tokens stop working"))?;
    done(session, &act(session, &user, "suspend").await?, &format!("Suspended {name}."))
}

async fn resume(session: &Session, word: &str) -> Result<(), Failure> {
    let user = site_user(session, word).await?;
    let name = user.text("username");
    done(session, &act(session, &user, "unsuspend").await?, &format!("{name} can log in again."))
}
