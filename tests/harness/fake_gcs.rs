//! A Google Cloud Storage for tests: the calls of its XML API that our client makes, and their guarantees.
//!
//! It exists because no emulator that can be installed accepts them. It keeps everything in memory, behind one lock, so
//! it is as consistent as the real one; its listings come in small pages, so that paging is tried too.

use std::collections::{BTreeMap, HashMap};
use std::fmt::Write;
use std::net::{Ipv4Addr, SocketAddr, TcpListener};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use axum::Router;
use axum::body::Body;
use axum::extract::{DefaultBodyLimit, Path, Query, Request, State};
use axum::http::{HeaderMap, HeaderName, Method, Response, StatusCode, header};
use axum::middleware::{Next, from_fn};
use axum::routing::{any, get};
use bytes::{Bytes, BytesMut};
use jiff::Timestamp;
use taco_ledger::{Clock, SystemClock};
use tokio::sync::oneshot;

/// The real one answers with up to 1,000 names.
const PAGE_SIZE: usize = 100;

/// No part of an upload may be smaller, except the last.
const MIN_PART_BYTES: usize = 5 * 1024 * 1024;

const GENERATION: HeaderName = HeaderName::from_static("x-goog-generation");
const IF_GENERATION: HeaderName = HeaderName::from_static("x-goog-if-generation-match");

/// A running fake; it ends when this is dropped.
pub struct FakeGcs {
    address: SocketAddr,
    _stop: oneshot::Sender<()>,
}

impl FakeGcs {
    /// Starts it with one empty bucket, on a thread of its own: it has to outlive the runtime of the test that happens
    /// to start it.
    pub fn start(bucket: &str) -> anyhow::Result<Self> {
        Self::start_away(bucket, Duration::ZERO)
    }

    /// The same, some way off: every request takes this much longer.
    pub fn start_away(bucket: &str, away: Duration) -> anyhow::Result<Self> {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?;
        listener.set_nonblocking(true)?;
        let address = listener.local_addr()?;
        let fake = Fake { bucket: bucket.to_owned(), contents: Arc::default() };
        let routes = Router::new()
            .route("/{bucket}", get(list))
            .route("/{bucket}/{object}", any(on_object))
            .layer(DefaultBodyLimit::disable())
            .layer(from_fn(move |request: Request, next: Next| async move {
                tokio::time::sleep(away).await;
                next.run(request).await
            }))
            .with_state(fake);
        let (stop, stopped) = oneshot::channel::<()>();
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
        std::thread::Builder::new().name("fake-gcs".to_owned()).spawn(move || {
            runtime.block_on(async move {
                let listener = tokio::net::TcpListener::from_std(listener).expect("a listener for this runtime");
                tokio::select! {
                    outcome = axum::serve(listener, routes) => outcome.expect("serving does not fail"),
                    _ = stopped => {}
                }
            });
        })?;
        Ok(Self { address, _stop: stop })
    }

    pub fn address(&self) -> SocketAddr {
        self.address
    }
}

#[derive(Clone)]
struct Fake {
    bucket: String,
    contents: Arc<Mutex<Contents>>,
}

#[derive(Default)]
struct Contents {
    objects: BTreeMap<String, Object>,
    uploads: HashMap<String, Upload>,
    /// Rises with every write, so an object that was replaced can be told from one that was not.
    generation: u64,
}

#[derive(Clone)]
struct Object {
    bytes: Bytes,
    generation: u64,
    written: Timestamp,
}

struct Upload {
    name: String,
    parts: BTreeMap<u32, Bytes>,
}

impl Object {
    fn etag(&self) -> String {
        format!("\"{:016x}\"", self.generation)
    }
}

