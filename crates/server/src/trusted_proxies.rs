//! Address of a client behind a proxy. A proxy names its client in `X-Forwarded-For`; anyone can send that header, so
//! it counts only if it comes from a proxy that the settings name.

use std::net::{IpAddr, SocketAddr};

use axum::http::HeaderMap;
use ipnet::IpNet;

/// The addresses of proxies.
#[derive(Clone, PartialEq, Eq, Default, Debug)]
pub struct TrustedProxies(Vec<IpNet>);

impl TrustedProxies {
    /// Reads a list such as `10.0.0.7, 192.168.0.0/16`.
    pub(crate) fn parse(text: &str) -> Result<Self, String> {
        let parse = |part: &str| match part.parse::<IpAddr>() {
            Ok(address) => Ok(IpNet::from(address)),
            Err(_) => part.parse::<IpNet>().map_err(|_| format!("has {part:?}, which is no address or network")),
        };
        text.split(',').map(str::trim).map(parse).collect::<Result<_, _>>().map(Self)
    }

    pub(crate) fn contains(&self, address: IpAddr) -> bool {
        let address = address.to_canonical();
        self.0.iter().any(|network| network.contains(&address))
    }

    /// Client of a request that came from `peer`: of those who passed it on, the last one whom we do not trust.
    pub(crate) fn client(&self, peer: IpAddr, headers: &HeaderMap) -> IpAddr {
        let mut client = peer.to_canonical();
        if !self.contains(client) {
            return client;
        }
        // Each by itself, so that bytes which a client sent do not hide what a proxy wrote behind them.
        let passed_on: Vec<&str> = (headers.get_all("x-forwarded-for").iter())
            .flat_map(|line| line.as_bytes().split(|byte| *byte == b','))
            .map(|hop| str::from_utf8(hop).unwrap_or("unreadable").trim())
            .collect();
        for hop in passed_on.iter().rev() {
            if !self.contains(client) {
                break;
            }
            match address_in(hop) {
                Some(address) => client = address,
                // Anything before it was not written by a proxy that we trust.
                None => break,
            }
        }
        client
    }
}

/// Some proxies write the port, too.
fn address_in(hop: &str) -> Option<IpAddr> {
    let bare = hop.strip_prefix('[').and_then(|hop| hop.strip_suffix(']')).unwrap_or(hop);
    let with_port = || hop.parse::<SocketAddr>().map(|address| address.ip());
    bare.parse().or_else(|_| with_port()).ok().map(|address: IpAddr| address.to_canonical())
}

#[cfg(test)]
mod tests {
    use axum::http::HeaderValue;

    use super::*;

    fn client(peer: &str, lines: &[&str]) -> String {
        let proxies = TrustedProxies::parse("10.0.0.0/8, ::1,192.168.1.7").expect("a list");
        let mut headers = HeaderMap::new();
        for line in lines {
            headers.append("x-forwarded-for", HeaderValue::from_bytes(line.as_bytes()).expect("a header"));
        }
        proxies.client(peer.parse().expect("an address"), &headers).to_string()
    }

    #[test]
    fn only_proxies_that_are_trusted_say_who_the_client_is() {
        for (peer, lines, expected) in [
            ("203.0.113.9", &["198.51.100.1"][..], "203.0.113.9"),
            ("10.1.2.3", &["198.51.100.1"], "198.51.100.1"),
            ("::ffff:10.1.2.3", &["198.51.100.1"], "198.51.100.1"),
            ("10.1.2.3", &[], "10.1.2.3"),
            // The client wrote the first itself.
            ("10.1.2.3", &["1.1.1.1, 198.51.100.1"], "198.51.100.1"),
            ("10.1.2.3", &["1.1.1.1", "198.51.100.1, 192.168.1.7"], "198.51.100.1"),
            ("10.1.2.3", &["\u{e9}, 198.51.100.1"], "198.51.100.1"),
            ("10.1.2.3", &["198.51.100.1:4711"], "198.51.100.1"),
            ("10.1.2.3", &["[2001:db8::1]:4711"], "2001:db8::1"),
            ("::1", &["[2001:db8::1]"], "2001:db8::1"),
            ("10.1.2.3", &["1.1.1.1, unknown, 10.0.0.9"], "10.0.0.9"),
            ("10.1.2.3", &["10.0.0.8"], "10.0.0.8"),
        ] {
            assert_eq!(client(peer, lines), expected, "{peer} {lines:?}");
        }
    }

    #[test]
    fn a_list_of_networks_is_read_or_refused() {
        for bad in ["proxy.example.com", "10.0.0.0/33", "10.0.0.1,,", "10.0.0.1 10.0.0.2"] {
            assert!(TrustedProxies::parse(bad).is_err(), "{bad}");
        }
    }
}
