//! Headers of requests.

use std::net::{IpAddr, Ipv4Addr};

use taco_server::fuzzing::client;

const PROXY: IpAddr = IpAddr::V4(Ipv4Addr::new(10, 0, 0, 1));
const STRANGER: IpAddr = IpAddr::V4(Ipv4Addr::new(203, 0, 113, 9));

/// A stranger is who they are, whatever they say; and what stands before an address that counts changes nothing.
pub fn forwarded_addresses(data: &[u8]) {
    if let Some(found) = client("10.0.0.0/8", STRANGER, data) {
        assert_eq!(found, STRANGER);
    }
    let by_proxy = [data, b", 198.51.100.7"].concat();
    if let Some(found) = client("10.0.0.0/8", PROXY, &by_proxy) {
        assert_eq!(found, IpAddr::V4(Ipv4Addr::new(198, 51, 100, 7)));
    }
    client("10.0.0.0/8", PROXY, data);
}
