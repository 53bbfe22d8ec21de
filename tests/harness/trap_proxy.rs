//! An HTTP proxy between a client and its server with traps: a request or its answer can be stopped there.
//!
//! It passes everything on, until someone sets a trap: the first request that the trap is for is stopped, either before
//! the server gets it or after the server has done it. What the client then sees is up to the trap: nothing, for as long
//! as it waits, or a connection that breaks.
//!
//! In front of a bucket that gives exact moments at which to kill `taco`: no code in the product knows of them. In front
//! of `taco` it loses answers as bad networks do.

use std::net::SocketAddr;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use axum::body::{Body, to_bytes};
use axum::http::{Method, Request, Response};
use hyper::body::Incoming;
use hyper_util::rt::{TokioExecutor, TokioIo};
use hyper_util::server::conn::auto;
use hyper_util::service::TowerToHyperService;
use tokio::net::TcpListener;
use tokio::sync::oneshot;
use tokio::task::JoinHandle;

/// Long enough for a machine that is busy with other tests.
const TRAP_TIMEOUT: Duration = Duration::from_secs(60);

/// Point at which a request is stopped.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Moment {
    /// The server never hears of it.
    Before,
    /// The server has done it, and its answer goes nowhere.
    After,
}

/// Fate of the client whose request was stopped.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Fate {
    /// It waits until it is killed or gives up.
    Waits,
    /// Its connection breaks.
    IsCutOff,
}

type Wanted = Box<dyn Fn(&Method, &str) -> bool + Send>;

struct Trap {
    wanted: Wanted,
    moment: Moment,
    fate: Fate,
    caught: oneshot::Sender<String>,
}

#[derive(Clone)]
struct ProxyState {
    upstream: String,
    client: reqwest::Client,
    trap: Arc<Mutex<Option<Trap>>>,
    requests: Arc<Mutex<Vec<String>>>,
}

pub struct TrapProxy {
    address: SocketAddr,
    trap: Arc<Mutex<Option<Trap>>>,
    requests: Arc<Mutex<Vec<String>>>,
    task: JoinHandle<()>,
}

/// A trap that was set.
pub struct TrapHandle(oneshot::Receiver<String>);

/// The answer goes nowhere: hyper closes the connection.
#[derive(thiserror::Error, Debug)]
#[error("the connection is cut")]
struct CutOff;

impl TrapProxy {
    /// In front of a server's address, such as `http://127.0.0.1:9000`.
    pub async fn in_front_of(upstream: &str) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a free port");
        let address = listener.local_addr().expect("an address");
        let trap = Arc::new(Mutex::new(None));
        let client = reqwest::Client::builder().redirect(reqwest::redirect::Policy::none()).build().expect("a client");
        let requests = Arc::new(Mutex::new(Vec::new()));
        let upstream = upstream.trim_end_matches('/').to_owned();
        let proxy = ProxyState { upstream, client, trap: Arc::clone(&trap), requests: Arc::clone(&requests) };
        let task = tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                let proxy = proxy.clone();
                let service = tower::service_fn(move |request| pass(proxy.clone(), request));
                tokio::spawn(async move {
                    let http = auto::Builder::new(TokioExecutor::new()).http1_only();
                    // It fails when a connection is cut, which is what we are here for.
                    let _ = http.serve_connection(TokioIo::new(stream), TowerToHyperService::new(service)).await;
                });
            }
        });
        Self { address, trap, requests, task }
    }

    /// Address for clients.
    pub fn address(&self) -> String {
        format!("http://{}", self.address)
    }

    /// Method, path and query of all that came by, in order.
    pub fn requests(&self) -> Vec<String> {
        self.requests.lock().expect("no thread panicked").clone()
    }

    /// Stops the next request that is `wanted` by its method and its path.
    pub fn stop(
        &self,
        moment: Moment,
        fate: Fate,
        wanted: impl Fn(&Method, &str) -> bool + Send + 'static,
    ) -> TrapHandle {
        let (caught, catching) = oneshot::channel();
        let trap = Trap { wanted: Box::new(wanted), moment, fate, caught };
        *self.trap.lock().expect("no thread panicked") = Some(trap);
        TrapHandle(catching)
    }

    /// Stops the next write of an object whose key has this in it, and lets the writer wait to be killed.
    pub fn stop_write(&self, moment: Moment, part_of_key: &str) -> TrapHandle {
        let part = part_of_key.to_owned();
        self.stop(moment, Fate::Waits, move |method, path| {
            matches!(*method, Method::PUT | Method::POST) && path.contains(&part)
        })
    }
}

impl Drop for TrapProxy {
    fn drop(&mut self) {
        self.task.abort();
    }
}

impl TrapHandle {
    /// Waits until the request is where it was to be stopped; returns its path.
    pub async fn wait(self) -> String {
        let caught = tokio::time::timeout(TRAP_TIMEOUT, self.0).await;
        caught.expect("such a request did not come").expect("the proxy runs")
    }
}

impl ProxyState {
    /// The trap, if it is for this request. It catches once.
    fn springs(&self, request: &Request<Incoming>) -> Option<Trap> {
        let mut trap = self.trap.lock().expect("no thread panicked");
        match &*trap {
            Some(set) if (set.wanted)(request.method(), request.uri().path()) => trap.take(),
            _ => None,
        }
    }
}

async fn pass(proxy: ProxyState, request: Request<Incoming>) -> Result<Response<Body>, CutOff> {
    proxy.requests.lock().expect("no thread panicked").push(format!("{} {}", request.method(), request.uri()));
    let trap = proxy.springs(&request);
    let path = request.uri().path().to_owned();
    if let Some(trap) = trap {
        if trap.moment == Moment::After {
            forward(&proxy, request).await.ok();
        }
        trap.caught.send(path).ok();
        if trap.fate == Fate::Waits {
            std::future::pending::<()>().await;
        }
        return Err(CutOff);
    }
    forward(&proxy, request).await.map_err(|_| CutOff)
}

/// Passes a request on as it is: also its `Host`, which is part of what S3's clients sign.
async fn forward(proxy: &ProxyState, request: Request<Incoming>) -> anyhow::Result<Response<Body>> {
    let (parts, body) = request.into_parts();
    let target = parts.uri.path_and_query().map_or("/", |target| target.as_str());
    let body = to_bytes(Body::new(body), usize::MAX).await?;
    let outgoing = proxy.client.request(parts.method, format!("{}{target}", proxy.upstream));
    let answer = outgoing.headers(parts.headers).body(body).send().await?;
    let mut response = Response::builder().status(answer.status());
    for (name, value) in answer.headers() {
        if name != "transfer-encoding" && name != "connection" {
            response = response.header(name, value);
        }
    }
    Ok(response.body(Body::from(answer.bytes().await?))?)
}
