//! A user's home directory, in which `taco` runs as it would for that user.

use std::path::{Path, PathBuf};
use std::process::Command;

use tempfile::TempDir;

use crate::binary::binary;
use crate::process::Process;

pub struct Home(TempDir);

impl Default for Home {
    fn default() -> Self {
        Self(tempfile::tempdir().expect("there is room for a directory"))
    }
}

impl Home {
    pub fn path(&self) -> &Path {
        self.0.path()
    }

    /// Default location of the bucket.
    pub fn bucket(&self) -> PathBuf {
        self.path().join(".local/share/taco/bucket")
    }

    /// `taco` with these arguments. It inherits nothing of the test's own environment.
    pub fn taco(&self, words: &[&str]) -> Command {
        let mut command = Command::new(binary("taco"));
        command.args(words).current_dir(self.path()).env_clear().env("HOME", self.path());
        command
    }

    /// The path of a link that sets the first admin's password, as a server's operator gets it. The variables are the
    /// server's.
    pub fn setup_link(&self, variables: &[(&str, &str)]) -> String {
        let link = self.setup_link_to(variables);
        link[link.find("/setup/").expect("it is a link")..].to_owned()
    }

    /// The whole link.
    pub fn setup_link_to(&self, variables: &[(&str, &str)]) -> String {
        let output = self.taco(&["admin", "setup-link"]).envs(variables.iter().copied()).output().expect("it runs");
        assert!(output.status.success(), "{output:?}");
        String::from_utf8(output.stdout).expect("it is text").trim().to_owned()
    }

    /// Starts a server on a free port, and waits until it listens.
    pub fn server(&self) -> ServerProcess {
        ServerProcess::start(self.taco(&["server"]).env("TACO_LISTEN", "127.0.0.1:0"))
    }
}

/// Makes a server write snapshots and pack commits after a few of them, as it would after thousands and hours.
pub fn packs_soon(command: &mut Command) -> &mut Command {
    command.env("TACO_SNAPSHOT_EVERY", "20").env("TACO_PACK_AFTER", "0")
}

/// A server as a process of its own.
#[derive(Debug)]
pub struct ServerProcess {
    pub process: Process,
    /// Host and port.
    pub address: String,
}

impl ServerProcess {
    pub fn start(command: &mut Command) -> Self {
        let process = Process::start(command);
        let line = process.line_of_stdout(|line| line.contains(" listens on "));
        let address = line.rsplit(' ').next().expect("a line has a last word").to_owned();
        Self { process, address }
    }

    pub async fn get(&self, path: &str) -> reqwest::Response {
        reqwest::get(format!("http://{}{path}", self.address)).await.expect("the server answers")
    }

    /// Status and body.
    pub async fn read(&self, path: &str) -> (u16, String) {
        let response = self.get(path).await;
        (response.status().as_u16(), response.text().await.expect("the body is text"))
    }
}
