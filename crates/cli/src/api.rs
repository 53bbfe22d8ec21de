//! Requests to a server, and what its answers mean.

use std::time::Duration;

use reqwest::header::{ACCEPT, CONTENT_TYPE};
use reqwest::{Method, Request, RequestBuilder, Response, StatusCode};
use serde_json::Value;
use url::Url;

use crate::failure::{Failure, Kind};
use crate::host::Host;
use crate::oauth::LoginService;
use crate::progress::{self, Progress};
use crate::resource::{Document, Resource};
use crate::status;

const MEDIA_TYPE: &str = "application/vnd.api+json";

/// Servers hand out pages of at most this size.
const PAGE_SIZE: &str = "100";

/// User agent: the server records it with a lock.
const USER_AGENT: &str = concat!("taco/", env!("CARGO_PKG_VERSION"));

/// Connect timeout: a host that does not even refuse is not there.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(10);

/// Backoff before a request is retried.
const RETRY_DELAYS: [Duration; 2] = [Duration::from_millis(300), Duration::from_millis(1200)];

/// By which a server knows a request that is sent again.
const IDEMPOTENCY_KEY: &str = "idempotency-key";

/// Downloads tell how far they are after so many bytes.
const PROGRESS_STEP_BYTES: usize = 1024 * 1024;

/// Keys of a query and their values.
pub(crate) type Query<'a> = &'a [(&'a str, &'a str)];

#[derive(Debug)]
pub(crate) struct Api {
    http: reqwest::Client,
    pub(crate) host: Host,
    token: Option<String>,
    /// Tell about requests, without tokens.
    debug: bool,
    /// Tell how far long transfers are.
    shows_progress: bool,
}

impl Api {
    pub(crate) fn new(host: Host, token: Option<String>, debug: bool) -> Result<Self, Failure> {
        let http = reqwest::Client::builder().user_agent(USER_AGENT).connect_timeout(CONNECT_TIMEOUT).build();
        let http = http.map_err(|error| Failure::error("requests are not possible").because(in_full(&error)))?;
        Ok(Self { http, host, token, debug, shows_progress: false })
    }

    pub(crate) fn with_progress(self, shows_progress: bool) -> Self {
        Self { shows_progress, ..self }
    }

    /// Reads something. `subject` is what messages call it.
    pub(crate) async fn get(&self, subject: &str, path: &[&str], query: Query<'_>) -> Result<Document, Failure> {
        let request = self.request(Method::GET, path).query(query);
        self.document(subject, request).await
    }

    pub(crate) async fn send(
        &self,
        subject: &str,
        method: Method,
        path: &[&str],
        body: &Value,
    ) -> Result<Document, Failure> {
        let request = self.request(method, path).header(CONTENT_TYPE, MEDIA_TYPE).body(body.to_string());
        self.document(subject, request).await
    }

    /// The same, where the query says more.
    pub(crate) async fn send_with_query(
        &self,
        subject: &str,
        method: Method,
        path: &[&str],
        query: Query<'_>,
        body: &Value,
    ) -> Result<Document, Failure> {
        let request = self.request(method, path).query(query).header(CONTENT_TYPE, MEDIA_TYPE).body(body.to_string());
        self.document(subject, request).await
    }

    /// Reads a document that is no JSON:API.
    pub(crate) async fn json(&self, subject: &str, path: &[&str], query: Query<'_>) -> Result<Value, Failure> {
        let response = self.answer(subject, self.request(Method::GET, path).query(query)).await?;
        response.json().await.map_err(|error| self.not_taco(&error))
    }

    /// Versions of the server and its engines.
    pub(crate) async fn versions(&self) -> Result<Value, Failure> {
        let response = self.answer("the server's version", self.http.get(self.host.at(&["versions"]))).await?;
        response.json().await.map_err(|error| self.not_taco(&error))
    }

    pub(crate) async fn delete(&self, subject: &str, path: &[&str]) -> Result<(), Failure> {
        self.document(subject, self.request(Method::DELETE, path)).await.map(drop)
    }

    /// Reads a list, page after page. Each page comes with its included resources.
    pub(crate) async fn list(&self, subject: &str, path: &[&str], query: Query<'_>) -> Result<Document, Failure> {
        let mut whole = Document::default();
        let mut page = 1_u64;
        loop {
            let number = page.to_string();
            let mut query = query.to_vec();
            query.extend([("page[number]", number.as_str()), ("page[size]", PAGE_SIZE)]);
            let document = self.get(subject, path, &query).await?;
            let next = document.next_page;
            whole.data.extend(document.data);
            whole.included.extend(document.included);
            match next {
                // A server that turns in circles must not keep us busy.
                Some(next) if next > page => page = next,
                _ => return Ok(whole),
            }
        }
    }

