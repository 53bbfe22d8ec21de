//! Addresses of producers: where a data block reads another state's outputs. An address has no credentials in it, and the
//! same state has the same address however its reader spells it.

use std::fmt;
use std::fmt::Write as _;
use std::str::FromStr;

use serde_json::Value;
use sha2::{Digest as _, Sha256};

use crate::graph::dependency::MAX_ADDRESS_BYTES;

/// Host of `remote` and `cloud` where a configuration names none.
const DEFAULT_HOST: &str = "app.terraform.io";
/// Name under which an agent knows the server that it works for.
const HOST_OF_AGENTS: &str = "localterraform.com";
/// Path of the `http` backend of a workspace here, before its organization.
const HTTP_BACKEND: &str = "/api/http-backend/";
const DEFAULT_WORKSPACE: &str = "default";
/// Maximum length of one part of an address; what is longer ends with its digest instead.
const MAX_PART_BYTES: usize = 320;

/// Address of a producer, as its consumer's data block gives it.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum ProducerAddress {
    /// Workspace of a server that speaks Terraform Cloud's API. Without a host it is the server that the `tfe` provider
    /// talks to, which a state does not tell.
    Remote { host: Option<String>, organization: String, workspace: String },
    /// State behind an `http` backend: its address without user, password, query and fragment.
    Http { url: String },
    /// Object in a bucket. A container of Azure has its account before it: `account:container`.
    Object { service: ObjectService, container: String, key: String },
    /// Any other backend, with what tells its states apart.
    Other { backend: String, text: String },
}

/// Kind of object storage.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum ObjectService {
    S3,
    Gcs,
    Azure,
}

impl ObjectService {
    const ALL: [Self; 3] = [Self::S3, Self::Gcs, Self::Azure];

    /// The backend's name.
    pub fn backend(self) -> &'static str {
        match self {
            Self::S3 => "s3",
            Self::Gcs => "gcs",
            Self::Azure => "azurerm",
        }
    }
}

/// A text that is no address of a producer.
#[derive(Clone, PartialEq, Eq, thiserror::Error, Debug)]
#[error("it is no address of a state")]
pub struct InvalidProducerAddress;

impl ProducerAddress {
    /// Address that a `terraform_remote_state` block reads.
    pub fn of_remote_state(backend: &str, config: &Value, workspace: Option<&str>) -> Self {
        let named = workspace.filter(|name| !name.is_empty() && *name != DEFAULT_WORKSPACE);
        let known = match backend {
            "remote" | "cloud" => remote(config, named),
            "http" => text(config, "address").and_then(|address| http_url(&address)).map(|url| Self::Http { url }),
            "s3" => s3(config, named),
            "gcs" => gcs(config, named),
            "azurerm" => azure(config, named),
            _ => None,
        };
        known.unwrap_or_else(|| other(backend, config, named))
    }

    /// Address that a `tfe_outputs` block reads. The host is that of the `tfe` provider, if the caller knows it.
    pub fn of_tfe_outputs(host: Option<&str>, organization: &str, workspace: &str) -> Self {
        let (organization, workspace) = (organization.to_owned(), workspace.to_owned());
        Self::Remote { host: host.map(canonical_host), organization, workspace }
    }

    /// Name of the workspace of this organization that the address leads to, if it leads to one here.
    pub fn workspace_name(&self, own_hosts: &[String], organization: &str) -> Option<String> {
        let is_own = |host: &str| host == HOST_OF_AGENTS || own_hosts.iter().any(|own| is_same_host(own, host));
        let same_organization = |found: &str| found.to_lowercase() == organization.to_lowercase();
        match self {
            Self::Remote { host, organization, workspace } => {
                let here = host.as_deref().is_none_or(is_own) && same_organization(organization);
                here.then(|| workspace.clone())
            }
            Self::Http { url } => {
                let (host, path) = host_and_path(url)?;
                let (organization, workspace) = path.strip_prefix(HTTP_BACKEND)?.split_once('/')?;
                let here = is_own(host) && !workspace.contains('/') && same_organization(&unescaped(organization)?);
                if here { unescaped(workspace) } else { None }
            }
            Self::Object { .. } | Self::Other { .. } => None,
        }
    }
}

