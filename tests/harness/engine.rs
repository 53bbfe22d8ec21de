//! The real terraform and the real tofu, at the hands of someone with a home and working directories.

use std::ffi::OsString;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Stdio;

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use tempfile::TempDir;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::process::{Child, ChildStdin, ChildStdout, Command};

use crate::installation::Installation;

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Engine {
    Terraform,
    Tofu,
}

impl Engine {
    /// As workspaces call it.
    pub fn word(self) -> &'static str {
        match self {
            Self::Terraform => "terraform",
            Self::Tofu => "tofu",
        }
    }

    /// The other one.
    pub fn other(self) -> Self {
        match self {
            Self::Terraform => Self::Tofu,
            Self::Tofu => Self::Terraform,
        }
    }

    /// `PATH` with which an agent finds both, and what provisioners need.
    pub fn search_path() -> OsString {
        // Policies are evaluated by what lies beside them.
        let both = [Self::Terraform, Self::Tofu].map(Self::program);
        let opa = std::env::var_os("TACO_TEST_OPA");
        let directories = both.iter().chain(&opa).filter_map(|program| Path::new(program).parent()).map(Path::to_owned);
        std::env::join_paths(directories.chain(["/usr/bin".into(), "/bin".into()])).expect("no colons")
    }

    /// The program itself.
    pub fn program(self) -> OsString {
        let variable = match self {
            Self::Terraform => "TACO_TEST_TERRAFORM",
            Self::Tofu => "TACO_TEST_TOFU",
        };
        std::env::var_os(variable).unwrap_or_else(|| {
            panic!(r#"{variable} is not set: run `cargo xtask test`, or eval "$(cargo xtask tools)" first"#)
        })
    }

    fn configuration(self) -> &'static str {
        match self {
            Self::Terraform => ".terraformrc",
            Self::Tofu => ".tofurc",
        }
    }
}

/// Someone who uses one of the two.
pub struct User {
    pub engine: Engine,
    home: TempDir,
    authority: Option<PathBuf>,
}

impl User {
    /// Knows how to reach the servers, and nothing else.
    pub fn new(engine: Engine, installation: &Installation) -> Self {
        let home = tempfile::tempdir().expect("a directory");
        // Terraform takes it for granted.
        fs::create_dir(home.path().join(".terraform.d")).expect("made");
        fs::write(home.path().join(engine.configuration()), installation.host_block()).expect("written");
        Self { engine, home, authority: installation.authority.clone() }
    }

    pub fn home(&self) -> &Path {
        self.home.path()
    }

    /// Keeps a token where `login` would keep it.
    pub fn holds(self, host: &str, token: &str) -> Self {
        let kept = serde_json::json!({ "credentials": { host: { "token": token } } });
        fs::write(self.credentials(), kept.to_string()).expect("written");
        self
    }

    /// Takes providers from this directory, and from nowhere else.
    pub fn takes_providers_from(&self, mirror: &Path) {
        let file = self.home.path().join(self.engine.configuration());
        let before = fs::read_to_string(&file).expect("it was written");
        let place = mirror.display();
        let mirrors = format!("provider_installation {{\n  filesystem_mirror {{ path = \"{place}\" }}\n}}\n");
        fs::write(file, before + "\n" + &mirrors).expect("written");
    }

    pub fn credentials(&self) -> PathBuf {
        self.home.path().join(".terraform.d/credentials.tfrc.json")
    }

    /// A new working directory with this configuration.
    pub fn directory(&self, name: &str, configuration: &str) -> Directory<'_> {
        let path = self.home.path().join(name);
        fs::create_dir(&path).expect("made");
        let directory = Directory { user: self, path };
        directory.write("main.tf", configuration);
        directory
    }
}

/// Working directory of a user.
pub struct Directory<'a> {
    user: &'a User,
    pub path: PathBuf,
}

/// Result of a command.
#[derive(Debug)]
pub struct Done {
    pub success: bool,
    /// Nothing if a signal ended it.
    pub code: Option<i32>,
    pub stdout: String,
    pub stderr: String,
}

impl<'a> Directory<'a> {
    /// One that is there already.
    pub fn of(user: &'a User, name: &str) -> Self {
        Self { user, path: user.home.path().join(name) }
    }
}

