//! Pages of the server, and the browser that shows them.

use std::process::{Command, Stdio};

use url::Url;

use crate::failure::Failure;
use crate::host::Host;
use crate::output;
use crate::session::WorkspaceName;

/// Address of a workspace's page, or of a page below it.
pub(crate) fn workspace_page(host: &Host, workspace: &WorkspaceName, below: &[&str]) -> Url {
    let path = ["app", workspace.organization.as_str(), "workspaces", workspace.name.as_str()];
    host.at(&[&path, below].concat())
}

/// Address of a run's page.
pub(crate) fn run_page(host: &Host, workspace: &WorkspaceName, run: &str) -> Url {
    workspace_page(host, workspace, &["runs", run])
}

/// Shows a page in the browser, and its address where there is none.
pub(crate) fn show(page: &Url) -> Result<(), Failure> {
    output::line(page.as_str())?;
    open(page);
    Ok(())
}

/// Opens an address in the browser that $BROWSER names, or in the usual one. Where there is none, nothing happens.
pub(crate) fn open(page: &Url) {
    let named = std::env::var("BROWSER").ok().filter(|name| !name.trim().is_empty());
    let usual = if cfg!(target_os = "macos") { "open" } else { "xdg-open" };
    let program = named.as_deref().unwrap_or(usual);
    let silent = Stdio::null;
    Command::new(program).arg(page.as_str()).stdin(silent()).stdout(silent()).stderr(silent()).spawn().ok();
}
