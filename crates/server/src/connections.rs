//! Accepts connections and speaks HTTP/1 on them, with TLS or without. `axum::serve` would do, but for the limits on a request's head.

use std::io;
use std::net::SocketAddr;
use std::time::Duration;

use axum::Router;
use axum::extract::{ConnectInfo, Request};
use hyper_util::rt::{TokioExecutor, TokioIo, TokioTimer};
use hyper_util::server::conn::auto;
use hyper_util::server::graceful::{GracefulShutdown, Watcher};
use hyper_util::service::TowerToHyperService;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpListener;
use tokio::time::{sleep, timeout};
use tokio_rustls::TlsAcceptor;
use tower::ServiceExt as _;

use crate::shutdown::Shutdown;

/// For all header lines of a request together; more is answered with 431.
const HEAD: usize = 32 * 1024;

/// A connection that has not sent a whole head by then is closed. That holds for an idle one too, and Go's clients keep
/// theirs for 90 s: we must not close one at the moment when terraform sends something on it.
const HEAD_PATIENCE: Duration = Duration::from_secs(100);

/// A client that has not agreed on a cipher by then is no client.
const HANDSHAKE: Duration = Duration::from_secs(10);

/// Requests under way may take this long when the server goes down. Kubernetes kills after 30 s.
const DRAIN: Duration = Duration::from_secs(25);

/// Serves until the shutdown begins, then until all requests under way are answered or [`DRAIN`] is over.
pub(crate) async fn serve(listener: TcpListener, tls: Option<TlsAcceptor>, routes: Router, shutdown: Shutdown) {
    let mut http = auto::Builder::new(TokioExecutor::new()).http1_only();
    http.http1().timer(TokioTimer::new()).header_read_timeout(HEAD_PATIENCE).max_buf_size(HEAD);
    let connections = GracefulShutdown::new();
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
        // Answers are small and should leave at once. Where that cannot be set, they leave a little later.
        stream.set_nodelay(true).ok();
        let connection =
            Connection { http: http.clone(), routes: routes.clone(), peer, watcher: connections.watcher() };
        match tls.clone() {
            None => drop(tokio::spawn(connection.speak(stream))),
            Some(tls) => drop(tokio::spawn(async move {
                match timeout(HANDSHAKE, tls.accept(stream)).await {
                    Ok(Ok(stream)) => connection.speak(stream).await,
                    Ok(Err(error)) => tracing::debug!(%error, "a client and we did not agree on TLS"),
                    Err(_) => tracing::debug!("a client took too long over TLS"),
                }
            })),
        }
    }
    // From here on a new connection is refused, so that a load balancer tries another server.
    drop(listener);
    let open = connections.count();
    if timeout(DRAIN, connections.shutdown()).await.is_err() {
        tracing::warn!(open, "some requests were still under way after {} s; they are cut off", DRAIN.as_secs());
    }
}

struct Connection {
    http: auto::Builder<TokioExecutor>,
    routes: Router,
    peer: SocketAddr,
    watcher: Watcher,
}

impl Connection {
    async fn speak(self, stream: impl AsyncRead + AsyncWrite + Unpin + Send + 'static) {
        let from = ConnectInfo(self.peer);
        let routes = self.routes.map_request(move |mut request: Request<_>| {
            request.extensions_mut().insert(from);
            request
        });
        let connection =
            self.http.serve_connection_with_upgrades(TokioIo::new(stream), TowerToHyperService::new(routes));
        if let Err(error) = self.watcher.watch(connection.into_owned()).await {
            tracing::debug!(%error, "connection ended early");
        }
    }
}

async fn after_failed_accept(error: &io::Error) {
    let of_that_client = matches!(
        error.kind(),
        io::ErrorKind::ConnectionAborted | io::ErrorKind::ConnectionReset | io::ErrorKind::ConnectionRefused
    );
    if !of_that_client {
        // Mostly: too many open files. Others have to close before there is room.
        tracing::error!(%error, "cannot accept connections; trying again");
        sleep(Duration::from_millis(200)).await;
    }
}
