//! Keeps the pool's token out of the reach of runs, which may have the agent's own user.
//!
//! `/proc/<pid>/environ` and `cmdline` show what a process was started with, for as long as it lives. So the agent
//! reads its token and starts itself again without it, and without the rest of its environment.

use std::ffi::{OsStr, OsString};
use std::io::{self, Read, Write};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::environment::INHERITED_VARIABLES;
use crate::platform;

/// The argument that a program started by [`start_again`] gets.
pub const TOKEN_ON_STDIN: &str = "--token-on-stdin";

/// Environment variables kept in addition to the agent's own settings and those that engines inherit.
const KEPT_VARIABLES: [&str; 4] = ["HOME", "USER", "RUST_LOG", "RUST_BACKTRACE"];
const SECRET_SETTINGS: [&str; 2] = ["TACO_AGENT_TOKEN", "TACO_AGENT_TOKEN_FILE"];
const SECRET_FLAGS: [&str; 2] = ["--token", "--token-file"];

/// The pool's token, and the file that it is from.
#[derive(Clone, PartialEq, Eq)]
pub struct Token {
    pub text: String,
    pub file: Option<PathBuf>,
}

/// Replaces this process by itself with the token on standard input, and after it, in a line of its own, where it is
/// from. Returns only if that fails.
pub fn start_again(token: &Token) -> io::Error {
    let replace = || -> io::Result<io::Error> {
        let (reader, mut writer) = io::pipe()?;
        // A pipe holds 64 KiB before anyone reads, and a token is shorter.
        if token.text.len() > 4096 {
            return Err(io::Error::other("the token is longer than any token is"));
        }
        let file = token.file.as_deref().unwrap_or(Path::new(""));
        writer.write_all(&[token.text.as_bytes(), b"\n", file.as_os_str().as_bytes()].concat())?;
        drop(writer);
        let mut command = Command::new(platform::own_program());
        command.args(without_secrets(std::env::args_os().skip(1))).arg(TOKEN_ON_STDIN);
        command.env_clear().envs(std::env::vars_os().filter(|(name, _)| is_kept(name))).stdin(reader);
        if let Some(name) = std::env::args_os().next() {
            command.arg0(name);
        }
        Ok(command.exec())
    };
    replace().unwrap_or_else(|error| error)
}

pub fn token_on_stdin() -> io::Result<Token> {
    let mut bytes = Vec::new();
    io::stdin().read_to_end(&mut bytes)?;
    let mut lines = bytes.trim_ascii().splitn(2, |byte| *byte == b'\n');
    let text = String::from_utf8_lossy(lines.next().unwrap_or_default());
    let file = lines.next().map(|path| PathBuf::from(OsString::from_vec(path.to_owned())));
    Ok(Token { text: checked(&text, "standard input")?, file })
}

pub fn token_of(file: &Path) -> io::Result<Token> {
    let name = file.display().to_string();
    let explain = |error: io::Error| io::Error::other(format!("{name}: {error}"));
    let text = std::fs::read_to_string(file).map_err(explain)?;
    Ok(Token { text: checked(&text, &name)?, file: Some(std::path::absolute(file).map_err(explain)?) })
}

/// True if this may be logged, regardless of the log level. The WebSocket library traces whole messages and the head of
/// its requests: tokens, and the sensitive variables in jobs.
pub fn may_be_logged(metadata: &tracing::Metadata<'_>) -> bool {
    *metadata.level() != tracing::Level::TRACE || !metadata.target().starts_with("tungstenite")
}

fn checked(token: &str, place: &str) -> io::Result<String> {
    match token.trim() {
        "" => Err(io::Error::other(format!("{place} has no token in it"))),
        token => Ok(token.to_owned()),
    }
}

fn is_kept(name: &OsStr) -> bool {
    let name = name.to_string_lossy();
    let is_own = name.starts_with("TACO_AGENT_") || name == "TACO_PROVIDER_MIRROR" || name.starts_with("TACO_ENGINE_");
    (is_own && !SECRET_SETTINGS.contains(&name.as_ref()))
        || INHERITED_VARIABLES.contains(&name.as_ref())
        || KEPT_VARIABLES.contains(&name.as_ref())
}

fn without_secrets(arguments: impl Iterator<Item = OsString>) -> Vec<OsString> {
    let mut kept = Vec::new();
    let mut arguments = arguments;
    while let Some(argument) = arguments.next() {
        let text = argument.to_string_lossy();
        if SECRET_FLAGS.contains(&text.as_ref()) {
            arguments.next();
        } else if !SECRET_FLAGS.iter().any(|flag| text.starts_with(&format!("{flag}="))) {
            kept.push(argument);
        }
    }
    kept
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn arguments_lose_the_token_and_nothing_else() {
        let arguments =
            ["--server", "https://x", "--token", "s", "--once", "--token-file=/f", "--token=s", "--name", "a"];
        let kept = without_secrets(arguments.into_iter().map(OsString::from));
        assert_eq!(kept, ["--server", "https://x", "--once", "--name", "a"]);
    }

    #[test]
    fn the_environment_loses_what_is_not_the_agents() {
        for (name, kept) in [
            ("TACO_AGENT_TOKEN", false),
            ("TACO_AGENT_TOKEN_FILE", false),
            ("TACO_AGENT_NAME", true),
            ("TACO_ENGINE_MIRROR", true),
            ("TACO_ENGINE_KEYS", true),
            ("TACO_ENCRYPTION_KEY", false),
            ("AWS_SECRET_ACCESS_KEY", false),
            ("PATH", true),
            ("RUST_LOG", true),
        ] {
            assert_eq!(is_kept(OsStr::new(name)), kept, "{name}");
        }
    }
}