impl Fake {
    fn contents(&self) -> MutexGuard<'_, Contents> {
        self.contents.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Contents {
    fn write(&mut self, name: String, bytes: Bytes) -> Object {
        self.generation += 1;
        let object = Object { bytes, generation: self.generation, written: SystemClock.now() };
        self.objects.insert(name, object.clone());
        object
    }
}

type Answer = Result<Response<Body>, Refusal>;

/// An error as the real one words it.
struct Refusal(StatusCode, &'static str);

impl axum::response::IntoResponse for Refusal {
    fn into_response(self) -> axum::response::Response {
        let Self(status, code) = self;
        let body = format!("<?xml version='1.0' encoding='UTF-8'?><Error><Code>{code}</Code></Error>");
        (status, [(header::CONTENT_TYPE, "application/xml")], body).into_response()
    }
}

const NO_SUCH_KEY: Refusal = Refusal(StatusCode::NOT_FOUND, "NoSuchKey");
const NO_SUCH_UPLOAD: Refusal = Refusal(StatusCode::NOT_FOUND, "NoSuchUpload");
const NO_SUCH_BUCKET: Refusal = Refusal(StatusCode::NOT_FOUND, "NoSuchBucket");

async fn on_object(
    State(fake): State<Fake>,
    method: Method,
    Path((bucket, name)): Path<(String, String)>,
    Query(query): Query<HashMap<String, String>>,
    headers: HeaderMap,
    body: Bytes,
) -> Answer {
    if bucket != fake.bucket {
        return Err(NO_SUCH_BUCKET);
    }
    let mut contents = fake.contents();
    let upload = query.get("uploadId");
    match (method.as_str(), upload) {
        ("GET" | "HEAD", None) => read(&contents, &method, &name, &headers),
        ("PUT", None) => put(&mut contents, name, &headers, body),
        ("DELETE", None) => {
            contents.objects.remove(&name).ok_or(NO_SUCH_KEY)?;
            Ok(answer(StatusCode::NO_CONTENT, Body::empty()))
        }
        ("POST", None) if query.contains_key("uploads") => Ok(begin_upload(&mut contents, name)),
        ("PUT", Some(upload)) => put_part(&mut contents, upload, &query, body),
        ("POST", Some(upload)) => complete_upload(&mut contents, upload, &name, &body),
        ("DELETE", Some(upload)) => {
            contents.uploads.remove(upload).ok_or(NO_SUCH_UPLOAD)?;
            Ok(answer(StatusCode::NO_CONTENT, Body::empty()))
        }
        _ => Err(Refusal(StatusCode::NOT_IMPLEMENTED, "NotImplemented")),
    }
}

fn put(contents: &mut Contents, name: String, headers: &HeaderMap, body: Bytes) -> Answer {
    if let Some(expected) = headers.get(IF_GENERATION) {
        let there = contents.objects.get(&name).map_or(0, |object| object.generation);
        if *expected != there.to_string() {
            return Err(Refusal(StatusCode::PRECONDITION_FAILED, "PreconditionFailed"));
        }
    }
    let object = contents.write(name, body);
    Ok(about(&object, Response::builder()).body(Body::empty()).expect("a legal response"))
}

fn read(contents: &Contents, method: &Method, name: &str, headers: &HeaderMap) -> Answer {
    let object = contents.objects.get(name).ok_or(NO_SUCH_KEY)?;
    let size = object.bytes.len();
    let answer = about(object, Response::builder()).header(header::CONTENT_TYPE, "application/octet-stream");
    let answer = match headers.get(header::RANGE) {
        None => answer.header(header::CONTENT_LENGTH, size).body(match *method {
            Method::HEAD => Body::empty(),
            _ => Body::from(object.bytes.clone()),
        }),
        Some(range) => {
            let range = range.to_str().ok().and_then(|range| within(range, size));
            let (first, last) = range.ok_or(Refusal(StatusCode::RANGE_NOT_SATISFIABLE, "InvalidRange"))?;
            let part = object.bytes.slice(first..=last);
            answer
                .status(StatusCode::PARTIAL_CONTENT)
                .header(header::CONTENT_LENGTH, part.len())
                .header(header::CONTENT_RANGE, format!("bytes {first}-{last}/{size}"))
                .body(Body::from(part))
        }
    };
    Ok(answer.expect("a legal response"))
}

/// The first and last byte that `bytes=2-5`, `bytes=2-` or `bytes=-4` asks for.
fn within(range: &str, size: usize) -> Option<(usize, usize)> {
    let (first, last) = range.strip_prefix("bytes=")?.split_once('-')?;
    let (first, last) = match (first, last) {
        ("", length) => (size.checked_sub(length.parse().ok()?)?, size.checked_sub(1)?),
        (first, "") => (first.parse().ok()?, size.checked_sub(1)?),
        (first, last) => (first.parse().ok()?, last.parse::<usize>().ok()?.min(size.checked_sub(1)?)),
    };
    (first <= last).then_some((first, last))
}

fn begin_upload(contents: &mut Contents, name: String) -> Response<Body> {
    contents.generation += 1;
    let id = format!("upload-{}", contents.generation);
    let document = format!(
        "<InitiateMultipartUploadResult><Key>{}</Key><UploadId>{id}</UploadId></InitiateMultipartUploadResult>",
        escaped(&name)
    );
    contents.uploads.insert(id, Upload { name, parts: BTreeMap::new() });
    answer(StatusCode::OK, document.into())
}

fn put_part(contents: &mut Contents, upload: &str, query: &HashMap<String, String>, body: Bytes) -> Answer {
    let upload = contents.uploads.get_mut(upload).ok_or(NO_SUCH_UPLOAD)?;
    let number = query.get("partNumber").and_then(|number| number.parse().ok());
    let number: u32 = number.ok_or(Refusal(StatusCode::BAD_REQUEST, "InvalidArgument"))?;
    let etag = part_etag(number, &body);
    upload.parts.insert(number, body);
    Ok(Response::builder().header(header::ETAG, etag).body(Body::empty()).expect("a legal response"))
}

fn complete_upload(contents: &mut Contents, id: &str, name: &str, body: &Bytes) -> Answer {
    let upload = contents.uploads.get(id).filter(|upload| upload.name == name).ok_or(NO_SUCH_UPLOAD)?;
    let document = std::str::from_utf8(body).unwrap_or_default();
    let mut whole = BytesMut::new();
    let mut listed = document.split("<Part>").skip(1).peekable();
    while let Some(part) = listed.next() {
        let number = text_of(part, "PartNumber").and_then(|number| number.parse().ok()).unwrap_or(0);
        let stored = upload.parts.get(&number);
        let bytes = stored
            .filter(|bytes| text_of(part, "ETag") == Some(part_etag(number, bytes).as_str()))
            .ok_or(Refusal(StatusCode::BAD_REQUEST, "InvalidPart"))?;
        if bytes.len() < MIN_PART_BYTES && listed.peek().is_some() {
            return Err(Refusal(StatusCode::BAD_REQUEST, "EntityTooSmall"));
        }
        whole.extend_from_slice(bytes);
    }
    contents.uploads.remove(id);
    let object = contents.write(name.to_owned(), whole.freeze());
    let document = format!(
        "<CompleteMultipartUploadResult><Key>{}</Key><ETag>{}</ETag></CompleteMultipartUploadResult>",
        escaped(name),
        object.etag()
    );
    Ok(about(&object, Response::builder()).body(document.into()).expect("a legal response"))
}

fn part_etag(number: u32, bytes: &Bytes) -> String {
    format!("\"part-{number}-{}\"", bytes.len())
}

fn text_of<'a>(document: &'a str, element: &str) -> Option<&'a str> {
    let (_, rest) = document.split_once(&format!("<{element}>"))?;
    Some(rest.split_once(&format!("</{element}>"))?.0)
}

