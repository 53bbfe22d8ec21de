//! The plain requests of a phase: what it fetches and what it sends, repeated for as long as the phase is the agent's.

use std::io;
use std::path::Path;
use std::time::Duration;

use bytes::Bytes;
use http_body_util::combinators::BoxBody;
use http_body_util::{BodyExt, Full};
use hyper::{Request, StatusCode, header};
use hyper_util::client::legacy::Client;
use hyper_util::rt::{TokioExecutor, TokioTimer};
use serde::Deserialize;
use taco_agent_protocol::{LogConflict, PhaseAttempt, Upload, phase_path};
use tokio::io::AsyncWriteExt;

use crate::control::{Control, Stop};
use crate::dial::Dial;
use crate::file_body::FileBody;
use crate::file_of_run::FileOfRun;
use crate::retry::Backoff;

/// Minimum transfer rate: anything slower has lost its connection.
const MIN_BYTES_PER_SECOND: u64 = 128 * 1024;
const MIN_TIMEOUT: Duration = Duration::from_secs(30);

pub(crate) type RequestBody = BoxBody<Bytes, io::Error>;
pub(crate) type HttpClient = Client<Dial, RequestBody>;

pub(crate) fn http_client(dial: Dial) -> HttpClient {
    Client::builder(TokioExecutor::new())
        .pool_idle_timeout(Duration::from_secs(20))
        .pool_timer(TokioTimer::new())
        .build(dial)
}

/// Reason why a request was given up.
#[derive(thiserror::Error, Debug)]
pub(crate) enum RequestError {
    /// The phase is no longer this agent's.
    #[error("the phase is no longer this agent's")]
    Lost,
    /// It will never be taken.
    #[error("{0}")]
    Refused(String),
}

/// Next step after the response status.
enum Attempt {
    Done,
    Conflict(Bytes),
    Error(RequestError),
    Again(String),
}

/// Body of a request, which can be sent as often as it takes.
#[derive(Clone)]
pub(crate) enum Content {
    Bytes(Bytes),
    File(FileOfRun),
}

/// Makes the requests of one phase.
#[derive(Clone)]
pub(crate) struct PhaseRequests {
    client: HttpClient,
    address: String,
    token: String,
    phase: PhaseAttempt,
}

impl PhaseRequests {
    pub(crate) fn new(client: &HttpClient, dial: &Dial, phase: PhaseAttempt, token: &str) -> Self {
        let address = dial.address(&phase_path(&phase));
        Self { client: client.clone(), address, token: token.to_owned(), phase }
    }

    /// Downloads `word` into a file that is for its owner alone. False if there is none.
    pub(crate) async fn fetch(&self, word: &str, file: &Path, control: &mut Control) -> Result<bool, RequestError> {
        let mut backoff = Backoff::new();
        loop {
            let reason = match self.fetch_once(word, file).await {
                Ok((StatusCode::OK, _)) => return Ok(true),
                Ok((StatusCode::NO_CONTENT | StatusCode::NOT_FOUND, _)) => return Ok(false),
                Ok((status, body)) => match judge(status, body) {
                    Attempt::Done => return Ok(true),
                    Attempt::Conflict(_) => return Err(RequestError::Lost),
                    Attempt::Error(error) => return Err(error),
                    Attempt::Again(reason) => reason,
                },
                Err(error) => error.to_string(),
            };
            self.wait(&mut backoff, control, word, &reason).await?;
        }
    }

    /// Sends something that the phase has made.
    pub(crate) async fn send(
        &self,
        upload: Upload,
        content: Content,
        control: &mut Control,
    ) -> Result<(), RequestError> {
        match self.put(upload.word(), content, control).await? {
            None => Ok(()),
            Some(_) => Err(RequestError::Lost),
        }
    }

    /// Sends part of the log, and says up to where the server has it.
    pub(crate) async fn send_log(&self, offset: u64, part: Bytes, control: &mut Control) -> Result<u64, RequestError> {
        let end = offset + part.len() as u64;
        match self.put(&format!("{}?offset={offset}", Upload::Log.word()), Content::Bytes(part), control).await? {
            None => Ok(end),
            Some(conflict) => match serde_json::from_slice::<LogConflict>(&conflict) {
                Ok(LogConflict { next }) => Ok(next),
                Err(_) => Err(RequestError::Lost),
            },
        }
    }

    /// The body of a `409`, if that is the answer.
    async fn put(&self, word: &str, content: Content, control: &mut Control) -> Result<Option<Bytes>, RequestError> {
        let mut backoff = Backoff::new();
        loop {
            if control.stop() == Stop::Lost {
                return Err(RequestError::Lost);
            }
            let attempt = tokio::select! {
                attempt = self.put_once(word, &content) => attempt,
                () = control.lost() => return Err(RequestError::Lost),
            };
            let reason = match attempt {
                Ok(Attempt::Done) => return Ok(None),
                Ok(Attempt::Conflict(body)) => return Ok(Some(body)),
                Ok(Attempt::Error(error)) => return Err(error),
                Ok(Attempt::Again(reason)) => reason,
                Err(error) => error.to_string(),
            };
            self.wait(&mut backoff, control, word, &reason).await?;
        }
    }

