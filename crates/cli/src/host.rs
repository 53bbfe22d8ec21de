//! A server's name, as terraform spells it, and its address.

use std::fmt;
use std::net::IpAddr;
use std::str::FromStr;

use url::Url;

use crate::failure::Failure;
use crate::local::LOCAL_HOST;

#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Host {
    /// `taco.example.com` or `localhost:8080`: the key in the credentials file.
    pub(crate) name: String,
    /// Ends with a slash.
    pub(crate) address: Url,
}

impl Default for Host {
    fn default() -> Self {
        "localhost:8080".parse().expect("it is a host")
    }
}

/// A name, or an address with `http://` or `https://`. A name means https, unless it is that of this machine: there is
/// no network to listen on in between, and a server on a laptop has no certificate.
impl FromStr for Host {
    type Err = Failure;

    fn from_str(text: &str) -> Result<Self, Failure> {
        let refused = |why: &str| {
            Failure::usage(format!("{text:?} is no host"))
                .because(why)
                .hint("write taco.example.com, localhost:8080 or https://localhost:8443")
        };
        let text = text.trim();
        let parse = |text: &str| Url::parse(text).map_err(|error| refused(&error.to_string()));
        let mut address = match text.contains("://") {
            true => parse(text)?,
            false => {
                let guess = parse(&format!("https://{text}"))?;
                if is_loopback(&guess) { parse(&format!("http://{text}"))? } else { guess }
            }
        };
        if !["http", "https"].contains(&address.scheme()) {
            return Err(refused("it must be reached through http or https"));
        }
        if !address.username().is_empty() || address.password().is_some() {
            return Err(refused("it names a user; tokens are given in another way"));
        }
        let Some(name) = address.host_str().map(str::to_owned) else { return Err(refused("it has no name")) };
        // Terraform takes a name without a port for https.
        let name = match (address.port(), address.scheme()) {
            (Some(port), _) => format!("{name}:{port}"),
            (None, "http") => format!("{name}:80"),
            (None, _) => name,
        };
        address.set_path("/");
        address.set_query(None);
        address.set_fragment(None);
        Ok(Self { name, address })
    }
}

fn is_loopback(url: &Url) -> bool {
    let Some(host) = url.host_str() else { return false };
    let bare = host.trim_start_matches('[').trim_end_matches(']');
    host == "localhost" || host.ends_with(".localhost") || bare.parse::<IpAddr>().is_ok_and(|ip| ip.is_loopback())
}

impl Host {
    /// Server of a bucket, which has no address before it is started.
    pub(crate) fn local() -> Self {
        let name = LOCAL_HOST.to_owned();
        Self { address: Url::parse(&format!("http://{name}/")).expect("it is an address"), name }
    }

    /// The same server at an address.
    pub(crate) fn at_address(&self, address: &str) -> Result<Self, Failure> {
        let Self { address, .. } = address.parse()?;
        Ok(Self { address, name: self.name.clone() })
    }

    /// The address of something, each of whose parts may contain any character.
    pub(crate) fn at(&self, parts: &[&str]) -> Url {
        let mut url = self.address.clone();
        if let Ok(mut path) = url.path_segments_mut() {
            path.clear().extend(parts);
        }
        url
    }

    pub(crate) fn is_plain(&self) -> bool {
        self.address.scheme() == "http"
    }

    /// True if it is this machine, where a name without a scheme means http.
    pub(crate) fn is_loopback(&self) -> bool {
        is_loopback(&self.address)
    }
}

impl fmt::Display for Host {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(&self.name)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_means_https_except_for_this_machine() {
        for (text, name, address) in [
            ("taco.example.com", "taco.example.com", "https://taco.example.com/"),
            ("Taco.Example.com:443", "taco.example.com", "https://taco.example.com/"),
            ("taco.example.com:8443", "taco.example.com:8443", "https://taco.example.com:8443/"),
            ("localhost:8080", "localhost:8080", "http://localhost:8080/"),
            ("127.0.0.1:9", "127.0.0.1:9", "http://127.0.0.1:9/"),
            ("[::1]:9", "[::1]:9", "http://[::1]:9/"),
            ("https://localhost:8443/app?x", "localhost:8443", "https://localhost:8443/"),
            ("http://taco.internal", "taco.internal:80", "http://taco.internal/"),
        ] {
            let host: Host = text.parse().expect(text);
            assert_eq!((host.name.as_str(), host.address.as_str()), (name, address), "{text}");
        }
    }

    #[test]
    fn what_is_no_host_is_refused() {
        for text in ["", "ftp://example.com", "https://jane:secret@example.com", "a b", "http://"] {
            assert!(text.parse::<Host>().is_err(), "{text}");
        }
    }

    #[test]
    fn parts_of_a_path_cannot_leave_it() {
        let host = Host::default();
        assert_eq!(host.at(&["api", "a/b", "c?d"]).as_str(), "http://localhost:8080/api/a%2Fb/c%3Fd");
    }
}
