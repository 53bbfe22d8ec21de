//! The types that settings have, and how each is read from text.

use std::fmt;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};

use taco_outbound::AllowedNetworks;
use tracing_subscriber::filter::{LevelFilter, Targets};
use url::Url;

use crate::trusted_proxies::TrustedProxies;

/// Type of a setting's value.
pub(super) trait Value: Sized {
    /// Placeholder for the value in help texts.
    const SHAPE: &'static str;
    const SECRET: bool = false;

    /// The error completes the sentence "«text» …".
    fn parse(text: &str) -> Result<Self, String>;

    /// The value where none was given and there is no default, if that is fine.
    fn absent() -> Option<Self> {
        None
    }
}

impl<T: Value> Value for Option<T> {
    const SHAPE: &'static str = T::SHAPE;
    const SECRET: bool = T::SECRET;

    fn parse(text: &str) -> Result<Self, String> {
        T::parse(text).map(Some)
    }

    fn absent() -> Option<Self> {
        Some(None)
    }
}

impl Value for String {
    const SHAPE: &'static str = "TEXT";

    fn parse(text: &str) -> Result<Self, String> {
        Ok(text.to_owned())
    }
}

impl Value for u16 {
    const SHAPE: &'static str = "NUMBER";

    fn parse(text: &str) -> Result<Self, String> {
        text.parse().map_err(|_| "is not a whole number from 0 to 65535".to_owned())
    }
}

/// Environment variables that the built-in agent's runs begin with.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum AgentEnvironment {
    Clean,
    Inherit,
}

impl Value for AgentEnvironment {
    const SHAPE: &'static str = "clean|inherit";

    fn parse(text: &str) -> Result<Self, String> {
        match text {
            "clean" => Ok(Self::Clean),
            "inherit" => Ok(Self::Inherit),
            _ => Err("is neither clean nor inherit".to_owned()),
        }
    }
}

/// Placeholder in help texts for a setting that is either on or off; as a flag it needs no value.
pub(super) const SWITCH: &str = "true|false";

impl Value for bool {
    const SHAPE: &'static str = SWITCH;

    fn parse(text: &str) -> Result<Self, String> {
        text.parse().map_err(|_| "is neither true nor false".to_owned())
    }
}

impl Value for SocketAddr {
    const SHAPE: &'static str = "ADDRESS:PORT";

    fn parse(text: &str) -> Result<Self, String> {
        text.parse().map_err(|_| "is not an IP address and a port".to_owned())
    }
}

impl Value for AllowedNetworks {
    const SHAPE: &'static str = "NETWORKS";

    fn parse(text: &str) -> Result<Self, String> {
        Self::parse(text)
    }
}

impl Value for TrustedProxies {
    const SHAPE: &'static str = "NETWORKS";

    fn parse(text: &str) -> Result<Self, String> {
        Self::parse(text)
    }
}

/// A value that must not be seen. It is up to who exposes it that it goes nowhere else.
#[derive(Clone, PartialEq, Eq)]
pub struct Secret(String);

impl Secret {
    pub(crate) fn new(text: &str) -> Self {
        Self(text.to_owned())
    }

    pub fn expose(&self) -> &str {
        &self.0
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("(hidden)")
    }
}

impl Value for Secret {
    const SHAPE: &'static str = "FILE";
    const SECRET: bool = true;

    fn parse(text: &str) -> Result<Self, String> {
        Ok(Self(text.to_owned()))
    }
}

/// The address of a bucket.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct BucketUrl(String);

impl BucketUrl {
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl Value for BucketUrl {
    const SHAPE: &'static str = "URL";

    fn parse(text: &str) -> Result<Self, String> {
        let url = Url::parse(text).map_err(|_| "is not the address of a bucket".to_owned())?;
        match url.scheme() {
            "file" if url.to_file_path().is_err() => {
                return Err("is not an absolute path, with three slashes".to_owned());
            }
            "file" => {}
            "s3" | "gs" | "az" if url.host_str().is_none_or(str::is_empty) => return Err("names no bucket".to_owned()),
            "s3" | "gs" | "az" => {}
            _ => return Err("does not begin with file://, s3://, gs:// or az://".to_owned()),
        }
        refuse_extras(&url)?;
        Ok(Self(text.to_owned()))
    }
}

/// A directory on this machine.
impl Value for PathBuf {
    const SHAPE: &'static str = "DIRECTORY";

