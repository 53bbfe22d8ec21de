//! The programs of others that our checks and tests start, each at one version.
//!
//! Tests learn where a program is from an environment variable:
//!
//! | variable              | program                                                              |
//! |-----------------------|----------------------------------------------------------------------|
//! | `TACO_TEST_GOFAKES3`  | S3 server in memory                                                  |
//! | `TACO_TEST_VERSITYGW` | S3 server on a directory, durable                                    |
//! | `TACO_TEST_AZURITE`   | `azurite-blob`, the blob server of Azure's emulator                  |
//! | `TACO_TEST_S3S_FS`    | S3 server that lets several creators win: taco must refuse it        |
//! | `TACO_TEST_TOFU`      | OpenTofu                                                             |
//! | `TACO_TEST_OPA`       | Open Policy Agent                                                    |
//! | `TACO_TEST_GO_TFE`    | go-tfe's own suite, with its fixtures beside it                      |
//! | `TACO_TEST_PROVIDER_NULL` | provider of `null_resource`, which go-tfe's fixtures use         |
//! | `TACO_TEST_AXE`       | axe-core, a script that finds what keeps people from using a page    |
//! | `TACO_TEST_SMTP_SERVER` | a mail server, as a library for Node.js                           |
//! | `TACO_TEST_TERRAFORM` | Terraform 1.11, from `PATH` if it is there                           |
//! | `TACO_TEST_PREVIOUS_RELEASE` | `taco` of the release before this one, with `taco-agent` beside it |
//!
//! `cargo xtask test` sets them all; `eval "$(cargo xtask tools)"` does it for a shell.

use std::path::PathBuf;
use std::process::{Command, ExitCode};

use anyhow::Context;

use crate::command::{on_path, quietly};
use crate::install::{Source, Tool};
use crate::prerequisites;

const CARGO_DENY: Tool = Tool {
    name: "cargo-deny",
    version: "0.20.2",
    source: Source::Crate { features: "" },
    executable: "bin/cargo-deny",
};

const GOFAKES3: Tool = Tool {
    name: "gofakes3",
    version: "1.2.0",
    source: Source::GoCommand { package: "github.com/johannesboyne/gofakes3/cmd/gofakes3" },
    executable: "bin/gofakes3",
};

const VERSITYGW: Tool = Tool {
    name: "versitygw",
    version: "1.8.0",
    source: Source::GoCommand { package: "github.com/versity/versitygw/cmd/versitygw" },
    executable: "bin/versitygw",
};

const AZURITE: Tool =
    Tool { name: "azurite", version: "3.37.0", source: Source::Npm, executable: "node_modules/.bin/azurite-blob" };

const AXE: Tool =
    Tool { name: "axe-core", version: "4.14.0", source: Source::Npm, executable: "node_modules/axe-core/axe.min.js" };

const SMTP_SERVER: Tool = Tool {
    name: "smtp-server",
    version: "3.21.6",
    source: Source::Npm,
    executable: "node_modules/smtp-server/dist/cjs/smtp-server.js",
};

const S3S_FS: Tool =
    Tool { name: "s3s-fs", version: "0.14.1", source: Source::Crate { features: "binary" }, executable: "bin/s3s-fs" };

const TOFU: Tool = Tool {
    name: "tofu",
    version: "1.12.6",
    source: Source::GoModule { module: "github.com/opentofu/opentofu", package: "./cmd/tofu", nested: None },
    executable: "bin/tofu",
};

const OPA: Tool = Tool {
    name: "opa",
    version: "1.22.0",
    source: Source::GoCommand { package: "github.com/open-policy-agent/opa" },
    executable: "bin/opa",
};

const TERRAFORM: Tool = Tool {
    name: "terraform",
    version: "1.11.4",
    source: Source::GoModule {
        module: "github.com/hashicorp/terraform",
        package: ".",
        nested: Some("v0.0.0-20250409131005-35645b8fca68"),
    },
    executable: "bin/terraform",
};

/// The last version of go-tfe that comes with its tests.
const GO_TFE: Tool = Tool {
    name: "go-tfe",
    version: "1.109.0",
    source: Source::GoTests { module: "github.com/hashicorp/go-tfe" },
    executable: "suite.test",
};

/// Release 2.1.2 of the provider: the last that its module's own path leads to, and all that a `null_resource` needs.
const PROVIDER_NULL: Tool = Tool {
    name: "terraform-provider-null",
    version: "1.0.1-0.20190430203517-8d3d85a60e20",
    source: Source::GoModule {
        module: "github.com/terraform-providers/terraform-provider-null",
        package: ".",
        nested: None,
    },
    executable: "bin/terraform-provider-null",
};

/// The commit of the release before this one: during an upgrade, its servers and agents work alongside those of this
/// one. Every release names the one before it here.
const PREVIOUS_RELEASE: &str = "aec5411bbd32238ecec49ce6742875e86bb19673";

