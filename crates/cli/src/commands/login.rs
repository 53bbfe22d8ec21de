//! `taco login`

use std::io::{self, IsTerminal, Read};
use std::path::{Path, PathBuf};

use clap::Args;
use serde_json::json;

use crate::EXIT_CODES;
use crate::api::{Api, one};
use crate::credentials::CredentialsFile;
use crate::failure::Failure;
use crate::host::Host;
use crate::output_flags::OutputFlags;
use crate::process_env::ProcessEnv;
use crate::session::{Flags, Target};
use crate::{oauth, output, user_config};

/// Log in to a server, for taco, terraform and tofu
///
/// Opens a page on which you approve the login, as `terraform login` does, or takes a token that you have. The token is
/// stored in ~/.terraform.d/credentials.tfrc.json, where terraform and tofu look for it too. Commands use this server from
/// then on (~/.config/taco/cli.toml).
#[derive(Args, Debug)]
#[command(after_help = format!("\
Examples:
  taco login taco.example.com
  taco login taco.example.com --paste
  taco login localhost:8080 --token-file token.txt
  vault read -field=token secret/taco | taco login taco.example.com

{EXIT_CODES}"))]
pub struct Arguments {
    /// Server: taco.example.com, localhost:8080, https://localhost:8443
    #[arg(value_name = "HOST")]
    server: Option<String>,
    /// Read the token from a file, or `-` for standard input [default without a terminal]
    #[arg(long, value_name = "FILE", conflicts_with_all = ["web", "paste"])]
    token_file: Option<PathBuf>,
    /// Prompt for a token that you created on the server's page
    #[arg(long, conflicts_with = "web")]
    paste: bool,
    /// Log in with the browser [default on a terminal]
    #[arg(long)]
    web: bool,
    #[command(flatten)]
    output: OutputFlags,
}

pub(crate) async fn run(arguments: &Arguments, process_env: &ProcessEnv) -> Result<(), Failure> {
    let flags = Flags { host: arguments.server.clone(), ..Flags::default() };
    let Target { host, chosen_by, bucket, .. } = Target::find(&flags, process_env)?;
    if let Some(bucket) = bucket {
        return Err(Failure::usage("no server is given")
            .because(format!("{chosen_by} names the bucket {bucket}, which the commands serve themselves"))
            .hint("name a server: taco login taco.example.com"));
    }
    let (source, debug) = (arguments.token_source()?, arguments.output.shows_requests());
    if chosen_by.is_the_directory() && !matches!(source, TokenSource::Browser) {
        return Err(Failure::usage(format!("your token is not sent to {host}"))
            .because(format!("nobody but {chosen_by} names this server, and it may not be yours"))
            .hint(format!("if it is, name it: taco login {host}")));
    }
    // Before anyone goes for a token: a file that cannot be read cannot keep it.
    let mut file = CredentialsFile::read(process_env)?;
    let token = match source {
        TokenSource::Browser => in_browser(&host, debug).await?,
        TokenSource::Prompt => prompt(&host)?,
        TokenSource::File(file) => one_word(&host, &read(file)?)?,
    };
    let api = Api::new(host.clone(), Some(token.clone()), debug)?;
    let account = one(api.get("your account", &["account", "details"], &[]).await?)?;
    file.store(&host, &token)?;
    user_config::remember_host(process_env, host.address.as_str())?;
    let username = account.text("username");
    if arguments.output.json {
        return output::json(&json!({ "host": host.name, "username": username, "file": file.path }));
    }
    if arguments.output.quiet {
        return Ok(());
    }
    output::line(&format!("Logged in to {host} as {username}. The token is in {}.", file.path.display()))
}

/// Source of a token.
enum TokenSource<'a> {
    Browser,
    Prompt,
    File(&'a Path),
}

impl Arguments {
    fn token_source(&self) -> Result<TokenSource<'_>, Failure> {
        let source = match &self.token_file {
            Some(file) => return Ok(TokenSource::File(file)),
            None if self.web => TokenSource::Browser,
            None if self.paste => TokenSource::Prompt,
            None if io::stdin().is_terminal() => TokenSource::Browser,
            None => return Ok(TokenSource::File(Path::new("-"))),
        };
        if self.output.no_input {
            return Err(Failure::usage("a token is required")
                .because("--no-input forbids asking for it")
                .hint("send the token to standard input, or use --token-file"));
        }
        Ok(source)
    }
}

async fn in_browser(host: &Host, debug: bool) -> Result<String, Failure> {
    let api = Api::new(host.clone(), None, debug)?;
    match api.login_service().await? {
        Some(service) => oauth::log_in(&api, &service).await,
        None => prompt(host),
    }
}

fn prompt(host: &Host) -> Result<String, Failure> {
    eprintln!("Create a token at {}app/settings/tokens and paste it here. It won't be shown.", host.address);
    one_word(host, &rpassword::prompt_password("Token: ")?)
}

fn read(file: &Path) -> Result<String, Failure> {
    if file == Path::new("-") {
        let mut text = String::new();
        io::stdin().lock().read_to_string(&mut text)?;
        return Ok(text);
    }
    std::fs::read_to_string(file)
        .map_err(|error| Failure::error(format!("{} cannot be read", file.display())).because(error))
}

fn one_word(host: &Host, text: &str) -> Result<String, Failure> {
    let token = text.trim();
    if token.is_empty() {
        let hint = format!("create one at {}app/settings/tokens, and use --paste or --token-file", host.address);
        return Err(Failure::usage("no token given").hint(hint));
    }
    if token.contains(char::is_whitespace) {
        return Err(Failure::usage("a token is one word").because("this text has spaces or several lines"));
    }
    Ok(token.to_owned())
}
