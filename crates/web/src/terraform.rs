//! Snippets for terraform's files that lead to this server.

use taco_domain::terraform_files;
use url::Url;

/// The server's name as terraform knows it: host and port.
pub fn host_name(address: &Url) -> String {
    let host = address.host_str().unwrap_or_default();
    address.port().map_or_else(|| host.to_owned(), |port| format!("{host}:{port}"))
}

/// A block for `~/.terraformrc` that tells the services' addresses.
pub fn host_block(address: &Url) -> String {
    terraform_files::host_block(&host_name(address), address.as_str())
}

/// Block that terraform's configuration needs to find this server: none, where it speaks https.
pub(crate) fn needed_host_block(address: &Url) -> Option<String> {
    (address.scheme() == "http").then(|| host_block(address))
}

/// Block with which a configuration keeps its state in a workspace here.
pub(crate) fn cloud_block(address: &Url, organization: &str, workspace: &str) -> String {
    terraform_files::cloud_block(&host_name(address), organization, workspace)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_host_has_a_port_unless_it_is_the_usual_one() {
        let name = |address: &str| host_name(&address.parse().expect("an address"));
        assert_eq!(name("https://taco.example.com"), "taco.example.com");
        assert_eq!(name("http://localhost:8080"), "localhost:8080");
    }
}
