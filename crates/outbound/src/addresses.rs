//! Addresses to which the site may connect.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use ipnet::IpNet;

/// Networks that are not global and to which the operator allows requests all the same.
#[derive(Clone, PartialEq, Eq, Default, Debug)]
pub struct AllowedNetworks(Vec<IpNet>);

impl AllowedNetworks {
    /// Reads a list such as `10.1.0.0/16, 192.168.0.7`. The error completes the sentence "«text» …".
    pub fn parse(text: &str) -> Result<Self, String> {
        let parse = |part: &str| match part.parse::<IpAddr>() {
            Ok(address) => Ok(IpNet::from(address)),
            Err(_) => part.parse::<IpNet>().map_err(|_| format!("has {part:?}, which is no address or network")),
        };
        text.split(',').map(str::trim).map(parse).collect::<Result<_, _>>().map(Self)
    }

    pub fn contains(&self, address: IpAddr) -> bool {
        let address = address.to_canonical();
        self.0.iter().any(|network| network.contains(&address))
    }

    /// True if a request may go there. What is not encrypted may leave for allowed networks alone.
    pub(crate) fn lets_through(&self, address: IpAddr, is_encrypted: bool) -> bool {
        self.contains(address) || (is_encrypted && is_global(address))
    }
}

/// Ranges of IPv4 that do not belong to anyone on the internet, or do not lead to one host.
const SPECIAL_V4: [(Ipv4Addr, u8); 15] = [
    (Ipv4Addr::new(0, 0, 0, 0), 8),
    (Ipv4Addr::new(10, 0, 0, 0), 8),
    (Ipv4Addr::new(100, 64, 0, 0), 10),
    (Ipv4Addr::new(127, 0, 0, 0), 8),
    // Link-local, and with it the metadata of clouds.
    (Ipv4Addr::new(169, 254, 0, 0), 16),
    (Ipv4Addr::new(172, 16, 0, 0), 12),
    (Ipv4Addr::new(192, 0, 0, 0), 24),
    (Ipv4Addr::new(192, 0, 2, 0), 24),
    (Ipv4Addr::new(192, 88, 99, 0), 24),
    (Ipv4Addr::new(192, 168, 0, 0), 16),
    (Ipv4Addr::new(198, 18, 0, 0), 15),
    (Ipv4Addr::new(198, 51, 100, 0), 24),
    (Ipv4Addr::new(203, 0, 113, 0), 24),
    // Multicast, reserved and broadcast.
    (Ipv4Addr::new(224, 0, 0, 0), 4),
    (Ipv4Addr::new(240, 0, 0, 0), 4),
];

/// Ranges within the global unicast addresses of IPv6 that are for protocols and examples. Some of them, such as 6to4 and
/// Teredo, carry an address of IPv4 to which they lead.
const SPECIAL_V6: [(Ipv6Addr, u8); 4] = [
    (Ipv6Addr::new(0x2001, 0, 0, 0, 0, 0, 0, 0), 23),
    (Ipv6Addr::new(0x2001, 0xdb8, 0, 0, 0, 0, 0, 0), 32),
    (Ipv6Addr::new(0x2002, 0, 0, 0, 0, 0, 0, 0), 16),
    (Ipv6Addr::new(0x3fff, 0, 0, 0, 0, 0, 0, 0), 20),
];

/// True for addresses of hosts on the internet.
pub fn is_global(address: IpAddr) -> bool {
    match address.to_canonical() {
        IpAddr::V4(address) => {
            !SPECIAL_V4.iter().any(|(start, bits)| shares(32 - bits, address.to_bits(), start.to_bits()))
        }
        IpAddr::V6(address) => {
            let is_unicast = address.segments()[0] & 0xe000 == 0x2000;
            let within = |(start, bits): &(Ipv6Addr, u8)| {
                address.to_bits() >> (128 - u32::from(*bits)) == start.to_bits() >> (128 - u32::from(*bits))
            };
            is_unicast && !SPECIAL_V6.iter().any(within)
        }
    }
}

fn shares(below: u8, one: u32, other: u32) -> bool {
    one >> below == other >> below
}

#[cfg(test)]
mod tests {
    use super::*;

    fn address(text: &str) -> IpAddr {
        text.parse().expect("an address")
    }

    #[test]
    fn only_hosts_on_the_internet_are_global() {
        for global in ["1.1.1.1", "8.8.8.8", "172.15.0.1", "172.32.0.1", "100.63.0.1", "2606:4700::1111", "2a00::1"] {
            assert!(is_global(address(global)), "{global}");
        }
        for special in [
            "0.0.0.0",
            "0.1.2.3",
            "10.0.0.1",
            "100.64.0.1",
            "100.127.255.255",
            "127.0.0.1",
            "127.255.255.255",
            "169.254.169.254",
            "172.16.0.1",
            "172.31.255.255",
            "192.0.0.8",
            "192.0.2.1",
            "192.88.99.1",
            "192.168.1.1",
            "198.18.0.1",
            "198.19.255.255",
            "198.51.100.7",
            "203.0.113.7",
            "224.0.0.1",
            "239.1.1.1",
            "240.0.0.1",
            "255.255.255.255",
            "::",
            "::1",
            "::ffff:127.0.0.1",
            "::ffff:169.254.169.254",
            "::ffff:10.0.0.1",
            "::127.0.0.1",
            "64:ff9b::7f00:1",
            "100::1",
            "fc00::1",
            "fd12::1",
            "fe80::1",
            "fec0::1",
            "ff02::1",
            "2001::1",
            "2001:db8::1",
            "2002:7f00:1::",
            "3fff::1",
            "fd00:ec2::254",
        ] {
            assert!(!is_global(address(special)), "{special}");
        }
    }

    #[test]
    fn an_operator_allows_networks() {
        let allowed = AllowedNetworks::parse("10.1.0.0/16, 127.0.0.1,fd00::/8").expect("a list");
        for (text, expected) in [
            ("10.1.2.3", true),
            ("::ffff:10.1.2.3", true),
            ("10.2.0.1", false),
            ("127.0.0.1", true),
            ("127.0.0.2", false),
            ("fd12::1", true),
            ("fe80::1", false),
        ] {
            assert_eq!(allowed.lets_through(address(text), true), expected, "{text}");
            assert_eq!(allowed.lets_through(address(text), false), expected, "{text}");
        }
        assert!(allowed.lets_through(address("1.1.1.1"), true));
        assert!(!allowed.lets_through(address("1.1.1.1"), false), "not in clear");
        assert_eq!(
            AllowedNetworks::parse("10.0.0.0/8,somewhere"),
            Err(r#"has "somewhere", which is no address or network"#.to_owned())
        );
    }
}
