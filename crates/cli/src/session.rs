//! Server, organization and workspace that a command is about.

use std::fmt;
use std::io::{self, IsTerminal};
use std::path::PathBuf;
use std::time::Duration;

use clap::Args;

use crate::api::Api;
use crate::cloud_block::{self, CloudBlock};
use crate::colour::Painter;
use crate::credentials::{self, Token};
use crate::failure::Failure;
use crate::host::Host;
use crate::local::{self, BucketChoice, Doors, LOCAL_HOST};
use crate::output_flags::OutputFlags;
use crate::print::Screen;
use crate::process_env::ProcessEnv;
use crate::project_config::{self, ProjectConfig};
use crate::user_config;

/// Flags of every command that asks a server.
#[derive(Args, Clone, Default, Debug)]
#[command(next_help_heading = "Server")]
pub(crate) struct Flags {
    /// Server [env: TACO_HOST] [default: of .taco.toml, your login, the `cloud` block, or localhost:8080]
    #[arg(long, global = true, value_name = "HOST")]
    pub(crate) host: Option<String>,
    /// Organization [env: TACO_ORG] [default: of .taco.toml or the `cloud` block]
    #[arg(long, global = true, value_name = "NAME")]
    pub(crate) org: Option<String>,
    /// Workspace, or ORGANIZATION/WORKSPACE [default: of .taco.toml or the `cloud` block]
    #[arg(long, global = true, value_name = "NAME")]
    pub(crate) ws: Option<String>,
    #[command(flatten)]
    pub(crate) output: OutputFlags,
}

/// Interval of asking a server in this process.
const LOCAL_POLL_INTERVAL: Duration = Duration::from_millis(25);

/// A workspace by its names.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct WorkspaceName {
    pub(crate) organization: String,
    pub(crate) name: String,
}

impl fmt::Display for WorkspaceName {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{}/{}", self.organization, self.name)
    }
}

/// Source of the choice of the server.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) enum ChosenBy {
    Flag,
    Variable,
    /// `TACO_BUCKET`
    BucketVariable,
    Login,
    /// A file that may have come with a repository.
    ProjectFile(PathBuf),
    CloudBlock,
    /// The one server in terraform's credentials file.
    Credentials,
    Nobody,
}

impl ChosenBy {
    /// True if the author of the files in this directory has chosen it, and not the user who types the command.
    pub(crate) fn is_the_directory(&self) -> bool {
        matches!(self, Self::ProjectFile(_) | Self::CloudBlock)
    }
}

impl fmt::Display for ChosenBy {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Flag => formatter.write_str("the command line"),
            Self::Variable => formatter.write_str("TACO_HOST"),
            Self::BucketVariable => formatter.write_str("TACO_BUCKET"),
            Self::Login => formatter.write_str("your last login"),
            Self::ProjectFile(file) => write!(formatter, "{}", file.display()),
            Self::CloudBlock => formatter.write_str("the `cloud` block in this directory"),
            Self::Credentials => formatter.write_str("the only login in ~/.terraform.d/credentials.tfrc.json"),
            Self::Nobody => formatter.write_str("the default"),
        }
    }
}

/// Place where a command finds its server.
enum Place {
    Host(String),
    Bucket(BucketChoice),
}

/// Target of a command, from its flags, variables, the directory's `.taco.toml`, the user's file and the directory's
/// `cloud` block, in this order. A bucket in `TACO_BUCKET` counts where nothing names a server.
#[derive(Debug)]
pub(crate) struct Target {
    /// Server; of a bucket that is not served yet only the name.
    pub(crate) host: Host,
    /// Bucket that the command serves itself.
    pub(crate) bucket: Option<BucketChoice>,
    pub(crate) chosen_by: ChosenBy,
    /// Directory of the `.taco.toml` that counts here.
    pub(crate) project: Option<PathBuf>,
    organization: Option<String>,
    workspace: Option<String>,
}