fn text(config: &Value, name: &str) -> Option<String> {
    match config.get(name)? {
        Value::String(text) if !text.is_empty() => Some(text.clone()),
        Value::Number(number) => Some(number.to_string()),
        Value::Bool(flag) => Some(flag.to_string()),
        _ => None,
    }
}

fn remote(config: &Value, named: Option<&str>) -> Option<ProducerAddress> {
    let organization = text(config, "organization")?;
    // In a block it is one object; who writes it as a list of one is understood, too.
    let workspaces = config.get("workspaces")?;
    let workspaces = workspaces.get(0).unwrap_or(workspaces);
    let workspace = match (text(workspaces, "name"), text(workspaces, "prefix"), named) {
        (Some(name), ..) => name,
        (None, Some(prefix), Some(named)) => format!("{prefix}{named}"),
        (None, None, Some(named)) => named.to_owned(),
        (None, _, None) => return None,
    };
    let host = canonical_host(&text(config, "hostname").unwrap_or_else(|| DEFAULT_HOST.to_owned()));
    Some(ProducerAddress::Remote { host: Some(host), organization, workspace })
}

fn s3(config: &Value, named: Option<&str>) -> Option<ProducerAddress> {
    let (container, key) = (text(config, "bucket")?, text(config, "key")?);
    let key = key.trim_start_matches('/');
    let key = named.map_or_else(
        || key.to_owned(),
        |named| {
            let prefix = text(config, "workspace_key_prefix").unwrap_or_else(|| "env:".to_owned());
            format!("{}/{named}/{key}", prefix.trim_matches('/'))
        },
    );
    Some(ProducerAddress::Object { service: ObjectService::S3, container, key })
}

fn gcs(config: &Value, named: Option<&str>) -> Option<ProducerAddress> {
    let prefix = text(config, "prefix").unwrap_or_default();
    let file = format!("{}.tfstate", named.unwrap_or(DEFAULT_WORKSPACE));
    let key = match prefix.trim_matches('/') {
        "" => file,
        prefix => format!("{prefix}/{file}"),
    };
    Some(ProducerAddress::Object { service: ObjectService::Gcs, container: text(config, "bucket")?, key })
}

fn azure(config: &Value, named: Option<&str>) -> Option<ProducerAddress> {
    let (account, container) = (text(config, "storage_account_name")?, text(config, "container_name")?);
    let key = text(config, "key")?;
    let key = named.map_or_else(|| key.clone(), |named| format!("{key}env:{named}"));
    Some(ProducerAddress::Object { service: ObjectService::Azure, container: format!("{account}:{container}"), key })
}

/// Settings that tell the states of a backend apart, and hold no secret.
const TELLING: &[&str] = &[
    "address",
    "bucket",
    "container",
    "endpoint",
    "host",
    "key",
    "namespace",
    "path",
    "prefix",
    "region",
    "schema_name",
    "secret_suffix",
    "state_name",
    "storage_account_name",
    "container_name",
    "organization",
    "workspace_dir",
    "workspace_key_prefix",
];

fn other(backend: &str, config: &Value, named: Option<&str>) -> ProducerAddress {
    let mut parts = Vec::new();
    for name in TELLING {
        let Some(value) = text(config, name) else { continue };
        let value = match value.contains("://") {
            true => http_url(&value).unwrap_or_else(|| without_credentials(&value)),
            false => value,
        };
        // A path alone says enough.
        parts.push(if *name == "path" { value } else { format!("{name}={value}") });
    }
    parts.extend(named.map(|named| format!("workspace={named}")));
    let backend: String = backend
        .chars()
        .filter(|character| character.is_ascii_alphanumeric() || matches!(character, '-' | '_'))
        .take(32)
        .collect();
    let backend = if backend.is_empty() { "unknown".to_owned() } else { backend };
    ProducerAddress::Other { backend, text: parts.join(",") }
}

fn without_credentials(url: &str) -> String {
    let Some((scheme, rest)) = url.split_once("://") else { return url.to_owned() };
    let rest = rest.split(['?', '#']).next().unwrap_or_default();
    let (authority, path) = rest.find('/').map_or((rest, ""), |at| rest.split_at(at));
    let host = authority.rsplit('@').next().unwrap_or_default();
    format!("{scheme}://{host}{path}")
}