const PREVIOUS_TACO: Tool = Tool {
    name: "taco",
    version: PREVIOUS_RELEASE,
    source: Source::OwnHistory { programs: &["taco", "taco-agent"] },
    executable: "bin/taco",
};

/// Tests with the previous release read it; without it they are left out.
pub(crate) const PREVIOUS_RELEASE_VARIABLE: &str = "TACO_TEST_PREVIOUS_RELEASE";

/// A variable that tests read, and the program it leads to.
pub(crate) type Variable = (&'static str, PathBuf);

/// Installs what tests start, but for [`previous_release`]. The quick ones come first: somebody may be waiting for them.
pub(crate) fn for_tests() -> anyhow::Result<Vec<Variable>> {
    Ok(vec![
        ("TACO_TEST_GOFAKES3", GOFAKES3.ensure()?),
        ("TACO_TEST_VERSITYGW", VERSITYGW.ensure()?),
        ("TACO_TEST_AZURITE", AZURITE.ensure()?),
        ("TACO_TEST_AXE", AXE.ensure()?),
        ("TACO_TEST_SMTP_SERVER", SMTP_SERVER.ensure()?),
        ("TACO_TEST_OPA", OPA.ensure()?),
        ("TACO_TEST_S3S_FS", S3S_FS.ensure()?),
        ("TACO_TEST_GO_TFE", GO_TFE.ensure()?),
        ("TACO_TEST_PROVIDER_NULL", PROVIDER_NULL.ensure()?),
        ("TACO_TEST_TOFU", TOFU.ensure()?),
        ("TACO_TEST_TERRAFORM", terraform()?),
    ])
}

/// Builds the release before this one. `None` where the history is not here, as in a
/// tarball: the tests that need it are left out.
pub(crate) fn previous_release() -> anyhow::Result<Option<Variable>> {
    let commit = format!("{PREVIOUS_RELEASE}^{{commit}}");
    let known = Command::new("git").args(["cat-file", "-e", &commit]).output();
    if PREVIOUS_TACO.is_installed()? || known.is_ok_and(|known| known.status.success()) {
        return Ok(Some((PREVIOUS_RELEASE_VARIABLE, PREVIOUS_TACO.ensure()?)));
    }
    eprintln!(
        "the previous release cannot be built: commit {PREVIOUS_RELEASE} is not in the history of this checkout. \
         Tests beside the previous release are left out; a clone with its history (`git fetch --unshallow`) has it."
    );
    Ok(None)
}

/// Installs what a server with something to show starts.
pub(crate) fn for_screenshots() -> anyhow::Result<Vec<Variable>> {
    Ok(vec![("TACO_TEST_TOFU", TOFU.ensure()?), ("TACO_TEST_TERRAFORM", terraform()?)])
}

/// Installs what benchmarks start.
pub(crate) fn for_benchmarks() -> anyhow::Result<Vec<Variable>> {
    Ok(vec![("TACO_TEST_TERRAFORM", terraform()?), ("TACO_TEST_VERSITYGW", VERSITYGW.ensure()?)])
}

/// Installs the check of licences, sources and bans.
pub(crate) fn cargo_deny() -> anyhow::Result<PathBuf> {
    CARGO_DENY.ensure()
}

/// Prints the variables of [`for_tests`] for a shell to evaluate.
pub(crate) fn print_exports() -> anyhow::Result<ExitCode> {
    prerequisites::ensure_present()?;
    let variables = for_tests()?;
    cargo_deny()?;
    for (name, path) in variables.into_iter().chain(previous_release()?) {
        println!("export {name}={}", shell_word(&path.to_string_lossy()));
    }
    Ok(ExitCode::SUCCESS)
}

/// The machine's own terraform if its version fits: it is what users have, and spares a long build.
fn terraform() -> anyhow::Result<PathBuf> {
    const SERIES: &str = "1.11.";
    let Some(installed) = on_path("terraform") else {
        eprintln!("terraform {SERIES}x is not on PATH: using our own build");
        return TERRAFORM.ensure();
    };
    let answer = quietly(Command::new(&installed).args(["version", "-json"]).env("CHECKPOINT_DISABLE", "1"))?;
    let answer: serde_json::Value = serde_json::from_slice(&answer).context("`terraform version -json` is not JSON")?;
    let version = answer["terraform_version"].as_str().unwrap_or("of unknown version");
    if version.starts_with(SERIES) {
        return Ok(installed);
    }
    eprintln!("terraform on PATH is {version}, tests need {SERIES}x: using our own build");
    TERRAFORM.ensure()
}

fn shell_word(text: &str) -> String {
    format!("'{}'", text.replace('\'', r"'\''"))
}

#[cfg(test)]
mod tests {
    use super::shell_word;

    #[test]
    fn a_path_with_spaces_and_quotes_stays_one_shell_word() {
        assert_eq!(shell_word("/home/o'neil/my tools"), r"'/home/o'\''neil/my tools'");
    }
}
