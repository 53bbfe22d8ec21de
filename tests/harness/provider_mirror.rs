//! A directory from which engines take providers, so that tests need no registry.

use std::fs;
use std::path::Path;

use tempfile::TempDir;

/// The release that `cargo xtask tools` builds.
const NULL_VERSION: &str = "2.1.2";

/// A mirror with the provider of `null_resource`, for terraform and for tofu.
pub fn with_null_provider() -> TempDir {
    let provider = std::env::var_os("TACO_TEST_PROVIDER_NULL")
        .expect(r#"TACO_TEST_PROVIDER_NULL is not set: run `cargo xtask test`, or eval "$(cargo xtask tools)" first"#);
    let mirror = tempfile::tempdir().expect("there is room for a directory");
    for registry in ["registry.terraform.io", "registry.opentofu.org"] {
        let package = mirror.path().join(registry).join("hashicorp/null").join(NULL_VERSION).join(platform());
        fs::create_dir_all(&package).expect("made");
        let place = package.join(format!("terraform-provider-null_v{NULL_VERSION}"));
        fs::copy(Path::new(&provider), place).expect("copied");
    }
    mirror
}

/// As Go calls this machine.
fn platform() -> String {
    let architecture = match std::env::consts::ARCH {
        "x86_64" => "amd64",
        "aarch64" => "arm64",
        other => other,
    };
    format!("{}_{architecture}", std::env::consts::OS)
}