fn canonical_host(host: &str) -> String {
    let host = host.trim().to_lowercase();
    host.strip_suffix(":443").map(str::to_owned).unwrap_or(host)
}

/// The address of an `http` backend without what may be secret; `None` if it is none.
fn http_url(address: &str) -> Option<String> {
    let (scheme, _) = address.trim().split_once("://")?;
    let (scheme, default_port) = match scheme.to_ascii_lowercase().as_str() {
        "http" => ("http", ":80"),
        "https" => ("https", ":443"),
        _ => return None,
    };
    let bare = without_credentials(address.trim());
    let (_, rest) = bare.split_once("://")?;
    let (host, path) = rest.find('/').map_or((rest, ""), |at| rest.split_at(at));
    let host = host.to_lowercase();
    let host = host.strip_suffix(default_port).unwrap_or(&host);
    if host.is_empty() {
        return None;
    }
    // What is escaped already stays as it is.
    let path = escaped(path.trim_end_matches('/'), |character| matches!(character, '/' | '%'));
    let host = escaped(host, |character| matches!(character, '[' | ']' | '%')).to_ascii_lowercase();
    let url = format!("{scheme}://{host}{path}");
    Some(shortened(url, MAX_ADDRESS_BYTES))
}

fn host_and_path(url: &str) -> Option<(&str, &str)> {
    let (_, rest) = url.split_once("://")?;
    Some(rest.find('/').map_or((rest, ""), |at| rest.split_at(at)))
}

/// Hosts are the same whatever the case, and whether a default port is told; all names of this machine itself are one.
fn is_same_host(own: &str, other: &str) -> bool {
    let parts = |host: &str| {
        let host = host.trim().to_lowercase();
        let (name, port) = match host.rsplit_once(':') {
            Some((name, port)) if !port.is_empty() && port.bytes().all(|digit| digit.is_ascii_digit()) => {
                (name.to_owned(), port.to_owned())
            }
            _ => (host, String::new()),
        };
        let port = if matches!(port.as_str(), "80" | "443") { String::new() } else { port };
        let is_loopback = matches!(name.as_str(), "localhost" | "localhost.localdomain" | "127.0.0.1" | "[::1]");
        // Several servers of one site may be on one machine, each on its own port.
        if is_loopback { ("localhost".to_owned(), String::new()) } else { (name, port) }
    };
    parts(own) == parts(other)
}

impl fmt::Display for ProducerAddress {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let part = |text: &str| shortened(escaped(text, |_| false), MAX_PART_BYTES);
        let path = |text: &str| shortened(escaped(text, |character| character == '/'), MAX_PART_BYTES);
        match self {
            Self::Remote { host, organization, workspace } => {
                let host = host.as_deref().map(part).unwrap_or_default();
                write!(formatter, "remote://{host}/{}/{}", part(organization), part(workspace))
            }
            Self::Http { url } => formatter.write_str(url),
            Self::Object { service, container, key } => {
                write!(formatter, "{}://{}/{}", service.backend(), part(container), path(key))
            }
            Self::Other { backend, text } => write!(formatter, "{backend}:{}", path(text)),
        }
    }
}

impl FromStr for ProducerAddress {
    type Err = InvalidProducerAddress;

    fn from_str(address: &str) -> Result<Self, InvalidProducerAddress> {
        let part = |text: &str| unescaped(text).ok_or(InvalidProducerAddress);
        let (kind, rest) = address.split_once(':').ok_or(InvalidProducerAddress)?;
        let after_slashes = rest.strip_prefix("//");
        if let ("remote", Some(rest)) = (kind, after_slashes) {
            let mut parts = rest.split('/');
            let (Some(host), Some(organization), Some(workspace), None) =
                (parts.next(), parts.next(), parts.next(), parts.next())
            else {
                return Err(InvalidProducerAddress);
            };
            let host = if host.is_empty() { None } else { Some(part(host)?) };
            return Ok(Self::Remote { host, organization: part(organization)?, workspace: part(workspace)? });
        }
        if matches!(kind, "http" | "https") && after_slashes.is_some() {
            return http_url(address).map(|url| Self::Http { url }).ok_or(InvalidProducerAddress);
        }
        let service = ObjectService::ALL.into_iter().find(|service| service.backend() == kind);
        if let (Some(service), Some(rest)) = (service, after_slashes) {
            let (container, key) = rest.split_once('/').ok_or(InvalidProducerAddress)?;
            return Ok(Self::Object { service, container: part(container)?, key: part(key)? });
        }
        let legal = |character: char| character.is_ascii_alphanumeric() || matches!(character, '-' | '_');
        if kind.is_empty() || kind.len() > 32 || !kind.chars().all(legal) {
            return Err(InvalidProducerAddress);
        }
        Ok(Self::Other { backend: kind.to_owned(), text: part(rest)? })
    }
}

