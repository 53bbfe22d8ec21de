//! The one WebSocket to the server: greeting, then messages both ways until it breaks.

use std::time::Duration;

use futures::{SinkExt, StreamExt};
use taco_agent_protocol::{CONNECT_PATH, FromAgent, FromServer, Refusal};
use tokio::sync::mpsc;
use tokio::time::Instant;
use tokio_tungstenite::WebSocketStream;
use tokio_tungstenite::tungstenite::client::IntoClientRequest;
use tokio_tungstenite::tungstenite::http::{HeaderValue, StatusCode, header};
use tokio_tungstenite::tungstenite::{Error as SocketError, Message};

use crate::dial::{Dial, Stream};

const GREETING_TIMEOUT: Duration = Duration::from_secs(15);

/// Reason why there is no connection.
#[derive(thiserror::Error, Debug)]
pub(crate) enum ConnectError {
    #[error("{detail}")]
    Refused { reason: Refusal, detail: String },
    #[error("{0}")]
    Failed(String),
}

/// A connection on which the server has answered.
pub(crate) struct GreetedConnection {
    pub(crate) socket: Socket,
    /// [`FromServer::Welcome`].
    pub(crate) welcome: FromServer,
    pub(crate) greeted_at: Instant,
}

pub(crate) struct Socket(WebSocketStream<Stream>);

/// Connects, says `hello` and hears the answer.
pub(crate) async fn connect(dial: &Dial, token: &str, hello: &FromAgent) -> Result<GreetedConnection, ConnectError> {
    let greeting = async {
        let stream = dial.open().await.map_err(|error| ConnectError::Failed(error.to_string()))?;
        // The scheme only has to be one of WebSocket's: the stream is there already.
        let address = dial.address(CONNECT_PATH).replacen("http", "ws", 1);
        let mut request = address.into_client_request().map_err(failed)?;
        let bearer = HeaderValue::try_from(format!("Bearer {token}"))
            .map_err(|_| refused(Refusal::Unauthorized, "the token has characters that no token has"))?;
        request.headers_mut().insert(header::AUTHORIZATION, bearer);
        let (socket, _) = tokio_tungstenite::client_async(request, stream).await.map_err(failed)?;
        let mut socket = Socket(socket);
        let greeted_at = Instant::now();
        socket.send(hello).await.map_err(failed)?;
        loop {
            match socket.receive().await.map_err(failed)? {
                Some(welcome @ FromServer::Welcome { .. }) => {
                    return Ok(GreetedConnection { socket, welcome, greeted_at });
                }
                Some(FromServer::Refused { reason, detail }) => return Err(ConnectError::Refused { reason, detail }),
                _ => {}
            }
        }
    };
    let late = |_| ConnectError::Failed("the server did not answer in time".to_owned());
    tokio::time::timeout(GREETING_TIMEOUT, greeting).await.map_err(late)?
}

fn refused(reason: Refusal, detail: &str) -> ConnectError {
    ConnectError::Refused { reason, detail: detail.to_owned() }
}

fn failed(error: SocketError) -> ConnectError {
    match &error {
        SocketError::Http(response) => match response.status() {
            StatusCode::UNAUTHORIZED | StatusCode::FORBIDDEN => {
                refused(Refusal::Unauthorized, "the server does not take this token: it needs one of an agent pool")
            }
            StatusCode::UPGRADE_REQUIRED => {
                refused(Refusal::ProtocolTooOld, "the server needs a newer agent: install the one of its version")
            }
            status => ConnectError::Failed(format!("the server answered {status}")),
        },
        _ => ConnectError::Failed(error.to_string()),
    }
}

/// Carries messages until the connection breaks, or until `outgoing` has no sender and is empty. A peer that is silent
/// for longer than `silence` is gone, even if no packet says so.
pub(crate) async fn carry(
    mut socket: Socket,
    mut outgoing: mpsc::UnboundedReceiver<FromAgent>,
    incoming: impl Fn(FromServer),
    silence: Duration,
) {
    let mut heard_at = Instant::now();
    loop {
        tokio::select! {
            message = outgoing.recv() => match message {
                Some(message) => {
                    if socket.send(&message).await.is_err() {
                        return;
                    }
                    // The response shows that the server still hears, even if it has nothing to send.
                    if matches!(message, FromAgent::Heartbeat { .. }) && socket.ping().await.is_err() {
                        return;
                    }
                }
                None => {
                    // Data left unread at the end would make the server lose the last message.
                    let closing = async {
                        let _ = socket.0.close(None).await;
                        while socket.receive().await.is_ok() {}
                    };
                    let _ = tokio::time::timeout(Duration::from_secs(2), closing).await;
                    return;
                }
            },
            message = tokio::time::timeout_at(heard_at + silence, socket.receive()) => {
                heard_at = Instant::now();
                match message {
                    Ok(Ok(Some(message))) => incoming(message),
                    Ok(Ok(None)) => {}
                    Ok(Err(_)) | Err(_) => return,
                }
            }
        }
    }
}

impl Socket {
    async fn send(&mut self, message: &FromAgent) -> Result<(), SocketError> {
        let text = serde_json::to_string(message).expect("messages are JSON");
        self.0.send(Message::text(text)).await
    }

    async fn ping(&mut self) -> Result<(), SocketError> {
        self.0.send(Message::Ping(bytes::Bytes::new())).await
    }

    /// The next message; `None` for one that means nothing here. A newer server may say more than this agent knows.
    async fn receive(&mut self) -> Result<Option<FromServer>, SocketError> {
        match self.0.next().await {
            None => Err(SocketError::ConnectionClosed),
            Some(Ok(Message::Text(text))) => match serde_json::from_str(&text) {
                Ok(message) => Ok(Some(message)),
                Err(error) => {
                    tracing::warn!(
                        event = "unknown_message", %error,
                        "the server said something that this agent does not know"
                    );
                    Ok(None)
                }
            },
            Some(Ok(Message::Close(_))) => Err(SocketError::ConnectionClosed),
            Some(Ok(_)) => Ok(None),
            Some(Err(error)) => Err(error),
        }
    }
}
