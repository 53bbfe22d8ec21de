//! `taco init`

use std::fs::OpenOptions;
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use clap::Args;
use serde_json::json;

use crate::EXIT_CODES;
use crate::cloud_block;
use crate::failure::{Failure, Kind};
use crate::host::Host;
use crate::output;
use crate::process_env::ProcessEnv;
use crate::session::{Flags, Target, WorkspaceName};

/// Let a directory keep its state on the server
///
/// Writes a file with a `cloud` block, or with a block for the `http` backend. Other files are left alone; a directory
/// that says already where its state is kept is refused.
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

pub(crate) fn run(arguments: &Arguments, process_env: &ProcessEnv) -> Result<(), Failure> {
    let target = Target::find(&arguments.flags, process_env)?;
    let workspace = target.workspace(None)?;
    if let Some(file) = cloud_block::file_with_backend(&arguments.directory) {
        return Err(Failure::new(Kind::Conflict, "this directory says already where its state is kept")
            .because(format!("{} has a `cloud` or `backend` block", file.display()))
            .hint("remove that block first; `terraform init -migrate-state` then moves the state"));
    }
    let text = if arguments.http { http_block(&target.host, &workspace) } else { cloud(&target.host, &workspace) };
    let file = arguments.directory.join(&arguments.file);
    write(&file, &text)?;
    if arguments.flags.output.json {
        let block = if arguments.http { "http" } else { "cloud" };
        return output::json(&json!({ "file": file, "block": block, "workspace": workspace.to_string() }));
    }
    if arguments.flags.output.quiet {
        return Ok(());
    }
    output::line(&format!("{} keeps the state in {workspace} on {}.", file.display(), target.host))?;
    output::line(&next(&target.host, &workspace, arguments.http))
}

fn write(file: &Path, text: &str) -> Result<(), Failure> {
    let written = OpenOptions::new().write(true).create_new(true).open(file);
    written.and_then(|mut file| file.write_all(text.as_bytes())).map_err(|error| match error.kind() {
        io::ErrorKind::AlreadyExists => Failure::new(Kind::Conflict, format!("{} is there already", file.display()))
            .hint("choose another name with --file"),
        _ => Failure::error(format!("{} cannot be written", file.display())).because(error),
    })
}

/// Text between quotes, as terraform reads it.
fn quoted(text: &str) -> String {
    let escaped = text.replace('\\', "\\\\").replace('"', "\\\"").replace("${", "$${").replace("%{", "%%{");
    format!("\"{escaped}\"")
}

fn cloud(host: &Host, workspace: &WorkspaceName) -> String {
    let (hostname, organization, name) = (quoted(&host.name), quoted(&workspace.organization), quoted(&workspace.name));
    format!(
        "terraform {{\n  cloud {{\n    hostname     = {hostname}\n    organization = {organization}\n\n    \
         workspaces {{\n      name = {name}\n    }}\n  }}\n}}\n"
    )
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
fn next(host: &Host, workspace: &WorkspaceName, http: bool) -> String {
    if http {
        return format!(
            "Next: the workspace must be there, for this backend makes none: `taco ws create {workspace} \
             --execution-mode local`.\nThen set TF_HTTP_USERNAME=taco and TF_HTTP_PASSWORD to your token \
             (`taco auth token` prints it), and `terraform init`."
        );
    }
    if !host.is_plain() {
        return format!("Next: `taco login {host}` if you have not yet, then `terraform init`.");
    }
    let api = host.at(&["api", "v2", ""]);
    format!(
        "Next: {host} is reached through plain http, which terraform must be told in ~/.terraformrc:\n\n\
         host \"{host}\" {{\n  services = {{\n    \"tfe.v2\"   = \"{api}\"\n    \"tfe.v2.1\" = \"{api}\"\n    \
         \"tfe.v2.2\" = \"{api}\"\n    \"state.v2\" = \"{api}\"\n  }}\n}}\n\nThen: `terraform init`."
    )
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

    #[test]
    fn names_cannot_break_out_of_their_quotes() {
        assert_eq!(quoted(r#"a"b\${c}"#), r#""a\"b\\$${c}""#);
    }
}