/// The text with `%` before the codes of bytes that would be read as something else.
fn escaped(text: &str, is_kept: impl Fn(char) -> bool) -> String {
    let mut all = String::with_capacity(text.len());
    for character in text.chars() {
        let plain = character.is_alphanumeric() || "-_.~:@+=,!$&'()*;".contains(character);
        if plain || is_kept(character) {
            all.push(character);
        } else {
            for byte in character.encode_utf8(&mut [0; 4]).bytes() {
                let _ = write!(all, "%{byte:02X}");
            }
        }
    }
    all
}

fn unescaped(text: &str) -> Option<String> {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.as_bytes();
    while let Some((first, more)) = rest.split_first() {
        rest = more;
        if *first != b'%' {
            bytes.push(*first);
            continue;
        }
        let mut byte = [0];
        hex::decode_to_slice(rest.get(..2)?, &mut byte).ok()?;
        bytes.push(byte[0]);
        rest = &rest[2..];
    }
    String::from_utf8(bytes).ok()
}

/// A text of at most so many bytes. If it is cut, it ends with its digest, so that two long ones stay different.
fn shortened(text: String, limit: usize) -> String {
    if text.len() <= limit {
        return text;
    }
    let digest = hex::encode(&Sha256::digest(&text)[..8]);
    let mut end = limit - digest.len() - 1;
    // Neither a character nor an escape of several bytes is torn apart.
    while !text.is_char_boundary(end) {
        end -= 1;
    }
    let mut cut = &text[..end];
    while let Some(at) = cut.rfind('%').filter(|at| cut.len() - at < 3 || is_inside_of_character(&cut[*at..])) {
        cut = &cut[..at];
    }
    format!("{cut}~{digest}")
}

