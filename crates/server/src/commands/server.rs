//! `taco server`

use std::io::{self, Write};
use std::process::ExitCode;

use clap::Args;

use crate::config::{Configuration, ServerFlags, Settings, Surroundings};
use crate::logging;
use crate::server::{Running, Server};
use crate::shutdown::Signals;

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
    let settings = Configuration::load(&arguments.flags, &Surroundings::of_this_process())?.settings;
    logging::start(settings.log_format, &settings.log_level);
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
    runtime.block_on(serve(settings))
}

async fn serve(settings: Settings) -> anyhow::Result<ExitCode> {
    let mut signals = Signals::listen()?;
    let bucket = settings.bucket.clone();
    let running = tokio::select! {
        running = Server::start(settings) => running?,
        _ = signals.next() => return Ok(ExitCode::SUCCESS),
    };
    greet(&running, bucket.as_str()).ok();
    let signal = signals.next().await;
    tracing::info!(%signal, "shutting down: no new requests, those under way may finish");
    running.shutdown();
    tokio::select! {
        () = running.wait() => Ok(ExitCode::SUCCESS),
        signal = signals.next() => {
            tracing::warn!(%signal, "second signal: stopping at once");
            std::process::exit(signal.exit_code())
        }
    }
}

/// Tells the person who started it what there is now, and what to type next.
fn greet(running: &Running, bucket: &str) -> io::Result<()> {
    let url = &running.url;
    let mut out = io::stdout().lock();
    writeln!(out, "taco {} listens on {}", env!("CARGO_PKG_VERSION"), running.address)?;
    writeln!(out)?;
    writeln!(out, "  address   {url}")?;
    writeln!(out, "  data      {bucket}")?;
    if let Some(address) = running.metrics_address {
        writeln!(out, "  metrics   http://{address}/metrics")?;
    }
    writeln!(out)?;
    writeln!(out, "What to type next:")?;
    writeln!(out, "  curl {url}/readyz    is it ready?")?;
    writeln!(out, "  taco doctor          is the bucket sound?")?;
    writeln!(out, "  taco config show     its settings, and where each came from")?;
    writeln!(out, "  taco server --help   what can be set")?;
    writeln!(out)?;
    writeln!(out, "Ctrl-C stops it. The documentation begins in README.md.")?;
    out.flush()
}
