//! The one list of settings. The typed struct, the flags, the names of variables and of keys in `taco.toml`, the help
//! texts, `taco config show` and the table in `docs/configuration.md` (a test compares it) all follow from it.

use std::net::SocketAddr;
use std::path::{Path, PathBuf};

use taco_ledger::Location;
use taco_outbound::AllowedNetworks;
use url::Url;

use super::value::{
    AgentEnvironment, BucketUrl, FilePath, HttpUrl, LogFilter, LogFormat, MirrorUrl, PublicUrl, Secret, Value,
};
use super::{ConfigError, Entry, ProcessEnv};
use crate::access_log::ACCESS;
use crate::trusted_proxies::TrustedProxies;

macro_rules! settings {
    ($( $group:ident { $( $(#[doc = $help:literal])+ $key:ident: $type:ty, $default:expr, $example:literal; )+ } )+) => {
        /// Settings of a server. Every value was checked when it was read.
        #[derive(Clone, Debug)]
        pub struct Settings {
            $($( $(#[doc = $help])+ pub $key: $type, )+)+
            /// Files from which secrets were read.
            pub files_with_secrets: Vec<PathBuf>,
        }

        /// All settings, in the order in which people read about them.
        pub static TABLE: &[Setting] = &[$($( Setting {
            key: stringify!($key),
            group: Group::$group,
            help: concat!($($help),+),
            shape: <$type as Value>::SHAPE,
            secret: <$type as Value>::SECRET,
            default: $default,
            example: $example,
        }, )+)+];

        impl Settings {
            /// `entries` are in the order of [`TABLE`].
            pub(super) fn read(entries: &[Entry]) -> Result<Self, ConfigError> {
                let files_with_secrets = entries.iter().filter_map(|entry| entry.secret_in.clone()).collect();
                let mut entries = entries.iter();
                let mut next = || entries.next().expect("there is an entry for each setting");
                Ok(Self { $($( $key: next().parse::<$type>()?, )+)+ files_with_secrets })
            }
        }
    };
}

use DefaultValue::{Computed, Fixed, Nothing};

settings! {
    Bucket {
        /// Where taco keeps everything: file:///path, s3://bucket/prefix, gs://bucket/prefix or az://container/prefix.
        bucket: BucketUrl, Computed(directory_of_user, "a directory, ~/.local/share/taco/bucket"), "s3://company-taco/production";
        /// Address of an S3-compatible server, for anything but AWS.
        s3_endpoint: Option<HttpUrl>, Nothing, "https://minio.example.com:9000";
        /// Region of the S3 bucket.
        s3_region: Option<String>, Nothing, "eu-central-1";
        /// Access key for S3; without one, AWS's own variables and instance roles are used.
        s3_access_key_id: Option<String>, Nothing, "AKIAIOSFODNN7EXAMPLE";
        /// Secret that belongs to the access key.
        s3_secret_access_key: Option<Secret>, Nothing, "wJalrXUtnFEMI/K7MDENG";
        /// Key of a Google service account, as JSON; without one, Google's own variables and metadata are used.
        gcs_service_account_key: Option<Secret>, Nothing, "{\"type\": \"service_account\", …}";
        /// Azure storage account.
        azure_account: Option<String>, Nothing, "companytaco";
        /// Key of the Azure storage account; without one, Azure's own variables and identities are used.
        azure_access_key: Option<Secret>, Nothing, "Zm9vYmFy…";
        /// Address of an Azure emulator or private cloud.
        azure_endpoint: Option<HttpUrl>, Nothing, "http://127.0.0.1:10000/account";
    }
    Server {
        /// Address and port that the server listens on; port 0 takes any free one.
        listen: SocketAddr, Fixed("127.0.0.1:8080"), "0.0.0.0:8080";
        /// Certificate chain of the server as a PEM file; with `tls_key`, it speaks https.
        tls_cert: Option<FilePath>, Nothing, "/etc/taco/tls.crt";
        /// Key that belongs to the certificate, as a PEM file.
        tls_key: Option<FilePath>, Nothing, "/etc/taco/tls.key";
        /// Speak https on a laptop, with a certificate for localhost from a certificate authority of its own beside the bucket's directory.
        tls_dev: bool, Fixed("false"), "true";
        /// Address under which people and terraform reach the server.
        url: PublicUrl, Computed(url_of_listener, "http:// (with TLS, https://) and the address that it listens on"), "https://taco.example.com";
        /// Address under which other servers on the same bucket reach this one.
        peer_url: Option<HttpUrl>, Nothing, "http://10.0.0.7:8080";
        /// Key that encrypts secrets in the bucket; all servers on a bucket need the same one. For a directory, one is created beside it.
        secret_key: Option<Secret>, Nothing, "the output of `openssl rand -hex 32`";
        /// The previous `secret_key`, so that what it encrypted can still be read.
        previous_secret_key: Option<Secret>, Nothing, "what secret_key was";
        /// Token with the rights of a site admin.
        site_token: Option<Secret>, Nothing, "the output of `openssl rand -hex 32`";
        /// Disable authentication: everyone is the site's admin. For a laptop, and only on a loopback address.
        no_auth: bool, Fixed("false"), "true";
        /// Maximum number of connections; without it, as many as the limit of open files allows, at most 10000. When all are taken, an idle one is closed.
        max_connections: Option<u16>, Nothing, "2000";
        /// Maximum number of connections from one address, unless it is a trusted proxy; 0 allows three quarters of all.
        max_connections_per_address: u16, Fixed("1000"), "200";
        /// Addresses and networks of proxies before the server, whose X-Forwarded-For says who the client is. Without them, all who come through a proxy count as one in limits on logins, and the proxy's address stands in the audit trail.
        trusted_proxies: Option<TrustedProxies>, Nothing, "10.0.0.7,192.168.0.0/16";
        /// Requests per second for each API token; 0 is no limit. Logins are always limited.
        api_rate_limit: u16, Fixed("0"), "30";
        /// Organizations that one user may create; 0 is no limit. Site admins and the site token are not limited.
        organizations_per_user: u16, Fixed("20"), "5";
        /// Commits after which a server writes a snapshot of a ledger, so that the next start reads little; a pack has as many.
        snapshot_every: u16, Fixed("1000"), "500";
        /// The program opa, with which policies are compiled when they are uploaded; without it, the one on PATH. A server without opa takes policies as they are, and agents find out.
        opa: Option<FilePath>, Nothing, "/usr/local/bin/opa";
        /// Minutes after which old commits may be packed: many in one compressed object, kept forever.
        pack_after: u16, Fixed("120"), "1440";
    }
    Notifications {
        /// Networks outside the internet to which webhooks may go, also without encryption. Without them, requests to configured addresses reach the internet alone, by https.
        outbound_allow: Option<AllowedNetworks>, Nothing, "10.1.0.0/16,127.0.0.1";
        /// Mail server for email notifications: smtps://, smtp:// with ?tls=required, or plain smtp://; with user and password where it wants them.
        smtp_url: Option<Secret>, Nothing, "smtps://taco:password@mail.example.com";
        /// Sender of email; needed with `smtp_url`.
        mail_from: Option<String>, Nothing, "Taco <taco@example.com>";
    }
    Agent {
        /// Plans and applies that the built-in agent runs at a time; 0 turns it off.
        agent_concurrency: u16, Fixed("2"), "4";
        /// Directory that mirrors Terraform providers, for runs without a network.
        provider_mirror: Option<PathBuf>, Nothing, "/srv/terraform-providers";
        /// Where terraform and tofu are downloaded from: https, or file:/// for a directory; without it, from their makers.
        engine_mirror: Option<MirrorUrl>, Nothing, "https://mirror.example.com/engines";
        /// File with OpenPGP keys that sign terraform and tofu, beside those of HashiCorp and OpenTofu.
        engine_keys: Option<FilePath>, Nothing, "/etc/taco/engine-keys.asc";
        /// File with checksums of archives of terraform and tofu, as sha256sum prints them; those in it need no signature, and may come by plain http.
        engine_checksums: Option<FilePath>, Nothing, "/etc/taco/engines.sha256";
        /// Working directory of the built-in agent: engines and files of runs.
        agent_work_dir: Option<PathBuf>, Nothing, "/var/lib/taco-agent";
        /// User that the built-in agent runs terraform and tofu as, with access to agent_work_dir; the server must run as root. Several (`runs-1,runs-2`, or by number `64000-64031`) give each run one of its own.
        agent_run_as: Option<String>, Nothing, "64000-64031";
        /// Turn off isolation of the built-in agent's runs: they can touch all that their user may, also the bucket's directory and other runs. For runs that mount something or need sudo.
        agent_unconfined: bool, Fixed("false"), "true";
        /// Environment of the built-in agent's runs: clean is built from nothing; inherit is the server's own, with its home directory, so that runs find its user's cloud logins, kubeconfig and ssh-agent. For a laptop.
        agent_environment: AgentEnvironment, Fixed("clean"), "inherit";
        /// Directory of terraform and tofu, where other agents of this user look too; without it, one in agent_work_dir.
        engine_store: Option<PathBuf>, Nothing, "/var/cache/taco/engines";
        /// Directory of providers that runs have downloaded, for later runs. Runs can change what is in it: for runs that trust each other.
        provider_cache: Option<PathBuf>, Nothing, "/var/cache/taco/providers";
        /// Supervise runs as on systems that are not Linux: by process groups alone, and without isolation. To try what happens there.
        agent_portable: bool, Fixed("false"), "true";
        /// Seconds without contact to the server after which an agent stops its runs; servers declare it lost after 1.5 times this.
        agent_lease: u16, Fixed("30"), "60";
        /// Minutes that a plan may take.
        plan_timeout: u16, Fixed("120"), "30";
        /// Minutes that an apply may take.
        apply_timeout: u16, Fixed("1440"), "240";
    }
    Logs {
        /// Format of log lines on stderr: text or json.
        log_format: LogFormat, Computed(format_for_reader, "text on a terminal, else json"), "json";
        /// What is logged: error, warn, info, debug or trace, also for single crates; requests are info of taco_server::access. RUST_LOG works as well.
        log_level: LogFilter, Computed(level_for_reader, "info; on a terminal without requests"), "info,taco_ledger=debug";
        /// Second address that serves /metrics, and removes it from the main address.
        metrics_listen: Option<SocketAddr>, Nothing, "127.0.0.1:9090";
    }
}

impl Settings {
    /// True if the server itself speaks https.
    pub fn speaks_tls(&self) -> bool {
        self.tls_dev || self.tls_cert.is_some()
    }

    /// Location of the bucket, for the ledger.
    pub fn location(&self) -> Location {
        let exposed = |secret: &Option<Secret>| secret.as_ref().map(|secret| secret.expose().to_owned());
        let address = |url: &Option<HttpUrl>| url.as_ref().map(|url| url.as_str().to_owned());
        Location {
            url: self.bucket.as_str().to_owned(),
            s3_endpoint: address(&self.s3_endpoint),
            s3_region: self.s3_region.clone(),
            s3_access_key_id: self.s3_access_key_id.clone(),
            s3_secret_access_key: exposed(&self.s3_secret_access_key),
            gcs_service_account_key: exposed(&self.gcs_service_account_key),
            azure_account: self.azure_account.clone(),
            azure_access_key: exposed(&self.azure_access_key),
            azure_endpoint: address(&self.azure_endpoint),
            variables: crate::environment::variables(),
        }
    }
}

/// One row of [`TABLE`].
#[derive(Debug)]
pub struct Setting {
    /// Its name in `taco.toml`; the other names follow from it.
    pub key: &'static str,
    pub group: Group,
    help: &'static str,
    /// Placeholder for the value in help texts.
    pub shape: &'static str,
    /// A secret is never shown, has no flag (other users see a process's flags), and may come from a file.
    pub secret: bool,
    pub default: DefaultValue,
    pub example: &'static str,
}

impl Setting {
    pub fn help(&self) -> &'static str {
        self.help.trim()
    }

    /// `listen` is `TACO_LISTEN`.
    pub fn variable(&self) -> String {
        format!("TACO_{}", self.key.to_ascii_uppercase())
    }

    /// `metrics_listen` is `--metrics-listen`; for a secret, the flag names a file.
    pub fn flag(&self) -> String {
        let suffix = if self.secret { "-file" } else { "" };
        format!("{}{suffix}", self.key.replace('_', "-"))
    }
}

/// Headings in help texts.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Group {
    Bucket,
    Server,
    Notifications,
    Agent,
    Logs,
}

impl Group {
    pub fn title(self) -> &'static str {
        match self {
            Self::Bucket => "Bucket",
            Self::Server => "Server",
            Self::Notifications => "Notifications",
            Self::Agent => "Agents",
            Self::Logs => "Logs and metrics",
        }
    }
}

/// Default value of a setting.
#[derive(Clone, Copy, Debug)]
pub enum DefaultValue {
    Nothing,
    Fixed(&'static str),
    /// Worked out from the settings above it and the process_env; the text tells people how.
    Computed(fn(&[Entry], &ProcessEnv) -> Option<String>, &'static str),
}

impl DefaultValue {
    pub(super) fn text(self, above: &[Entry], process_env: &ProcessEnv) -> Option<String> {
        match self {
            Nothing => None,
            Fixed(text) => Some(text.to_owned()),
            Computed(compute, _) => compute(above, process_env),
        }
    }

    /// As text, for help texts.
    pub fn described(self) -> Option<&'static str> {
        match self {
            Nothing => None,
            Fixed(text) | Computed(_, text) => Some(text),
        }
    }
}

fn directory_of_user(_: &[Entry], process_env: &ProcessEnv) -> Option<String> {
    let absolute = |name: &str| {
        let path = PathBuf::from(process_env.variables.get(name)?);
        path.is_absolute().then_some(path)
    };
    let data = absolute("XDG_DATA_HOME").or_else(|| Some(absolute("HOME")?.join(".local/share")))?;
    Some(Url::from_file_path(data.join(Path::new("taco/bucket"))).ok()?.into())
}

fn url_of_listener(above: &[Entry], _: &ProcessEnv) -> Option<String> {
    let listen: SocketAddr = above.iter().find(|entry| entry.setting.key == "listen")?.parse().ok()?;
    // One cannot call "any address"; from this machine, localhost is one of them.
    let host = if listen.ip().is_unspecified() { format!("localhost:{}", listen.port()) } else { listen.to_string() };
    let given = |key: &str| above.iter().find(|entry| entry.setting.key == key).and_then(|entry| entry.text.as_deref());
    let scheme = if given("tls_cert").is_some() || given("tls_dev") == Some("true") { "https" } else { "http" };
    Some(format!("{scheme}://{host}"))
}

fn format_for_reader(_: &[Entry], process_env: &ProcessEnv) -> Option<String> {
    Some(if process_env.log_on_terminal { "text" } else { "json" }.to_owned())
}

/// Whoever has just started a server wants to see its setup link, and not have it scrolled away by their own requests.
fn level_for_reader(_: &[Entry], process_env: &ProcessEnv) -> Option<String> {
    Some(if process_env.log_on_terminal { format!("info,{ACCESS}=warn") } else { "info".to_owned() })
}