    /// The bytes at an address that is its own credential.
    pub(crate) async fn download(&self, subject: &str, address: &str) -> Result<Vec<u8>, Failure> {
        let response = self.answer(subject, self.http.get(parse(subject, address)?)).await?;
        self.body(response, None).await
    }

    /// The bytes at a path of the API; none if there is nothing yet. More than `limit` are refused.
    pub(crate) async fn bytes(&self, subject: &str, path: &[&str], limit: usize) -> Result<Option<Vec<u8>>, Failure> {
        let response = self.answer(subject, self.request(Method::GET, path)).await?;
        if response.status() == StatusCode::NO_CONTENT {
            return Ok(None);
        }
        self.body(response, Some(limit)).await.map(Some)
    }

    async fn body(&self, mut response: Response, limit: Option<usize>) -> Result<Vec<u8>, Failure> {
        let whole = response.content_length().map(|length| format!(" of {}", progress::size(length as usize)));
        let whole = whole.unwrap_or_default();
        let (mut bytes, mut told) = (Vec::new(), 0);
        let mut progress = Progress::new(self.shows_progress);
        while let Some(chunk) = response.chunk().await.map_err(|error| self.unreachable(&error))? {
            bytes.extend_from_slice(&chunk);
            if limit.is_some_and(|limit| bytes.len() > limit) {
                return Err(Failure::error("it is too large to be shown here"));
            }
            if bytes.len() - told > PROGRESS_STEP_BYTES {
                told = bytes.len();
                progress.show(&format!("Downloading {}{whole}", progress::size(told)));
            }
        }
        Ok(bytes)
    }

    /// Sends bytes to an address that is its own credential.
    pub(crate) async fn upload(&self, subject: &str, address: &str, bytes: Vec<u8>) -> Result<(), Failure> {
        let request = self.http.put(parse(subject, address)?).header(CONTENT_TYPE, "application/octet-stream");
        let what = format!("Uploading {}", progress::size(bytes.len()));
        let answer = self.answer(subject, request.body(bytes));
        progress::while_waiting(self.shows_progress, &what, answer).await.map(drop)
    }

    /// Login service of the server, if it supports logging in with a browser.
    pub(crate) async fn login_service(&self) -> Result<Option<LoginService>, Failure> {
        let address = self.host.at(&[".well-known", "terraform.json"]);
        let response = self.answer("what the server offers", self.http.get(address)).await?;
        let mut services: Value = response.json().await.map_err(|error| self.not_taco(&error))?;
        match services.get_mut("login.v1").map(Value::take) {
            None | Some(Value::Null) => Ok(None),
            Some(service) => serde_json::from_value(service).map(Some).map_err(|error| self.not_taco(&error)),
        }
    }

    /// The address that the server means, which it may give without its own name.
    pub(crate) fn address(&self, reference: &str) -> Result<Url, Failure> {
        self.host.address.join(reference).map_err(|error| self.not_taco(&error))
    }

    /// A token for the code that a person's consent gave.
    pub(crate) async fn exchange(&self, address: &str, fields: &[(&str, &str)]) -> Result<String, Failure> {
        let request = self.http.post(self.address(address)?).form(fields);
        let answer: Value =
            self.answer("the login", request).await?.json().await.map_err(|error| self.not_taco(&error))?;
        let token = answer.get("access_token").and_then(Value::as_str);
        token.map(str::to_owned).ok_or_else(|| self.not_taco(&"its answer has no token"))
    }

    fn request(&self, method: Method, path: &[&str]) -> RequestBuilder {
        // GPG keys are at an address of their own.
        let prefix: &[&str] = if path.first() == Some(&"api") { &[] } else { &["api", "v2"] };
        let path: Vec<&str> = prefix.iter().chain(path).copied().collect();
        let changes = method != Method::GET;
        let mut request = self.http.request(method, self.host.at(&path)).header(ACCEPT, MEDIA_TYPE);
        if changes && let Some(key) = new_key() {
            request = request.header(IDEMPOTENCY_KEY, key);
        }
        match &self.token {
            Some(token) => request.bearer_auth(token),
            None => request,
        }
    }

    async fn document(&self, subject: &str, request: RequestBuilder) -> Result<Document, Failure> {
        let response = self.answer(subject, request).await?;
        let bytes = response.bytes().await.map_err(|error| self.unreachable(&error))?;
        if bytes.is_empty() {
            return Ok(Document::default());
        }
        let document: Value = serde_json::from_slice(&bytes).map_err(|error| self.not_taco(&error))?;
        Ok(Document::from(document))
    }