impl Target {
    pub(crate) fn find(flags: &Flags, process_env: &ProcessEnv) -> Result<Self, Failure> {
        let user = user_config::read(process_env)?;
        let (file, project) = project_config::read(&process_env.directory)?.unwrap_or_default();
        let directory = file.parent().map(std::path::Path::to_owned);
        let block = cloud_block::read(&process_env.directory).unwrap_or_default();
        let variable = |name| process_env.variable(name).map(str::to_owned);
        let of_variable = variable("TACO_BUCKET").map(|url| BucketChoice::of_user(&url));
        let says = |chosen_by: ChosenBy| move |host: String| (Place::Host(host), chosen_by);
        let of_project = match (&project.host, &project.bucket) {
            (Some(host), _) => Some((Place::Host(host.clone()), ChosenBy::ProjectFile(file))),
            (None, Some(text)) => Some(match of_variable.clone() {
                Some(bucket) => (Place::Bucket(bucket), ChosenBy::BucketVariable),
                None => {
                    let (endpoint, region) = (project.s3_endpoint.clone(), project.s3_region.clone());
                    let bucket = BucketChoice::of_file(&file, text, endpoint, region);
                    (Place::Bucket(bucket), ChosenBy::ProjectFile(file))
                }
            }),
            (None, None) => None,
        };
        // A configuration may read other workspaces of its bucket under this name.
        let block_host = block.hostname.clone().filter(|name| name != LOCAL_HOST);
        let chosen = (flags.host.clone().map(says(ChosenBy::Flag)))
            .or_else(|| variable("TACO_HOST").map(says(ChosenBy::Variable)))
            .or(of_project)
            .or_else(|| user.host.map(says(ChosenBy::Login)))
            .or_else(|| block_host.map(says(ChosenBy::CloudBlock)))
            .or_else(|| of_variable.map(|bucket| (Place::Bucket(bucket), ChosenBy::BucketVariable)));
        let (host, bucket, chosen_by) = match chosen {
            Some((Place::Host(text), chosen_by)) => (text.parse()?, None, chosen_by),
            Some((Place::Bucket(bucket), chosen_by)) => (Host::local(), Some(bucket), chosen_by),
            None => match credentials::only_host(process_env) {
                Some(host) => (host, None, ChosenBy::Credentials),
                None => (Host::default(), None, ChosenBy::Nobody),
            },
        };
        // What is about another server knows nothing about this one.
        let elsewhere = |name: &String| name.parse::<Host>().is_ok_and(|other| other.name != host.name);
        let project = if project.host.as_ref().is_some_and(elsewhere) { ProjectConfig::default() } else { project };
        let block = if block.hostname.as_ref().is_some_and(elsewhere) { CloudBlock::default() } else { block };
        // Everyone who uses a bucket finds the same organization in it, whatever their last login was to.
        let of_user = match bucket {
            Some(_) => None,
            None => user.organization,
        };
        let of_bucket = bucket.as_ref().map(|_| local::DEFAULT_ORGANIZATION.to_owned());
        let organization = (flags.org.clone())
            .or_else(|| variable("TACO_ORG"))
            .or(project.organization)
            .or(of_user)
            .or(block.organization)
            .or(of_bucket);
        let workspace = flags.ws.clone().or(project.workspace).or(block.workspace);
        Ok(Self { host, bucket, chosen_by, project: directory, organization, workspace })
    }

    /// The organization that an argument names, or the one that everything else points to.
    pub(crate) fn organization(&self, argument: Option<&str>) -> Result<String, Failure> {
        argument.map(str::to_owned).or_else(|| self.organization.clone()).ok_or_else(|| {
            Failure::usage("no organization is given")
                .because(
                    "neither --org nor TACO_ORG names one, nor does .taco.toml or a `cloud` block in this directory",
                )
                .hint("add --org NAME; `taco org ls` lists them")
        })
    }

    /// The workspace that an argument names, or the one that everything else points to.
    pub(crate) fn workspace(&self, argument: Option<&str>) -> Result<WorkspaceName, Failure> {
        let given = argument.or(self.workspace.as_deref()).ok_or_else(|| {
            Failure::usage("no workspace is given")
                .because("neither --ws names one, nor does .taco.toml or a `cloud` block in this directory")
                .hint("add --ws NAME; `taco ws ls` lists them")
        })?;
        let (organization, name) = match given.split_once('/') {
            Some((organization, name)) => (organization.to_owned(), name),
            None => (self.organization(None)?, given),
        };
        Ok(WorkspaceName { organization, name: name.to_owned() })
    }
}

/// A target, the way to reach it, and how to tell of it.
#[derive(Debug)]
pub(crate) struct Session {
    pub(crate) api: Api,
    pub(crate) target: Target,
    pub(crate) json: bool,
    pub(crate) quiet: bool,
    /// Standard output.
    pub(crate) screen: Screen,
    /// Standard error.
    pub(crate) painter_of_errors: Painter,
    /// True if there must be no prompts.
    pub(crate) no_input: bool,
}

impl Session {
    /// True if there is a person at the terminal who may be asked.
    pub(crate) fn may_ask(&self) -> bool {
        !self.no_input && is_terminal()
    }

    /// The server and how to reach it. Where a bucket is the target, its server runs in this process when this returns.
    pub(crate) async fn open(flags: &Flags, process_env: &ProcessEnv) -> Result<Self, Failure> {
        Self::open_with(flags, process_env, Doors::OfCommand).await
    }

