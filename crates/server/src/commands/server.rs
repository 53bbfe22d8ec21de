//! `taco server`

use std::io::{self, IsTerminal, Write};
use std::process::ExitCode;

use anyhow::Context;
use clap::Args;
use taco_control_plane::{FirstStart, PasswordLinkText};

use crate::config::{Configuration, ProcessEnv, ServerFlags};
use crate::master_keys::KeyError;
use crate::server::{Running, Server, StartError};
use crate::shutdown::Signals;
use crate::{environment, logging};

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

Each flag is also a variable (--listen is TACO_LISTEN) and a key in taco.toml (listen). `taco config show` tells which
of them counts. The server stops gracefully on SIGTERM and SIGINT; a second signal stops it at once.")]
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
    greet(&running, configuration.settings.bucket.as_str(), setup_link(&running).await.as_ref()).ok();
    let signal = signals.next().await;
    tracing::info!(%signal, "shutting down: no new requests, those under way may finish");
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
async fn setup_link(running: &Running) -> Option<PasswordLinkText> {
    running.admin_without_password.as_ref()?;
    if !io::stdout().is_terminal() {
        tracing::warn!(
            event = "admin_password_not_set",
            "nobody has set the first admin's password: `{SETUP_COMMAND}` on this machine prints a link for it"
        );
        return None;
    }
    match running.control_plane.first_start().await {
        Ok(FirstStart::SetPassword(link)) => Some(link),
        Ok(FirstStart::Ready) => None,
        Err(error) => {
            tracing::warn!(event = "setup_link_failed", %error, "no link for the first admin's password could be made");
            None
        }
    }
}

const SETUP_COMMAND: &str = "taco admin setup-link";

/// Tells the person who started it what there is now, and what to type next.
fn greet(running: &Running, bucket: &str, setup_link: Option<&PasswordLinkText>) -> io::Result<()> {
    let url = &running.url;
    let curl = format!("curl {url}/readyz");
    let login = format!("terraform login {}", taco_web::host_name(url.as_url()));
    let width = curl.len().max(login.len());
    let mut out = io::stdout().lock();
    writeln!(out, "taco {} listens on {}", env!("CARGO_PKG_VERSION"), running.address)?;
    writeln!(out)?;
    writeln!(out, "  address   {url}")?;
    writeln!(out, "  data      {bucket}")?;
    if let Some(address) = running.metrics_address {
        writeln!(out, "  metrics   http://{address}/metrics")?;
    }
    writeln!(out)?;
    if let Some(link) = setup_link {
        writeln!(out, "Nobody has a password yet. Set the one of {} here; the link works once:", link.username)?;
        writeln!(out, "  {}", taco_web::password_link_address(url, link))?;
        writeln!(out)?;
    } else if let Some(username) = &running.admin_without_password {
        writeln!(out, "Nobody has a password yet. This prints a link that sets the one of {username}:")?;
        writeln!(out, "  {SETUP_COMMAND}")?;
        writeln!(out)?;
    }
    if let Some(file) = &running.certificate_authority {
        writeln!(out, "The certificate is taco's own. So that terraform, tofu and curl trust it:")?;
        writeln!(out, "  export SSL_CERT_FILE={}", file.display())?;
        writeln!(out)?;
    }
    if url.as_url().scheme() == "http" {
        writeln!(out, "Terraform expects https. To use it over http, put this into ~/.terraformrc (tofu: ~/.tofurc):")?;
        for line in taco_web::host_block(url.as_url()).lines() {
            writeln!(out, "  {line}")?;
        }
        writeln!(out)?;
    }
    writeln!(out, "What to type next:")?;
    for (command, answer) in [
        (login.as_str(), "get a token for terraform"),
        (curl.as_str(), "is it ready?"),
        ("taco doctor", "is the bucket sound?"),
        ("taco config show", "its settings, and where each came from"),
        ("taco server --help", "what can be set"),
    ] {
        writeln!(out, "  {command:width$}   {answer}")?;
    }
    writeln!(out)?;
    writeln!(out, "Ctrl-C stops it. The documentation begins in README.md.")?;
    out.flush()
}
