//! Accepts connections and speaks HTTP/1 on them. `axum::serve` would do, but for the limits on a request's head.

use std::io;
use std::time::Duration;

use axum::Router;
use hyper_util::rt::{TokioExecutor, TokioIo, TokioTimer};
use hyper_util::server::conn::auto;
use hyper_util::server::graceful::GracefulShutdown;
use hyper_util::service::TowerToHyperService;
use tokio::net::TcpListener;
use tokio::time::{sleep, timeout};

use crate::shutdown::Shutdown;

/// For all header lines of a request together; more is answered with 431.
const HEAD: usize = 32 * 1024;

/// A connection that has not sent a whole head by then is closed. That holds for an idle one too, and Go's clients keep
/// theirs for 90 s: we must not close one at the moment when terraform sends something on it.
const HEAD_PATIENCE: Duration = Duration::from_secs(100);

/// Requests under way may take this long when the server goes down. Kubernetes kills after 30 s.
const DRAIN: Duration = Duration::from_secs(25);

/// Serves until the shutdown begins, then until all requests under way are answered or [`DRAIN`] is over.
pub(crate) async fn serve(listener: TcpListener, routes: Router, shutdown: Shutdown) {
    let mut http = auto::Builder::new(TokioExecutor::new()).http1_only();
    http.http1().timer(TokioTimer::new()).header_read_timeout(HEAD_PATIENCE).max_buf_size(HEAD);
    let connections = GracefulShutdown::new();
    loop {
        let accepted = tokio::select! {
            accepted = listener.accept() => accepted,
            () = shutdown.begun() => break,
        };
        let stream = match accepted {
            Ok((stream, _)) => stream,
            Err(error) => {
                after_failed_accept(&error).await;
                continue;
            }
        };
        // Answers are small and should leave at once. Where that cannot be set, they leave a little later.
        stream.set_nodelay(true).ok();
        let service = TowerToHyperService::new(routes.clone());
        let connection = http.serve_connection_with_upgrades(TokioIo::new(stream), service).into_owned();
        let connection = connections.watch(connection);
        tokio::spawn(async move {
            if let Err(error) = connection.await {
                tracing::debug!(%error, "connection ended early");
            }
        });
    }
    // From here on a new connection is refused, so that a load balancer tries another server.
    drop(listener);
    let open = connections.count();
    if timeout(DRAIN, connections.shutdown()).await.is_err() {
        tracing::warn!(open, "some requests were still under way after {} s; they are cut off", DRAIN.as_secs());
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
