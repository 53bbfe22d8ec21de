//! Accepts connections and speaks HTTP/1.1 on them, with TLS or without. `axum::serve` would do, but for what a client may
//! cost: `docs/decisions/0017-what-a-connection-may-cost.md`.

mod activity;
mod client_stream;
mod head;
mod request_body;
mod slots;
mod wrong_protocol;

use std::convert::Infallible;
use std::io;
use std::net::SocketAddr;
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use axum::Router;
use axum::body::{Body, Bytes, HttpBody};
use axum::extract::ConnectInfo;
use axum::http::{Request, Response, StatusCode};
use hyper::body::{Frame, Incoming, SizeHint};
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::TokioIo;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;
use tokio::time::{Instant, sleep, timeout};
use tokio_rustls::TlsAcceptor;
use tokio_rustls::server::TlsStream;
use tower::ServiceExt as _;

use crate::limits::AmbiguousLength;
use crate::shutdown::Shutdown;
use crate::trusted_proxies::TrustedProxies;

use activity::{Activity, Answering, Stage};
use client_stream::ClientStream;
pub(crate) use slots::ConnectionLimits;
use slots::{Slot, Slots};
pub(crate) use wrong_protocol::lead_to_https;

/// Limit for all header lines of a request together; more is answered with 431.
const MAX_HEAD_BYTES: usize = 32 * 1024;

/// Requests under way may take this long when the server goes down. Kubernetes kills after 30 s.
const SHUTDOWN_TIMEOUT: Duration = Duration::from_secs(25);

/// Minimum interval of logging refusals: a flood must not fill the log.
const REFUSAL_LOG_INTERVAL: Duration = Duration::from_secs(60);

/// TLS of a listener.
#[derive(Clone)]
pub(crate) struct Tls {
    pub(crate) acceptor: TlsAcceptor,
    /// Answers those who speak plain http to it all the same.
    pub(crate) for_plain_http: Router,
}

/// Service behind a listener, and its connection limits.
pub(crate) struct Service {
    pub(crate) tls: Option<Tls>,
    pub(crate) routes: Router,
    pub(crate) limits: ConnectionLimits,
    pub(crate) proxies: TrustedProxies,
}

/// Serves until the shutdown begins, then until all requests under way are answered or [`SHUTDOWN_TIMEOUT`] is over.
pub(crate) async fn serve(listener: TcpListener, service: Service, shutdown: Shutdown) {
    let Service { tls, routes, limits, proxies } = service;
    let slots = Slots::new(limits);
    let (proxies, open) = (Arc::new(proxies), watch::Sender::new(()));
    let mut told = None;
    loop {
        let accepted = tokio::select! {
            accepted = listener.accept() => accepted,
            () = shutdown.begun() => break,
        };
        let (stream, peer) = match accepted {
            Ok(accepted) => accepted,
            Err(error) => {
                after_failed_accept(&error).await;
                continue;
            }
        };
        let address = peer.ip().to_canonical();
        let Some(slot) = slots.admit((!proxies.contains(address)).then_some(address)).await else {
            metrics::counter!("taco_connections_refused_total").increment(1);
            if told.is_none_or(|told: Instant| told.elapsed() >= REFUSAL_LOG_INTERVAL) {
                told = Some(Instant::now());
                tracing::warn!(
                    event = "connections_refused",
                    %peer,
                    limit = limits.all,
                    limit_per_address = limits.per_address,
                    "connections are refused, since too many others are in use; max_connections and \
                     max_connections_per_address allow more, and trusted_proxies names proxies that have many clients"
                );
            }
            continue;
        };
        // Answers are small and should leave at once. Where that cannot be set, they leave a little later.
        stream.set_nodelay(true).ok();
        let connection = Connection {
            routes: routes.clone(),
            proxies: Arc::clone(&proxies),
            peer,
            shutdown: shutdown.clone(),
            _open: open.subscribe(),
        };
        tokio::spawn(connection.serve(stream, tls.clone(), slot));
    }
    // From here on a new connection is refused, so that a load balancer tries another server.
    drop(listener);
    let count = open.receiver_count();
    if timeout(SHUTDOWN_TIMEOUT, open.closed()).await.is_err() {
        let seconds = SHUTDOWN_TIMEOUT.as_secs();
        tracing::warn!(
            event = "requests_cut_off",
            open = count,
            "some requests were still in progress after {seconds} s and were cut off"
        );
    }
}

struct Connection {
    routes: Router,
    proxies: Arc<TrustedProxies>,
    peer: SocketAddr,
    shutdown: Shutdown,
    /// Tells that there is one connection less, when it is dropped.
    _open: watch::Receiver<()>,
}

