//! `taco init`

use std::fs::OpenOptions;
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use clap::Args;
use serde_json::json;
use taco_words::terraform_files::{cloud_block as cloud_text, host_block, quoted};

use crate::EXIT_CODES;
use crate::cloud_block;
use crate::commands::workspaces;
use crate::credentials;
use crate::failure::{Failure, Kind};
use crate::host::Host;
use crate::output;
use crate::process_env::ProcessEnv;
use crate::session::{Flags, Session, Target, WorkspaceName};

/// Connect a directory to a workspace
///
/// Writes a file with a `cloud` block, or with a block for the `http` backend, and creates the workspace if you are
/// logged in and it does not exist yet. Other files are left alone. A directory whose backend is configured already is
/// refused.
#[derive(Args, Debug)]
#[command(after_help = format!("\
Examples:
  taco init --org acme --ws network
  taco init --http --org acme --ws network environments/production

{EXIT_CODES}"))]
pub struct Arguments {
    /// Directory of the configuration
    #[arg(default_value = ".")]
    directory: PathBuf,
    /// Use the `http` backend instead of a `cloud` block
    #[arg(long)]
    http: bool,
    /// Name of the file in that directory
    #[arg(long, value_name = "NAME", default_value = "backend.tf")]
    file: String,
    #[command(flatten)]
    flags: Flags,
}

pub(crate) async fn run(arguments: &Arguments, process_env: &ProcessEnv) -> Result<(), Failure> {
    let target = Target::find(&arguments.flags, process_env)?;
    if let Some(bucket) = &target.bucket {
        return Err(Failure::usage("this directory needs no `cloud` block")
            .because(format!("{} names the bucket {bucket}, which the commands serve themselves", target.chosen_by))
            .hint("`taco plan` and `taco apply` work at once; name a server with --host for a block"));
    }
    let workspace = target.workspace(None)?;
    if let Some(file) = cloud_block::file_with_backend(&arguments.directory) {
        return Err(Failure::new(Kind::Conflict, "a backend is already configured")
            .because(format!("{} has a `cloud` or `backend` block", file.display()))
            .hint("remove that block first; `terraform init -migrate-state` then moves the state"));
    }
    let text = if arguments.http { http_block(&target.host, &workspace) } else { cloud(&target.host, &workspace) };
    let file = arguments.directory.join(&arguments.file);
    write(&file, &text)?;
    let created = create_workspace(arguments, process_env, &workspace).await;
    if arguments.flags.output.json {
        let block = if arguments.http { "http" } else { "cloud" };
        let created = matches!(created, OnServer::Created);
        let told = json!({ "file": file, "block": block, "workspace": workspace.to_string(), "created": created });
        return output::json(&told);
    }
    if arguments.flags.output.quiet {
        return Ok(());
    }
    let (file, host) = (file.display(), &target.host);
    output::line(&format!("Created {file}, which connects this directory to {workspace} on {host}."))?;
    if let OnServer::Created = created {
        output::line(&format!("Created workspace {workspace}."))?;
    }
    let next =
        if arguments.http { next_for_http(&workspace, &created) } else { next(arguments, host, &workspace, &created) };
    output::line(&format!("\n{next}"))?;
    match needed_host_block(host, process_env).filter(|_| !arguments.http) {
        Some(block) => output::line(&format!(
            "\nTerraform expects HTTPS. To use it with {host} over HTTP, add this to ~/.terraformrc (tofu: ~/.tofurc):\n\n{block}"
        )),
        None => Ok(()),
    }
}

/// The workspace, as far as this command can tell.
enum OnServer {
    Exists,
    Created,
    /// Nobody is logged in, so that the server was not asked.
    NotAsked,
    Failed(Failure),
}

/// The file is of use without the workspace too, so nothing here is an error.
async fn create_workspace(arguments: &Arguments, process_env: &ProcessEnv, workspace: &WorkspaceName) -> OnServer {
    let Ok(session) = Session::open(&arguments.flags, process_env).await else { return OnServer::NotAsked };
    if !matches!(credentials::token(&session.target, process_env), Ok(Some(_))) {
        return OnServer::NotAsked;
    }
    match workspaces::find(&session, workspace).await {
        Ok(_) => OnServer::Exists,
        Err(failure) if failure.kind == Kind::NotFound => {
            // With the `http` backend, nobody else than terraform on this machine writes the state.
            let mode = arguments.http.then_some("local");
            match workspaces::create_with_defaults(&session, workspace, mode).await {
                Ok(_) => OnServer::Created,
                Err(failure) => OnServer::Failed(failure),
            }
        }
        Err(failure) => OnServer::Failed(failure),
    }
}

