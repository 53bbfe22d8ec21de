//! `taco token`

use clap::{Args, Subcommand};
use jiff::Timestamp;
use reqwest::Method;
use serde_json::{Value, json};

use super::teams::Teams;
use super::{given, gone, plain_list, text};
use crate::EXIT_CODES;
use crate::api::{about, one};
use crate::confirmation::Confirmation;
use crate::failure::Failure;
use crate::output;
use crate::process_env::ProcessEnv;
use crate::resource::Resource;
use crate::session::{Flags, Session};
use crate::time_text;

/// Manage API tokens: your own, those of teams and of the organization
#[derive(Args, Debug)]
#[command(after_help = format!("\
Tokens of agents are in `taco pool token`.

Examples:
  taco token ls
  taco token create --description laptop --expires 90d
  taco token create --team operators > token
  taco token revoke at-4Tk9mXbq7cWvZpHn --yes

{EXIT_CODES}"))]
pub struct Arguments {
    #[command(flatten)]
    flags: Flags,
    #[command(subcommand)]
    verb: Verb,
}

#[derive(Subcommand, Debug)]
enum Verb {
    /// List tokens, without their secrets
    Ls {
        #[command(flatten)]
        holder: Holder,
    },
    /// Create a token and print it; it is shown once
    Create {
        #[command(flatten)]
        holder: Holder,
        /// What uses it
        #[arg(long, value_name = "TEXT")]
        description: Option<String>,
        /// When it expires: in 12h or 90d, or at 2027-01-31T00:00:00Z [default: as the server says]
        #[arg(long, value_name = "TIME", value_parser = expiry)]
        expires: Option<Timestamp>,
        #[command(flatten)]
        confirmation: Confirmation,
    },
    /// Revoke a token of any kind
    Revoke {
        /// ID of the token, such as at-4Tk9mXbq7cWvZpHn
        token: String,
        #[command(flatten)]
        confirmation: Confirmation,
    },
}

/// Whose tokens they are; without a flag, your own.
#[derive(Args, Debug)]
#[group(multiple = false)]
struct Holder {
    /// Tokens of a team, by name or ID
    #[arg(long, value_name = "TEAM")]
    team: Option<String>,
    /// The organization's own token
    #[arg(long)]
    organization: bool,
    /// The token that reads the organization's audit log
    #[arg(long)]
    audit_log: bool,
}

/// A time from now, or a point in time.
pub(super) fn expiry(text: &str) -> Result<Timestamp, String> {
    let now = time_text::now();
    time_text::distance(text)
        .and_then(|distance| now.checked_add(distance).ok())
        .or_else(|| text.parse().ok())
        .ok_or_else(|| "write it as 12h, 90d or 2027-01-31T00:00:00Z".to_owned())
}

impl Holder {
    /// Value of `token=` for the tokens of which an organization has one.
    fn single(&self) -> Option<&'static str> {
        match (self.organization, self.audit_log) {
            (true, _) => Some("organization"),
            (_, true) => Some("audit-trails"),
            _ => None,
        }
    }
}

pub(crate) async fn run(arguments: &Arguments, process_env: &ProcessEnv) -> Result<(), Failure> {
    let session = Session::open(&arguments.flags, process_env).await?;
    match &arguments.verb {
        Verb::Ls { holder } => list(&session, holder).await,
        Verb::Create { holder, description, expires, confirmation } => {
            let expires = expires.map(|time| Value::from(time.to_string()));
            let attributes: Value = given([("description", text(description)), ("expired-at", expires)]).into();
            create(&session, holder, &about("authentication-tokens", attributes, json!({})), confirmation).await
        }
        Verb::Revoke { token, confirmation } => {
            confirmation.ask(&session, &format!("revoke token {token}"))?;
            session.api.delete(&format!("token {token}"), &["authentication-tokens", token]).await?;
            gone(&session, token, &format!("Revoked token {token}."))
        }
    }
}

