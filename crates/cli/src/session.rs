//! Which server, organization and workspace a command is about.

use clap::Args;

use crate::api::Api;
use crate::cloud_block::{self, CloudBlock};
use crate::credentials;
use crate::failure::Failure;
use crate::host::Host;
use crate::surroundings::Surroundings;
use crate::user_config;

/// Flags of every command that asks a server.
#[derive(Args, Clone, Default, Debug)]
#[command(next_help_heading = "Server")]
pub(crate) struct Flags {
    /// Server to ask [env: TACO_HOST] [default: the one you logged in to, the `cloud` block's, or localhost:8080]
    #[arg(long, global = true, value_name = "HOST")]
    pub(crate) host: Option<String>,
    /// Organization [env: TACO_ORG] [default: the `cloud` block's]
    #[arg(long, global = true, value_name = "NAME")]
    pub(crate) org: Option<String>,
    /// Workspace, also as ORGANIZATION/WORKSPACE [default: the `cloud` block's]
    #[arg(long, global = true, value_name = "NAME")]
    pub(crate) ws: Option<String>,
    /// Print JSON: objects with the API's attribute names
    #[arg(long, global = true)]
    pub(crate) json: bool,
    /// Tell about each request, without tokens
    #[arg(long, global = true)]
    pub(crate) debug: bool,
}

/// A workspace by its names.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct WorkspaceName {
    pub(crate) organization: String,
    pub(crate) name: String,
}

impl std::fmt::Display for WorkspaceName {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(formatter, "{}/{}", self.organization, self.name)
    }
}

/// Where a command acts: what its flags, variables, the user's file and the directory say, in this order.
#[derive(Debug)]
pub(crate) struct Target {
    pub(crate) host: Host,
    organization: Option<String>,
    workspace: Option<String>,
}

impl Target {
    pub(crate) fn find(flags: &Flags, surroundings: &Surroundings) -> Result<Self, Failure> {
        let user = user_config::read(surroundings)?;
        let block = cloud_block::read(&surroundings.directory).unwrap_or_default();
        let variable = |name| surroundings.variable(name).map(str::to_owned);
        let host =
            flags.host.clone().or_else(|| variable("TACO_HOST")).or(user.host).or_else(|| block.hostname.clone());
        let host: Host = host.map_or_else(|| Ok(Host::default()), |text| text.parse())?;
        // A block about another server knows nothing about this one.
        let elsewhere = |name: &String| name.parse::<Host>().is_ok_and(|other| other.name != host.name);
        let block = if block.hostname.as_ref().is_some_and(elsewhere) { CloudBlock::default() } else { block };
        let organization =
            flags.org.clone().or_else(|| variable("TACO_ORG")).or(user.organization).or(block.organization);
        Ok(Self { host, organization, workspace: flags.ws.clone().or(block.workspace) })
    }

    /// The organization that an argument names, or the one that everything else points to.
    pub(crate) fn organization(&self, argument: Option<&str>) -> Result<String, Failure> {
        argument.map(str::to_owned).or_else(|| self.organization.clone()).ok_or_else(|| {
            Failure::usage("no organization is given")
                .because("neither --org nor TACO_ORG names one, nor does a `cloud` block in this directory")
                .hint("add --org NAME; `taco org ls` lists them")
        })
    }

    /// The workspace that an argument names, or the one that everything else points to.
    pub(crate) fn workspace(&self, argument: Option<&str>) -> Result<WorkspaceName, Failure> {
        let given = argument.or(self.workspace.as_deref()).ok_or_else(|| {
            Failure::usage("no workspace is given")
                .because("neither --ws names one, nor does a `cloud` block in this directory")
                .hint("add --ws NAME; `taco ws ls` lists them")
        })?;
        let (organization, name) = match given.split_once('/') {
            Some((organization, name)) => (organization.to_owned(), name),
            None => (self.organization(None)?, given),
        };
        Ok(WorkspaceName { organization, name: name.to_owned() })
    }
}

/// A target, and the way to reach it.
#[derive(Debug)]
pub(crate) struct Session {
    pub(crate) api: Api,
    pub(crate) target: Target,
    pub(crate) json: bool,
}

impl Session {
    pub(crate) fn open(flags: &Flags, surroundings: &Surroundings) -> Result<Self, Failure> {
        let target = Target::find(flags, surroundings)?;
        let token = credentials::token(&target.host, surroundings)?;
        let api = Api::new(target.host.clone(), token, flags.debug)?;
        Ok(Self { api, target, json: flags.json })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn surroundings(directory: &tempfile::TempDir, variables: &[(&str, &str)]) -> Surroundings {
        let home = ("HOME".to_owned(), directory.path().display().to_string());
        let variables = variables.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned()));
        Surroundings { variables: variables.chain([home]).collect(), directory: directory.path().to_owned() }
    }

    fn directory_with_block() -> tempfile::TempDir {
        let directory = tempfile::tempdir().expect("there is room");
        let block = "terraform {\n  cloud {\n    hostname = \"block.example.com\"\n    organization = \"of-block\"\n\
                     workspaces { name = \"network\" }\n  }\n}\n";
        std::fs::write(directory.path().join("main.tf"), block).expect("it is written");
        directory
    }

    #[test]
    fn flags_go_before_variables_before_the_users_file_before_the_cloud_block() {
        let directory = directory_with_block();
        let found = |flags: &Flags, variables: &[(&str, &str)]| {
            let target = Target::find(flags, &surroundings(&directory, variables)).expect("it is found");
            (target.host.name.clone(), target.organization(None).ok())
        };
        let pair = |host: &str, organization: Option<&str>| (host.to_owned(), organization.map(str::to_owned));
        assert_eq!(found(&Flags::default(), &[]), pair("block.example.com", Some("of-block")));
        let file = directory.path().join(".config/taco/cli.toml");
        credentials::replace(&file, b"host = \"user.example.com\"").expect("it is written");
        assert_eq!(found(&Flags::default(), &[]), pair("user.example.com", None), "the block is about another server");
        let variables = [("TACO_HOST", "variable.example.com"), ("TACO_ORG", "of-variable")];
        assert_eq!(found(&Flags::default(), &variables), pair("variable.example.com", Some("of-variable")));
        let flags = Flags { host: Some("h:1".into()), org: Some("o".into()), ..Flags::default() };
        assert_eq!(found(&flags, &variables), pair("h:1", Some("o")));
    }

    #[test]
    fn a_workspace_may_bring_its_organization_along() {
        let directory = directory_with_block();
        let target = Target::find(&Flags::default(), &surroundings(&directory, &[])).expect("it is found");
        assert_eq!(target.workspace(None).expect("it is given").to_string(), "of-block/network");
        assert_eq!(target.workspace(Some("app")).expect("it is given").to_string(), "of-block/app");
        assert_eq!(target.workspace(Some("other/app")).expect("it is given").to_string(), "other/app");
    }

    #[test]
    fn without_a_word_it_is_the_server_on_this_machine() {
        let directory = tempfile::tempdir().expect("there is room");
        let target = Target::find(&Flags::default(), &surroundings(&directory, &[])).expect("it is found");
        assert_eq!(target.host, Host::default());
        assert!(target.organization(None).is_err() && target.workspace(Some("app")).is_err());
    }
}
