//! `taco team member`

use clap::Subcommand;
use reqwest::Method;
use serde_json::{Value, json};

use super::{Teams, usernames};
use crate::failure::Failure;
use crate::output;

#[derive(Subcommand, Debug)]
pub(super) enum Verb {
    /// List the members of a team
    Ls {
        /// Team, by name or ID
        team: String,
    },
    /// Add members of the organization to a team
    Add {
        /// Team, by name or ID
        team: String,
        /// Usernames
        #[arg(required = true, value_name = "USER")]
        users: Vec<String>,
    },
    /// Remove members from a team
    Rm {
        /// Team, by name or ID
        team: String,
        /// Usernames
        #[arg(required = true, value_name = "USER")]
        users: Vec<String>,
    },
}

pub(super) async fn run(teams: &Teams<'_>, verb: &Verb) -> Result<(), Failure> {
    match verb {
        Verb::Ls { team } => list(teams, team).await,
        Verb::Add { team, users } => change(teams, team, users, Method::POST).await,
        Verb::Rm { team, users } => change(teams, team, users, Method::DELETE).await,
    }
}

async fn list(teams: &Teams<'_>, team: &str) -> Result<(), Failure> {
    let found = teams.find(team).await?;
    let subject = format!("members of team {}", found.text("name"));
    let document = teams.session.api.get(&subject, &["teams", found.id()], &[("include", "users")]).await?;
    if teams.session.json {
        let plain: Value = document
            .included
            .iter()
            .map(|user| json!({ "id": user.id(), "username": user.text("username") }))
            .collect();
        return output::json(&plain);
    }
    let names = usernames(&document);
    let if_empty = format!("No members. `taco team member add {team} USER` adds one.");
    teams.session.table(["USERNAME"], names.into_iter().map(|name| [name]), if_empty)
}

async fn change(teams: &Teams<'_>, team: &str, users: &[String], method: Method) -> Result<(), Failure> {
    let found = teams.find(team).await?;
    let name = found.text("name");
    let data: Value = users.iter().map(|user| json!({ "type": "users", "id": user })).collect();
    let path = ["teams", found.id(), "relationships", "users"];
    let added = method == Method::POST;
    teams.session.api.send(&format!("members of team {name}"), method, &path, &json!({ "data": data })).await?;
    let users_text = users.join(", ");
    let sentence = if added {
        format!("Added {users_text} to team {name}.")
    } else {
        format!("Removed {users_text} from team {name}.")
    };
    crate::commands::tell(teams.session, || json!({ "team": found.id(), "users": users, "added": added }), &sentence)
}