    fn parse(text: &str) -> Result<Self, String> {
        let path = Self::from(text);
        if path.is_absolute() { Ok(path) } else { Err("is not an absolute path".to_owned()) }
    }
}

/// A file on this machine.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct FilePath(PathBuf);

impl FilePath {
    pub fn as_path(&self) -> &Path {
        &self.0
    }
}

impl Value for FilePath {
    const SHAPE: &'static str = "FILE";

    fn parse(text: &str) -> Result<Self, String> {
        Ok(Self(text.into()))
    }
}

/// The address of another server.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct HttpUrl(String);

impl HttpUrl {
    /// Without a slash at its end.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl Value for HttpUrl {
    const SHAPE: &'static str = "URL";

    fn parse(text: &str) -> Result<Self, String> {
        Ok(Self(http_url(text)?.as_str().trim_end_matches('/').to_owned()))
    }
}

/// The address of another server, or of a directory of this machine.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct MirrorUrl(Url);

impl MirrorUrl {
    pub fn as_url(&self) -> &Url {
        &self.0
    }
}

impl Value for MirrorUrl {
    const SHAPE: &'static str = "URL";

    fn parse(text: &str) -> Result<Self, String> {
        match Url::parse(text) {
            Ok(url) if url.scheme() == "file" && url.to_file_path().is_ok() => Ok(Self(url)),
            _ => http_url(text).map(Self),
        }
    }
}

/// The address of this server as others see it. It has no path: terraform finds its services by host name alone.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct PublicUrl(Url);

impl PublicUrl {
    pub fn as_url(&self) -> &Url {
        &self.0
    }

    /// Port 0 stands for the one that the system chose.
    pub(crate) fn with_chosen_port(mut self, port: u16) -> Self {
        if self.0.port() == Some(0) {
            self.0.set_port(Some(port)).expect("an http address can have a port");
        }
        self
    }
}

impl fmt::Display for PublicUrl {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(self.0.as_str().trim_end_matches('/'))
    }
}

impl Value for PublicUrl {
    const SHAPE: &'static str = "URL";

    fn parse(text: &str) -> Result<Self, String> {
        let url = http_url(text)?;
        if url.path() != "/" {
            return Err("has a path, but terraform finds a server by its host name alone".to_owned());
        }
        Ok(Self(url))
    }
}

fn http_url(text: &str) -> Result<Url, String> {
    let url = Url::parse(text).map_err(|error| format!("is not a URL ({error})"))?;
    if !matches!(url.scheme(), "http" | "https") {
        return Err("does not begin with http:// or https://".to_owned());
    }
    refuse_extras(&url)?;
    Ok(url)
}

/// Addresses are shown and logged, so they are no place for a password.
fn refuse_extras(url: &Url) -> Result<(), String> {
    if !url.username().is_empty() || url.password().is_some() {
        return Err("holds a user name or password, which has no place in an address".to_owned());
    }
    if url.query().is_some() || url.fragment().is_some() {
        return Err("has a ? or #, which has no place here".to_owned());
    }
    Ok(())
}

/// Format of log lines.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum LogFormat {
    Text,
    Json,
}

impl Value for LogFormat {
    const SHAPE: &'static str = "FORMAT";

    fn parse(text: &str) -> Result<Self, String> {
        match text {
            "text" => Ok(Self::Text),
            "json" => Ok(Self::Json),
            _ => Err("is neither text nor json".to_owned()),
        }
    }
}

/// Filter for log lines.
#[derive(Clone, Debug)]
pub struct LogFilter(Targets);

impl LogFilter {
    pub(crate) fn targets(&self) -> Targets {
        self.0.clone()
    }
}

impl Value for LogFilter {
    const SHAPE: &'static str = "LEVEL";

    fn parse(text: &str) -> Result<Self, String> {
        let levels = "which are off, error, warn, info, debug and trace";
        // `Targets` takes a misspelt level for the name of a crate, and then logs nothing at all.
        if let Some(word) =
            text.split(',').find(|part| !part.contains('=') && part.trim().parse::<LevelFilter>().is_err())
        {
            return Err(format!("has {word:?} where a level should be, {levels}"));
        }
        text.parse().map(Self).map_err(|_| format!("is not a list of levels, {levels}"))
    }
}