async fn own_id(session: &Session) -> Result<String, Failure> {
    Ok(one(session.api.get("your account", &["account", "details"], &[]).await?)?.id().to_owned())
}

/// The token of which an organization has one; none if there is none yet.
async fn single(session: &Session, organization: &str, kind: &str) -> Result<Option<Resource>, Failure> {
    let path = ["organizations", organization, "authentication-token"];
    let subject = format!("token of organization {organization}");
    match session.api.get(&subject, &path, &[("token", kind)]).await {
        Ok(found) => Ok(found.data.into_iter().next()),
        Err(failure) if failure.kind == crate::failure::Kind::NotFound && !failure.is_about_login() => Ok(None),
        Err(failure) => Err(failure),
    }
}

async fn list(session: &Session, holder: &Holder) -> Result<(), Failure> {
    let tokens = if let Some(kind) = holder.single() {
        single(session, &session.target.organization(None)?, kind).await?.into_iter().collect()
    } else if let Some(team) = &holder.team {
        let organization = session.target.organization(None)?;
        let teams = Teams { session, organization: &organization };
        let team = teams.find(team).await?;
        let path = ["organizations", &organization, "team-tokens"];
        let all = session.api.list(&format!("tokens of team {}", team.text("name")), &path, &[]).await?.data;
        all.into_iter().filter(|token| token.related_id("team") == Some(team.id())).collect()
    } else {
        let user = own_id(session).await?;
        session.api.list("your tokens", &["users", &user, "authentication-tokens"], &[]).await?.data
    };
    if session.json {
        return output::json(&plain_list(&tokens));
    }
    let row = |token: &Resource| {
        let [created, used, expires] =
            ["created-at", "last-used-at", "expired-at"].map(|attribute| output::time(token, attribute));
        [token.id().into(), created, used, expires, output::text(token, "description")]
    };
    let if_empty = "No tokens. `taco token create` creates one.";
    session.table(["TOKEN", "CREATED", "LAST USED", "EXPIRES", "DESCRIPTION"], tokens.iter().map(row), if_empty)
}

async fn create(session: &Session, holder: &Holder, body: &Value, confirmation: &Confirmation) -> Result<(), Failure> {
    let sent = if let Some(kind) = holder.single() {
        let organization = session.target.organization(None)?;
        if single(session, &organization, kind).await?.is_some() {
            confirmation
                .ask(session, &format!("replace the token of organization {organization}, which stops working"))?;
        }
        let path = ["organizations", &organization, "authentication-token"];
        let subject = format!("token of organization {organization}");
        session.api.send_with_query(&subject, Method::POST, &path, &[("token", kind)], body).await?
    } else if let Some(team) = &holder.team {
        let organization = session.target.organization(None)?;
        let team = Teams { session, organization: &organization }.find(team).await?;
        let subject = format!("token of team {}", team.text("name"));
        session.api.send(&subject, Method::POST, &["teams", team.id(), "authentication-tokens"], body).await?
    } else {
        let user = own_id(session).await?;
        session.api.send("your token", Method::POST, &["users", &user, "authentication-tokens"], body).await?
    };
    let token = one(sent)?;
    // Nothing else, so that it can be written to a file.
    if session.json { output::json(&token.plain()) } else { output::line(&token.text("token")) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_expiry_is_a_distance_or_a_date() {
        let now = time_text::now();
        let in_days = |text: &str| expiry(text).ok().map(|time| (time.as_second() - now.as_second() + 5) / 86_400);
        assert_eq!((in_days("90d"), in_days("48h")), (Some(90), Some(2)));
        let date = expiry("2027-01-31T00:00:00Z").expect("a date");
        assert_eq!(date.to_string(), "2027-01-31T00:00:00Z");
        assert!(expiry("soon").is_err() && expiry("d").is_err() && expiry("99999999999999d").is_err());
    }
}
