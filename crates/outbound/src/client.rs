//! The client: guarded, bounded in time and memory, and without ways around either.

use std::error::Error as StdError;
use std::net::IpAddr;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use futures::StreamExt as _;
use reqwest::redirect::Policy;
use reqwest::{Client, Response};
use url::{Host, Url};

use crate::addresses::AllowedNetworks;
use crate::resolver::{GuardedResolver, Lookup, NotAllowed, SystemLookup};
use crate::url_rules;

/// Timeout of a whole request, the answer's body included.
pub const REQUEST_TIMEOUT: Duration = Duration::from_secs(10);

const CONNECT_TIMEOUT: Duration = Duration::from_secs(5);

/// Bytes of an answer that are read; the rest is left where it is.
const MAX_ANSWER_BYTES: usize = 64 * 1024;

/// Headers of an answer that are kept.
const MAX_ANSWER_HEADERS: usize = 64;

/// One `POST` to an address that somebody configured.
#[derive(Clone)]
pub struct Outbound {
    pub url: String,
    pub headers: Vec<(&'static str, String)>,
    pub body: Bytes,
}

/// What came back.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Answer {
    pub status: u16,
    /// Names in lower case, in the order in which they came.
    pub headers: Vec<(String, String)>,
    /// Its beginning, as text.
    pub body: String,
}

/// Reason why there is no answer. The texts are for those who configured the address; they never have the address's
/// path, which may be a secret.
#[derive(Clone, PartialEq, Eq, thiserror::Error, Debug)]
pub enum OutboundError {
    /// The address is not one to which requests may go.
    #[error("{0}")]
    Refused(String),
    /// Nobody answered, or not as one does.
    #[error("{0}")]
    Failed(String),
}

/// The one client for requests to addresses that people configure. Cheap to clone.
#[derive(Clone)]
pub struct OutboundClient {
    allowed: AllowedNetworks,
    encrypted: Client,
    in_clear: Client,
}

impl OutboundClient {
    /// A client that reaches the internet, and networks that the operator allows. The error is for the operator.
    pub fn new(allowed: AllowedNetworks) -> Result<Self, String> {
        Self::with_lookup(allowed, Arc::new(SystemLookup))
    }

    /// The same with another way to resolve names.
    pub fn with_lookup(allowed: AllowedNetworks, lookup: Arc<dyn Lookup>) -> Result<Self, String> {
        let client = |is_encrypted| {
            let resolver = GuardedResolver { lookup: Arc::clone(&lookup), allowed: allowed.clone(), is_encrypted };
            Client::builder()
                .dns_resolver(Arc::new(resolver))
                .https_only(is_encrypted)
                // A redirect leads to an address that nobody looked at, and turns a POST into a GET.
                .redirect(Policy::none())
                // A proxy would resolve names by itself.
                .no_proxy()
                .connect_timeout(CONNECT_TIMEOUT)
                .timeout(REQUEST_TIMEOUT)
                // A connection that is kept leads to where its name led before.
                .pool_max_idle_per_host(0)
                .user_agent(concat!("taco/", env!("CARGO_PKG_VERSION")))
                .build()
                .map_err(|error| error.to_string())
        };
        Ok(Self { encrypted: client(true)?, in_clear: client(false)?, allowed })
    }

    /// Judges an address as it is typed: what it leads to is judged again with every request. The error is a sentence.
    pub fn check(&self, url: &str) -> Result<(), String> {
        url_rules::parse(url, &self.allowed).map(|_| ())
    }

    /// Sends a `POST`, once.
    pub async fn post(&self, request: &Outbound) -> Result<Answer, OutboundError> {
        let url = url_rules::parse(&request.url, &self.allowed).map_err(OutboundError::Refused)?;
        let is_encrypted = url.scheme() == "https";
        self.check_literal(&url, is_encrypted)?;
        let client = if is_encrypted { &self.encrypted } else { &self.in_clear };
        let mut post = client.post(url).body(request.body.clone());
        for (name, value) in &request.headers {
            post = post.header(*name, value);
        }
        let response = post.send().await.map_err(|error| why(&error, is_encrypted))?;
        read(response).await
    }

    /// Literal addresses are not resolved, so the resolver does not see them.
    fn check_literal(&self, url: &Url, is_encrypted: bool) -> Result<(), OutboundError> {
        let address: IpAddr = match url.host() {
            Some(Host::Ipv4(address)) => address.into(),
            Some(Host::Ipv6(address)) => address.into(),
            _ => return Ok(()),
        };
        match self.allowed.lets_through(address, is_encrypted) {
            true => Ok(()),
            false => Err(refused(&NotAllowed { host: address.to_string(), address }, is_encrypted)),
        }
    }
}

fn refused(refusal: &NotAllowed, is_encrypted: bool) -> OutboundError {
    let is_only_in_clear = !is_encrypted && crate::is_global(refusal.address);
    OutboundError::Refused(match is_only_in_clear {
        true => "address not allowed: what leaves the site must be encrypted; use an address with https://".to_owned(),
        false => refusal.to_string(),
    })
}

async fn read(response: Response) -> Result<Answer, OutboundError> {
    let status = response.status().as_u16();
    let header = |(name, value): (&reqwest::header::HeaderName, &reqwest::header::HeaderValue)| {
        (name.as_str().to_owned(), String::from_utf8_lossy(value.as_bytes()).into_owned())
    };
    let headers = response.headers().iter().take(MAX_ANSWER_HEADERS).map(header).collect();
    let mut body = Vec::new();
    let mut pieces = response.bytes_stream();
    // A body that breaks off does not change the answer: its status has arrived.
    while let Some(Ok(piece)) = pieces.next().await {
        let room = MAX_ANSWER_BYTES - body.len();
        body.extend_from_slice(&piece[..piece.len().min(room)]);
        if body.len() == MAX_ANSWER_BYTES {
            break;
        }
    }
    Ok(Answer { status, headers, body: String::from_utf8_lossy(&body).into_owned() })
}

/// Reason in words. An error of the client shows the whole address, which may be a secret.
fn why(error: &reqwest::Error, is_encrypted: bool) -> OutboundError {
    let mut cause: Option<&(dyn StdError + 'static)> = Some(error);
    let mut innermost = String::new();
    while let Some(one) = cause {
        if let Some(refusal) = one.downcast_ref::<NotAllowed>() {
            return refused(refusal, is_encrypted);
        }
        if one.source().is_none() {
            innermost = one.to_string();
        }
        cause = one.source();
    }
    let text = match () {
        () if error.is_timeout() => format!("there was no answer within {} seconds", REQUEST_TIMEOUT.as_secs()),
        () if error.is_connect() => format!("the connection failed: {innermost}"),
        () if error.is_builder() => "the request cannot be sent to this address".to_owned(),
        () => format!("the request failed: {innermost}"),
    };
    OutboundError::Failed(text)
}
