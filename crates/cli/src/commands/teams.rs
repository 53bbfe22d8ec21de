//! `taco team`

mod access;
mod members;

use clap::{Args, Subcommand, ValueEnum};
use reqwest::Method;
use serde_json::{Map, Value, json};

use super::{done, given, gone, plain_list, require_change};
use crate::EXIT_CODES;
use crate::api::{about, one};
use crate::confirmation::Confirmation;
use crate::failure::{Failure, Kind};
use crate::output;
use crate::process_env::ProcessEnv;
use crate::resource::{Document, Resource};
use crate::session::{Flags, Session};
use crate::spelling_hints::did_you_mean;

/// Manage teams, their members and what they have access to
#[derive(Args, Debug)]
#[command(after_help = format!("\
Examples:
  taco team create operators --allow manage-workspaces
  taco team member add operators jane
  taco team access set operators --project platform --role write
  taco team access ls --workspace network

{EXIT_CODES}"))]
pub struct Arguments {
    #[command(flatten)]
    flags: Flags,
    #[command(subcommand)]
    verb: Verb,
}

#[derive(Subcommand, Debug)]
enum Verb {
    /// List teams
    Ls,
    /// Show a team and its members
    Show {
        /// Team, by name or ID
        team: String,
    },
    /// Create a team
    Create {
        /// Name of the team
        name: String,
        #[command(flatten)]
        settings: Settings,
    },
    /// Edit a team
    Edit {
        /// Team, by name or ID
        team: String,
        /// New name
        #[arg(long, value_name = "NAME")]
        name: Option<String>,
        #[command(flatten)]
        settings: Settings,
        /// Organization right to take away; repeat for several
        #[arg(long, value_name = "RIGHT", value_parser = rights())]
        deny: Vec<String>,
    },
    /// Delete a team; its members lose what it gave them
    Rm {
        /// Team, by name or ID
        team: String,
        #[command(flatten)]
        confirmation: Confirmation,
    },
    /// Add and remove members
    #[command(subcommand, visible_alias = "members")]
    Member(members::Verb),
    /// List, set and remove access to workspaces and projects
    #[command(subcommand)]
    Access(access::Verb),
}

/// Rights in the whole organization, with their names on the wire.
const RIGHTS: [&str; 16] = [
    "manage-policies",
    "manage-policy-overrides",
    "delegate-policy-overrides",
    "manage-workspaces",
    "manage-vcs-settings",
    "manage-providers",
    "manage-modules",
    "manage-run-tasks",
    "manage-projects",
    "read-workspaces",
    "read-projects",
    "manage-membership",
    "manage-teams",
    "manage-organization-access",
    "access-secret-teams",
    "manage-agent-pools",
];

fn rights() -> clap::builder::PossibleValuesParser {
    RIGHTS.into()
}

#[derive(Args, Debug)]
struct Settings {
    /// Who sees the team
    #[arg(long, value_enum, value_name = "WHO")]
    visibility: Option<Visibility>,
    /// Right in the whole organization; repeat for several
    #[arg(long, value_name = "RIGHT", value_parser = rights())]
    allow: Vec<String>,
}

#[derive(Clone, Copy, ValueEnum, Debug)]
enum Visibility {
    /// Its members, and those who manage teams
    Secret,
    /// All members of the organization
    Organization,
}

impl From<Visibility> for Value {
    fn from(visibility: Visibility) -> Self {
        match visibility {
            Visibility::Secret => "secret",
            Visibility::Organization => "organization",
        }
        .into()
    }
}

impl Settings {
    fn attributes(&self, name: Option<&String>, deny: &[String]) -> Map<String, Value> {
        let allowed = self.allow.iter().map(|right| (right.clone(), Value::from(true)));
        let access: Map<String, Value> =
            deny.iter().map(|right| (right.clone(), false.into())).chain(allowed).collect();
        given([
            ("name", name.cloned().map(Value::from)),
            ("visibility", self.visibility.map(Value::from)),
            ("organization-access", Some(access).filter(|access| !access.is_empty()).map(Value::from)),
        ])
    }
}

pub(crate) async fn run(arguments: &Arguments, process_env: &ProcessEnv) -> Result<(), Failure> {
    let session = Session::open(&arguments.flags, process_env).await?;
    let organization = session.target.organization(None)?;
    let teams = Teams { session: &session, organization: &organization };
    match &arguments.verb {
        Verb::Ls => teams.list().await,
        Verb::Show { team } => teams.show(team).await,
        Verb::Create { name, settings } => teams.create(name, settings).await,
        Verb::Edit { team, name, settings, deny } => teams.edit(team, settings.attributes(name.as_ref(), deny)).await,
        Verb::Rm { team, confirmation } => teams.remove(team, confirmation).await,
        Verb::Member(verb) => members::run(&teams, verb).await,
        Verb::Access(verb) => access::run(&teams, verb).await,
    }
}

