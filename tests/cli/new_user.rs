//! The first five minutes: from nothing but the program to an applied run, by typing what the texts say and opening what
//! they name. Nothing here knows a command: they come from the start text, `examples/quickstart` and the pages.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;

use harness::binary::binary;
use harness::browser::{Browser, Page};
use harness::home::Home;
use harness::process::Process;
use nix::sys::signal::Signal;
use reqwest::{Client, StatusCode};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::time::timeout;

/// Address of a server that nobody has configured, as `examples/quickstart/README.md` has it.
const USUAL_ADDRESS: &str = "127.0.0.1:8080";

/// Silence of a command that nobody should have to wait out, also on a machine that is busy with other tests.
const COMMAND_TIMEOUT: Duration = Duration::from_secs(120);

/// Someone with an empty home, `taco` and terraform on their `PATH`, and a server that they have just started.
struct NewUser {
    home: Home,
    server: Process,
    /// Host and port, from the start text.
    address: String,
    browser: Browser,
}

impl NewUser {
    /// Starts the server as `words` say, and opens the link that it prints.
    async fn starts(words: &str) -> Self {
        let home = Home::default();
        let programs = home.path().join("bin");
        fs::create_dir(&programs).expect("it is made");
        // Terraform makes it at its first look for updates, which we have disabled, and takes it for granted afterwards.
        fs::create_dir(home.path().join(".terraform.d")).expect("it is made");
        let terraform = std::env::var_os("TACO_TEST_TERRAFORM").unwrap_or_else(|| {
            panic!(r#"TACO_TEST_TERRAFORM is not set: run `cargo xtask test`, or eval "$(cargo xtask tools)" first"#)
        });
        std::os::unix::fs::symlink(terraform, programs.join("terraform")).expect("it is linked");
        // Whoever has something else on the usual port says so in this way.
        let mut command = on_terminal(&home, home.path(), words);
        // Nobody listens on port 1, so that no other engine is downloaded.
        command.env("TACO_LISTEN", "127.0.0.1:0").env("TACO_ENGINE_MIRROR", "http://127.0.0.1:1");
        let server = Process::start(&mut command);
        let line = server.line_of_stdout(|line| line.contains(" listens on "));
        let address = line.trim().rsplit(' ').next().expect("a last word").to_owned();
        server.line_of_stdout(|line| line.contains("one-time link"));
        let link = server.line_of_stdout(|line| line.contains("/setup/")).trim().to_owned();
        let origin = format!("http://{address}");
        let path = link.strip_prefix(&origin).expect("it leads to the server").to_owned();
        let browser = Browser::at(origin, Client::builder());
        browser.set_password(&path).await;
        Self { home, server, address, browser }
    }

    /// The page that a new user sees after that, once the organization `acme` is there. The blocks on it are those from
    /// before.
    async fn creates_organization(&self) -> Page {
        let welcome = self.browser.get("/app").await;
        assert_eq!(welcome.status, StatusCode::OK, "{}", welcome.text);
        let form = welcome.form("/app/organizations");
        let done = self.browser.send(&form, &[("name", "acme"), ("email", "ada@acme.example")]).await;
        assert_eq!(done.status, StatusCode::SEE_OTHER, "{}", done.text);
        welcome
    }

    /// Types a command in a directory, and answers its question. All that it prints.
    async fn types(&self, directory: &Path, command: &str, answer: &str) -> Typed {
        let mut command = tokio::process::Command::from(on_terminal(&self.home, directory, command));
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).kill_on_drop(true);
        let mut child = command.spawn().expect("it starts");
        // `script` does not end before its own input does.
        child.stdin.take().expect("it is piped").write_all(answer.as_bytes()).await.ok();
        let mut stdout = child.stdout.take().expect("it is piped");
        let mut said = Vec::new();
        let mut has_agreed = false;
        loop {
            let read = timeout(COMMAND_TIMEOUT, stdout.read_buf(&mut said)).await;
            let read = read.unwrap_or_else(|_| panic!("it waits for something: {}", String::from_utf8_lossy(&said)));
            if read.expect("it is piped") == 0 {
                break;
            }
            let so_far = String::from_utf8_lossy(&said).into_owned();
            if let Some(address) = authorize_address(&so_far).filter(|_| !has_agreed) {
                has_agreed = true;
                self.agrees(&address).await;
            }
        }
        let status = child.wait().await.expect("it ends");
        Typed { code: status.code(), said: String::from_utf8_lossy(&said).into_owned() }
    }

