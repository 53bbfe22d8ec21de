//! `taco rewrap`

use std::process::ExitCode;

use anyhow::Context;
use clap::Args;
use serde_json::json;
use taco_cli::print;
use taco_control_plane::Rewrapped;

use crate::commands::open_site::open_site;
use crate::config::{BucketFlags, Configuration, ProcessEnv};
use crate::logging;
use crate::server::StartError;

/// Re-encrypt data keys with the current secret key
///
/// After secret_key was changed, what the key before sealed can be read only as long as previous_secret_key names it.
/// This command wraps the data keys of all of it again: of states, plans, configurations, and secret values. The
/// content itself is not touched, so servers may run meanwhile, and may be the ones that still read it. Do it when all
/// servers have the new key; then previous_secret_key can go. Doing it again, also after it was interrupted, is safe.
/// Exits with 1 if something needs a key that was not given.
#[derive(Args, Debug)]
#[command(after_help = "\
Examples:
  TACO_SECRET_KEY=… TACO_PREVIOUS_SECRET_KEY=… taco rewrap
  taco rewrap --bucket s3://company-taco/production --json")]
pub(crate) struct Arguments {
    /// Print JSON instead of a table
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    flags: BucketFlags,
}

#[tokio::main(flavor = "current_thread")]
pub(crate) async fn run(arguments: &Arguments) -> anyhow::Result<ExitCode> {
    let configuration = Configuration::load(&arguments.flags, &ProcessEnv::of_this_process())?;
    let _logging = logging::start(&configuration.settings);
    let done = rewrap(&configuration).await.with_context(|| configuration.bucket_in_words())?;
    if arguments.json {
        let shown = done.iter().map(|(what, one)| {
            json!({ "what": what, "renewed": one.renewed, "left": one.left, "unreadable": one.unreadable })
        });
        print::json(&json!(shown.collect::<Vec<_>>()))?;
    } else {
        let rows = done.iter().map(|(what, one)| {
            [(*what).to_owned(), one.renewed.to_string(), one.left.to_string(), one.unreadable.len().to_string()]
        });
        print::table(["WHAT", "RENEWED", "UNCHANGED", "UNREADABLE"], rows)?;
        for why in done.iter().flat_map(|(_, one)| &one.unreadable) {
            eprintln!("unreadable: {why}");
        }
    }
    let whole = done.iter().all(|(_, one)| one.unreadable.is_empty());
    Ok(if whole { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

async fn rewrap(configuration: &Configuration) -> Result<[(&'static str, Rewrapped); 3], StartError> {
    let Some(control_plane) = open_site(configuration).await? else {
        return Ok(["secrets", "objects", "heads of ledgers"].map(|what| (what, Rewrapped::default())));
    };
    let secrets = control_plane.rewrap_secrets().await?;
    let objects = control_plane.rewrap_blobs().await?;
    // After everything that commits: a head's digest is made with the current key then, and the older can go.
    let heads = Rewrapped { renewed: control_plane.renew_heads().await?, ..Rewrapped::default() };
    Ok([("secrets", secrets), ("objects", objects), ("heads of ledgers", heads)])
}
