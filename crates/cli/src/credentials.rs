//! Tokens by host: from variables, and in the file that terraform and tofu keep.

use std::io::{self, Write};
use std::path::{Path, PathBuf};

use serde_json::{Map, Value, json};

use crate::failure::Failure;
use crate::host::Host;
use crate::process_env::ProcessEnv;
use crate::session::Target;

/// Services of HashiCorp, which are not taco.
const PUBLIC_HOSTS: [&str; 2] = ["app.terraform.io", "app.eu.terraform.io"];

/// `~/.terraform.d/credentials.tfrc.json`, with everything else that is in it.
pub(crate) struct CredentialsFile {
    pub(crate) path: PathBuf,
    content: Map<String, Value>,
}

impl CredentialsFile {
    pub(crate) fn read(process_env: &ProcessEnv) -> Result<Self, Failure> {
        let home = process_env.home().ok_or_else(|| Failure::error("there is no home directory: HOME is not set"))?;
        let path = home.join(".terraform.d/credentials.tfrc.json");
        let refused = |why: &dyn std::fmt::Display| {
            Failure::error(format!("{} cannot be read", path.display()))
                .because(why)
                .hint("terraform keeps its tokens there; repair the file or move it away")
        };
        let content = match std::fs::read(&path) {
            Ok(bytes) => serde_json::from_slice(&bytes).map_err(|error| refused(&error))?,
            Err(error) if error.kind() == io::ErrorKind::NotFound => Map::new(),
            Err(error) => return Err(refused(&error)),
        };
        Ok(Self { path, content })
    }

    pub(crate) fn token(&self, host: &Host) -> Option<&str> {
        self.content.get("credentials")?.get(&host.name)?.get("token")?.as_str()
    }

    /// The server in it, if there is exactly one besides those of HashiCorp.
    fn only_host(&self) -> Option<Host> {
        let hosts = self.content.get("credentials")?.as_object()?.keys();
        let mut hosts = hosts.filter(|name| !PUBLIC_HOSTS.contains(&name.as_str()));
        match (hosts.next(), hosts.next()) {
            (Some(host), None) => host.parse().ok(),
            _ => None,
        }
    }

    /// Keeps a token, and everything else that the file holds.
    pub(crate) fn store(&mut self, host: &Host, token: &str) -> Result<(), Failure> {
        let hosts = self.content.entry("credentials").or_insert_with(|| json!({}));
        let Some(hosts) = hosts.as_object_mut() else {
            return Err(Failure::error(format!("{}: \"credentials\" is not an object", self.path.display())));
        };
        hosts.insert(host.name.clone(), json!({ "token": token }));
        self.write()
    }

    /// Returns whether there was a token to forget.
    pub(crate) fn forget(&mut self, host: &Host) -> Result<bool, Failure> {
        let hosts = self.content.get_mut("credentials").and_then(Value::as_object_mut);
        if hosts.and_then(|hosts| hosts.remove(&host.name)).is_none() {
            return Ok(false);
        }
        self.write().map(|()| true)
    }

    fn write(&self) -> Result<(), Failure> {
        let text = format!("{:#}\n", Value::Object(self.content.clone()));
        replace(&self.path, text.as_bytes())
            .map_err(|error| Failure::error(format!("{} cannot be written", self.path.display())).because(error))
    }
}

/// The server that `terraform login` has logged in to, if there is only one. A file that cannot be read has none: whoever
/// needs a token will hear why.
pub(crate) fn only_host(process_env: &ProcessEnv) -> Option<Host> {
    CredentialsFile::read(process_env).ok()?.only_host()
}

/// Puts a file in place as a whole, for its owner's eyes only.
pub(crate) fn replace(path: &Path, content: &[u8]) -> io::Result<()> {
    let directory = path.parent().unwrap_or(Path::new("."));
    std::fs::create_dir_all(directory)?;
    // A file that is made here is for its owner alone from its first moment on.
    let mut draft = tempfile::NamedTempFile::new_in(directory)?;
    draft.write_all(content)?;
    draft.persist(path).map_err(|error| error.error)?;
    Ok(())
}

/// The variable in which terraform expects a host's token.
fn variable(host: &Host) -> String {
    format!("TF_TOKEN_{}", host.name.replace('-', "__").replace('.', "_"))
}

/// A token, and where it was found.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Token {
    pub(crate) text: String,
    pub(crate) source: String,
}

