//! Rules for an address as it is typed. What a name leads to, only the resolver knows.

use std::net::IpAddr;

use url::{Host, Url};

use crate::addresses::AllowedNetworks;

const LONGEST_URL: usize = 2000;

/// Ports below this belong to other protocols, which a request could be made to speak.
const FIRST_FREE_PORT: u16 = 1024;

/// Reads an address that somebody typed. The error is a sentence.
pub(crate) fn parse(text: &str, allowed: &AllowedNetworks) -> Result<Url, String> {
    if text.len() > LONGEST_URL {
        return Err(format!("URL is too long (maximum is {LONGEST_URL} characters)"));
    }
    let url = Url::parse(text)
        .map_err(|_| "URL is not valid; expected one such as https://hooks.example.com/taco".to_owned())?;
    if !matches!(url.scheme(), "https" | "http") {
        return Err("URL must begin with https://".to_owned());
    }
    if !url.username().is_empty() || url.password().is_some() {
        return Err("URL must not have a user name or a password in it".to_owned());
    }
    let port = url.port_or_known_default().unwrap_or_default();
    if port < FIRST_FREE_PORT && !matches!(port, 80 | 443) {
        return Err(format!("URL has port {port}; allowed are 80, 443 and ports from {FIRST_FREE_PORT} on"));
    }
    let literal: Option<IpAddr> = match url.host() {
        Some(Host::Ipv4(address)) => Some(address.into()),
        Some(Host::Ipv6(address)) => Some(address.into()),
        Some(Host::Domain(name)) if is_this_machine(name) && !allows_loopback(allowed) => {
            return Err(format!("address not allowed: {name} is the server itself"));
        }
        Some(Host::Domain(_)) => None,
        None => return Err("URL has no host".to_owned()),
    };
    // In clear or not is looked at when a request is made.
    match literal {
        Some(address) if !allowed.lets_through(address, true) => {
            Err(format!("address not allowed: {address} is not on the internet"))
        }
        _ => Ok(url),
    }
}

fn is_this_machine(name: &str) -> bool {
    let name = name.trim_end_matches('.');
    name == "localhost" || name.ends_with(".localhost")
}

fn allows_loopback(allowed: &AllowedNetworks) -> bool {
    allowed.contains([127, 0, 0, 1].into()) || allowed.contains(std::net::Ipv6Addr::LOCALHOST.into())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refusal(text: &str) -> String {
        parse(text, &AllowedNetworks::default()).expect_err(text)
    }

    #[test]
    fn what_leads_into_the_site_is_refused_as_it_is_typed() {
        for text in [
            "https://127.0.0.1/",
            "https://127.1/",
            "https://0177.0.0.1/",
            "https://0x7f.1/",
            "https://2130706433/",
            "https://localhost/",
            "https://localhost./",
            "https://LOCALHOST/",
            "https://a.localhost/",
            "https://0.0.0.0/",
            "https://169.254.169.254/latest/meta-data/",
            "https://[::1]/",
            "https://[::]/",
            "https://[::ffff:127.0.0.1]/",
            "https://[::ffff:169.254.169.254]/",
            "https://[fd00:ec2::254]/",
            "https://[fe80::1]/",
            "https://10.0.0.1/",
            "https://172.16.3.4:8443/",
            "https://192.168.0.1/",
            "https://100.64.0.1/",
            "https://224.0.0.1/",
            "https://①②⑦.0.0.1/",
            "https://127。0。0。1/",
        ] {
            assert!(refusal(text).starts_with("address not allowed: "), "{text}: {}", refusal(text));
        }
    }

    #[test]
    fn other_bad_addresses_are_refused_with_a_reason() {
        for (text, reason) in [
            ("ftp://example.com/", "must begin with https://"),
            ("file:///etc/passwd", "must begin with https://"),
            ("gopher://example.com/", "must begin with https://"),
            ("example.com", "is not valid"),
            ("", "is not valid"),
            ("https://", "is not valid"),
            ("https://ann@example.com/", "user name or a password"),
            ("https://ann:secret@example.com/", "user name or a password"),
            ("https://example.com:22/", "port 22"),
            ("https://example.com:25/", "port 25"),
            ("https://example.com:0/", "port 0"),
        ] {
            assert!(refusal(text).contains(reason), "{text}: {}", refusal(text));
        }
        assert!(refusal(&format!("https://example.com/{}", "a".repeat(2000))).contains("too long"));
    }

    #[test]
    fn addresses_on_the_internet_and_in_allowed_networks_are_fine() {
        let nothing = AllowedNetworks::default();
        for text in
            ["https://example.com/a?b=c", "http://example.com", "https://1.1.1.1:8443/", "https://example.com:443/"]
        {
            assert!(parse(text, &nothing).is_ok(), "{text}");
        }
        let allowed = AllowedNetworks::parse("127.0.0.0/8").expect("a network");
        for text in ["http://127.0.0.1:8080/hook", "http://localhost:8080/hook"] {
            assert!(parse(text, &nothing).is_err(), "{text}");
            assert!(parse(text, &allowed).is_ok(), "{text}");
        }
    }
}
