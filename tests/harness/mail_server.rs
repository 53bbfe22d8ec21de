//! A real mail server, on a free port of the loopback.

use std::process::Command;

use serde_json::Value;

use crate::process::Process;

const SCRIPT: &str = include_str!("mail_server.js");

pub const USER: &str = "taco";
pub const PASSWORD: &str = "a-password-for-mail";

pub struct MailServer {
    process: Process,
    port: String,
    _script: tempfile::TempDir,
}

impl MailServer {
    pub fn start() -> Self {
        let library = std::env::var_os("TACO_TEST_SMTP_SERVER").unwrap_or_else(|| {
            panic!(r#"TACO_TEST_SMTP_SERVER is not set: run `cargo xtask test`, or eval "$(cargo xtask tools)" first"#)
        });
        let directory = tempfile::tempdir().expect("a directory");
        let script = directory.path().join("mail_server.js");
        std::fs::write(&script, SCRIPT).expect("it is written");
        let process = Process::start(Command::new("node").arg(script).arg(library).args([USER, PASSWORD]));
        let line = process.line_of_stdout(|line| line.contains(" listens on "));
        let port = line.rsplit(' ').next().expect("a line has a last word").to_owned();
        Self { process, port, _script: directory }
    }

    /// Its address, with user and password.
    pub fn url(&self) -> String {
        format!("smtp://{USER}:{PASSWORD}@127.0.0.1:{}", self.port)
    }

    /// The first message with this in it; waits for it.
    pub fn message(&self, part: &str) -> Value {
        let line = self.process.line_of_stdout(|line| line.starts_with('{') && line.contains(part));
        serde_json::from_str(&line).expect("JSON")
    }
}