    async fn answer(&self, subject: &str, request: RequestBuilder) -> Result<Response, Failure> {
        let request = request.build().map_err(|error| Failure::error(subject).because(in_full(&error)))?;
        if self.debug {
            eprintln!("> {} {}", request.method(), without_credential(request.url()));
        }
        let response = self.execute(request).await.map_err(|error| self.unreachable(&error))?;
        let status = response.status();
        let header = response.headers().get("x-request-id").and_then(|id| id.to_str().ok());
        let request_id = header.map(str::to_owned);
        if self.debug {
            eprintln!("< {status} (request {})", request_id.as_deref().unwrap_or("without id"));
        }
        if status.is_success() {
            return Ok(response);
        }
        let body = response.bytes().await.unwrap_or_default();
        if self.host.is_plain() && is_from_https_port(status, &body) {
            return Err(self.mixed_up("https", "plain http", "https", String::from_utf8_lossy(&body).trim()));
        }
        Err(self.refused(subject, status, &reasons(&body), request_id.as_deref()))
    }

    /// Sends a request, and sends it again where its answer was lost or the server could not serve it. It bears the
    /// same key, so that the server does once what is asked twice.
    async fn execute(&self, request: Request) -> reqwest::Result<Response> {
        for pause in RETRY_DELAYS {
            let Some(attempt) = request.try_clone() else { break };
            match self.http.execute(attempt).await {
                Ok(answer) if !is_transient(answer.status()) => return Ok(answer),
                // Without a connection, nothing was sent and lost.
                Err(error) if error.is_connect() => return Err(error),
                Ok(_) | Err(_) => tokio::time::sleep(pause).await,
            }
        }
        self.http.execute(request).await
    }

    fn refused(&self, subject: &str, status: StatusCode, reasons: &str, request_id: Option<&str>) -> Failure {
        let host = &self.host;
        let request = request_id.map(|id| format!(" (request {id})")).unwrap_or_default();
        let why = |otherwise: &str| format!("{}{request}", if reasons.is_empty() { otherwise } else { reasons });
        match status {
            StatusCode::UNAUTHORIZED => {
                // What the server says is for programs: it tells which header to send.
                let (what, why) = match self.token {
                    Some(_) => (format!("{host} does not accept your token"), "it was revoked, or has expired"),
                    None => (format!("you are not logged in to {host}"), "no token for it was found"),
                };
                let hint = format!("run `taco login {host}`, or set TACO_TOKEN");
                Failure::new(Kind::NotFound, what).because(format!("{why}{request}")).hint(hint)
            }
            StatusCode::NOT_FOUND | StatusCode::FORBIDDEN => {
                Failure::new(Kind::NotFound, format!("{subject}: not found"))
                    .because(why(&format!("it is not on {host}, or your account may not see it")))
                    .hint("check the name, and `taco whoami` for your account")
            }
            StatusCode::CONFLICT => {
                Failure::new(Kind::Conflict, format!("{subject}: conflict")).because(why("something is in the way"))
            }
            StatusCode::UNPROCESSABLE_ENTITY if reasons.contains("already been taken") => {
                Failure::new(Kind::Conflict, format!("{subject} already exists")).because(why(""))
            }
            StatusCode::UNPROCESSABLE_ENTITY | StatusCode::BAD_REQUEST | StatusCode::PAYLOAD_TOO_LARGE => {
                Failure::error(format!("couldn't save {subject}")).because(why(status.as_str()))
            }
            StatusCode::TOO_MANY_REQUESTS | StatusCode::SERVICE_UNAVAILABLE => {
                Failure::error(format!("{subject}: {host} is busy"))
                    .because(why(status.as_str()))
                    .hint("try again later")
            }
            _ => Failure::error(format!("{subject}: {host} answered {status}"))
                .because(why(""))
                .hint("the server's log has details under this request ID"),
        }
    }

    fn unreachable(&self, error: &reqwest::Error) -> Failure {
        let why = in_full(error);
        let is_plain = self.host.is_plain();
        if !is_plain && why.contains("InvalidContentType") {
            return self.mixed_up("plain http", "https", "http", &why);
        }
        if is_plain && ["invalid HTTP version", "invalid HTTP status"].iter().any(|part| why.contains(part)) {
            return self.mixed_up("https", "plain http", "https", &why);
        }
        let hint = if why.to_lowercase().contains("certificate") {
            "if it is your server, set SSL_CERT_FILE to the file with the certificate authority behind it".to_owned()
        } else {
            format!("start a server at {}, or choose another one with --host or TACO_HOST", self.host.address)
        };
        Failure::new(Kind::Unreachable, format!("{} cannot be reached", self.host)).because(why).hint(hint)
    }

    fn mixed_up(&self, speaks: &str, asked: &str, scheme: &str, why: &str) -> Failure {
        let host = &self.host;
        Failure::new(Kind::Unreachable, format!("{host} speaks {speaks}, but was asked over {asked}"))
            .because(why)
            .hint(format!("use --host {scheme}://{host}, or log in again with `taco login {scheme}://{host}`"))
    }

