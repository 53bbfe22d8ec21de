//! Programs that must be on the machine before tools can be installed.

use std::process::Command;

use anyhow::{Context, bail, ensure};

use crate::command::{on_path, quietly};

/// Programs that we do not install, and where a person gets them.
const PROGRAMS: &[(&str, &str)] = &[
    ("go", "Go 1.26 or newer builds the test servers and OpenTofu: https://go.dev/dl"),
    ("node", "Node 20 or newer runs Azurite: https://nodejs.org, or the Debian package nodejs"),
    ("npm", "npm installs Azurite: it comes with Node, or as the Debian package npm"),
];

/// Programs that come with a Debian package, and its name.
const DEBIAN_PACKAGES: &[(&str, &str)] =
    &[("git", "git"), ("curl", "curl"), ("chromium", "chromium"), ("chromedriver", "chromium-driver")];

/// Installs Debian packages where we may, and names everything else that is missing, all at once.
pub(crate) fn ensure_present() -> anyhow::Result<()> {
    let mut missing = Vec::new();
    for (program, hint) in PROGRAMS {
        if on_path(program).is_none() {
            missing.push(format!("{program} ({hint})"));
        }
    }
    ensure!(missing.is_empty(), "please install first: {}", missing.join("; "));

    let packages: Vec<&str> =
        DEBIAN_PACKAGES.iter().filter(|(program, _)| on_path(program).is_none()).map(|(_, package)| *package).collect();
    if packages.is_empty() { Ok(()) } else { install_debian_packages(&packages) }
}

fn install_debian_packages(packages: &[&str]) -> anyhow::Result<()> {
    let names = packages.join(" ");
    let root = running_as_root()?;
    if on_path("apt-get").is_none() || !(root || on_path("sudo").is_some()) {
        bail!("please install first: {names} (on Debian, as root: apt-get install {names})");
    }
    eprintln!("installing Debian packages: {names}");
    let apt_get = || {
        // Without a terminal there is no one to answer sudo's prompt, and it must not wait for an answer.
        let mut command = Command::new(if root { "env" } else { "sudo" });
        command.args(if root { &[][..] } else { &["--non-interactive", "env"] });
        command.args(["DEBIAN_FRONTEND=noninteractive", "apt-get"]);
        command
    };
    let installed = quietly(apt_get().arg("update"))
        .and_then(|_| quietly(apt_get().args(["install", "--yes", "--no-install-recommends"]).args(packages)));
    installed
        .with_context(|| format!("please install first: {names} (on Debian, as root: apt-get install {names})"))?;
    Ok(())
}

fn running_as_root() -> anyhow::Result<bool> {
    Ok(quietly(Command::new("id").arg("-u"))?.trim_ascii() == b"0")
}