/// True for an escape at the end that a character of several bytes begins or goes on with.
fn is_inside_of_character(last: &str) -> bool {
    last.len() == 3 && u8::from_str_radix(&last[1..], 16).is_ok_and(|byte| byte >= 0x80)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn address(backend: &str, config: Value, workspace: Option<&str>) -> String {
        let address = ProducerAddress::of_remote_state(backend, &config, workspace);
        let text = address.to_string();
        assert_eq!(text.parse::<ProducerAddress>().as_ref(), Ok(&address), "{text}");
        text
    }

    #[test]
    fn a_state_has_one_address_in_each_backend() {
        for (backend, config, workspace, expected) in [
            (
                "remote",
                json!({"hostname": "Taco.Example.com:8443", "organization": "acme", "workspaces": {"name": "network"}}),
                None,
                "remote://taco.example.com:8443/acme/network",
            ),
            (
                "cloud",
                json!({"organization": "acme", "workspaces": [{"prefix": "net-"}]}),
                Some("prod"),
                "remote://app.terraform.io/acme/net-prod",
            ),
            (
                "cloud",
                json!({"hostname": "h:443", "organization": "a c/me", "workspaces": {"name": "ü%"}, "token": "secret"}),
                Some("default"),
                "remote://h/a%20c%2Fme/ü%25",
            ),
            (
                "http",
                json!({"address": "HTTPS://me:pw@States.example.com:443/a/b%20c/?token=x#y", "password": "secret"}),
                None,
                "https://states.example.com/a/b%20c",
            ),
            (
                "s3",
                json!({"bucket": "b", "key": "a/terraform.tfstate", "secret_key": "x"}),
                None,
                "s3://b/a/terraform.tfstate",
            ),
            ("http", json!({"address": "http://H,:8 0/a"}), None, "http://h,:8%200/a"),
            ("http", json!({"address": "http://h%2C\u{130}/a"}), None, "http://h%2ci%cc%87/a"),
            ("s3", json!({"bucket": "b", "key": "k"}), Some("prod"), "s3://b/env:/prod/k"),
            ("s3", json!({"bucket": "b", "key": "k", "workspace_key_prefix": "w"}), Some("prod"), "s3://b/w/prod/k"),
            ("gcs", json!({"bucket": "b", "prefix": "/x/y/"}), None, "gcs://b/x/y/default.tfstate"),
            ("gcs", json!({"bucket": "b"}), Some("prod"), "gcs://b/prod.tfstate"),
            (
                "azurerm",
                json!({"storage_account_name": "a", "container_name": "c", "key": "k", "access_key": "secret"}),
                Some("prod"),
                "azurerm://a:c/kenv:prod",
            ),
            ("local", json!({"path": "/x/terraform.tfstate"}), None, "local:/x/terraform.tfstate"),
            (
                "pg",
                json!({"conn_str": "postgres://u:secret@h/db", "schema_name": "s"}),
                Some("w"),
                "pg:schema_name=s,workspace=w",
            ),
            ("consul", json!({"address": "http://u:pw@h:8500", "path": "p"}), None, "consul:address=http://h:8500,p"),
            ("remote", json!({"organization": "acme"}), None, "remote:organization=acme"),
            ("s3", json!(7), None, "s3:"),
            ("", json!({}), None, "unknown:"),
        ] {
            assert_eq!(address(backend, config, workspace), expected);
        }
    }

    #[test]
    fn addresses_lead_to_workspaces_of_this_organization() {
        let own = ["taco.example.com".to_owned(), "localhost:8080".to_owned()];
        for (address, expected) in [
            ("remote://taco.example.com/acme/network", Some("network")),
            ("remote://TACO.example.com:443/ACME/network", Some("network")),
            ("remote://taco.example.com:8443/acme/network", None),
            ("remote://localhost:8080/acme/a%20b", Some("a b")),
            ("remote://127.0.0.1:8080/acme/network", Some("network")),
            ("remote://localhost:8081/acme/network", Some("network")),
            ("remote://localterraform.com/acme/network", Some("network")),
            ("remote:///acme/network", Some("network")),
            ("remote:///other/network", None),
            ("remote://app.terraform.io/acme/network", None),
            ("http://localhost:8080/api/http-backend/acme/network", Some("network")),
            ("https://taco.example.com/api/http-backend/Acme/network", Some("network")),
            ("https://taco.example.com/api/http-backend/acme/network/lock", None),
            ("https://taco.example.com/api/http-backend/other/network", None),
            ("https://example.com/api/http-backend/acme/network", None),
            ("s3://b/acme/network", None),
            ("local:/x", None),
        ] {
            let parsed: ProducerAddress = address.parse().expect(address);
            assert_eq!(parsed.workspace_name(&own, "acme").as_deref(), expected, "{address}");
        }
    }

    #[test]
    fn long_addresses_are_cut_and_stay_different() {
        for character in ["x", "/", "é", "\u{1f32e}", " "] {
            let long = |end: &str| format!("{}{end}", character.repeat(3000));
            let addresses = |end: &str| {
                [
                    ProducerAddress::of_tfe_outputs(Some(&long(end)), &long(end), &long(end)),
                    ProducerAddress::Object { service: ObjectService::S3, container: long(end), key: long(end) },
                    ProducerAddress::Other { backend: "local".to_owned(), text: long(end) },
                    ProducerAddress::of_remote_state(
                        "http",
                        &json!({"address": format!("http://h/{}", long(end))}),
                        None,
                    ),
                ]
            };
            for (one, other) in addresses("a").into_iter().zip(addresses("b")) {
                let (one, other) = (one.to_string(), other.to_string());
                assert!(one.len() <= MAX_ADDRESS_BYTES, "{one}");
                assert_ne!(one, other);
                assert_eq!(one.parse::<ProducerAddress>().expect("an address").to_string(), one);
            }
        }
    }

    #[test]
    fn what_is_no_address_is_refused() {
        for text in
            ["", "x", ":", "remote://a/b", "remote://a/b/c/d", "http://", "a b:c", "s3://b", "local:%", "local:%FF"]
        {
            assert_eq!(text.parse::<ProducerAddress>(), Err(InvalidProducerAddress), "{text}");
        }
    }
}