    /// The same, where the server of a bucket is for others too.
    pub(crate) async fn open_with(flags: &Flags, process_env: &ProcessEnv, doors: Doors) -> Result<Self, Failure> {
        let mut target = Target::find(flags, process_env)?;
        let output = &flags.output;
        let token = match &target.bucket {
            None => credentials::token(&target, process_env)?,
            Some(bucket) => {
                let may_ask = !output.no_input && is_terminal();
                let served = local::serve(bucket, doors, may_ask, process_env).await?;
                target.host = target.host.at_address(&served.address)?;
                Some(Token { text: served.token, source: "this command".to_owned() })
            }
        };
        if output.shows_target() {
            let with = token.as_ref().map_or("no token".to_owned(), |token| format!("the token of {}", token.source));
            let place = match &target.bucket {
                Some(bucket) => format!("the bucket {bucket}, served by this command"),
                None => target.host.address.to_string(),
            };
            eprintln!("Asks {place} ({}) with {with}.", target.chosen_by);
        }
        let api = Api::new(target.host.clone(), token.map(|token| token.text), output.shows_requests())?;
        let (json, quiet, screen) = (output.json, output.quiet, Screen::new(output.colours(process_env)));
        let painter_of_errors = Painter { on: output.colours_of_errors(process_env) };
        let api = api.with_progress(!json && !quiet);
        Ok(Self { api, target, json, quiet, screen, painter_of_errors, no_input: output.no_input })
    }

    /// True if this process is the server: what is not awaited here happens nowhere.
    pub(crate) fn is_local(&self) -> bool {
        self.target.bucket.is_some()
    }

    /// Interval of asking the server whether something has changed: one that is near may be asked more often.
    pub(crate) fn poll_interval(&self, of_far_server: Duration) -> Duration {
        if self.is_local() { LOCAL_POLL_INTERVAL } else { of_far_server }
    }
}

