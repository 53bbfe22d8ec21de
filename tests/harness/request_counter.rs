//! A TCP proxy that notes the HTTP requests that pass it.

use std::net::SocketAddr;
use std::sync::{Arc, Mutex};

use tokio::io::{AsyncReadExt, AsyncWriteExt, copy};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinHandle;

/// End of the first line of a request.
const REQUEST: &[u8] = b" HTTP/1.1\r\n";

/// Longest first line of a request, in bytes.
const LONGEST_LINE: usize = 8 * 1024;

pub struct RequestCounter {
    address: SocketAddr,
    requests: Arc<Mutex<Vec<String>>>,
    task: JoinHandle<()>,
}

impl RequestCounter {
    /// To an address that begins with `http://`.
    pub async fn to(target: &str) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a free port");
        let address = listener.local_addr().expect("an address");
        let requests = Arc::<Mutex<Vec<String>>>::default();
        let target = target.trim_start_matches("http://").trim_end_matches('/').to_owned();
        let counted = Arc::clone(&requests);
        let task = tokio::spawn(async move {
            while let Ok((client, _)) = listener.accept().await {
                tokio::spawn(carry(client, target.clone(), Arc::clone(&counted)));
            }
        });
        Self { address, requests, task }
    }

    /// Address for clients.
    pub fn address(&self) -> String {
        format!("http://{}", self.address)
    }

    /// Methods and addresses of the requests since this was last asked.
    pub fn take_requests(&self) -> Vec<String> {
        std::mem::take(&mut self.requests.lock().expect("no thread panicked"))
    }
}

impl Drop for RequestCounter {
    fn drop(&mut self) {
        self.task.abort();
    }
}

async fn carry(client: TcpStream, target: String, requests: Arc<Mutex<Vec<String>>>) {
    let Ok(server) = TcpStream::connect(&target).await else { return };
    let (mut from_client, mut to_client) = client.into_split();
    let (mut from_server, mut to_server) = server.into_split();
    let there = async {
        let mut buffer = vec![0; 16 * 1024];
        // What may be the beginning of a line: it may come in two pieces.
        let mut rest = Vec::new();
        while let Ok(count @ 1..) = from_client.read(&mut buffer).await {
            rest.extend_from_slice(&buffer[..count]);
            while let Some(end) = rest.windows(REQUEST.len()).position(|window| window == REQUEST) {
                let line = rest[..end].rsplit(|byte| *byte == b'\n').next().unwrap_or_default();
                requests.lock().expect("no thread panicked").push(String::from_utf8_lossy(line).into_owned());
                rest.drain(..end + REQUEST.len());
            }
            rest.drain(..rest.len().saturating_sub(LONGEST_LINE));
            if to_server.write_all(&buffer[..count]).await.is_err() {
                return;
            }
        }
        to_server.shutdown().await.ok();
    };
    let back = async {
        copy(&mut from_server, &mut to_client).await.ok();
        to_client.shutdown().await.ok();
    };
    tokio::join!(there, back);
}
