//! `taco admin`

use std::io::{self, Write};
use std::process::ExitCode;

use anyhow::{Context, bail};
use clap::{Args, Subcommand};
use taco_control_plane::FirstStart;

use crate::commands::open_site::open_site;
use crate::config::{Configuration, ProcessEnv, ServerFlags};
use crate::logging;
use crate::server::StartError;

/// Administer the site from the server's machine
///
/// These commands work on the bucket itself, with the settings of the server: run them where the server runs.
#[derive(Args, Debug)]
pub(crate) struct Arguments {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand, Debug)]
enum Command {
    SetupLink(SetupLink),
}

/// Print a link to set the first admin's password
///
/// The person who opens it becomes the site's admin, so it is printed here and never written to a log. It works once, for 24
/// hours, and only while the first admin has no password. A server that was started on a terminal prints one by itself.
#[derive(Args, Debug)]
#[command(after_help = "\
Examples:
  taco admin setup-link
  docker exec taco taco admin setup-link
  sudo -u taco taco admin setup-link --config /etc/taco/taco.toml --url https://taco.example.com")]
struct SetupLink {
    #[command(flatten)]
    flags: ServerFlags,
}

#[tokio::main(flavor = "current_thread")]
pub(crate) async fn run(arguments: &Arguments) -> anyhow::Result<ExitCode> {
    let Command::SetupLink(SetupLink { flags }) = &arguments.command;
    let configuration = Configuration::load(flags, &ProcessEnv::of_this_process())?;
    let _logging = logging::start(&configuration.settings);
    let made = setup_link(&configuration).await.with_context(|| configuration.bucket_in_words())?;
    let Some(first_start) = made else {
        bail!("{} is empty: start the server first, with the same settings", configuration.bucket_in_words());
    };
    let FirstStart::SetPassword(link) = first_start else {
        bail!(
            "the first admin has a password already: log in with it. A site admin makes links for others at {}/app/admin",
            configuration.settings.url
        );
    };
    eprintln!("This link sets the password of {}. It works once, until {:.0}:", link.username, link.expires_at);
    writeln!(io::stdout(), "{}", taco_web::password_link_address(&configuration.settings.url, &link))?;
    Ok(ExitCode::SUCCESS)
}

/// A link, unless no server was started on the bucket yet.
async fn setup_link(configuration: &Configuration) -> Result<Option<FirstStart>, StartError> {
    match open_site(configuration).await? {
        Some(control_plane) => Ok(Some(control_plane.first_start().await?)),
        None => Ok(None),
    }
}
