//! Someone at a command line, with a server.

use std::io::Write;
use std::path::PathBuf;
use std::process::{Command, Stdio};

use harness::home::{Home, ServerProcess};
use serde_json::Value;

/// The token of the server's first admin.
pub(crate) const TOKEN: &str = "a-token-for-automation-of-more-than-32-letters";

pub(crate) struct Person {
    pub(crate) home: Home,
    pub(crate) server: ServerProcess,
    speaks_tls: bool,
}

/// Result of a command.
#[derive(Debug)]
pub(crate) struct Done {
    pub(crate) code: i32,
    pub(crate) stdout: String,
    pub(crate) stderr: String,
}

impl Done {
    pub(crate) fn of(command: &mut Command, input: &str) -> Self {
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = command.spawn().expect("it starts");
        // A command that reads no input may have ended before it is written.
        child.stdin.take().expect("it is piped").write_all(input.as_bytes()).ok();
        let output = child.wait_with_output().expect("it ends");
        let text = |bytes| String::from_utf8(bytes).expect("it is text");
        let code = output.status.code().expect("no signal ends it");
        Self { code, stdout: text(output.stdout), stderr: text(output.stderr) }
    }

    /// Rows of a table, without the headings.
    pub(crate) fn rows(&self) -> Vec<Vec<&str>> {
        self.stdout.lines().skip(1).map(|line| line.split('\t').collect()).collect()
    }
}

impl Person {
    /// With a server that runs, and nothing on it.
    pub(crate) fn new() -> Self {
        let home = Home::default();
        let mut command = home.taco(&["server"]);
        Self::with_server(&mut command, home)
    }

    /// With a server whose own agent has terraform, and downloads no other version.
    pub(crate) fn with_engine() -> Self {
        let home = Home::default();
        let terraform = std::env::var_os("TACO_TEST_TERRAFORM").unwrap_or_else(|| {
            panic!(r#"TACO_TEST_TERRAFORM is not set: run `cargo xtask test`, or eval "$(cargo xtask tools)" first"#)
        });
        let programs = home.path().join("bin");
        std::fs::create_dir(&programs).expect("it is made");
        std::os::unix::fs::symlink(terraform, programs.join("terraform")).expect("it is linked");
        let mut command = home.taco(&["server"]);
        // Nobody listens on port 1.
        command.env("PATH", programs).env("TACO_ENGINE_MIRROR", "http://127.0.0.1:1");
        // Tests have run tasks of their own.
        command.env("TACO_OUTBOUND_ALLOW", "127.0.0.0/8");
        Self::with_server(&mut command, home)
    }

    /// With a server that speaks https, and whose certificate authority no one else trusts.
    pub(crate) fn with_tls() -> Self {
        let home = Home::default();
        let mut command = home.taco(&["server", "--tls-dev"]);
        Self { speaks_tls: true, ..Self::with_server(&mut command, home) }
    }

    fn with_server(command: &mut Command, home: Home) -> Self {
        let server = ServerProcess::start(command.env("TACO_LISTEN", "127.0.0.1:0").env("TACO_SITE_TOKEN", TOKEN));
        Self { home, server, speaks_tls: false }
    }

    /// With a workspace acme/network, in which runs happen on this machine.
    pub(crate) fn with_workspace() -> Self {
        Self::new().given_workspace()
    }

    pub(crate) fn given_workspace(self) -> Self {
        self.succeeds(&["org", "create", "acme", "--email", "ops@acme.example"]);
        self.succeeds(&["ws", "create", "acme/network", "--execution-mode", "local"]);
        self
    }

    /// URL of the server, which is its name where no other is known.
    pub(crate) fn host(&self) -> String {
        let scheme = if self.speaks_tls { "https" } else { "http" };
        format!("{scheme}://{}", self.server.address)
    }

    /// CA certificate that clients of a server with TLS have to trust.
    pub(crate) fn authority(&self) -> PathBuf {
        self.home.path().join(".local/share/taco/bucket.tls/ca.pem")
    }

    /// `taco` with these arguments, for this person's server.
    pub(crate) fn taco(&self, words: &[&str]) -> Command {
        let mut command = self.home.taco(words);
        command.env("TACO_HOST", self.host()).env("TACO_TOKEN", TOKEN);
        if self.speaks_tls {
            command.env("SSL_CERT_FILE", self.authority());
        }
        command
    }

    pub(crate) fn does(&self, words: &[&str]) -> Done {
        Done::of(&mut self.taco(words), "")
    }

    pub(crate) fn succeeds(&self, words: &[&str]) -> Done {
        let done = self.does(words);
        assert_eq!((done.code, done.stderr.as_str()), (0, ""), "taco {}: {done:?}", words.join(" "));
        done
    }

    /// Output of a command with `--json`.
    pub(crate) fn json(&self, words: &[&str]) -> Value {
        let words: Vec<&str> = words.iter().chain(&["--json"]).copied().collect();
        serde_json::from_str(&self.succeeds(&words).stdout).expect("it is JSON")
    }

    /// Error message of a command that fails with this code: at most three lines.
    pub(crate) fn fails(&self, code: i32, words: &[&str]) -> String {
        let done = self.does(words);
        assert_eq!((done.code, done.stdout.as_str()), (code, ""), "taco {}: {done:?}", words.join(" "));
        assert!(done.stderr.starts_with("error: ") && done.stderr.lines().count() <= 3, "{done:?}");
        assert!(!done.stderr.contains(TOKEN), "{done:?}");
        done.stderr
    }
}
