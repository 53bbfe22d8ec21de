//! Local mode: a directory that names a bucket, and nothing that names a server. The program that these commands are a
//! part of then serves the bucket itself, for as long as the command takes; to the command it is a server as any other.

use std::fmt;
use std::io::{self, BufRead, Write};
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::pin::Pin;
use std::process::{Command, Stdio};
use std::sync::Arc;

use crate::failure::{Failure, Kind};
use crate::process_env::ProcessEnv;
use crate::trusted_buckets;

/// Name under which runs know the server that executes them, whatever its address is.
pub(crate) const LOCAL_HOST: &str = "taco.local";

/// Exit code that shells give to what Ctrl-C ended.
const INTERRUPTED_EXIT_CODE: i32 = 130;

/// Organization of a bucket, unless something names another one.
pub(crate) const DEFAULT_ORGANIZATION: &str = "main";

pub type BoxFuture<'a, T> = Pin<Box<dyn Future<Output = T> + Send + 'a>>;

/// Serves a bucket in this very process.
pub trait ServesBuckets: Send + Sync {
    /// Starts the server, unless it runs already. The error is a sentence for people.
    fn serve<'a>(&'a self, bucket: &'a LocalBucket) -> BoxFuture<'a, Result<LocalServer, String>>;

    /// Stops what was started, when its runs have ended.
    fn stop(&self) -> BoxFuture<'_, ()>;
}

/// Bucket to serve, and for whom.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct LocalBucket {
    pub url: String,
    pub s3_endpoint: Option<String>,
    pub s3_region: Option<String>,
    /// Who the user claims to be, as an e-mail address: nobody has verified it.
    pub author: String,
    pub doors: Doors,
}

/// Who may come to a local server.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Doors {
    /// The command that has started it.
    OfCommand,
    /// All users of this machine, with a browser.
    OfMachine(SocketAddr),
}

/// A server of this process.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct LocalServer {
    pub address: String,
    pub token: String,
}

/// Server that this process can be itself, if it can.
#[derive(Clone, Default)]
pub(crate) struct OwnServer(pub(crate) Option<Arc<dyn ServesBuckets>>);

impl fmt::Debug for OwnServer {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("OwnServer")
    }
}

impl OwnServer {
    /// Stops the server, if it was started, when its runs have ended. Ctrl-C ends the waiting and the process.
    pub(crate) async fn stop(&self) {
        let Some(serves) = &self.0 else { return };
        tokio::select! {
            () = serves.stop() => {}
            _ = tokio::signal::ctrl_c() => std::process::exit(INTERRUPTED_EXIT_CODE),
        }
    }
}

/// Address of a bucket, and what it takes to reach it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct BucketChoice {
    pub(crate) url: String,
    pub(crate) s3_endpoint: Option<String>,
    pub(crate) s3_region: Option<String>,
    /// File that names it, which may have come with a repository; `None` if the user did.
    pub(crate) named_by: Option<PathBuf>,
}

impl BucketChoice {
    /// Bucket that the user names.
    pub(crate) fn of_user(url: &str) -> Self {
        Self { url: url.to_owned(), s3_endpoint: None, s3_region: None, named_by: None }
    }

    /// What a file says. A path is one beside that file.
    pub(crate) fn of_file(file: &Path, text: &str, s3_endpoint: Option<String>, s3_region: Option<String>) -> Self {
        let url = match text.contains("://") {
            true => text.to_owned(),
            false => {
                let path = file.parent().unwrap_or(Path::new("/")).join(text);
                url::Url::from_file_path(without_dots(&path)).map_or_else(|()| text.to_owned(), String::from)
            }
        };
        Self { url, s3_endpoint, s3_region, named_by: Some(file.to_owned()) }
    }
}

fn without_dots(path: &Path) -> PathBuf {
    use std::path::Component;
    let mut clean = PathBuf::new();
    for part in path.components() {
        match part {
            Component::CurDir => {}
            Component::ParentDir => {
                clean.pop();
            }
            other => clean.push(other),
        }
    }
    clean
}

impl fmt::Display for BucketChoice {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(&self.url)?;
        match &self.s3_endpoint {
            Some(endpoint) => write!(formatter, " at {endpoint}"),
            None => Ok(()),
        }
    }
}

