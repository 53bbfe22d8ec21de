//! A TCP proxy between a client and a server, for any protocol, that can be cut, mended and redirected.
//!
//! As in a network that drops packets, neither end is told of a cut: bytes under way wait, and so do those who want an
//! answer.

use std::net::SocketAddr;
use std::sync::{Arc, Mutex};

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;
use tokio::task::JoinHandle;

/// Direction that the proxy lets through.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Flow {
    Both,
    /// Requests arrive; their responses do not.
    RequestsOnly,
    Neither,
}

pub struct CuttableProxy {
    address: SocketAddr,
    target: Arc<Mutex<String>>,
    flow: watch::Sender<Flow>,
    task: JoinHandle<()>,
}

impl CuttableProxy {
    /// To a host and port, or an address that begins with `http://`.
    pub async fn to(target: &str) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a free port");
        let address = listener.local_addr().expect("an address");
        let target = Arc::new(Mutex::new(host(target)));
        let (flow, flows) = watch::channel(Flow::Both);
        let leads_to = Arc::clone(&target);
        let task = tokio::spawn(async move {
            while let Ok((client, _)) = listener.accept().await {
                let target = leads_to.lock().expect("no thread panicked").clone();
                tokio::spawn(carry(client, target, flows.clone()));
            }
        });
        Self { address, target, flow, task }
    }

    /// Address for clients.
    pub fn address(&self) -> String {
        format!("http://{}", self.address)
    }

    /// New connections lead there.
    pub fn redirect_to(&self, target: &str) {
        *self.target.lock().expect("no thread panicked") = host(target);
    }

    pub fn let_through(&self, flow: Flow) {
        self.flow.send_replace(flow);
    }
}

impl Drop for CuttableProxy {
    fn drop(&mut self) {
        self.task.abort();
    }
}

fn host(address: &str) -> String {
    address.trim_start_matches("http://").trim_end_matches('/').to_owned()
}

async fn carry(client: TcpStream, target: String, flow: watch::Receiver<Flow>) {
    // A cut proxy does not let anyone connect either.
    let mut before = flow.clone();
    let Ok(_) = before.wait_for(|flow| *flow != Flow::Neither).await else { return };
    let Ok(server) = TcpStream::connect(&target).await else { return };
    let (from_client, to_client) = client.into_split();
    let (from_server, to_server) = server.into_split();
    let there = pump(from_client, to_server, flow.clone(), |flow| flow != Flow::Neither);
    let back = pump(from_server, to_client, flow, |flow| flow == Flow::Both);
    tokio::join!(there, back);
}

/// Copies until one side ends, and lets the other know.
async fn pump(
    mut from: impl AsyncReadExt + Unpin,
    mut to: impl AsyncWriteExt + Unpin,
    mut flow: watch::Receiver<Flow>,
    lets_through: impl Fn(Flow) -> bool,
) {
    let mut buffer = vec![0; 16 * 1024];
    while let Ok(count @ 1..) = from.read(&mut buffer).await {
        if flow.wait_for(|flow| lets_through(*flow)).await.is_err() {
            return;
        }
        if to.write_all(&buffer[..count]).await.is_err() {
            return;
        }
    }
    // Also the end of a connection is something to hear.
    if flow.wait_for(|flow| lets_through(*flow)).await.is_ok() {
        to.shutdown().await.ok();
    }
}
