//! `taco team access`

use clap::{Args, Subcommand};
use reqwest::Method;
use serde_json::json;

use super::Teams;
use crate::api::{about, one};
use crate::commands::{done, gone, plain_list, projects, workspaces};
use crate::confirmation::Confirmation;
use crate::failure::{Failure, Kind};
use crate::output;
use crate::resource::Resource;

#[derive(Subcommand, Debug)]
pub(super) enum Verb {
    /// List the teams with access to a workspace or a project
    Ls {
        #[command(flatten)]
        place: Place,
    },
    /// Give a team access, or change its role
    Set {
        /// Team, by name or ID
        team: String,
        #[command(flatten)]
        place: Place,
        /// Role: read, plan (workspaces), write, maintain (projects) or admin
        #[arg(long, value_name = "ROLE")]
        role: String,
    },
    /// Take a team's access away
    Rm {
        /// Team, by name or ID
        team: String,
        #[command(flatten)]
        place: Place,
        #[command(flatten)]
        confirmation: Confirmation,
    },
}

/// What there is access to.
#[derive(Args, Debug)]
#[group(required = true, multiple = false)]
pub(super) struct Place {
    /// Workspace
    #[arg(long, value_name = "NAME")]
    workspace: Option<String>,
    /// Project and all its workspaces, by name or ID
    #[arg(long, value_name = "PROJECT")]
    project: Option<String>,
}

/// A place that was found, and how the API spells access to it.
struct Found {
    id: String,
    /// In messages.
    name: String,
    noun: &'static str,
    collection: &'static str,
    plural: &'static str,
}

impl Place {
    async fn find(&self, teams: &Teams<'_>) -> Result<Found, Failure> {
        if let Some(project) = &self.project {
            let found = projects::find(teams.session, teams.organization, project).await?;
            let name = format!("project {}", found.text("name"));
            let id = found.id().to_owned();
            return Ok(Found { id, name, noun: "project", collection: "team-projects", plural: "projects" });
        }
        let given = self.workspace.as_deref().unwrap_or_default();
        let given = if given.contains('/') { given.to_owned() } else { format!("{}/{given}", teams.organization) };
        let name = teams.session.target.workspace(Some(&given))?;
        let id = workspaces::find(teams.session, &name).await?.0.id().to_owned();
        let name = format!("workspace {name}");
        Ok(Found { id, name, noun: "workspace", collection: "team-workspaces", plural: "workspaces" })
    }
}

impl Found {
    async fn accesses(&self, teams: &Teams<'_>) -> Result<Vec<Resource>, Failure> {
        let filter = format!("filter[{}][id]", self.noun);
        let subject = format!("access to {}", self.name);
        Ok(teams.session.api.list(&subject, &[self.collection], &[(filter.as_str(), &self.id)]).await?.data)
    }

    async fn of_team(&self, teams: &Teams<'_>, team: &Resource) -> Result<Option<Resource>, Failure> {
        let accesses = self.accesses(teams).await?;
        Ok(accesses.into_iter().find(|access| access.related_id("team") == Some(team.id())))
    }
}

pub(super) async fn run(teams: &Teams<'_>, verb: &Verb) -> Result<(), Failure> {
    match verb {
        Verb::Ls { place } => list(teams, &place.find(teams).await?).await,
        Verb::Set { team, place, role } => {
            let team = teams.find(team).await?;
            set(teams, &team, &place.find(teams).await?, role).await
        }
        Verb::Rm { team, place, confirmation } => {
            let team = teams.find(team).await?;
            remove(teams, &team, &place.find(teams).await?, confirmation).await
        }
    }
}

async fn list(teams: &Teams<'_>, found: &Found) -> Result<(), Failure> {
    let accesses = found.accesses(teams).await?;
    if teams.session.json {
        return output::json(&plain_list(&accesses));
    }
    let names = teams.all().await?;
    let row = |access: &Resource| {
        let id = access.related_id("team").unwrap_or_default();
        let name = names.iter().find(|team| team.id() == id).map_or_else(|| id.to_owned(), |team| team.text("name"));
        [name, access.text("access"), access.id().to_owned()]
    };
    let if_empty = format!("No team has access to {} of its own. `taco team access set` gives it.", found.name);
    teams.session.table(["TEAM", "ROLE", "ACCESS"], accesses.iter().map(row), if_empty)
}

async fn set(teams: &Teams<'_>, team: &Resource, found: &Found, role: &str) -> Result<(), Failure> {
    let api = &teams.session.api;
    let subject = format!("access of team {} to {}", team.text("name"), found.name);
    let attributes = json!({ "access": role });
    let sent = match found.of_team(teams, team).await? {
        Some(access) => {
            let body = about(found.collection, attributes, json!({}));
            api.send(&subject, Method::PATCH, &[found.collection, access.id()], &body).await?
        }
        None => {
            let related = |kind: &str, id: &str| json!({ "data": { "type": kind, "id": id } });
            let relationships =
                json!({ "team": related("teams", team.id()), found.noun: related(found.plural, &found.id) });
            api.send(&subject, Method::POST, &[found.collection], &about(found.collection, attributes, relationships))
                .await?
        }
    };
    let access = one(sent)?;
    done(teams.session, &access, &format!("Team {} has {role} access to {}.", team.text("name"), found.name))
}

async fn remove(teams: &Teams<'_>, team: &Resource, found: &Found, confirmation: &Confirmation) -> Result<(), Failure> {
    let name = team.text("name");
    let subject = format!("access of team {name} to {}", found.name);
    let access = found.of_team(teams, team).await?.ok_or_else(|| {
        Failure::new(Kind::NotFound, format!("{subject}: not found"))
            .because("the team has no access of its own there")
            .hint(format!("`taco team access ls --{} …` lists who has", found.noun))
    })?;
    confirmation.ask(teams.session, &format!("remove the {} {subject}", access.text("access")))?;
    teams.session.api.delete(&subject, &[found.collection, access.id()]).await?;
    gone(teams.session, access.id(), &format!("Removed {subject}."))
}
