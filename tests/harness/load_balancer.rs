//! A load balancer in miniature: odd requests go to one server, even ones to the other, also on the same connection.
//!
//! With TLS it takes the client's encryption off and puts its own on towards the servers, as load balancers do. A test
//! may step between to see what clients make of a bad day.

use std::net::{SocketAddr, TcpListener};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use axum::Router;
use axum::body::Body;
use axum::extract::{Request, State};
use axum::http::header::{CONNECTION, CONTENT_LENGTH, TRANSFER_ENCODING, UPGRADE};
use axum::http::{Method, StatusCode, Uri};
use axum::response::{IntoResponse, Response};
use axum::serve::Listener;
use hyper::upgrade::OnUpgrade;
use hyper_util::rt::TokioIo;
use reqwest::Client;
use tokio::net::TcpStream;
use tokio_rustls::TlsAcceptor;
use tokio_rustls::server::TlsStream;

/// Looks at a request before a server sees it, knows which server that would be, and may answer instead.
type Between = Box<dyn FnMut(&Method, &Uri, usize) -> Option<StatusCode> + Send>;

/// Has an address from the beginning, so that servers can be told under which one they are reached.
#[derive(Debug)]
pub struct UnstartedLoadBalancer(TcpListener);

#[derive(Clone)]
pub struct LoadBalancer(Arc<Inner>);

struct Inner {
    servers: Vec<Upstream>,
    client: Client,
    turns: AtomicUsize,
    /// Method and path of every request.
    seen: Mutex<Vec<String>>,
    between: Mutex<Option<Between>>,
}

struct Upstream {
    /// Scheme, host and port.
    address: String,
    alive: AtomicBool,
}

impl UnstartedLoadBalancer {
    pub fn bind() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a free port");
        listener.set_nonblocking(true).expect("it can be asynchronous");
        Self(listener)
    }

    pub fn port(&self) -> u16 {
        self.0.local_addr().expect("it is bound").port()
    }

    /// Begins to serve, until the runtime ends.
    pub fn connect(self, servers: Vec<String>, client: Client, tls: Option<TlsAcceptor>) -> LoadBalancer {
        let upstream = |address| Upstream { address, alive: AtomicBool::new(true) };
        let proxy = LoadBalancer(Arc::new(Inner {
            servers: servers.into_iter().map(upstream).collect(),
            client,
            turns: AtomicUsize::new(0),
            seen: Mutex::default(),
            between: Mutex::default(),
        }));
        let routes = Router::new().fallback(pass_on).with_state(proxy.clone());
        let listener = tokio::net::TcpListener::from_std(self.0).expect("it can be asynchronous");
        tokio::spawn(async move {
            match tls {
                None => axum::serve(listener, routes).await,
                Some(acceptor) => axum::serve(TlsListener { listener, acceptor }, routes).await,
            }
        });
        proxy
    }
}

impl LoadBalancer {
    /// From now on this sees every request first.
    pub fn step_between(&self, between: impl FnMut(&Method, &Uri, usize) -> Option<StatusCode> + Send + 'static) {
        *self.0.between.lock().expect("not poisoned") = Some(Box::new(between));
    }

    pub fn step_aside(&self) {
        *self.0.between.lock().expect("not poisoned") = None;
    }

    /// Number of requests whose method and path, as one text, contain this.
    pub fn saw(&self, part: &str) -> usize {
        self.0.seen.lock().expect("not poisoned").iter().filter(|request| request.contains(part)).count()
    }
}

impl Inner {
    /// The number of the server whose turn it is. One that did not answer gets nothing more.
    fn next(&self) -> Option<usize> {
        let alive = |number: &usize| self.servers[*number].alive.load(Ordering::Relaxed);
        let turns = (0..self.servers.len()).map(|_| self.turns.fetch_add(1, Ordering::Relaxed) % self.servers.len());
        turns.into_iter().find(alive)
    }
}

/// Lets client and server speak another protocol, such as a WebSocket, if the server agrees to it.
fn switch(upgrade: OnUpgrade, answer: reqwest::Response) -> Response {
    let (status, headers) = (answer.status(), answer.headers().clone());
    if status != StatusCode::SWITCHING_PROTOCOLS {
        return status.into_response();
    }
    tokio::spawn(async move {
        let (Ok(client), Ok(mut server)) = (upgrade.await, answer.upgrade().await) else { return };
        tokio::io::copy_bidirectional(&mut TokioIo::new(client), &mut server).await.ok();
    });
    (status, headers).into_response()
}

async fn pass_on(State(LoadBalancer(proxy)): State<LoadBalancer>, mut request: Request) -> Response {
    let upgrade = request.headers().contains_key(UPGRADE).then(|| hyper::upgrade::on(&mut request));
    let (parts, body) = request.into_parts();
    proxy.seen.lock().expect("not poisoned").push(format!("{} {}", parts.method, parts.uri));
    let Some(turn) = proxy.next() else { return StatusCode::BAD_GATEWAY.into_response() };
    let answer = match &mut *proxy.between.lock().expect("not poisoned") {
        Some(between) => between(&parts.method, &parts.uri, turn),
        None => None,
    };
    if let Some(status) = answer {
        return status.into_response();
    }
    let server = &proxy.servers[turn];
    let path = parts.uri.path_and_query().map_or("/", |path| path.as_str());
    let mut headers = parts.headers;
    if let Some(upgrade) = upgrade {
        let request = proxy.client.request(parts.method, format!("{}{path}", server.address)).headers(headers);
        return match request.send().await {
            Ok(answer) => switch(upgrade, answer),
            Err(_) => StatusCode::BAD_GATEWAY.into_response(),
        };
    }
    let has_body = headers.contains_key(CONTENT_LENGTH) || headers.contains_key(TRANSFER_ENCODING);
    for name in [CONNECTION, TRANSFER_ENCODING] {
        headers.remove(name);
    }
    let mut request = proxy.client.request(parts.method, format!("{}{path}", server.address)).headers(headers);
    if has_body {
        request = request.body(reqwest::Body::wrap_stream(body.into_data_stream()));
    }
    match request.send().await {
        Err(_) => {
            server.alive.store(false, Ordering::Relaxed);
            StatusCode::BAD_GATEWAY.into_response()
        }
        Ok(answer) => {
            let (status, mut headers) = (answer.status(), answer.headers().clone());
            for name in [CONNECTION, TRANSFER_ENCODING] {
                headers.remove(name);
            }
            (status, headers, Body::from_stream(answer.bytes_stream())).into_response()
        }
    }
}

struct TlsListener {
    listener: tokio::net::TcpListener,
    acceptor: TlsAcceptor,
}

impl Listener for TlsListener {
    type Io = TlsStream<TcpStream>;
    type Addr = SocketAddr;

    async fn accept(&mut self) -> (Self::Io, Self::Addr) {
        loop {
            let (stream, peer) = Listener::accept(&mut self.listener).await;
            if let Ok(stream) = self.acceptor.accept(stream).await {
                return (stream, peer);
            }
        }
    }

    fn local_addr(&self) -> std::io::Result<SocketAddr> {
        self.listener.local_addr()
    }
}