impl Connection {
    /// Serves until the client or we have enough. What is upgraded goes on without us.
    async fn serve(mut self, stream: TcpStream, tls: Option<Tls>, slot: Slot) {
        let activity = Arc::clone(&slot.activity);
        let (peer, shutdown) = (self.peer, self.shutdown.clone());
        let speaking = async {
            match tls {
                None => {
                    let activity = Arc::clone(&slot.activity);
                    self.serve_http(stream, slot).await;
                    if activity.saw_client_hello() {
                        wrong_protocol::explain_tls(peer);
                    }
                }
                Some(Tls { acceptor, for_plain_http }) => {
                    let accepting = async {
                        match wrong_protocol::begins_tls(&stream).await? {
                            true => Ok::<_, io::Error>(Accepted::Tls(Box::new(acceptor.accept(stream).await?))),
                            false => Ok(Accepted::PlainHttp(stream)),
                        }
                    };
                    let accepted = tokio::select! {
                        accepted = accepting => accepted,
                        () = shutdown.begun() => return,
                    };
                    match accepted {
                        Ok(Accepted::Tls(stream)) => {
                            slot.activity.ready();
                            self.serve_http(stream, slot).await;
                        }
                        Ok(Accepted::PlainHttp(stream)) => {
                            self.routes = for_plain_http;
                            self.serve_http(stream, slot).await;
                        }
                        Err(error) => tracing::debug!(%peer, %error, "a client and we did not agree on TLS"),
                    }
                }
            }
        };
        tokio::select! {
            biased;
            () = speaking => {}
            why = activity.ended() => tracing::debug!(%peer, why, "closed a connection"),
        }
    }

    async fn serve_http(self, stream: impl AsyncRead + AsyncWrite + Unpin + Send + 'static, slot: Slot) {
        let activity = Arc::clone(&slot.activity);
        let Self { routes, proxies, peer, shutdown, _open } = self;
        let answering = Arc::clone(&activity);
        let service = service_fn(move |request| {
            let (routes, proxies, activity) = (routes.clone(), Arc::clone(&proxies), Arc::clone(&answering));
            async move { Ok::<_, Infallible>(answer(request, peer, &proxies, routes, &activity).await) }
        });
        // The activity has the timeouts: hyper's own does not tell an idle connection from half a head.
        let mut http = http1::Builder::new();
        http.header_read_timeout(None).max_buf_size(MAX_HEAD_BYTES);
        let stream = TokioIo::new(ClientStream::new(stream, slot));
        let mut connection = pin!(http.serve_connection(stream, service).with_upgrades());
        let ended = tokio::select! {
            biased;
            ended = connection.as_mut() => ended,
            () = shutdown.begun() => {
                if matches!(activity.stage(), Stage::NoRequestYet { begun: false, .. }) {
                    return;
                }
                connection.as_mut().graceful_shutdown();
                connection.await
            }
        };
        if let Err(error) = ended {
            tracing::debug!(%peer, %error, "connection ended early");
        }
    }
}

/// What a client of a listener with TLS speaks.
enum Accepted {
    Tls(Box<TlsStream<TcpStream>>),
    PlainHttp(TcpStream),
}

async fn answer(
    mut request: Request<Incoming>,
    peer: SocketAddr,
    proxies: &TrustedProxies,
    routes: Router,
    activity: &Arc<Activity>,
) -> Response<AnswerBody> {
    let answering = activity.begin_answer();
    let client = proxies.client(peer.ip(), request.headers());
    request.extensions_mut().insert(ConnectInfo(SocketAddr::new(client, peer.port())));
    if activity.take_ambiguous_head() {
        request.extensions_mut().insert(AmbiguousLength);
    }
    let answer = move |request| async move {
        let Ok(response) = routes.oneshot(request).await;
        response
    };
    let response = request_body::answer_and_finish(request, activity, answer).await;
    if response.status() == StatusCode::SWITCHING_PROTOCOLS {
        activity.upgraded();
    }
    response.map(|body| AnswerBody { body, _answering: answering })
}

/// The body of an answer, which is under way until it is dropped.
struct AnswerBody {
    body: Body,
    _answering: Answering,
}

impl HttpBody for AnswerBody {
    type Data = Bytes;
    type Error = axum::Error;

    fn poll_frame(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, axum::Error>>> {
        Pin::new(&mut self.body).poll_frame(cx)
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}

async fn after_failed_accept(error: &io::Error) {
    let of_that_client = matches!(
        error.kind(),
        io::ErrorKind::ConnectionAborted | io::ErrorKind::ConnectionReset | io::ErrorKind::ConnectionRefused
    );
    if !of_that_client {
        // Mostly: too many open files. Others have to close before there is room.
        tracing::error!(event = "accept_failed", %error, "cannot accept connections; trying again");
        sleep(Duration::from_millis(200)).await;
    }
}
