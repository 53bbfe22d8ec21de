//! Request bodies: JSON in the shape of JSON:API.
//!
//! Lenient where real clients are sloppy: a `type` that is empty or missing, no `Content-Type`, actions without a
//! body. Strict wherever something would otherwise be misunderstood: the answer says what was wrong, and where.

use std::collections::BTreeMap;
use std::error::Error as _;
use std::fmt;
use std::str::FromStr;

use axum::body::{Body as HttpBody, to_bytes};
use axum::http::header::CONTENT_TYPE;
use axum::http::{HeaderMap, StatusCode};
use serde::Deserialize;
use serde::de::{DeserializeOwned, DeserializeSeed, Deserializer, Error as _, MapAccess, SeqAccess, Visitor};
use serde_json::{Map, Value};
use taco_domain::attribute::shown;

use crate::document::MEDIA_TYPE;
use crate::error::ApiError;

/// The largest body, unless a route says otherwise.
pub(crate) const MAX_BODY_BYTES: usize = 1024 * 1024;
const MAX_DEPTH: usize = 64;

/// A request's body: JSON, or nothing.
#[derive(Debug)]
pub(crate) struct Body(Option<Value>);

/// One resource object of a request.
#[derive(Debug)]
pub(crate) struct RequestResource<A> {
    pub(crate) id: Option<String>,
    pub(crate) attributes: A,
    relationships: BTreeMap<String, Value>,
    /// JSON pointer to it, such as `/data`.
    pointer: String,
}

/// Reads a body of at most `limit` bytes.
pub(crate) async fn read(headers: &HeaderMap, body: HttpBody, limit: usize) -> Result<Body, ApiError> {
    let bytes = to_bytes(body, limit).await.map_err(|error| broken_off(&error, limit))?;
    Body::from_bytes(headers, &bytes)
}

/// `to_bytes` hides the one cause that the caller can do something about.
pub(crate) fn broken_off(error: &axum::Error, limit: usize) -> ApiError {
    let too_large = error.source().is_some_and(|cause| cause.to_string().contains("length limit"));
    if too_large {
        return ApiError::too_large(limit as u64);
    }
    ApiError::bad_request("The body did not arrive completely")
}

pub(crate) fn check_content_type(headers: &HeaderMap) -> Result<(), ApiError> {
    let Some(sent) = headers.get(CONTENT_TYPE) else { return Ok(()) };
    let essence = sent.to_str().unwrap_or_default().split(';').next().unwrap_or_default().trim();
    if essence.is_empty()
        || essence.eq_ignore_ascii_case(MEDIA_TYPE)
        || essence.eq_ignore_ascii_case("application/json")
    {
        return Ok(());
    }
    let detail = format!("The body must be {MEDIA_TYPE} or application/json; it says that it is {}", shown(essence));
    Err(ApiError::new(StatusCode::UNSUPPORTED_MEDIA_TYPE, "unsupported media type", detail))
}

pub(crate) fn parse(bytes: &[u8]) -> Result<Value, ApiError> {
    let mut deserializer = serde_json::Deserializer::from_slice(bytes);
    let value = Strict { depth: 0 }.deserialize(&mut deserializer);
    value.and_then(|value| deserializer.end().map(|()| value)).map_err(|error| {
        let place = format!(" at line {} column {}", error.line(), error.column());
        let what = error.to_string();
        let what = what.strip_suffix(&place).unwrap_or(&what);
        ApiError::bad_request(format!("The body is not valid JSON at {}:{}: {what}", error.line(), error.column()))
    })
}

impl Body {
    /// A body that has arrived as a whole.
    pub(crate) fn from_bytes(headers: &HeaderMap, bytes: &[u8]) -> Result<Self, ApiError> {
        if bytes.iter().all(u8::is_ascii_whitespace) {
            return Ok(Self(None));
        }
        check_content_type(headers)?;
        Ok(Self(Some(parse(bytes)?)))
    }

    /// The `data` of a body that has to be a document.
    fn data(self) -> Result<Value, ApiError> {
        match self.0 {
            Some(Value::Object(mut document)) => match document.remove("data") {
                Some(data) => Ok(data),
                None => Err(ApiError::invalid("/data", "The body must have `data`")),
            },
            Some(_) => Err(ApiError::invalid("", "The body must be an object with `data`")),
            None => Err(ApiError::invalid("/data", "The body is empty; it must have `data`")),
        }
    }