    /// Opens the link that a login prints, and approves.
    async fn agrees(&self, address: &str) {
        let path = address.strip_prefix(&self.browser.origin).expect("it leads to the server");
        let page = self.browser.get(path).await;
        assert_eq!(page.status, StatusCode::OK, "{}", page.text);
        let answer = self.browser.send(&page.form("/oauth/authorize"), &[("decision", "approve")]).await;
        // The program leaves as soon as it has the code: on a slow machine, before its answer is out.
        reqwest::get(answer.location()).await.ok();
    }

    fn directory(&self, name: &str) -> PathBuf {
        let directory = self.home.path().join(name);
        fs::create_dir(&directory).expect("it is made");
        directory
    }
}

impl Drop for NewUser {
    fn drop(&mut self) {
        // `script` ends the server when it is asked to end, and not when it is killed.
        self.server.signal(Signal::SIGTERM);
        if !std::thread::panicking() {
            self.server.wait();
        }
    }
}

#[derive(Debug)]
struct Typed {
    code: Option<i32>,
    said: String,
}

/// The command in a shell on a terminal, which `script` makes. It inherits nothing of the test's own environment.
fn on_terminal(home: &Home, directory: &Path, command: &str) -> Command {
    let mut script = Command::new("script");
    script.args(["-q", "-e", "-c", &format!("exec {command}"), "/dev/null"]).current_dir(directory).env_clear();
    let programs = [home.path().join("bin"), binary("taco").parent().expect("a directory").to_owned()];
    let path = programs.map(|directory| directory.display().to_string()).join(":");
    script.env("PATH", format!("{path}:/usr/bin:/bin")).env("HOME", home.path()).env("SHELL", "/bin/sh");
    script.env("TERM", "xterm").env("CHECKPOINT_DISABLE", "1");
    script
}

/// The whole link to the page on which one approves, once all of it is there.
fn authorize_address(said: &str) -> Option<String> {
    let at = said.find("/oauth/authorize?")?;
    let begin = said[..at].rfind("http")?;
    let end =
        begin + said[begin..].find(|letter: char| letter.is_whitespace() || letter.is_control() || letter == '\'')?;
    Some(said[begin..end].to_owned())
}

/// Lines of the `sh` blocks of a text.
fn commands(text: &str) -> Vec<String> {
    let blocks = text.split("```sh\n").skip(1).map(|rest| rest.split("```").next().expect("a first part"));
    blocks.flat_map(str::lines).map(str::to_owned).collect()
}

/// Texts of the code blocks of a page.
fn code_blocks(page: &Page) -> Vec<String> {
    let blocks = page.text.split("<pre").skip(1).map(|rest| {
        let code = rest.split("<code").nth(1).and_then(|rest| rest.split_once('>')).expect("code").1;
        code.split("</code>").next().expect("a first part").to_owned()
    });
    blocks.map(|block| block.replace("&#34;", "\"").replace("&quot;", "\"").replace("&amp;", "&")).collect()
}

