use std::io;
use std::path::Path;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use futures::future::BoxFuture;
use hyper::Uri;
use hyper::rt::{Read, ReadBufCursor, Write};
use hyper_util::client::legacy::connect::{Connected, Connection};
use hyper_util::rt::TokioIo;
use tokio::io::{AsyncRead, AsyncWrite, DuplexStream};
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;
use tokio_rustls::rustls::pki_types::ServerName;
use url::Url;

use crate::{proxy, tls};

const CONNECT_TIMEOUT: Duration = Duration::from_secs(10);

pub trait ByteStream: AsyncRead + AsyncWrite + Send + Unpin {}
impl<T: AsyncRead + AsyncWrite + Send + Unpin> ByteStream for T {}

/// A connection to the server.
pub type Stream = Box<dyn ByteStream>;

/// Connection settings of an agent to its server.
#[derive(Clone)]
pub struct Dial {
    base: Url,
    transport: Transport,
    proxy: Option<Url>,
}

#[derive(Clone)]
enum Transport {
    Plain,
    Tls(TlsConnector),
    Embedded(Arc<dyn Fn() -> DuplexStream + Send + Sync>),
}

impl Dial {
    /// Over the network, by `http` or `https`, through a proxy if the usual variables name one.
    pub fn network(server: Url, ca_file: Option<&Path>) -> io::Result<Self> {
        let transport = match server.scheme() {
            "http" => Transport::Plain,
            "https" => Transport::Tls(TlsConnector::from(tls::client_configuration(ca_file)?)),
            other => return Err(io::Error::other(format!("{other}:// is no address of a server; use https://"))),
        };
        match server.host() {
            Some(_) => {
                let proxy = proxy::for_server(&server, |name| std::env::var(name).ok());
                Ok(Self { base: server, transport, proxy })
            }
            None => Err(io::Error::other(format!("{server} names no host"))),
        }
    }

    /// Into the server that the agent is part of: `open` gives one end of a stream whose other end the server serves.
    pub fn embedded(open: impl Fn() -> DuplexStream + Send + Sync + 'static) -> Self {
        let base = Url::parse("http://embedded").expect("a constant that parses");
        Self { base, transport: Transport::Embedded(Arc::new(open)), proxy: None }
    }

    /// The whole address of a path at the server.
    pub(crate) fn address(&self, path: &str) -> String {
        format!("{}{path}", self.base.as_str().trim_end_matches('/'))
    }

    pub(crate) async fn open(&self) -> io::Result<Stream> {
        let connector = match &self.transport {
            Transport::Embedded(open) => return Ok(Box::new(open())),
            Transport::Plain => None,
            Transport::Tls(connector) => Some(connector),
        };
        let connect = async {
            let host = self.base.host_str().unwrap_or_default().trim_matches(['[', ']']);
            let port = self.base.port_or_known_default().unwrap_or(443);
            let stream = match &self.proxy {
                Some(proxy) => proxy::tunnel(proxy, host, port).await?,
                None => TcpStream::connect((host, port)).await?,
            };
            stream.set_nodelay(true)?;
            let Some(connector) = connector else { return Ok(Box::new(stream) as Stream) };
            let name = ServerName::try_from(host.to_owned()).map_err(io::Error::other)?;
            Ok(Box::new(connector.connect(name, stream).await?) as Stream)
        };
        tokio::time::timeout(CONNECT_TIMEOUT, connect).await.map_err(|_| io::Error::from(io::ErrorKind::TimedOut))?
    }
}

/// Connector for hyper's client, which asks for a connection to some address: there is only one server.
impl tower::Service<Uri> for Dial {
    type Response = HyperStream;
    type Error = io::Error;
    type Future = BoxFuture<'static, io::Result<HyperStream>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, _: Uri) -> Self::Future {
        let dial = self.clone();
        Box::pin(async move { Ok(HyperStream(TokioIo::new(dial.open().await?))) })
    }
}

pub struct HyperStream(TokioIo<Stream>);

impl Connection for HyperStream {
    fn connected(&self) -> Connected {
        Connected::new()
    }
}

impl Read for HyperStream {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: ReadBufCursor<'_>,
    ) -> Poll<io::Result<()>> {
        Pin::new(&mut self.0).poll_read(context, buffer)
    }
}

impl Write for HyperStream {
    fn poll_write(mut self: Pin<&mut Self>, context: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.0).poll_write(context, bytes)
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.0).poll_flush(context)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.0).poll_shutdown(context)
    }
}