fn is_terminal() -> bool {
    io::stdin().is_terminal() && io::stderr().is_terminal()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_bucket_counts_where_nothing_names_a_server() {
        let directory = tempfile::tempdir().expect("there is room");
        let found = |flags: &Flags, variables: &[(&str, &str)]| {
            let target = Target::find(flags, &process_env(&directory, variables)).expect("it is found");
            (target.bucket.as_ref().map(|bucket| bucket.url.clone()), target.organization(None).ok())
        };
        let (none, main) = ((None, None), Some("main".to_owned()));
        let bucket = |url: &str| (Some(url.to_owned()), main.clone());
        let variable = [("TACO_BUCKET", "s3://variable")];
        assert_eq!(found(&Flags::default(), &[]), none);
        assert_eq!(found(&Flags::default(), &variable), bucket("s3://variable"));
        let file = directory.path().join(".taco.toml");
        std::fs::write(&file, "bucket = \"s3://file\"").expect("it is written");
        assert_eq!(found(&Flags::default(), &[]), bucket("s3://file"));
        assert_eq!(found(&Flags::default(), &variable), bucket("s3://variable"), "the user goes before the file");
        let hosts = [("TACO_BUCKET", "s3://variable"), ("TACO_HOST", "taco.example.com")];
        assert_eq!(found(&Flags::default(), &hosts), none);
        let flags = Flags { host: Some("taco.example.com".into()), ..Flags::default() };
        assert_eq!(found(&flags, &variable), none);
        credentials::replace(&directory.path().join(".config/taco/cli.toml"), b"host = \"h\"\norganization = \"o\"")
            .expect("it is written");
        assert_eq!(found(&Flags::default(), &[]), bucket("s3://file"), "the directory says more than a login");
        std::fs::remove_file(&file).expect("it was there");
        assert_eq!(found(&Flags::default(), &variable), (None, Some("o".to_owned())), "there is a server");
        std::fs::write(&file, "host = \"taco.example.com\"").expect("it is written");
        assert_eq!(found(&Flags::default(), &variable).0, None, "there is a server");
    }

    fn process_env(directory: &tempfile::TempDir, variables: &[(&str, &str)]) -> ProcessEnv {
        let home = ("HOME".to_owned(), directory.path().display().to_string());
        let variables = variables.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned()));
        ProcessEnv {
            variables: variables.chain([home]).collect(),
            directory: directory.path().to_owned(),
            ..ProcessEnv::default()
        }
    }

    fn directory_with_block() -> tempfile::TempDir {
        let directory = tempfile::tempdir().expect("there is room");
        let block = "terraform {\n  cloud {\n    hostname = \"block.example.com\"\n    organization = \"of-block\"\n\
                     workspaces { name = \"network\" }\n  }\n}\n";
        std::fs::write(directory.path().join("main.tf"), block).expect("it is written");
        directory
    }

    #[test]
    fn flags_go_before_variables_before_the_projects_file_before_the_users_before_the_cloud_block() {
        let directory = directory_with_block();
        let found = |flags: &Flags, variables: &[(&str, &str)]| {
            let target = Target::find(flags, &process_env(&directory, variables)).expect("it is found");
            (target.host.name.clone(), target.organization(None).ok())
        };
        let pair = |host: &str, organization: Option<&str>| (host.to_owned(), organization.map(str::to_owned));
        assert_eq!(found(&Flags::default(), &[]), pair("block.example.com", Some("of-block")));
        let file = directory.path().join(".config/taco/cli.toml");
        credentials::replace(&file, b"host = \"user.example.com\"").expect("it is written");
        assert_eq!(found(&Flags::default(), &[]), pair("user.example.com", None), "the block is about another server");
        let file = directory.path().join(".taco.toml");
        std::fs::write(&file, "host = \"project.example.com\"\norganization = \"of-project\"\n")
            .expect("it is written");
        assert_eq!(found(&Flags::default(), &[]), pair("project.example.com", Some("of-project")));
        let elsewhere = [("TACO_HOST", "variable.example.com")];
        assert_eq!(found(&Flags::default(), &elsewhere), pair("variable.example.com", None), "both are about others");
        let variables = [("TACO_HOST", "variable.example.com"), ("TACO_ORG", "of-variable")];
        assert_eq!(found(&Flags::default(), &variables), pair("variable.example.com", Some("of-variable")));
        let flags = Flags { host: Some("h:1".into()), org: Some("o".into()), ..Flags::default() };
        assert_eq!(found(&flags, &variables), pair("h:1", Some("o")));
    }

    #[test]
    fn a_workspace_may_bring_its_organization_along() {
        let directory = directory_with_block();
        let target = Target::find(&Flags::default(), &process_env(&directory, &[])).expect("it is found");
        assert_eq!(target.workspace(None).expect("it is given").to_string(), "of-block/network");
        assert_eq!(target.workspace(Some("app")).expect("it is given").to_string(), "of-block/app");
        assert_eq!(target.workspace(Some("other/app")).expect("it is given").to_string(), "other/app");
    }

    #[test]
    fn without_a_word_it_is_the_server_on_this_machine() {
        let directory = tempfile::tempdir().expect("there is room");
        let target = Target::find(&Flags::default(), &process_env(&directory, &[])).expect("it is found");
        assert_eq!(target.host, Host::default());
        assert!(target.organization(None).is_err() && target.workspace(Some("app")).is_err());
    }

    #[test]
    fn a_projects_file_names_the_workspace_too() {
        let directory = directory_with_block();
        let file = directory.path().join(".taco.toml");
        std::fs::write(&file, "workspace = \"app\"\n").expect("it is written");
        let target = Target::find(&Flags::default(), &process_env(&directory, &[])).expect("it is found");
        assert_eq!(target.workspace(None).expect("it is given").to_string(), "of-block/app");
    }

    #[test]
    fn a_token_for_any_server_goes_to_none_that_the_directory_chose() {
        let directory = directory_with_block();
        let opened = |flags: &Flags, variables: &[(&str, &str)]| {
            let variables = [variables, &[("TACO_TOKEN", "secret")]].concat();
            let process_env = process_env(&directory, &variables);
            let target = Target::find(flags, &process_env)?;
            Ok(credentials::token(&target, &process_env)?.map(|token| token.text))
        };
        let refused = |opened: Result<Option<String>, Failure>| {
            let said = opened.expect_err("it is refused").to_string();
            assert!(!said.contains("secret"), "{said}");
            said
        };
        let said = refused(opened(&Flags::default(), &[]));
        assert!(said.contains("`cloud` block") && said.contains("TACO_HOST=block.example.com"), "{said}");
        let secret = Some("secret".to_owned());
        let flags = Flags { host: Some("block.example.com".into()), ..Flags::default() };
        assert_eq!(opened(&flags, &[]).expect("the person chose it"), secret);
        let variables = [("TACO_HOST", "block.example.com")];
        assert_eq!(opened(&Flags::default(), &variables).expect("the person chose it"), secret);
        credentials::replace(&directory.path().join(".config/taco/cli.toml"), b"host = \"user.example.com\"")
            .expect("it is written");
        assert_eq!(opened(&Flags::default(), &[]).expect("a login chose another"), secret);
        std::fs::write(directory.path().join(".taco.toml"), "host = \"evil.example.com\"").expect("it is written");
        let said = refused(opened(&Flags::default(), &[]));
        assert!(said.contains(".taco.toml") && said.contains("TACO_HOST=evil.example.com"), "{said}");
        let empty = tempfile::tempdir().expect("there is room");
        let process_env = process_env(&empty, &[("TACO_TOKEN", "secret")]);
        let target = Target::find(&Flags::default(), &process_env).expect("it is found");
        let token = credentials::token(&target, &process_env).expect("no file chose this machine");
        assert_eq!(token.map(|token| token.text), secret);
    }
}
