//! The engine's own configuration: how a run reaches the server with the run's own token, and where providers are.
//!
//! Engines look for a host's services by https only, so over plain http a run would not find its server without this.

use std::collections::BTreeMap;
use std::fs;
use std::io::{self, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;

use serde_json::Value;
use url::Url;

use crate::options::ProviderMirror;
use crate::variables::quoted;

/// Name under which every run knows the server that executes it: a server in someone's command has another address each
/// time.
const LOCAL_HOST: &str = "taco.local";

/// Response of a server at `/.well-known/terraform.json`: names of services and their addresses.
pub(crate) type Services = BTreeMap<String, Value>;

pub(crate) fn write(file: &Path, text: &str) -> io::Result<()> {
    let mut file = fs::OpenOptions::new().write(true).create(true).truncate(true).mode(0o600).open(file)?;
    file.write_all(text.as_bytes())
}

pub(crate) fn text(
    server_url: &str,
    services: &Services,
    token: &str,
    mirror: Option<&ProviderMirror>,
) -> io::Result<String> {
    let server = Url::parse(server_url).map_err(|error| {
        io::Error::other(format!("the server calls itself {server_url}, which is no address: {error}"))
    })?;
    let mut text = String::from("disable_checkpoint = true\n");
    let host = match (server.host_str(), server.port()) {
        (Some(host), Some(port)) => format!("{host}:{port}"),
        (Some(host), None) => host.to_owned(),
        (None, _) => {
            return Err(io::Error::other(format!("the server calls itself {server_url}, which names no host")));
        }
    };
    for host in [&host, LOCAL_HOST] {
        text.push_str(&format!("credentials {} {{\n  token = {}\n}}\n", quoted(host), quoted(token)));
        text.push_str(&format!("host {} {{\n  services = {{\n", quoted(host)));
        for (name, address) in services {
            // `login.v1` is an object, and a run does not log in.
            let address = address.as_str().and_then(|address| server.join(address).ok());
            if let Some(address) = address {
                text.push_str(&format!("    {} = {}\n", quoted(name), quoted(address.as_str())));
            }
        }
        text.push_str("  }\n}\n");
    }
    if let Some(mirror) = mirror {
        text.push_str(&provider_installation(mirror)?);
    }
    Ok(text)
}

/// Registries are asked for what the mirror does not have, and for nothing else: an engine that may ask both asks both,
/// and fails where there is no network.
fn provider_installation(mirror: &ProviderMirror) -> io::Result<String> {
    let directory = match mirror {
        ProviderMirror::Network(url) => {
            return Ok(format!(
                "provider_installation {{\n  network_mirror {{\n    url = {}\n  }}\n}}\n",
                quoted(url.as_str())
            ));
        }
        ProviderMirror::Directory(directory) => directory,
    };
    let providers: Vec<_> = providers(directory)?.iter().map(|provider| quoted(provider)).collect();
    let providers = providers.join(", ");
    Ok(format!(
        "provider_installation {{\n  filesystem_mirror {{\n    path    = {}\n    include = [{providers}]\n  }}\n  \
         direct {{\n    exclude = [{providers}]\n  }}\n}}\n",
        quoted(&directory.to_string_lossy()),
    ))
}

/// `host/namespace/type` of all providers in a mirror.
fn providers(directory: &Path) -> io::Result<Vec<String>> {
    let mut found = vec![String::new()];
    for _ in 0..3 {
        let mut deeper = Vec::new();
        for parent in found {
            for entry in fs::read_dir(directory.join(&parent)).map_err(|error| mirror_error(directory, &error))? {
                let entry = entry?;
                if entry.path().is_dir() {
                    let name = entry.file_name().to_string_lossy().into_owned();
                    deeper.push(if parent.is_empty() { name } else { format!("{parent}/{name}") });
                }
            }
        }
        deeper.sort();
        found = deeper;
    }
    Ok(found)
}

fn mirror_error(directory: &Path, error: &io::Error) -> io::Error {
    io::Error::other(format!("the provider mirror {}: {error}", directory.display()))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn services_are_absolute_and_the_token_is_for_the_servers_host() {
        let services = Services::from([
            ("tfe.v2".to_owned(), json!("/api/v2/")),
            ("modules.v1".to_owned(), json!("https://elsewhere/modules/")),
            ("login.v1".to_owned(), json!({ "client": "x" })),
        ]);
        let text = text("http://localhost:8080", &services, "secret", None).expect("a configuration");
        let of = |host: &str| {
            format!(
                "credentials \"{host}\" {{\n  token = \"secret\"\n}}\nhost \"{host}\" {{\n  services = {{\n    \
                 \"modules.v1\" = \"https://elsewhere/modules/\"\n    \"tfe.v2\" = \
                 \"http://localhost:8080/api/v2/\"\n  }}\n}}\n"
            )
        };
        let expected = format!("disable_checkpoint = true\n{}{}", of("localhost:8080"), of("taco.local"));
        assert_eq!(text, expected);
    }

    #[test]
    fn providers_of_the_mirror_come_from_there_alone() {
        let mirror = tempfile::tempdir().expect("a directory");
        fs::create_dir_all(mirror.path().join("registry.terraform.io/hashicorp/null/3.2.0/linux_amd64"))
            .expect("a directory");
        let text = provider_installation(&ProviderMirror::Directory(mirror.path().into())).expect("a configuration");
        assert!(text.contains("include = [\"registry.terraform.io/hashicorp/null\"]"), "{text}");
        assert!(text.contains("exclude = [\"registry.terraform.io/hashicorp/null\"]"), "{text}");
    }
}