/// The token for a server, as far as there is one. One that is not bound to a server goes only where the user who types
/// the command wants it: a `cloud` block in a repository could name a server that collects tokens.
pub(crate) fn token(target: &Target, process_env: &ProcessEnv) -> Result<Option<Token>, Failure> {
    let Target { host, chosen_by, .. } = target;
    let given = |name: String| {
        let text = process_env.variable(&name)?.trim().to_owned();
        Some(Token { text, source: name })
    };
    if let Some(token) = given("TACO_TOKEN".to_owned()) {
        if chosen_by.is_the_directory() {
            return Err(Failure::usage(format!("TACO_TOKEN is not sent to {host}"))
                .because(format!("nobody but {chosen_by} names this server, and it may not be yours"))
                .hint(format!("if it is, set TACO_HOST={host} or log in with `taco login {host}`")));
        }
        return Ok(Some(token));
    }
    if let Some(token) = given(variable(host)) {
        return Ok(Some(token));
    }
    if process_env.home().is_none() {
        return Ok(None);
    }
    let file = CredentialsFile::read(process_env)?;
    let source = file.path.display().to_string();
    Ok(file.token(host).map(|text| Token { text: text.to_owned(), source }))
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt;

    use super::*;
    use crate::session::Flags;

    /// Token for a server that is named on the command line.
    fn token_for(host: &Host, process_env: &ProcessEnv) -> Result<Option<String>, Failure> {
        let flags = Flags { host: Some(host.address.to_string()), ..Flags::default() };
        Ok(token(&Target::find(&flags, process_env)?, process_env)?.map(|token| token.text))
    }

    fn at(home: &Path) -> ProcessEnv {
        let variables = [("HOME".to_owned(), home.display().to_string())].into();
        ProcessEnv { variables, directory: home.to_owned(), ..ProcessEnv::default() }
    }

    #[test]
    fn a_token_is_added_to_what_terraform_keeps() {
        let home = tempfile::tempdir().expect("there is room");
        let process_env = at(home.path());
        let path = home.path().join(".terraform.d/credentials.tfrc.json");
        std::fs::create_dir(home.path().join(".terraform.d")).expect("it is made");
        let before = r#"{"credentials":{"app.terraform.io":{"token":"other"}},"more":1}"#;
        std::fs::write(&path, before).expect("it is written");
        let host = Host::default();
        CredentialsFile::read(&process_env).expect("it is read").store(&host, "secret").expect("it is stored");
        let content: Value = serde_json::from_slice(&std::fs::read(&path).expect("it is there")).expect("it is JSON");
        let credentials = json!({ "app.terraform.io": { "token": "other" }, "localhost:8080": { "token": "secret" } });
        assert_eq!(content, json!({ "credentials": credentials, "more": 1 }));
        assert_eq!(std::fs::metadata(&path).expect("it is there").permissions().mode() & 0o777, 0o600);
        assert_eq!(token_for(&host, &process_env).expect("it is read").as_deref(), Some("secret"));
        let mut file = CredentialsFile::read(&process_env).expect("it is read");
        assert!(file.forget(&host).expect("it is written"));
        assert!(!file.forget(&host).expect("there is nothing to write"));
        assert_eq!(std::fs::read_dir(home.path().join(".terraform.d")).expect("it is there").count(), 1);
    }

    #[test]
    fn the_only_server_in_the_file_is_found() {
        let home = tempfile::tempdir().expect("there is room");
        let process_env = at(home.path());
        let path = home.path().join(".terraform.d/credentials.tfrc.json");
        assert_eq!(only_host(&process_env), None);
        let with = |hosts: &str| {
            replace(&path, format!("{{\"credentials\":{{{hosts}}}}}").as_bytes()).expect("it is written");
            only_host(&process_env).map(|host| host.address.to_string())
        };
        let (public, one, two) =
            (r#""app.terraform.io":{}"#, r#""127.0.0.1:8181":{"token":"a"}"#, r#""taco.example.com":{"token":"b"}"#);
        assert_eq!(with(&format!("{public},{one}")).as_deref(), Some("http://127.0.0.1:8181/"));
        assert_eq!(with(two).as_deref(), Some("https://taco.example.com/"));
        assert_eq!(with(&format!("{one},{two}")), None, "nobody knows which");
        assert_eq!(with(public), None);
    }

    #[test]
    fn a_broken_file_is_left_alone() {
        let home = tempfile::tempdir().expect("there is room");
        let path = home.path().join(".terraform.d/credentials.tfrc.json");
        replace(&path, b"{ not JSON").expect("it is written");
        assert!(CredentialsFile::read(&at(home.path())).is_err());
        assert!(token_for(&Host::default(), &at(home.path())).is_err());
    }

    #[test]
    fn variables_go_before_the_file() {
        let home = tempfile::tempdir().expect("there is room");
        let mut process_env = at(home.path());
        let host: Host = "my-taco.example.com:8443".parse().expect("it is a host");
        CredentialsFile::read(&process_env).expect("it is read").store(&host, "file").expect("it is stored");
        let mut expect = |name: &str, value: &str| {
            process_env.variables.insert(name.to_owned(), value.to_owned());
            assert_eq!(token_for(&host, &process_env).expect("it is read").as_deref(), Some(value));
        };
        expect("TF_TOKEN_my__taco_example_com:8443", "terraform's");
        expect("TACO_TOKEN", "ours");
    }
}