/// Serves a bucket for this command. One that only a file in the directory names is confirmed first: whoever has written
/// that file would otherwise decide where states and variables go, and which runs this machine executes.
pub(crate) async fn serve(
    choice: &BucketChoice,
    doors: Doors,
    may_ask: bool,
    process_env: &ProcessEnv,
) -> Result<LocalServer, Failure> {
    let Some(serves) = &process_env.own_server.0 else {
        return Err(Failure::error(format!("{choice} cannot be served by this program"))
            .hint("use `taco`, or name a server with --host"));
    };
    confirm(choice, may_ask, process_env)?;
    let bucket = LocalBucket {
        url: choice.url.clone(),
        s3_endpoint: choice.s3_endpoint.clone(),
        s3_region: choice.s3_region.clone(),
        author: author(process_env),
        doors,
    };
    serves
        .serve(&bucket)
        .await
        .map_err(|why| Failure::error(format!("the bucket {choice} cannot be used")).because(why))
}

fn confirm(choice: &BucketChoice, may_ask: bool, process_env: &ProcessEnv) -> Result<(), Failure> {
    let Some(file) = &choice.named_by else { return Ok(()) };
    let line = choice.to_string();
    if trusted_buckets::contains(process_env, &line)? {
        return Ok(());
    }
    let file = file.display();
    if !may_ask {
        return Err(Failure::usage(format!("{choice} was never confirmed"))
            .because(format!("nobody but {file} names this bucket, and it may not be yours"))
            .hint(format!("if it is, run the command once at a terminal, or set TACO_BUCKET={}", choice.url)));
    }
    let mut err = io::stderr().lock();
    writeln!(err, "{file} names the bucket {choice}.")?;
    writeln!(err, "Your states and variables will go there, and who may write to it can start runs in your name.")?;
    write!(err, "Is it yours? [y/N] ")?;
    err.flush()?;
    let mut answer = String::new();
    io::stdin().lock().read_line(&mut answer)?;
    match answer.trim().to_ascii_lowercase().as_str() {
        "y" | "yes" => trusted_buckets::add(process_env, &line),
        _ => Err(Failure::new(Kind::Canceled, "Canceled.")),
    }
}

/// The e-mail address that git knows, or the name of the user on this machine.
fn author(process_env: &ProcessEnv) -> String {
    let named = process_env.variable("GIT_AUTHOR_EMAIL").map(str::to_owned).or_else(|| git_email(process_env));
    named.unwrap_or_else(|| {
        let user = ["USER", "LOGNAME", "USERNAME"].into_iter().find_map(|name| process_env.variable(name));
        format!("{}@localhost", user.unwrap_or("someone"))
    })
}

fn git_email(process_env: &ProcessEnv) -> Option<String> {
    let mut git = Command::new("git");
    git.args(["config", "user.email"]).current_dir(&process_env.directory).stdin(Stdio::null()).stderr(Stdio::null());
    let said = git.output().ok().filter(|output| output.status.success())?;
    let email = String::from_utf8(said.stdout).ok()?.trim().to_owned();
    Some(email).filter(|email| !email.is_empty())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_is_one_beside_the_file_that_names_it() {
        let url = |text: &str| BucketChoice::of_file(Path::new("/work/estate/.taco.toml"), text, None, None).url;
        assert_eq!(url("s3://acme-taco/prod"), "s3://acme-taco/prod");
        assert_eq!(url("../bucket"), "file:///work/bucket");
        assert_eq!(url("./a/../b"), "file:///work/estate/b");
        assert_eq!(url("/srv/taco"), "file:///srv/taco");
    }

    #[test]
    fn a_bucket_that_only_a_file_names_is_confirmed_once() {
        let home = tempfile::tempdir().expect("there is room");
        let variables = [("HOME".to_owned(), home.path().display().to_string())].into();
        let process_env = ProcessEnv { variables, ..ProcessEnv::default() };
        let file = home.path().join(".taco.toml");
        let endpoint = |at: &str| Some(at.to_owned());
        let choice = |at: &str| BucketChoice::of_file(&file, "s3://acme", endpoint(at), None);
        let said = confirm(&choice("https://s3"), false, &process_env).expect_err("nobody confirmed it").to_string();
        assert!(said.contains(".taco.toml") && said.contains("TACO_BUCKET=s3://acme"), "{said}");
        confirm(&BucketChoice::of_user("s3://acme"), false, &process_env).expect("the user has named it");
        trusted_buckets::add(&process_env, &choice("https://s3").to_string()).expect("it is noted");
        confirm(&choice("https://s3"), false, &process_env).expect("once is enough");
        confirm(&choice("https://evil"), false, &process_env).expect_err("the same name elsewhere is another bucket");
    }
}
