//! Blocks for terraform's files that lead to a server: one text, wherever they are shown.

use std::ops::RangeInclusive;

/// The only client that logs in with a browser: any program under this name on a person's own machine.
pub const LOGIN_CLIENT: &str = "terraform-cli";

/// Clients listen for their code on one of these ports of the person's machine.
pub const LOGIN_PORTS: RangeInclusive<u16> = 10_000..=10_009;

/// Block for `~/.terraformrc` that tells the addresses of a server's services. Over plain http terraform has to be told:
/// what it looks up itself, it looks up with https. `host` is the server's name with its port, `site` its address.
pub fn host_block(host: &str, site: &str) -> String {
    let site = site.trim_end_matches('/');
    let (first, after_last) = (LOGIN_PORTS.start(), LOGIN_PORTS.end() + 1);
    format!(
        r#"host "{host}" {{
  services = {{
    "tfe.v2"   = "{site}/api/v2/"
    "tfe.v2.1" = "{site}/api/v2/"
    "tfe.v2.2" = "{site}/api/v2/"
    "state.v2" = "{site}/api/v2/"
    "modules.v1" = "{site}/api/registry/v1/modules/"
    "providers.v1" = "{site}/api/registry/v1/providers/"
    "login.v1" = {{
      client      = "{LOGIN_CLIENT}"
      grant_types = ["authz_code"]
      authz       = "{site}/oauth/authorize"
      token       = "{site}/oauth/token"
      ports       = [{first}, {after_last}]
    }}
  }}
}}"#
    )
}

/// Block with which a configuration keeps its state in a workspace, or runs there.
pub fn cloud_block(host: &str, organization: &str, workspace: &str) -> String {
    let [host, organization, workspace] = [host, organization, workspace].map(quoted);
    format!(
        "terraform {{
  cloud {{
    hostname     = {host}
    organization = {organization}

    workspaces {{
      name = {workspace}
    }}
  }}
}}"
    )
}

/// Text between quotes, as terraform reads it.
pub fn quoted(text: &str) -> String {
    let escaped = text.replace('\\', "\\\\").replace('"', "\\\"").replace("${", "$${").replace("%{", "%%{");
    format!("\"{escaped}\"")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_cannot_break_out_of_their_quotes() {
        assert_eq!(quoted(r#"a"b\${c}"#), r#""a\"b\\$${c}""#);
    }

    #[test]
    fn a_host_block_has_all_that_a_login_needs() {
        let block = host_block("localhost:8080", "http://localhost:8080/");
        assert!(block.contains("\"login.v1\"") && block.contains("[10000, 10010]"), "{block}");
        assert!(block.contains("\"http://localhost:8080/oauth/token\""), "{block}");
    }
}
