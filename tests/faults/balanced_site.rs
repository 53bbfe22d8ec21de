//! Several servers behind a load balancer.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use harness::home::ServerProcess;
use harness::run_site::SITE_TOKEN;
use reqwest::{Client, Method, StatusCode};
use serde_json::Value;
use tokio::sync::RwLock;

/// The servers that live now. A client asks the next one each time, as a load balancer would.
pub(crate) struct BalancedSite {
    pub(crate) servers: RwLock<Vec<ServerProcess>>,
    turn: AtomicUsize,
    client: Client,
}

impl BalancedSite {
    pub(crate) fn of(servers: Vec<ServerProcess>) -> Self {
        let client = Client::builder().timeout(Duration::from_secs(15)).build().expect("a client");
        Self { servers: RwLock::new(servers), turn: AtomicUsize::new(0), client }
    }

    /// The status and the document of an answer; `None` if there was none, because a server died.
    pub(crate) async fn ask(&self, method: Method, path: &str, body: Option<&Value>) -> Option<(StatusCode, Value)> {
        let address = {
            let servers = self.servers.read().await;
            servers[self.turn.fetch_add(1, Ordering::SeqCst) % servers.len()].address.clone()
        };
        let mut request = self.client.request(method, format!("http://{address}{path}")).bearer_auth(SITE_TOKEN);
        if let Some(body) = body {
            request = request.header("content-type", "application/vnd.api+json").body(body.to_string());
        }
        let answer = request.send().await.ok()?;
        let status = answer.status();
        let document = answer.bytes().await.ok()?;
        Some((status, serde_json::from_slice(&document).unwrap_or(Value::Null)))
    }
}