fn write(file: &Path, text: &str) -> Result<(), Failure> {
    let written = OpenOptions::new().write(true).create_new(true).open(file);
    written.and_then(|mut file| file.write_all(text.as_bytes())).map_err(|error| match error.kind() {
        io::ErrorKind::AlreadyExists => Failure::new(Kind::Conflict, format!("{} exists already", file.display()))
            .hint("choose another name with --file"),
        _ => Failure::error(format!("{} cannot be written", file.display())).because(error),
    })
}

fn cloud(host: &Host, workspace: &WorkspaceName) -> String {
    cloud_text(&host.name, &workspace.organization, &workspace.name) + "\n"
}

fn http_block(host: &Host, workspace: &WorkspaceName) -> String {
    let address = host.at(&["api", "http-backend", &workspace.organization, &workspace.name]);
    let (address, lock) = (quoted(address.as_str()), quoted(&format!("{address}/lock")));
    format!(
        "terraform {{\n  backend \"http\" {{\n    address        = {address}\n    lock_address   = {lock}\n    \
         unlock_address = {lock}\n  }}\n}}\n"
    )
}

/// Next steps for the user.
fn next(arguments: &Arguments, host: &Host, workspace: &WorkspaceName, on_server: &OnServer) -> String {
    let directory = arguments.directory.display();
    let start = match arguments.directory == Path::new(".") {
        true => "taco run start . --watch".to_owned(),
        false => format!("taco run start {directory} --ws {workspace} --watch"),
    };
    match on_server {
        OnServer::Created | OnServer::Exists => format!("Next: `{start}`, or `terraform init`."),
        OnServer::NotAsked => {
            // A bare name means http on this machine, and https elsewhere.
            let bare = host.is_plain() == host.is_loopback();
            let login = if bare { host.name.as_str() } else { host.address.as_str().trim_end_matches('/') };
            format!("Next: `taco login {login}`, then `terraform init`, which creates the workspace.")
        }
        OnServer::Failed(failure) => {
            format!(
                "The workspace could not be created: {}\nNext: `taco ws create {workspace}`, then `{start}`.",
                failure.reason()
            )
        }
    }
}

fn next_for_http(workspace: &WorkspaceName, on_server: &OnServer) -> String {
    let create = match on_server {
        OnServer::Created | OnServer::Exists => String::new(),
        OnServer::NotAsked | OnServer::Failed(_) => {
            format!(
                "Next: create the workspace first: this backend can't. \
                 `taco ws create {workspace} --execution-mode local`\n"
            )
        }
    };
    let then = if create.is_empty() { "Next: set" } else { "Then set" };
    format!(
        "{create}{then} TF_HTTP_USERNAME=taco and TF_HTTP_PASSWORD to your token (`taco auth token` prints it), and \
         run `terraform init`."
    )
}

/// Block that terraform needs for this server, unless it is in its configuration already.
fn needed_host_block(host: &Host, process_env: &ProcessEnv) -> Option<String> {
    let configured = |name: &str| {
        let text = std::fs::read_to_string(process_env.home()?.join(name)).ok()?;
        Some(text.contains(&format!("host \"{}\"", host.name)))
    };
    let is_configured = [".terraformrc", ".tofurc"].into_iter().any(|name| configured(name) == Some(true));
    (host.is_plain() && !is_configured).then(|| host_block(&host.name, host.address.as_str()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn workspace() -> WorkspaceName {
        WorkspaceName { organization: "acme".into(), name: "network".into() }
    }

    #[test]
    fn the_cloud_block_says_to_us_what_it_says_to_terraform() {
        let directory = tempfile::tempdir().expect("there is room");
        let host: Host = "taco.example.com".parse().expect("it is a host");
        let file = directory.path().join("backend.tf");
        write(&file, &cloud(&host, &workspace())).expect("it is written");
        let block = cloud_block::read(directory.path()).expect("it is there");
        assert_eq!(block.hostname.as_deref(), Some("taco.example.com"));
        assert_eq!(block.organization.as_deref(), Some("acme"));
        assert_eq!(block.workspace.as_deref(), Some("network"));
        assert!(write(&file, "").is_err(), "a file that is there is left alone");
    }

    #[test]
    fn the_http_backend_locks_below_its_address() {
        let text = http_block(&Host::default(), &workspace());
        assert!(text.contains("address        = \"http://localhost:8080/api/http-backend/acme/network\""), "{text}");
        assert!(
            text.contains("unlock_address = \"http://localhost:8080/api/http-backend/acme/network/lock\""),
            "{text}"
        );
    }
}
