//! Installing a tool once for all checkouts of this user.
//!
//! Each version has a directory of its own, so a new version is installed next to the old one and a branch can go back.
//! It is built under another name and then renamed: a directory with a final name is complete.

use std::env;
use std::fs::{self, File};
use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Instant;

use anyhow::{Context, ensure};

use crate::command::quietly;

/// A program of somebody else, at the version we rely on.
pub(crate) struct Tool {
    pub(crate) name: &'static str,
    pub(crate) version: &'static str,
    pub(crate) source: Source,
    /// Path of the program within the tool's directory.
    pub(crate) executable: &'static str,
}

/// Source of a tool; it is built from there, since package registries are all that a build machine can reach.
pub(crate) enum Source {
    /// A crate on crates.io.
    Crate { features: &'static str },
    /// A command that `go install` can build.
    GoCommand { package: &'static str },
    /// A command of a Go module that replaces dependencies, which `go install` refuses: we build inside the module.
    GoModule {
        module: &'static str,
        package: &'static str,
        /// Version of the modules in folders of this one. The proxy serves them apart from it.
        nested: Option<&'static str>,
    },
    /// The tests of a Go module, as a program next to their fixtures.
    GoTests { module: &'static str },
    /// An npm package of the tool's name.
    Npm,
    /// Programs of this very repository, as they were at a commit.
    OwnHistory { programs: &'static [&'static str] },
}

impl Tool {
    pub(crate) fn is_installed(&self) -> anyhow::Result<bool> {
        Ok(self.home_on(&shelf()?).join(self.executable).exists())
    }

    fn home_on(&self, shelf: &Path) -> PathBuf {
        shelf.join(format!("{}-{}", self.name, self.version))
    }

    /// Path of the tool, after installing it if need be.
    pub(crate) fn ensure(&self) -> anyhow::Result<PathBuf> {
        let shelf = shelf()?;
        let home = self.home_on(&shelf);
        let executable = home.join(self.executable);
        if executable.exists() {
            return Ok(executable);
        }

        fs::create_dir_all(&shelf).with_context(|| format!("cannot create {}", shelf.display()))?;
        let lock = File::create(shelf.join("lock"))?;
        lock.lock().context("cannot lock the directory of tools")?;
        if executable.exists() {
            return Ok(executable); // Somebody else installed it while we waited.
        }

        let building = shelf.join("building");
        remove_directory(&building)?;
        remove_directory(&home)?;
        fs::create_dir(&building)?;

        eprintln!("installing {} {} …", self.name, self.version);
        let start = Instant::now();
        self.build_in(&building).with_context(|| format!("cannot install {} {}", self.name, self.version))?;
        ensure!(building.join(self.executable).exists(), "{} came without {}", self.name, self.executable);
        fs::rename(&building, &home)?;
        eprintln!("installed {} {} in {} s", self.name, self.version, start.elapsed().as_secs());
        Ok(executable)
    }

    fn build_in(&self, directory: &Path) -> anyhow::Result<()> {
        match self.source {
            Source::OwnHistory { programs } => self.build_own_history(programs, directory),
            Source::Crate { features } => self.build_crate(features, directory),
            Source::GoCommand { package } => {
                let versioned = format!("{package}@v{}", self.version);
                quietly(
                    go(&["install", "-trimpath", "-ldflags=-s -w", &versioned]).env("GOBIN", directory.join("bin")),
                )?;
                Ok(())
            }
            Source::GoModule { module, package, nested } => self.build_go_module(module, package, nested, directory),
            Source::GoTests { module } => self.build_go_tests(module, directory),
            Source::Npm => {
                let versioned = format!("{}@{}", self.name, self.version);
                quietly(
                    gently("npm").args(["install", "--no-audit", "--no-fund", &versioned, "--prefix"]).arg(directory),
                )?;
                Ok(())
            }
        }
    }

    /// Tools run for seconds, so a quick build matters more than a quick program.
    fn build_crate(&self, features: &str, directory: &Path) -> anyhow::Result<()> {
        let target = directory.join("target");
        quietly(
            gently("cargo")
                .args(["install", "--locked", self.name, "--version", self.version, "--features", features, "--root"])
                .arg(directory)
                .env("CARGO_TARGET_DIR", &target)
                .env("CARGO_PROFILE_RELEASE_LTO", "off")
                .env("CARGO_PROFILE_RELEASE_CODEGEN_UNITS", "16")
                .env("CARGO_PROFILE_RELEASE_OPT_LEVEL", "1"),
        )?;
        remove_directory(&target)
    }

    /// Of our own crates, nothing is taken from this checkout but its history: what was changed here is not in it.
    fn build_own_history(&self, programs: &[&str], directory: &Path) -> anyhow::Result<()> {
        let (source, target) = (directory.join("source"), directory.join("target"));
        fs::create_dir(&source)?;
        let archive = directory.join("source.tar");
        quietly(Command::new("git").args(["archive", "--format=tar", self.version, "--output"]).arg(&archive))?;
        quietly(Command::new("tar").arg("-xf").arg(&archive).arg("-C").arg(&source))?;
        fs::remove_file(&archive)?;
        let mut build = gently("cargo");
        build.current_dir(&source).args([
            "build",
            "--locked",
            "--bins",
            "--package",
            "taco-server",
            "--package",
            "taco-agent",
        ]);
        // Cargo tells the programs that it starts where it found their own workspace: this one has another.
        for (name, _) in env::vars_os().filter(|(name, _)| name.to_string_lossy().starts_with("CARGO_MANIFEST_")) {
            build.env_remove(name);
        }
        quietly(build.arg("--target-dir").arg(&target).env("CARGO_PROFILE_DEV_DEBUG", "0"))?;
        fs::create_dir(directory.join("bin"))?;
        for program in programs {
            fs::rename(target.join("debug").join(program), directory.join("bin").join(program))?;
        }
        remove_directory(&source)?;
        remove_directory(&target)
    }

    fn build_go_tests(&self, module: &str, directory: &Path) -> anyhow::Result<()> {
        let versioned = format!("{module}@v{}", self.version);
        let downloaded: serde_json::Value =
            serde_json::from_slice(&quietly(&mut go(&["mod", "download", "-json", &versioned]))?)?;
        let source = Path::new(downloaded["Dir"].as_str().context("`go mod download` names no directory")?);
        copy_directory(source, directory)?;
        quietly(go(&["test", "-C"]).arg(directory).args(["-c", "-o", self.executable, "."]))?;
        Ok(())
    }

    fn build_go_module(
        &self,
        module: &str,
        package: &str,
        nested: Option<&str>,
        directory: &Path,
    ) -> anyhow::Result<()> {
        let versioned = format!("{module}@v{}", self.version);
        let downloaded: serde_json::Value =
            serde_json::from_slice(&quietly(&mut go(&["mod", "download", "-json", &versioned]))?)?;
        let source = Path::new(downloaded["Dir"].as_str().context("`go mod download` names no directory")?);

        // The source is read-only and stays so: go takes an edited go.mod (and its go.sum) from elsewhere.
        let go_mod = directory.join("go.mod");
        let original = fs::read_to_string(source.join("go.mod"))?;
        fs::write(&go_mod, nested.map_or(original.clone(), |version| fetch_nested_modules(&original, version)))?;
        fs::write(directory.join("go.sum"), fs::read(source.join("go.sum"))?)?;

        // Without this flag both terraform and tofu call themselves "-dev".
        let release = format!("-ldflags=-s -w -X {module}/version.dev=no");
        quietly(
            go(&["build", "-C"])
                .arg(source)
                .args(["-mod=mod", "-trimpath", &release])
                .arg(format!("-modfile={}", go_mod.display()))
                .arg("-o")
                .arg(directory.join(format!("bin/{}", self.name)))
                .arg(package),
        )?;
        Ok(())
    }
}

/// Copies what `go mod download` keeps read-only, so that tests can write next to their fixtures.
fn copy_directory(from: &Path, to: &Path) -> anyhow::Result<()> {
    fs::create_dir_all(to)?;
    for entry in fs::read_dir(from)? {
        let entry = entry?;
        let copy = to.join(entry.file_name());
        if entry.file_type()?.is_dir() {
            copy_directory(&entry.path(), &copy)?;
        } else {
            fs::write(&copy, fs::read(entry.path())?)?;
        }
    }
    Ok(())
}

/// Turns replacements by a folder, which the proxy's copy of a module lacks, into downloads of the nested modules.
/// Drops runtime settings too: a newer Go refuses those that it has retired.
fn fetch_nested_modules(go_mod: &str, version: &str) -> String {
    let lines = go_mod.lines().filter(|line| !line.starts_with("godebug "));
    let lines = lines.map(|line| match line.split_once(" => ./") {
        Some((replace, _folder)) => {
            let module = replace.trim_start_matches("replace ");
            format!("{replace} => {module} {version}\n")
        }
        None => format!("{line}\n"),
    });
    lines.collect()
}

/// The directory that holds all tools of this user.
fn shelf() -> anyhow::Result<PathBuf> {
    if let Some(tools) = env::var_os("TACO_TOOLS") {
        return Ok(std::path::absolute(tools)?);
    }
    let cache = match env::var_os("XDG_CACHE_HOME") {
        Some(cache) => PathBuf::from(cache),
        None => env::home_dir().context("there is no home directory: please set TACO_TOOLS")?.join(".cache"),
    };
    Ok(cache.join("taco/tools"))
}

/// A long build must not make the machine sluggish for its users.
fn gently(program: &str) -> Command {
    let mut command = Command::new("nice");
    command.args(["-n", "10", program]);
    command
}

/// Go without C, so that no C compiler or library is asked for.
fn go(arguments: &[&str]) -> Command {
    let mut command = gently("go");
    command.args(arguments).env("CGO_ENABLED", "0");
    command
}

fn remove_directory(path: &Path) -> anyhow::Result<()> {
    match fs::remove_dir_all(path) {
        Err(error) if error.kind() != ErrorKind::NotFound => {
            Err(error).with_context(|| format!("cannot remove {}", path.display()))
        }
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::fetch_nested_modules;

    #[test]
    fn a_nested_module_is_downloaded_instead_of_read_from_its_folder() {
        let go_mod = "module example.org/a\n\nreplace example.org/a/b => ./b\n\nreplace c => d v1.0.0\n";
        let expected =
            "module example.org/a\n\nreplace example.org/a/b => example.org/a/b v0.1.0\n\nreplace c => d v1.0.0\n";
        assert_eq!(fetch_nested_modules(go_mod, "v0.1.0"), expected);
    }
}