impl Directory<'_> {
    pub fn write(&self, name: &str, text: &str) {
        fs::write(self.path.join(name), text).expect("written");
    }

    pub fn read(&self, name: &str) -> String {
        fs::read_to_string(self.path.join(name)).unwrap_or_else(|error| panic!("{name}: {error}"))
    }

    /// The program with these arguments, which contain no spaces. It inherits nothing of the test's own environment.
    pub fn command(&self, words: &str) -> Command {
        let mut command = Command::new(self.user.engine.program());
        command.args(words.split_whitespace()).current_dir(&self.path).env_clear();
        command.env("HOME", self.user.home()).env("TF_CLI_ARGS", "-no-color").env("CHECKPOINT_DISABLE", "1");
        if let Some(file) = &self.user.authority {
            command.env("SSL_CERT_FILE", file);
        }
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).kill_on_drop(true);
        command
    }

    /// Begins a command that the test meets again later.
    pub fn begins(&self, words: &str) -> Running {
        let mut child = self.command(words).spawn().expect("it starts");
        drop(child.stdin.take());
        Running { words: words.to_owned(), child }
    }

    /// Does something with this on standard input.
    pub async fn does(&self, words: &str, input: &str) -> Done {
        let mut child = self.command(words).spawn().expect("it starts");
        // A command that asks nothing may have ended before it is written.
        child.stdin.take().expect("it is piped").write_all(input.as_bytes()).await.ok();
        Running { words: words.to_owned(), child }.ends().await
    }

    /// Output of a command that must succeed.
    #[track_caller]
    pub fn runs(&self, words: &str) -> impl Future<Output = String> {
        self.runs_with(words, "")
    }

    /// Output of a command that must succeed, with this on standard input.
    #[track_caller]
    pub fn runs_with(&self, words: &str, input: &str) -> impl Future<Output = String> {
        let place = std::panic::Location::caller();
        async move { self.does(words, input).await.success(place, words) }
    }

    /// Output of a command that must succeed, while someone answers its prompts one by one.
    #[track_caller]
    pub fn runs_answered(&self, words: &str, answers: &[&str]) -> impl Future<Output = String> {
        let place = std::panic::Location::caller();
        async move { self.does_answered(words, answers).await.success(place, words) }
    }

    /// Does something while someone answers its questions one by one.
    pub async fn does_answered(&self, words: &str, answers: &[&str]) -> Done {
        let mut talk = self.talks(words);
        for answer in answers {
            // It takes all that it finds for the answer to the first question.
            talk.asks().await;
            talk.answer(answer).await;
        }
        talk.ends().await
    }

    /// Begins a command that someone watches, answers and interrupts.
    pub fn talks(&self, words: &str) -> Talk {
        let mut child = self.command(words).spawn().expect("it starts");
        let stdin = child.stdin.take().expect("it is piped");
        let stdout = child.stdout.take().expect("it is piped");
        Talk { running: Running { words: words.to_owned(), child }, stdin, stdout, said: Vec::new(), questions: 0 }
    }

    /// Error message of a command that must fail, as one line.
    #[track_caller]
    pub fn fails(&self, words: &str) -> impl Future<Output = String> {
        let place = std::panic::Location::caller();
        async move {
            let done = self.does(words, "").await;
            assert!(!done.success, "{place}: {words} succeeds\n{}\n{}", done.stdout, done.stderr);
            done.complaint()
        }
    }
}

/// A command under way.
pub struct Running {
    words: String,
    pub child: Child,
}

impl Running {
    /// As Ctrl-C does.
    pub fn interrupt(&self) {
        let id = self.child.id().expect("it runs").try_into().expect("process ids are small");
        kill(Pid::from_raw(id), Signal::SIGINT).expect("it runs");
    }

    pub async fn ends(self) -> Done {
        let output = self.child.wait_with_output().await.expect("it ends");
        let text = |bytes| String::from_utf8(bytes).unwrap_or_else(|_| panic!("{} prints no text", self.words));
        let status = output.status;
        Done {
            success: status.success(),
            code: status.code(),
            stdout: text(output.stdout),
            stderr: text(output.stderr),
        }
    }
}

/// A command at someone's hands.
pub struct Talk {
    pub running: Running,
    stdin: ChildStdin,
    stdout: ChildStdout,
    said: Vec<u8>,
    questions: usize,
}

impl Talk {
    /// Waits until it has asked one more question, or has nothing more to say.
    pub async fn asks(&mut self) {
        self.questions += 1;
        while String::from_utf8_lossy(&self.said).matches("Enter a value:").count() < self.questions {
            if self.stdout.read_buf(&mut self.said).await.expect("it is piped") == 0 {
                break;
            }
        }
    }

    /// Waits until it has said this, or has nothing more to say.
    pub async fn says(&mut self, part: &str) {
        while !String::from_utf8_lossy(&self.said).contains(part) {
            if self.stdout.read_buf(&mut self.said).await.expect("it is piped") == 0 {
                break;
            }
        }
    }

    /// A command that has ended hears nothing.
    pub async fn answer(&mut self, answer: &str) {
        self.stdin.write_all(format!("{answer}\n").as_bytes()).await.ok();
    }

    pub async fn ends(mut self) -> Done {
        drop(self.stdin);
        self.stdout.read_to_end(&mut self.said).await.expect("it is piped");
        let done = self.running.ends().await;
        Done { stdout: String::from_utf8(self.said).expect("text"), ..done }
    }
}

/// Without what both programs say where a lock takes them longer than usual: it tells about the machine alone.
fn without_patience(said: &str) -> String {
    let lines = said.split_inclusive('\n');
    lines
        .filter(|line| !line.starts_with("Acquiring state lock.") && !line.starts_with("Releasing state lock."))
        .collect()
}

impl Done {
    fn success(self, place: &std::panic::Location<'_>, words: &str) -> String {
        assert!(self.success, "{place}: {words}\n{}\n{}", self.stdout, self.stderr);
        without_patience(&self.stdout)
    }

    /// All that it printed.
    pub fn said(&self) -> String {
        format!("{}\n{}", self.stdout, self.stderr)
    }

    /// Error message, without the line breaks and frames that both programs add.
    pub fn complaint(&self) -> String {
        self.stderr.split_whitespace().filter(|word| !matches!(*word, "│" | "╷" | "╵")).collect::<Vec<_>>().join(" ")
    }
}
