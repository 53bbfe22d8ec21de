//! `taco admin`

use std::io::{self, Write};
use std::process::ExitCode;
use std::sync::Arc;

use anyhow::{Context, bail};
use clap::{Args, Subcommand};
use taco_control_plane::{ControlPlane, FirstStart};
use taco_ledger::{Dice, Environment, Peers, SystemClock, format};

use crate::config::{Configuration, ServerFlags, Surroundings};
use crate::server::{StartError, control_plane_settings};
use crate::{bucket, logging, master_keys};

/// Help whoever runs the site
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

/// Print a link that sets the first admin's password
///
/// Whoever opens it becomes the site's admin, so it is printed here and never written to a log. It works once, for 24
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
    let configuration = Configuration::load(flags, &Surroundings::of_this_process())?;
    logging::start(&configuration.settings);
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
    eprintln!("This link sets the password of {}. It works once, until {}:", link.username, link.expires_at);
    writeln!(io::stdout(), "{}", taco_web::password_link_address(&configuration.settings.url, &link))?;
    Ok(ExitCode::SUCCESS)
}

/// A link, unless nobody has started a server on the bucket yet.
async fn setup_link(configuration: &Configuration) -> Result<Option<FirstStart>, StartError> {
    let settings = &configuration.settings;
    master_keys::check(settings)?;
    let dice = Dice::from_system();
    let bucket = bucket::open(settings, &dice)?.patient;
    if format::read(&*bucket).await?.is_none() {
        return Ok(None);
    }
    let environment = Environment {
        bucket,
        clock: Arc::new(SystemClock),
        dice: dice.clone(),
        server: dice.unique(),
        peers: Peers::none(),
    };
    let control_plane = ControlPlane::open(environment, control_plane_settings(settings, &dice)?).await?;
    Ok(Some(control_plane.first_start().await?))
}