    /// The type of its one resource object, where several are possible.
    pub(crate) fn kind(&self) -> Option<&str> {
        self.0.as_ref()?.get("data")?.get("type")?.as_str()
    }

    /// One resource object of the type `kind`.
    pub(crate) fn resource<A: DeserializeOwned>(self, kind: &str) -> Result<RequestResource<A>, ApiError> {
        RequestResource::read(self.data()?, kind, "/data".to_owned())
    }

    /// A list of resource objects, or of identifiers.
    pub(crate) fn resources<A: DeserializeOwned>(self, kind: &str) -> Result<Vec<RequestResource<A>>, ApiError> {
        read_list(self.data()?, kind, "/data")
    }

    /// The ids in a list of resource identifiers.
    pub(crate) fn ids<I: FromStr<Err: fmt::Display>, C: FromIterator<I>>(self, kind: &str) -> Result<C, ApiError> {
        self.resources::<NoAttributes>(kind)?.iter().map(RequestResource::id).collect()
    }

    /// Attributes of an action, whose body may be nothing, plain attributes, or a document with attributes.
    pub(crate) fn action<A: DeserializeOwned>(self) -> Result<A, ApiError> {
        let none = || Value::Object(Map::new());
        match self.0 {
            Some(Value::Object(mut document)) if document.contains_key("data") => {
                let attributes = match document.remove("data") {
                    Some(Value::Object(mut data)) => data.remove("attributes").unwrap_or_else(none),
                    _ => none(),
                };
                read_attributes(attributes, "/data/attributes")
            }
            Some(plain) => read_attributes(plain, ""),
            None => read_attributes(none(), ""),
        }
    }
}

impl<A: DeserializeOwned> RequestResource<A> {
    fn read(data: Value, kind: &str, pointer: String) -> Result<Self, ApiError> {
        let Value::Object(mut data) = data else {
            let detail = format!("One object of the type {kind} is expected here; this is {}", kind_of(&data));
            return Err(ApiError::invalid(pointer, detail));
        };
        match data.remove("type") {
            None | Some(Value::Null) => {}
            Some(Value::String(sent)) if sent.is_empty() || sent == kind => {}
            Some(other) => {
                let other = other.as_str().map_or_else(|| kind_of(&other).to_owned(), shown);
                let detail = format!("The type must be {kind:?}; it is {other}");
                return Err(ApiError::invalid(format!("{pointer}/type"), detail));
            }
        }
        let id = match data.remove("id") {
            None | Some(Value::Null) => None,
            Some(Value::String(id)) => Some(id).filter(|id| !id.is_empty()),
            Some(other) => {
                let detail = format!("An id is text; this is {}", kind_of(&other));
                return Err(ApiError::invalid(format!("{pointer}/id"), detail));
            }
        };
        let attributes = match data.remove("attributes") {
            None | Some(Value::Null) => Value::Object(Map::new()),
            Some(attributes) => attributes,
        };
        let relationships = match data.remove("relationships") {
            None | Some(Value::Null) => BTreeMap::new(),
            Some(Value::Object(relationships)) => relationships.into_iter().collect(),
            Some(other) => {
                let detail = format!("Relationships are an object; this is {}", kind_of(&other));
                return Err(ApiError::invalid(format!("{pointer}/relationships"), detail));
            }
        };
        let attributes = read_attributes(attributes, &format!("{pointer}/attributes"))?;
        Ok(Self { id, attributes, relationships, pointer })
    }
}

impl<A> RequestResource<A> {
    /// The id, where one has to be given.
    pub(crate) fn id<I: FromStr<Err: fmt::Display>>(&self) -> Result<I, ApiError> {
        let pointer = || format!("{}/id", self.pointer);
        let id = self.id.as_deref().ok_or_else(|| ApiError::invalid(pointer(), "An id must be given"))?;
        id.parse().map_err(|error: I::Err| ApiError::invalid(pointer(), format!("{}: {error}", shown(id))))
    }