fn repository(path: &str) -> PathBuf {
    Path::new(&std::env::var("CARGO_MANIFEST_DIR").expect("cargo runs the tests")).join("..").join(path)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_quickstart_leads_to_an_applied_run() {
    let text = fs::read_to_string(repository("examples/quickstart/README.md")).expect("it is there");
    let [start, login, init, run, apply] = &commands(&text)[..] else { panic!("other commands: {text}") };
    let user = NewUser::starts(start).await;
    user.creates_organization().await;

    let login = login.replace(USUAL_ADDRESS, &user.address);
    let start_text = user.server.stdout();
    assert!(start_text.contains(&format!("  {login} ")), "the server says the same: {start_text}");
    let done = user.types(user.home.path(), &login, "").await;
    assert_eq!(done.code, Some(0), "{}", done.said);

    let directory = user.directory("quickstart");
    fs::copy(repository("examples/quickstart/main.tf"), directory.join("main.tf")).expect("it is copied");
    let done = user.types(&directory, init, "").await;
    assert_eq!(done.code, Some(0), "{}", done.said);
    let done = user.types(&directory, run, "").await;
    assert_eq!(done.code, Some(2), "there is something to apply: {}", done.said);
    let done = user.types(&directory, apply, "yes\n").await;
    assert_eq!(done.code, Some(0), "{}", done.said);

    let page = user.browser.get("/app/acme/runs").await;
    let run = page.text.split('"').find(|text| text.starts_with("/app/acme/workspaces/quickstart/runs/run-"));
    let page = user.browser.get(run.unwrap_or_else(|| panic!("no run: {}", page.text))).await;
    assert!(page.text.contains("Applied"), "{}", page.text);
    let page = user.browser.get("/app/acme/workspaces/quickstart").await;
    assert!(page.text.contains("Hello from taco"), "it shows the outputs: {}", page.text);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_pages_lead_terraform_to_an_applied_run() {
    let user = NewUser::starts("taco").await;
    let blocks = code_blocks(&user.creates_organization().await);
    let starting_with = |begin: &str| {
        let found = blocks.iter().find(|block| block.starts_with(begin));
        found.unwrap_or_else(|| panic!("no {begin} in {blocks:#?}"))
    };
    let host_block = starting_with("host ");
    assert!(
        user.server.stdout().replace("\r\n", "\n").replace("\n  ", "\n").contains(host_block),
        "the start text has the same"
    );
    fs::write(user.home.path().join(".terraformrc"), host_block).expect("it is written");
    let done = user.types(user.home.path(), starting_with("terraform login "), "yes\n").await;
    assert_eq!(done.code, Some(0), "{}", done.said);

    let directory = user.directory("project");
    let cloud = starting_with("terraform {").replace("my-company", "acme");
    fs::write(directory.join("backend.tf"), cloud).expect("it is written");
    fs::copy(repository("examples/quickstart/main.tf"), directory.join("main.tf")).expect("it is copied");
    for (command, answer) in [("terraform init", ""), ("terraform apply", "yes\n")] {
        let done = user.types(&directory, command, answer).await;
        assert_eq!(done.code, Some(0), "{}", done.said);
    }
    let page = user.browser.get("/app/acme/runs").await;
    assert!(page.text.contains("Applied"), "{}", page.text);
}

/// What the README shows is what the quickstart says, and what it links to is there.
#[test]
fn the_readme_shows_the_quickstart_and_links_to_what_exists() {
    let read = |path: &str| fs::read_to_string(repository(path)).expect("it is there");
    let (readme, quickstart) = (read("README.md"), read("examples/quickstart/README.md"));
    let typed = readme.lines().filter_map(|line| line.strip_prefix("$ "));
    let typed: Vec<&str> = typed.filter(|command| !command.starts_with("cd ")).collect();
    assert_eq!(typed, commands(&quickstart), "left: README.md, right: examples/quickstart/README.md");

    let links = readme.split("](").skip(1).map(|rest| rest.split(')').next().expect("a first part"));
    let ours: Vec<&str> = links.filter(|link| !link.starts_with("https://")).collect();
    assert!(ours.len() > 5, "{ours:?}");
    for link in ours {
        let file = fs::metadata(repository(link)).unwrap_or_else(|error| panic!("{link}: {error}"));
        assert!(!link.ends_with(".png") || file.len() < 150_000, "{link} has {} bytes", file.len());
    }
}