    async fn wait(
        &self,
        backoff: &mut Backoff,
        control: &mut Control,
        word: &str,
        reason: &str,
    ) -> Result<(), RequestError> {
        tracing::warn!(
            event = "request_retried", phase = %self.phase, request = word, reason,
            "a request failed and will be repeated"
        );
        tokio::select! {
            () = tokio::time::sleep(backoff.next()) => Ok(()),
            () = control.lost() => Err(RequestError::Lost),
        }
    }

    async fn put_once(&self, word: &str, content: &Content) -> io::Result<Attempt> {
        let (body, length) = match content {
            Content::Bytes(bytes) => {
                (Full::new(bytes.clone()).map_err(|never| match never {}).boxed(), bytes.len() as u64)
            }
            Content::File(file) => {
                let file = match file.open() {
                    Ok(file) => tokio::fs::File::from_std(file),
                    Err(error) => {
                        let reason = format!("the {word} on the agent's disk cannot be sent: {error}");
                        return Ok(Attempt::Error(RequestError::Refused(reason)));
                    }
                };
                let left = file.metadata().await?.len();
                (FileBody { file, left }.boxed(), left)
            }
        };
        let request = self.request("PUT", word)?.body(body).map_err(io::Error::other)?;
        let exchange = async {
            let response = self.client.request(request).await.map_err(described)?;
            let status = response.status();
            Ok(judge(status, response.into_body().collect().await.map_err(io::Error::other)?.to_bytes()))
        };
        within(length, exchange).await
    }

    /// Returns the status, and the body if it is no success.
    async fn fetch_once(&self, word: &str, file: &Path) -> io::Result<(StatusCode, Bytes)> {
        let empty = Full::new(Bytes::new()).map_err(|never| match never {}).boxed();
        let request = self.request("GET", word)?.body(empty).map_err(io::Error::other)?;
        let response = within(0, async { self.client.request(request).await.map_err(described) }).await?;
        let status = response.status();
        if status != StatusCode::OK {
            let reading = async { response.into_body().collect().await.map_err(io::Error::other) };
            return Ok((status, within(0, reading).await?.to_bytes()));
        }
        let mut body = response.into_body();
        let mut output =
            tokio::fs::OpenOptions::new().write(true).create(true).truncate(true).mode(0o600).open(file).await?;
        while let Some(frame) = within(0, async { body.frame().await.transpose().map_err(io::Error::other) }).await? {
            if let Ok(bytes) = frame.into_data() {
                output.write_all(&bytes).await?;
            }
        }
        output.flush().await?;
        Ok((status, Bytes::new()))
    }

    fn request(&self, method: &str, word: &str) -> io::Result<hyper::http::request::Builder> {
        Ok(Request::builder()
            .method(method)
            .uri(format!("{}/{word}", self.address))
            .header(header::AUTHORIZATION, format!("Bearer {}", self.token))
            .header(header::CONTENT_TYPE, "application/octet-stream"))
    }
}

/// The answer's meaning. [`LogConflict`] has the table.
fn judge(status: StatusCode, body: Bytes) -> Attempt {
    match status {
        status if status.is_success() => Attempt::Done,
        StatusCode::CONFLICT => Attempt::Conflict(body),
        StatusCode::UNAUTHORIZED | StatusCode::FORBIDDEN | StatusCode::NOT_FOUND | StatusCode::GONE => {
            Attempt::Error(RequestError::Lost)
        }
        StatusCode::BAD_REQUEST | StatusCode::PAYLOAD_TOO_LARGE | StatusCode::UNPROCESSABLE_ENTITY => {
            Attempt::Error(RequestError::Refused(format!("the server refused it: {}", detail(status, &body))))
        }
        _ => Attempt::Again(detail(status, &body)),
    }
}

/// Detail from the server's error document.
fn detail(status: StatusCode, body: &[u8]) -> String {
    #[derive(Deserialize)]
    struct Document {
        errors: Vec<Error>,
    }
    #[derive(Deserialize)]
    struct Error {
        #[serde(default)]
        detail: Option<String>,
        #[serde(default)]
        title: Option<String>,
    }
    let document = serde_json::from_slice::<Document>(body).ok();
    let error = document.and_then(|document| document.errors.into_iter().next());
    error.and_then(|error| error.detail.or(error.title)).unwrap_or_else(|| status.to_string())
}

async fn within<T>(length: u64, exchange: impl Future<Output = io::Result<T>>) -> io::Result<T> {
    let limit = MIN_TIMEOUT + Duration::from_secs(length / MIN_BYTES_PER_SECOND);
    tokio::time::timeout(limit, exchange).await.map_err(|_| io::Error::from(io::ErrorKind::TimedOut))?
}

/// hyper's client says only "client error (Connect)"; the cause is what helps.
fn described(error: hyper_util::client::legacy::Error) -> io::Error {
    let mut text = error.to_string();
    let mut source = std::error::Error::source(&error);
    while let Some(cause) = source {
        text = format!("{text}: {cause}");
        source = cause.source();
    }
    io::Error::other(text)
}