    /// A relationship to one thing: not_implemented, null, or its id.
    pub(crate) fn to_one<I: FromStr<Err: fmt::Display>>(&self, name: &str) -> Result<Option<Option<I>>, ApiError> {
        let Some(relationship) = self.relationships.get(name) else { return Ok(None) };
        let pointer = format!("{}/relationships/{name}", self.pointer);
        match relationship.get("data") {
            None | Some(Value::Null) => Ok(Some(None)),
            Some(data) => match data.get("id").and_then(Value::as_str) {
                None | Some("") => Ok(Some(None)),
                Some(id) => match id.parse() {
                    Ok(id) => Ok(Some(Some(id))),
                    Err(error) => Err(ApiError::invalid(pointer, format!("{}: {error}", shown(id)))),
                },
            },
        }
    }

    /// A relationship to one thing that may be of several kinds: its id, if it is of this kind.
    pub(crate) fn to_one_of<I: FromStr<Err: fmt::Display>>(
        &self,
        name: &str,
        kind: &str,
    ) -> Result<Option<I>, ApiError> {
        let sent = self.relationships.get(name).and_then(|relationship| relationship.pointer("/data/type"));
        if sent.and_then(Value::as_str) == Some(kind) { Ok(self.to_one(name)?.flatten()) } else { Ok(None) }
    }

    /// The id of one thing that has to be named.
    pub(crate) fn required<I: FromStr<Err: fmt::Display>>(&self, name: &str) -> Result<I, ApiError> {
        let pointer = || format!("{}/relationships/{name}", self.pointer);
        self.to_one(name)?.flatten().ok_or_else(|| ApiError::invalid(pointer(), format!("The {name} must be given")))
    }

    /// The ids in a relationship to a list of things, if it is there.
    pub(crate) fn ids<I: FromStr<Err: fmt::Display>, C: FromIterator<I>>(
        &self,
        name: &str,
        kind: &str,
    ) -> Result<Option<C>, ApiError> {
        let named = self.to_many::<NoAttributes>(name, kind)?;
        named.map(|named| named.iter().map(RequestResource::id).collect()).transpose()
    }

    /// A relationship to a list of things, if it is there.
    pub(crate) fn to_many<B: DeserializeOwned>(
        &self,
        name: &str,
        kind: &str,
    ) -> Result<Option<Vec<RequestResource<B>>>, ApiError> {
        let Some(relationship) = self.relationships.get(name) else { return Ok(None) };
        let pointer = format!("{}/relationships/{name}/data", self.pointer);
        match relationship.get("data") {
            None | Some(Value::Null) => Ok(None),
            Some(data) => read_list(data.clone(), kind, &pointer).map(Some),
        }
    }
}

fn read_list<A: DeserializeOwned>(data: Value, kind: &str, pointer: &str) -> Result<Vec<RequestResource<A>>, ApiError> {
    let Value::Array(items) = data else {
        let detail = format!("A list of the type {kind} is expected here; this is {}", kind_of(&data));
        return Err(ApiError::invalid(pointer, detail));
    };
    let items = items.into_iter().enumerate();
    items.map(|(index, item)| RequestResource::read(item, kind, format!("{pointer}/{index}"))).collect()
}

fn read_attributes<A: DeserializeOwned>(attributes: Value, pointer: &str) -> Result<A, ApiError> {
    if !attributes.is_object() {
        let detail = format!("Attributes are an object; this is {}", kind_of(&attributes));
        return Err(ApiError::invalid(pointer, detail));
    }
    serde_path_to_error::deserialize(attributes).map_err(|error| {
        let mut pointer = pointer.to_owned();
        let mut name = String::new();
        for segment in error.path() {
            use serde_path_to_error::Segment;
            let part = match segment {
                Segment::Seq { index } => index.to_string(),
                Segment::Map { key } => key.clone(),
                Segment::Enum { variant } => variant.clone(),
                Segment::Unknown => continue,
            };
            pointer.push_str(&format!("/{part}"));
            name = part;
        }
        let mut what: String = error.inner().to_string().chars().take(300).collect();
        if name.ends_with("-at") {
            what.push_str("; it is a time, for example 2026-01-31T12:00:00Z");
        }
        ApiError::invalid(pointer, if name.is_empty() { what } else { format!("{name}: {what}") })
    })
}