/// The teams of an organization.
pub(super) struct Teams<'a> {
    pub(super) session: &'a Session,
    pub(super) organization: &'a str,
}

impl Teams<'_> {
    fn path(&self) -> [&str; 3] {
        ["organizations", self.organization, "teams"]
    }

    pub(super) async fn all(&self) -> Result<Vec<Resource>, Failure> {
        let subject = format!("teams of organization {}", self.organization);
        Ok(self.session.api.list(&subject, &self.path(), &[]).await?.data)
    }

    pub(super) async fn find(&self, team: &str) -> Result<Resource, Failure> {
        let all = self.all().await?;
        let same = |found: &&Resource| found.id() == team || found.text("name").eq_ignore_ascii_case(team);
        all.iter().find(same).cloned().ok_or_else(|| {
            let names = all.iter().filter_map(|one| one.get("name").as_str());
            let list = || format!("`taco team ls --org {}` lists teams", self.organization);
            Failure::new(Kind::NotFound, format!("team {team}: not found"))
                .because(format!("it is not in organization {}, or your account may not see it", self.organization))
                .hint(did_you_mean(team, names, list))
        })
    }

    async fn list(&self) -> Result<(), Failure> {
        let teams = self.all().await?;
        if self.session.json {
            return output::json(&plain_list(&teams));
        }
        let row = |team: &Resource| {
            let [name, members, visibility] = ["name", "users-count", "visibility"].map(|name| team.text(name));
            [name, team.id().to_owned(), members, visibility, rights_of(team)]
        };
        let if_empty = "No teams. `taco team create NAME` creates one.";
        self.session.table(["NAME", "ID", "MEMBERS", "VISIBILITY", "RIGHTS"], teams.iter().map(row), if_empty)
    }

    async fn show(&self, team: &str) -> Result<(), Failure> {
        let id = self.find(team).await?.id().to_owned();
        let found = self.session.api.get(&format!("team {team}"), &["teams", &id], &[("include", "users")]).await?;
        let members = usernames(&found);
        let team = one(found)?;
        if self.session.json {
            let mut plain = team.plain();
            plain["members"] = members.into();
            return output::json(&plain);
        }
        self.session.fields([
            ("name", output::text(&team, "name")),
            ("id", team.id().into()),
            ("organization", self.organization.into()),
            ("visibility", output::text(&team, "visibility")),
            ("rights", rights_of(&team).into()),
            ("members", members.join(", ").into()),
        ])
    }

    async fn create(&self, name: &str, settings: &Settings) -> Result<(), Failure> {
        let body = about("teams", settings.attributes(Some(&name.to_owned()), &[]).into(), json!({}));
        let sent = self.session.api.send(&format!("team {name}"), Method::POST, &self.path(), &body).await?;
        let team = one(sent)?;
        done(self.session, &team, &format!("Created team {name} ({}).", team.id()))
    }

    async fn edit(&self, team: &str, attributes: Map<String, Value>) -> Result<(), Failure> {
        require_change(&attributes, &Map::new())?;
        let id = self.find(team).await?.id().to_owned();
        let body = about("teams", attributes.into(), json!({}));
        let sent = self.session.api.send(&format!("team {team}"), Method::PATCH, &["teams", &id], &body).await?;
        let changed = one(sent)?;
        done(self.session, &changed, &format!("Updated team {}.", changed.text("name")))
    }

    async fn remove(&self, team: &str, confirmation: &Confirmation) -> Result<(), Failure> {
        let found = self.find(team).await?;
        let name = found.text("name");
        confirmation.ask(self.session, &format!("delete team {name} of {}", self.organization))?;
        self.session.api.delete(&format!("team {name}"), &["teams", found.id()]).await?;
        gone(self.session, found.id(), &format!("Deleted team {name}."))
    }
}

fn usernames(found: &Document) -> Vec<String> {
    let mut names: Vec<String> = found.included.iter().map(|user| user.text("username")).collect();
    names.sort();
    names
}

/// Names of the rights that a team has in the whole organization.
fn rights_of(team: &Resource) -> String {
    let access = team.get("organization-access").as_object().into_iter().flatten();
    let given = access.filter(|(_, given)| **given == Value::Bool(true)).map(|(name, _)| name.as_str());
    given.collect::<Vec<_>>().join(", ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rights_are_given_and_taken_by_name() {
        let settings = Settings { visibility: Some(Visibility::Secret), allow: vec!["manage-teams".into()] };
        let expected = json!({
            "visibility": "secret", "organization-access": { "manage-teams": true, "manage-modules": false },
        });
        assert_eq!(Value::from(settings.attributes(None, &["manage-modules".into()])), expected);
    }
}