    fn not_taco(&self, error: &impl std::fmt::Display) -> Failure {
        Failure::error(format!("{} does not speak the API of Terraform Cloud", self.host))
            .because(error)
            .hint("choose another server with --host or TACO_HOST")
    }
}

/// True for what taco, nginx and Go's servers answer to plain http where they speak https.
fn is_from_https_port(status: StatusCode, body: &[u8]) -> bool {
    let text = String::from_utf8_lossy(body);
    status == StatusCode::BAD_REQUEST && (text.contains("HTTPS port") || text.contains("HTTPS server"))
}

/// True for transient errors: of a load balancer whose server has gone, or of a server whose bucket has.
fn is_transient(status: StatusCode) -> bool {
    matches!(status, StatusCode::BAD_GATEWAY | StatusCode::SERVICE_UNAVAILABLE | StatusCode::GATEWAY_TIMEOUT)
}

/// A name that no other request has. Without one the request works too, but once.
fn new_key() -> Option<String> {
    let mut bytes = [0; 16];
    getrandom::fill(&mut bytes).ok()?;
    Some(hex::encode(bytes))
}

/// Everything a server says about why, in one text.
fn reasons(body: &[u8]) -> String {
    let document: Value = serde_json::from_slice(body).unwrap_or_default();
    let errors = document.get("errors").and_then(Value::as_array).map(Vec::as_slice).unwrap_or_default();
    let text = |error: &Value, name: &str| error.get(name).and_then(Value::as_str).map(str::to_owned);
    let told: Vec<String> = errors.iter().filter_map(|error| text(error, "detail")).collect();
    status::without_names(&told.join("; "))
}

fn parse(subject: &str, address: &str) -> Result<Url, Failure> {
    Url::parse(address)
        .map_err(|error| Failure::error(format!("{subject}: the server gave a wrong address")).because(error))
}

/// An address to print. Signed ones have their credential at the end of the path.
fn without_credential(url: &Url) -> String {
    let mut shown = url.clone();
    if url.path().contains("/signed/")
        && let Ok(mut path) = shown.path_segments_mut()
    {
        path.pop().push("…");
    }
    shown.to_string().replace("%E2%80%A6", "…")
}

/// An error with what is behind it; what it has in front is its address, which the message names already.
fn in_full(error: &reqwest::Error) -> String {
    let mut deepest: &dyn std::error::Error = error;
    while let Some(cause) = deepest.source() {
        deepest = cause;
    }
    deepest.to_string()
}

/// The body of a request about one thing.
pub(crate) fn about(kind: &str, attributes: Value, relationships: Value) -> Value {
    serde_json::json!({ "data": { "type": kind, "attributes": attributes, "relationships": relationships } })
}

/// The one thing that a document is about.
pub(crate) fn one(document: Document) -> Result<Resource, Failure> {
    document.data.into_iter().next().ok_or_else(|| Failure::error("the server's answer is empty"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_reasons_are_told() {
        let body = br#"{"errors":[{"title":"a","detail":"one"},{"title":"b"},{"detail":"two"}]}"#;
        assert_eq!(reasons(body), "one; two");
        assert_eq!(reasons(b"<html>"), "");
    }

    #[test]
    fn credentials_in_an_address_stay_hidden() {
        let url = Url::parse("http://h/signed/state/sv-1/SECRET").expect("it is an address");
        assert_eq!(without_credential(&url), "http://h/signed/state/sv-1/…");
        let url = Url::parse("http://h/api/v2/ping?a=b").expect("it is an address");
        assert_eq!(without_credential(&url), "http://h/api/v2/ping?a=b");
    }

    fn refusal(status: u16, token: Option<&str>) -> Failure {
        let api = Api::new(Host::default(), token.map(Into::into), false).expect("it is made");
        api.refused("workspace acme/network", StatusCode::from_u16(status).expect("it is one"), "", Some("r-1"))
    }

    #[test]
    fn a_refusal_says_what_to_do() {
        for (status, token, kind, part) in [
            (401, Some("t"), Kind::NotFound, "localhost:8080 does not accept your token"),
            (401, None, Kind::NotFound, "taco login localhost:8080"),
            (404, Some("t"), Kind::NotFound, "workspace acme/network: not found"),
            (409, Some("t"), Kind::Conflict, "workspace acme/network: conflict"),
            (422, Some("t"), Kind::Error, "couldn't save workspace acme/network"),
            (503, Some("t"), Kind::Error, "try again later"),
            (500, Some("t"), Kind::Error, "server's log"),
        ] {
            let failure = refusal(status, token);
            let text = failure.to_string();
            assert_eq!(failure.kind, kind, "{status}");
            assert!(text.contains(part) && text.contains("(request r-1)"), "{status}: {text}");
            assert!(text.lines().count() <= 3, "{text}");
        }
    }
}