fn kind_of(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "a boolean",
        Value::Number(_) => "a number",
        Value::String(_) => "text",
        Value::Array(_) => "a list",
        Value::Object(_) => "an object",
    }
}

/// For bodies whose attributes do not matter.
#[derive(Clone, Default, Deserialize, Debug)]
pub(crate) struct NoAttributes {}

/// A JSON value without duplicate keys, at most [`MAX_DEPTH`] levels deep.
#[derive(Clone, Copy)]
struct Strict {
    depth: usize,
}

impl Strict {
    fn deeper<E: serde::de::Error>(self) -> Result<Self, E> {
        if self.depth >= MAX_DEPTH {
            return Err(E::custom(format!("it is nested more than {MAX_DEPTH} levels deep")));
        }
        Ok(Self { depth: self.depth + 1 })
    }
}

impl<'de> DeserializeSeed<'de> for Strict {
    type Value = Value;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Value, D::Error> {
        deserializer.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for Strict {
    type Value = Value;

    fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("JSON")
    }

    fn visit_bool<E>(self, value: bool) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_i64<E>(self, value: i64) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_u64<E>(self, value: u64) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_f64<E>(self, value: f64) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_str<E>(self, value: &str) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_string<E>(self, value: String) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_unit<E>(self) -> Result<Value, E> {
        Ok(Value::Null)
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut sequence: A) -> Result<Value, A::Error> {
        let inner = self.deeper()?;
        let mut items = Vec::new();
        while let Some(item) = sequence.next_element_seed(inner)? {
            items.push(item);
        }
        Ok(Value::Array(items))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Value, A::Error> {
        let inner = self.deeper()?;
        let mut object = Map::new();
        while let Some(key) = map.next_key::<String>()? {
            if object.contains_key(&key) {
                return Err(A::Error::custom(format!("the key {} is there twice", shown(&key))));
            }
            let value = map.next_value_seed(inner)?;
            object.insert(key, value);
        }
        Ok(Value::Object(object))
    }
}

#[cfg(test)]
mod tests {
    use axum::response::IntoResponse;
    use taco_domain::attribute::nullable;
    use taco_domain::id::ProjectId;

    use super::*;

    #[derive(Default, Deserialize, PartialEq, Debug)]
    #[serde(rename_all = "kebab-case", default)]
    struct Attributes {
        auto_apply: Option<bool>,
        trigger_prefixes: Option<Vec<String>>,
        #[serde(deserialize_with = "nullable")]
        description: Option<Option<String>>,
        reason: Option<String>,
    }

    async fn body(content_type: Option<&str>, text: &str) -> Result<Body, ApiError> {
        let mut headers = HeaderMap::new();
        if let Some(content_type) = content_type {
            headers.insert(CONTENT_TYPE, content_type.parse().expect("a header"));
        }
        read(&headers, HttpBody::from(text.to_owned()), MAX_BODY_BYTES).await
    }

    async fn refusal(error: ApiError) -> (u16, Value) {
        let response = error.into_response();
        let status = response.status().as_u16();
        let bytes = to_bytes(response.into_body(), usize::MAX).await.expect("a body");
        (status, serde_json::from_slice::<Value>(&bytes).expect("JSON")["errors"][0].clone())
    }

    #[tokio::test]
    async fn sloppy_bodies_are_understood() {
        for text in ["", " \n", "{}", r#"{"data":{"type":"","attributes":{}}}"#, r#"{"data":null}"#] {
            let attributes: Attributes = body(None, text).await.expect(text).action().expect(text);
            assert_eq!(attributes, Attributes::default(), "{text}");
        }
        for text in [r#"{"reason":"why"}"#, r#"{"data":{"type":"","attributes":{"reason":"why"}}}"#] {
            let attributes: Attributes = body(None, text).await.expect(text).action().expect(text);
            assert_eq!(attributes.reason.as_deref(), Some("why"));
        }
        for kind in [r#""type":"","#, "", r#""type":"workspaces","#] {
            let text = format!(r#"{{"data":{{{kind}"attributes":{{"auto-apply":true,"unknown":1}}}}}}"#);
            let sent: RequestResource<Attributes> = body(Some("application/json; charset=utf-8"), &text)
                .await
                .expect("JSON")
                .resource("workspaces")
                .expect(&text);
            assert_eq!(sent.attributes.auto_apply, Some(true));
        }
    }

    #[tokio::test]
    async fn what_is_no_json_is_refused_with_its_place() {
        let deep = format!("{}{}", "[".repeat(65), "]".repeat(65));
        for (text, place) in [
            ("{", "1:1"),
            ("{\n \"a\": }", "2:7"),
            (r#"{"a":1,"a":2}"#, "1:10"),
            (r#"{"a":NaN}"#, "1:6"),
            ("{} x", "1:4"),
            (deep.as_str(), "1:66"),
        ] {
            let (status, error) = refusal(body(None, text).await.expect_err(text)).await;
            assert_eq!(status, 400, "{text}");
            let detail = error["detail"].as_str().unwrap_or_default();
            assert!(detail.contains(&format!(" at {place}: ")), "{text}: {detail}");
        }
        let nested = format!("{}1{}", r#"{"a":"#.repeat(64), "}".repeat(64));
        body(None, &nested).await.expect("64 levels are fine");
    }

    #[tokio::test]
    async fn other_media_types_and_large_bodies_are_refused() {
        let (status, error) = refusal(body(Some("text/plain"), "{}").await.expect_err("text")).await;
        assert_eq!(status, 415);
        assert!(error["detail"].as_str().unwrap_or_default().contains("application/vnd.api+json"));
        let large = format!("\"{}\"", "x".repeat(MAX_BODY_BYTES));
        let (status, error) = refusal(body(None, &large).await.expect_err("large")).await;
        assert_eq!(status, 413);
        assert!(error["detail"].as_str().unwrap_or_default().contains("1048576"));
    }

    #[tokio::test]
    async fn a_wrong_shape_is_refused_with_a_pointer() {
        for (text, pointer) in [
            ("", "/data"),
            ("{}", "/data"),
            ("[]", ""),
            (r#"{"data":[]}"#, "/data"),
            (r#"{"data":null}"#, "/data"),
            (r#"{"data":{"type":"workspace"}}"#, "/data/type"),
            (r#"{"data":{"type":1}}"#, "/data/type"),
            (r#"{"data":{"id":1}}"#, "/data/id"),
            (r#"{"data":{"attributes":[]}}"#, "/data/attributes"),
            (r#"{"data":{"attributes":{"auto-apply":"yes"}}}"#, "/data/attributes/auto-apply"),
            (r#"{"data":{"attributes":{"trigger-prefixes":["a",1]}}}"#, "/data/attributes/trigger-prefixes/1"),
            (r#"{"data":{"relationships":[]}}"#, "/data/relationships"),
        ] {
            let sent = body(None, text).await.expect(text).resource::<Attributes>("workspaces");
            let (status, error) = refusal(sent.expect_err(text)).await;
            assert_eq!((status, error["source"]["pointer"].as_str()), (422, Some(pointer)), "{text}");
        }
        let text = r#"{"data":{"attributes":{"auto-apply":"yes"}}}"#;
        let sent = body(None, text).await.expect(text).resource::<Attributes>("workspaces");
        let (_, error) = refusal(sent.expect_err(text)).await;
        assert!(error["detail"].as_str().unwrap_or_default().contains("expected a boolean"), "{error}");
    }

    #[tokio::test]
    async fn null_differs_from_absent() {
        for (attributes, relationships, description, project) in [
            ("{}", "{}", None, None),
            (r#"{"description":null}"#, r#"{"project":{"data":null}}"#, Some(None), Some(None)),
        ] {
            let text = format!(r#"{{"data":{{"attributes":{attributes},"relationships":{relationships}}}}}"#);
            let sent = body(None, &text).await.expect("JSON").resource::<Attributes>("workspaces").expect("legal");
            assert_eq!(sent.attributes.description, description);
            assert_eq!(sent.to_one::<ProjectId>("project").expect("legal"), project);
        }
        let text = r#"{"data":{"relationships":{"project":{"data":{"type":"projects","id":"nope"}}}}}"#;
        let sent = body(None, text).await.expect("JSON").resource::<Attributes>("workspaces").expect("legal");
        let (status, error) = refusal(sent.to_one::<ProjectId>("project").expect_err("no id")).await;
        assert_eq!((status, error["source"]["pointer"].as_str()), (422, Some("/data/relationships/project")));
    }
}
