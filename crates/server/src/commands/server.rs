//! `taco server`

mod start_text;

use std::io::{self, IsTerminal, Write};
use std::process::ExitCode;
use std::time::Duration;

use anyhow::Context;
use clap::Args;
use taco_control_plane::{FirstStart, PasswordLinkText};
use tokio::time::{sleep, timeout};

use crate::config::{Configuration, ProcessEnv, ServerFlags};
use crate::master_keys::KeyError;
use crate::server::{Running, Server, StartError};
use crate::shutdown::Signals;
use crate::{environment, logging};

use start_text::StartText;

/// Run the server
///
/// It needs no configuration to begin with: its data goes to a directory in your home. For more than one server, or
/// machines that come and go, give all of them the same bucket on S3, Google Cloud Storage or Azure.
#[derive(Args, Default, Debug)]
#[command(after_help = "\
Examples:
  taco server
  taco server --bucket s3://company-taco/production --url https://taco.example.com
  TACO_BUCKET=file:///srv/taco TACO_LISTEN=0.0.0.0:8080 taco server

Each flag is also a variable (--listen is TACO_LISTEN) and a key in taco.toml (listen). `taco config show` shows which
one is in effect. The server stops gracefully on SIGTERM and SIGINT; a second signal stops it at once.")]
pub(crate) struct Arguments {
    #[command(flatten)]
    flags: ServerFlags,
}

pub(crate) fn run(arguments: &Arguments) -> anyhow::Result<ExitCode> {
    let hidden = environment::hide();
    let configuration = Configuration::load(&arguments.flags, &ProcessEnv::of_this_process())?;
    let _logging = logging::start(&configuration.settings);
    if let Err(error) = hidden {
        tracing::warn!(
            event = "environment_visible", %error,
            "the server's variables are visible to other processes of its user"
        );
    }
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
    runtime.block_on(serve(configuration))
}

async fn serve(configuration: Configuration) -> anyhow::Result<ExitCode> {
    let mut signals = Signals::listen()?;
    let started = tokio::select! {
        started = Server::start(configuration.settings.clone()) => started,
        _ = signals.next() => return Ok(ExitCode::SUCCESS),
    };
    let running = match started {
        Err(
            error @ (StartError::Taken { .. }
            | StartError::Listen { .. }
            | StartError::NoAuthInPublic { .. }
            | StartError::RunAs { .. }
            | StartError::EngineTrust(_)
            | StartError::Tls(_)
            | StartError::Key(KeyError::Missing { .. })),
        ) => return Err(error.into()),
        Err(error @ StartError::Key(KeyError::Weak { key, .. })) => {
            return Err(anyhow::Error::new(error).context(configuration.origin_of(key).to_string()));
        }
        about_bucket => about_bucket.with_context(|| configuration.bucket_in_words())?,
    };
    // Without a reader, the server is of use all the same.
    greet(&running, &configuration).await.ok();
    let signal = signals.next().await;
    tracing::info!(%signal, "shutting down: finishing open requests, taking no new ones");
    running.shutdown();
    tokio::select! {
        () = running.wait() => Ok(ExitCode::SUCCESS),
        signal = signals.next() => {
            tracing::warn!(event = "forced_shutdown", %signal, "second signal: stopping at once");
            logging::flush();
            std::process::exit(signal.exit_code())
        }
    }
}

/// A link that makes its reader the site's admin, for the person who has started the server. Where the greeting does not
/// go to a terminal, it goes to a log, and those have many readers.
async fn setup_link(running: &Running, configuration: &Configuration) -> Option<PasswordLinkText> {
    running.admin_without_password.as_ref()?;
    if !io::stdout().is_terminal() {
        let command = start_text::setup_command(configuration, running);
        tracing::warn!(
            event = "admin_password_not_set",
            "the admin password is not set: `{command}` on this machine prints a one-time link for it"
        );
        return None;
    }
    match running.control_plane.first_start().await {
        Ok(FirstStart::SetPassword(link)) => Some(link),
        Ok(FirstStart::Ready) => None,
        Err(error) => {
            tracing::warn!(event = "setup_link_failed", %error, "could not create a link for the admin password");
            None
        }
    }
}

/// Prints the start text. Where a person reads it, the log's first lines come before it.
async fn greet(running: &Running, configuration: &Configuration) -> io::Result<()> {
    if io::stdout().is_terminal() && configuration.settings.agent_concurrency > 0 {
        let connected = async {
            while running.control_plane.presence().agents().is_empty() {
                sleep(Duration::from_millis(20)).await;
            }
        };
        // An agent that takes longer shows in the log.
        timeout(Duration::from_secs(3), connected).await.ok();
    }
    let setup_link = setup_link(running, configuration).await;
    let text = StartText { running, configuration, setup_link: setup_link.as_ref() };
    let mut out = io::stdout().lock();
    write!(out, "{text}")?;
    out.flush()
}
