//! Text that `taco server` prints when it has started. Whatever it tells people to type works as it stands there, in
//! another terminal too: `tests/server/start.rs` and the new user's journey type it.

use std::borrow::Cow;
use std::fmt::{self, Display, Formatter};

use taco_control_plane::PasswordLinkText;
use url::{Host, Url};

use crate::config::{Configuration, Group, Setting};
use crate::server::Running;

pub(super) struct StartText<'a> {
    pub(super) running: &'a Running,
    pub(super) configuration: &'a Configuration,
    pub(super) setup_link: Option<&'a PasswordLinkText>,
}

impl Display for StartText<'_> {
    fn fmt(&self, out: &mut Formatter<'_>) -> fmt::Result {
        let Self { running, configuration, .. } = self;
        let url = &running.url;
        writeln!(out, "taco {} listens on {}\n", env!("CARGO_PKG_VERSION"), running.address)?;
        writeln!(out, "  address   {url}")?;
        writeln!(out, "  storage   {}", configuration.settings.bucket.as_str())?;
        if let Some(address) = running.metrics_address {
            writeln!(out, "  metrics   http://{address}/metrics")?;
        }
        writeln!(out)?;
        self.transport(out)?;
        writeln!(out, "Next steps, in another terminal:")?;
        let steps = [
            (format!("taco login {}", login_target(url.as_url())), "log in, for terraform and tofu too"),
            (doctor_command(configuration), "check storage"),
            ("taco help".to_owned(), "list all commands"),
        ];
        let width = steps.iter().map(|(command, _)| command.chars().count()).max().unwrap_or_default();
        for (command, what) in steps {
            writeln!(out, "  {command:width$}   {what}")?;
        }
        writeln!(out)?;
        // Last, where a reader looks first.
        if let Some(link) = self.setup_link {
            writeln!(out, "Set the {} password (one-time link):", link.username)?;
            writeln!(out, "  {}\n", taco_web::password_link_address(url, link))?;
        } else if let Some(username) = &running.admin_without_password {
            writeln!(out, "To set the {username} password, get a one-time link:")?;
            writeln!(out, "  {}\n", setup_command(configuration, running))?;
        }
        writeln!(out, "Ctrl-C stops the server. Docs: README.md")
    }
}

impl StartText<'_> {
    /// What clients need to know of http, or of a certificate that nobody trusts yet.
    fn transport(&self, out: &mut Formatter<'_>) -> fmt::Result {
        let url = self.running.url.as_url();
        if let Some(file) = &self.running.certificate_authority {
            writeln!(out, "The certificate is this server's own. To make taco, terraform, tofu and curl trust it:")?;
            writeln!(out, "  export SSL_CERT_FILE={}\n", in_shell(&file.display().to_string()))?;
        }
        if url.scheme() == "http" {
            writeln!(
                out,
                "Terraform expects HTTPS. To use this server over HTTP, add this to ~/.terraformrc (tofu: ~/.tofurc):"
            )?;
            for line in taco_web::host_block(url).lines() {
                writeln!(out, "  {line}")?;
            }
            writeln!(out, "Links that terraform prints begin with https:// all the same: open them with http://.")?;
            if is_loopback(url) {
                writeln!(
                    out,
                    "Or speak HTTPS, which needs no such block: start the server with --tls-dev (recommended)."
                )?;
            }
            writeln!(out)?;
        }
        Ok(())
    }
}

/// Server as `taco login` understands it: a bare name means http on this machine, and https elsewhere.
fn login_target(url: &Url) -> String {
    if is_loopback(url) == (url.scheme() == "http") {
        taco_web::host_name(url)
    } else {
        url.as_str().trim_end_matches('/').to_owned()
    }
}

fn is_loopback(url: &Url) -> bool {
    match url.host() {
        Some(Host::Domain(name)) => name == "localhost" || name.ends_with(".localhost"),
        Some(Host::Ipv4(address)) => address.is_loopback(),
        Some(Host::Ipv6(address)) => address.is_loopback(),
        None => false,
    }
}

fn doctor_command(configuration: &Configuration) -> String {
    format!("taco doctor{}", flags(configuration, |setting| setting.group == Group::Bucket))
}

/// Command that prints a link which sets the first admin's password.
pub(super) fn setup_command(configuration: &Configuration, running: &Running) -> String {
    let flags = flags(configuration, |setting| setting.group == Group::Bucket || setting.key == "secret_key");
    format!("taco admin setup-link{flags} --url {}", running.url)
}

/// The bucket, and such settings as differ from their defaults, as flags for a shell that has none of this server's
/// variables. Secrets are not shown, but the files that they were read from are.
fn flags(configuration: &Configuration, wanted: impl Fn(&Setting) -> bool) -> String {
    let entries = configuration.entries.iter().filter(|entry| wanted(entry.setting));
    entries
        .filter_map(|entry| {
            let value = entry.flag_value().filter(|_| entry.is_given() || entry.setting.key == "bucket")?;
            Some(format!(" --{} {}", entry.setting.flag(), in_shell(&value)))
        })
        .collect()
}

/// A word as a shell reads it.
fn in_shell(word: &str) -> Cow<'_, str> {
    let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-_./:@%+=,".contains(&byte);
    match word.bytes().all(is_plain) {
        true => Cow::Borrowed(word),
        false => Cow::Owned(format!("'{}'", word.replace('\'', r"'\''"))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_bare_name_is_enough_where_it_leads_to_the_server() {
        let target = |address: &str| login_target(&address.parse().expect("an address"));
        assert_eq!(target("http://127.0.0.1:8080"), "127.0.0.1:8080");
        assert_eq!(target("https://taco.example.com"), "taco.example.com");
        assert_eq!(target("https://localhost:8443"), "https://localhost:8443");
        assert_eq!(target("http://taco.internal"), "http://taco.internal");
        assert_eq!(target("http://[::1]:8080"), "[::1]:8080");
    }

    #[test]
    fn a_shell_reads_a_word_as_one() {
        assert_eq!(in_shell("file:///srv/taco%20data"), "file:///srv/taco%20data");
        assert_eq!(in_shell("/srv/it's here"), r"'/srv/it'\''s here'");
    }
}
