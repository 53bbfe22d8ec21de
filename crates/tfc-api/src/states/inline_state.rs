//! A state inside a JSON body, in base64. It may be large, so it is cut out of the body and decoded while it flows
//! past; what surrounds it is small, and parsed like any other body when all of it has come.

use std::sync::{Arc, Mutex, PoisonError};

use axum::body::{Body as HttpBody, BodyDataStream};
use axum::http::HeaderMap;
use bytes::{Bytes, BytesMut};
use futures::{Stream, StreamExt, stream};
use taco_control_plane::LARGEST_STATE;
use taco_domain::json_cut::{JsonCut, Piece};

use crate::base64_text::Base64Text;
use crate::body::{self, Body, broken_off, check_content_type};
use crate::error::ApiError;

/// The state comes first. The others tell the same in other formats; taco makes its own of them.
const PLACES: &[&[&str]] = &[
    &["data", "attributes", "state"],
    &["data", "attributes", "json-state"],
    &["data", "attributes", "json-state-outputs"],
];
const STATE: usize = 0;

/// Placeholder for a value that was cut out.
const NOTHING: &[u8] = b"\"\"";

/// Body of a request that writes or announces a state.
pub(crate) enum StateBody {
    WithoutState(Body),
    WithState(Box<InlineState>),
}

/// A body whose state has begun.
pub(crate) struct InlineState {
    reader: Reader,
    first: Bytes,
}

/// The rest of a body, once its state has passed.
#[derive(Clone, Default)]
pub(crate) struct BodyWithoutState(Arc<Mutex<Passed>>);

#[derive(Default)]
struct Passed {
    headers: HeaderMap,
    kept: Vec<u8>,
    failure: Option<ApiError>,
}

impl BodyWithoutState {
    /// The body without the state.
    pub(crate) fn body(&self) -> Result<Body, ApiError> {
        let passed = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        Body::from_bytes(&passed.headers, &passed.kept)
    }

    /// The error in the body, which storing the state could not report.
    pub(crate) fn failure(&self) -> Option<ApiError> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).failure.take()
    }
}

/// Reads a body up to its state.
pub(crate) async fn read(headers: &HeaderMap, body: HttpBody) -> Result<StateBody, ApiError> {
    let mut reader = Reader::new(body.into_data_stream());
    while let Some(decoded) = reader.next().await? {
        if !decoded.is_empty() {
            check_content_type(headers)?;
            let mut inline = InlineState { reader, first: decoded };
            inline.reader.headers = headers.clone();
            return Ok(StateBody::WithState(Box::new(inline)));
        }
    }
    Body::from_bytes(headers, &reader.kept).map(StateBody::WithoutState)
}

impl InlineState {
    /// The state's bytes, and what surrounds them once they have passed.
    pub(crate) fn split(self) -> (impl Stream<Item = Result<Bytes, &'static str>> + Send + 'static, BodyWithoutState) {
        let rest = BodyWithoutState::default();
        let passed = rest.clone();
        let first = stream::iter([Ok(self.first)]);
        let further = stream::unfold(Some(self.reader), move |reader| {
            let passed = passed.clone();
            async move {
                let mut reader = reader?;
                match reader.next().await {
                    Ok(Some(decoded)) => Some((Ok(decoded), Some(reader))),
                    Ok(None) => {
                        let mut passed = passed.0.lock().unwrap_or_else(PoisonError::into_inner);
                        (passed.headers, passed.kept) = (reader.headers, reader.kept);
                        None
                    }
                    Err(failure) => {
                        passed.0.lock().unwrap_or_else(PoisonError::into_inner).failure = Some(failure);
                        Some((Err("the body was refused"), None))
                    }
                }
            }
        });
        (first.chain(further), rest)
    }
}

struct Reader {
    body: BodyDataStream,
    headers: HeaderMap,
    cut: JsonCut,
    decoder: Base64Text,
    kept: Vec<u8>,
    /// Bytes of values that are not needed.
    dropped: u64,
    /// The value that is being cut out is no text, so it stays.
    stays: bool,
}

impl Reader {
    fn new(body: BodyDataStream) -> Self {
        Self {
            body,
            headers: HeaderMap::new(),
            cut: JsonCut::new(PLACES),
            decoder: Base64Text::default(),
            kept: Vec::new(),
            dropped: 0,
            stays: false,
        }
    }

    /// State bytes in the next piece of the body, which may be none; `None` at the end.
    async fn next(&mut self) -> Result<Option<Bytes>, ApiError> {
        let Some(bytes) = self.body.next().await else {
            self.decoder.finish().map_err(not_base64)?;
            return Ok(None);
        };
        let bytes = bytes.map_err(|error| broken_off(&error, body::MAX_BODY_BYTES))?;
        let mut decoded = BytesMut::with_capacity(bytes.len());
        let mut outcome = Ok(());
        self.cut.push(&bytes, |piece| match piece {
            Piece::Kept(bytes) => self.kept.extend_from_slice(bytes),
            Piece::Cut { place, begins, bytes } => {
                if begins {
                    self.stays = bytes.first() != Some(&b'"');
                    self.kept.extend_from_slice(if self.stays { b"" } else { NOTHING });
                }
                match place {
                    _ if self.stays => self.kept.extend_from_slice(bytes),
                    STATE if outcome.is_ok() => outcome = self.decoder.push(bytes, &mut decoded),
                    STATE => {}
                    _ => self.dropped += bytes.len() as u64,
                }
            }
        });
        outcome.map_err(not_base64)?;
        if self.kept.len() > body::MAX_BODY_BYTES {
            return Err(ApiError::too_large(body::MAX_BODY_BYTES as u64));
        }
        if self.dropped > 2 * LARGEST_STATE {
            return Err(ApiError::too_large(LARGEST_STATE));
        }
        Ok(Some(decoded.freeze()))
    }
}

fn not_base64(why: String) -> ApiError {
    ApiError::invalid("/data/attributes/state", format!("state must be base64: {why}"))
}