async fn list(
    State(fake): State<Fake>,
    Path(bucket): Path<String>,
    Query(query): Query<HashMap<String, String>>,
) -> Answer {
    if bucket != fake.bucket {
        return Err(NO_SUCH_BUCKET);
    }
    let argument = |name: &str| query.get(name).map_or("", String::as_str);
    let (prefix, delimiter) = (argument("prefix"), argument("delimiter"));
    // A page's token is the last name that the page before it told.
    let after = argument("start-after").max(argument("continuation-token"));
    let limit = query.get("max-keys").and_then(|limit| limit.parse().ok()).unwrap_or(PAGE_SIZE).min(PAGE_SIZE);

    let mut document = "<?xml version='1.0' encoding='UTF-8'?><ListBucketResult>".to_owned();
    let mut told = 0;
    let mut last = String::new();
    let mut more = false;
    for (name, object) in &fake.contents().objects {
        let Some(rest) = name.strip_prefix(prefix) else { continue };
        let folder = match delimiter {
            "" => None,
            delimiter => rest.split_once(delimiter).map(|(folder, _)| format!("{prefix}{folder}{delimiter}")),
        };
        let entry = folder.as_deref().unwrap_or(name);
        if entry <= after || entry == last {
            continue;
        }
        if told == limit {
            more = true;
            break;
        }
        let entry = entry.to_owned();
        let _ = match folder {
            Some(folder) => {
                write!(document, "<CommonPrefixes><Prefix>{}</Prefix></CommonPrefixes>", escaped(&folder))
            }
            None => write!(
                document,
                "<Contents><Key>{}</Key><Generation>{}</Generation><LastModified>{:.3}</LastModified><ETag>{}</ETag><Size>{}</Size></Contents>",
                escaped(name),
                object.generation,
                object.written,
                object.etag(),
                object.bytes.len()
            ),
        };
        last = entry;
        told += 1;
    }
    if more {
        let _ = write!(document, "<NextContinuationToken>{}</NextContinuationToken>", escaped(&last));
    }
    let _ = write!(document, "<IsTruncated>{more}</IsTruncated></ListBucketResult>");
    Ok(answer(StatusCode::OK, document.into()))
}

fn about(object: &Object, answer: axum::http::response::Builder) -> axum::http::response::Builder {
    answer
        .header(header::ETAG, object.etag())
        .header(GENERATION, object.generation)
        .header(header::LAST_MODIFIED, object.written.strftime("%a, %d %b %Y %H:%M:%S GMT").to_string())
}

fn answer(status: StatusCode, body: Body) -> Response<Body> {
    Response::builder().status(status).body(body).expect("a legal response")
}

fn escaped(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;")
}
