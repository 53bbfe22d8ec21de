//! Servers on one bucket, as processes, and the one address under which people reach them.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Arc;

use reqwest::redirect::Policy;
use reqwest::{Client, ClientBuilder};

use crate::api_client::ApiClient;
use crate::binary::binary;
use crate::browser::Browser;
use crate::certificate::Certificate;
use crate::engine::Engine;
use crate::home::{Home, ServerProcess};
use crate::load_balancer::{LoadBalancer, UnstartedLoadBalancer};
use crate::process::Process;

/// The token of the site's admin.
pub const SITE_TOKEN: &str = "a-token-for-automation-of-more-than-32-letters";

/// Address at which nothing listens.
const NOWHERE: &str = "http://127.0.0.1:9";

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Transport {
    Http,
    Https,
}

pub struct Installation {
    pub home: Home,
    pub servers: Vec<Arc<ServerProcess>>,
    /// Stands before the servers, unless there is only one.
    pub proxy: Option<LoadBalancer>,
    /// Scheme, host and port.
    pub origin: String,
    /// CA certificate that clients have to trust.
    pub authority: Option<PathBuf>,
}

impl Installation {
    /// Two servers behind a proxy that gives each of them every second request.
    pub fn of_two_servers(transport: Transport) -> Self {
        Self::of_two_servers_with(transport, |_| {})
    }

    /// Two servers that leave all runs to other agents.
    pub fn of_two_servers_without_agents(transport: Transport) -> Self {
        Self::of_two_servers_with(transport, |command| _ = command.env("TACO_AGENT_CONCURRENCY", "0"))
    }

    fn of_two_servers_with(transport: Transport, prepare: impl Fn(&mut Command)) -> Self {
        let home = Home::default();
        let unconnected = UnstartedLoadBalancer::bind();
        let (scheme, certificate) = match transport {
            Transport::Http => ("http", None),
            Transport::Https => ("https", Some(Certificate::make_in(home.path()))),
        };
        let origin = format!("{scheme}://localhost:{}", unconnected.port());
        let servers: Vec<_> = (0..2)
            .map(|_| {
                let mut command = home.taco(&["server"]);
                command.env("TACO_URL", &origin);
                prepare(&mut command);
                if let Some(files) = &certificate {
                    command.env("TACO_TLS_CERT", &files.certificate).env("TACO_TLS_KEY", &files.key);
                }
                start(&mut command)
            })
            .collect();
        let addresses = servers.iter().map(|server| format!("{scheme}://{}", server.address)).collect();
        let authority = certificate.as_ref().map(|files| files.certificate.clone());
        // Where an answer leads is the client's business.
        let client = trusting(authority.as_deref()).redirect(Policy::none()).build().expect("a client");
        let tls = certificate.map(|files| files.acceptor());
        let proxy = Some(unconnected.connect(addresses, client, tls));
        Self { home, servers, proxy, origin, authority }
    }

    /// One server on a laptop, as its quick start says.
    pub fn on_a_laptop(transport: Transport) -> Self {
        Self::on_a_laptop_with(transport, |_| {})
    }

    /// One server whose own agent finds both engines and downloads no others.
    pub fn with_engines(transport: Transport) -> Self {
        Self::on_a_laptop_with(transport, |command| {
            command.env("PATH", Engine::search_path()).env("TACO_ENGINE_MIRROR", NOWHERE);
        })
    }

    /// The same, and it may ask programs on this machine.
    pub fn with_engines_and_tasks(transport: Transport) -> Self {
        Self::on_a_laptop_with(transport, |command| {
            command.env("PATH", Engine::search_path()).env("TACO_ENGINE_MIRROR", NOWHERE);
            command.env("TACO_OUTBOUND_ALLOW", "127.0.0.0/8");
        })
    }

    /// One server with both engines, and providers come from this directory.
    pub fn with_providers(transport: Transport, mirror: &Path) -> Self {
        Self::on_a_laptop_with(transport, |command| {
            command.env("PATH", Engine::search_path()).env("TACO_ENGINE_MIRROR", NOWHERE);
            command.env("TACO_PROVIDER_MIRROR", mirror);
        })
    }

    fn on_a_laptop_with(transport: Transport, prepare: impl Fn(&mut Command)) -> Self {
        let home = Home::default();
        let (scheme, words) = match transport {
            Transport::Http => ("http", &["server"][..]),
            Transport::Https => ("https", &["server", "--tls-dev"][..]),
        };
        let mut command = home.taco(words);
        prepare(&mut command);
        let server = start(&mut command);
        let authority = home.path().join(".local/share/taco/bucket.tls/ca.pem");
        let authority = (transport == Transport::Https).then_some(authority);
        let origin = format!("{scheme}://{}", server.address);
        Self { home, servers: vec![server], proxy: None, origin, authority }
    }

    /// Starts an agent that holds this token of a pool.
    pub fn agent(&self, name: &str, token: &str) -> Process {
        Process::start(&mut self.agent_command(name, token))
    }

    pub fn agent_command(&self, name: &str, token: &str) -> Command {
        let mut command = Command::new(binary("taco-agent"));
        command.current_dir(self.home.path()).env_clear().env("HOME", self.home.path());
        command.env("PATH", Engine::search_path()).env("TACO_ENGINE_MIRROR", "none").env("TACO_AGENT_TOKEN", token);
        command.args(["--server", &self.origin, "--name", name, "--concurrency", "2"]);
        command.arg("--work-dir").arg(self.home.path().join(name));
        if let Some(file) = &self.authority {
            command.env("TACO_AGENT_CA_FILE", file);
        }
        command
    }

    /// Host and port, as clients write them into their configuration.
    pub fn host(&self) -> &str {
        self.origin.split_once("://").map_or(&self.origin, |(_, host)| host)
    }

    pub fn http_client(&self) -> ClientBuilder {
        trusting(self.authority.as_deref())
    }

    /// The site's admin.
    pub fn admin(&self) -> ApiClient {
        self.with_token(SITE_TOKEN)
    }

    pub fn with_token(&self, token: &str) -> ApiClient {
        let client = self.http_client().build().expect("a client");
        ApiClient { origin: self.origin.clone(), client, token: token.to_owned() }
    }

    /// The path of a link that sets the first admin's password.
    pub fn setup_link(&self) -> String {
        self.home.setup_link(&[])
    }

    /// A browser in which the first admin has just set a password.
    pub async fn browser(&self) -> Browser {
        let browser = Browser::at(self.origin.clone(), self.http_client());
        browser.set_password(&self.setup_link()).await;
        browser
    }

    /// The block for the configuration of terraform or tofu that the first server printed, or nothing over https.
    pub fn host_block(&self) -> String {
        self.servers[0].process.line_of_stdout(|line| line.starts_with("Ctrl-C"));
        let said = self.servers[0].process.stdout();
        let Some(begin) = said.find("  host \"") else { return String::new() };
        let end = begin + said[begin..].find("\n  }\n").expect("it ends") + 5;
        said[begin..end].to_owned()
    }
}

fn start(command: &mut Command) -> Arc<ServerProcess> {
    Arc::new(ServerProcess::start(command.env("TACO_LISTEN", "127.0.0.1:0").env("TACO_SITE_TOKEN", SITE_TOKEN)))
}

fn trusting(authority: Option<&Path>) -> ClientBuilder {
    match authority {
        None => Client::builder(),
        Some(file) => {
            let authority = fs::read(file).expect("it was made");
            let authority = reqwest::Certificate::from_pem(&authority).expect("a certificate");
            Client::builder().tls_certs_only([authority])
        }
    }
}
