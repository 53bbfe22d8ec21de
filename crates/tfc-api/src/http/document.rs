//! Response documents in the shape of JSON:API. `docs/decisions/0005-json-api.md` tells why the types are our own.

use axum::http::header::{CONTENT_TYPE, HeaderValue};
use axum::response::{IntoResponse, Response};
use bytes::Bytes;
use jiff::Timestamp;
use serde::ser::SerializeMap;
use serde::{Serialize, Serializer};
use serde_json::value::{RawValue, to_raw_value};
use taco_control_plane::Listed;

use crate::error::ApiError;
use crate::request::ApiRequest;
use crate::resource::Resource;

pub(crate) const MEDIA_TYPE: &str = "application/vnd.api+json";

/// Resource object: a thing's type, id, attributes, relationships and links.
#[derive(Debug)]
pub(crate) struct ResourceObject {
    kind: &'static str,
    id: String,
    attributes: Option<Box<RawValue>>,
    relationships: Vec<(&'static str, Relationship)>,
    links: Vec<(&'static str, String)>,
}

/// Resource identifier: names another thing in a relationship.
#[derive(Clone, PartialEq, Eq, Serialize, Debug)]
pub(crate) struct Identifier {
    pub(crate) id: String,
    #[serde(rename = "type")]
    pub(crate) kind: &'static str,
}

impl Identifier {
    pub(crate) fn new(kind: &'static str, id: impl ToString) -> Self {
        Self { kind, id: id.to_string() }
    }
}

#[derive(Clone, Debug)]
struct Relationship {
    data: RelationshipData,
    links: Vec<(&'static str, String)>,
}

/// Nothing is said as `null`, which differs from saying nothing.
#[derive(Clone, Serialize, Debug)]
#[serde(untagged)]
enum RelationshipData {
    One(Option<Identifier>),
    Many(Vec<Identifier>),
}

impl ResourceObject {
    pub(crate) fn new(kind: &'static str, id: impl ToString, attributes: &impl Serialize) -> Self {
        let attributes = Some(to_raw_value(attributes).expect("attributes are plain data"));
        Self { kind, id: id.to_string(), attributes, relationships: Vec::new(), links: Vec::new() }
    }

    pub(crate) fn has_one(self, name: &'static str, other: Identifier) -> Self {
        self.has_optional(name, Some(other))
    }

    /// To another thing, or to nothing.
    pub(crate) fn has_optional(mut self, name: &'static str, other: Option<Identifier>) -> Self {
        self.relationships.push((name, Relationship { data: RelationshipData::One(other), links: Vec::new() }));
        self
    }

    pub(crate) fn has_many(mut self, name: &'static str, others: impl IntoIterator<Item = Identifier>) -> Self {
        let data = RelationshipData::Many(others.into_iter().collect());
        self.relationships.push((name, Relationship { data, links: Vec::new() }));
        self
    }

    /// Link at which the relationship named last can be read.
    pub(crate) fn related(mut self, path: impl Into<String>) -> Self {
        if let Some((_, relationship)) = self.relationships.last_mut() {
            relationship.links.push(("related", path.into()));
        }
        self
    }

    pub(crate) fn link(mut self, name: &'static str, path: impl Into<String>) -> Self {
        self.links.push((name, path.into()));
        self
    }

    /// About how long it is as text.
    fn rough_size(&self) -> usize {
        let attributes = self.attributes.as_ref().map_or(0, |attributes| attributes.get().len());
        attributes + 128 * (1 + self.relationships.len() + self.links.len())
    }

    fn is_same_as(&self, other: &Self) -> bool {
        self.kind == other.kind && self.id == other.id
    }
}

/// Serializes pairs in their order, as an object.
struct Pairs<'a, T>(&'a [(&'static str, T)]);

impl<T: Serialize> Serialize for Pairs<'_, T> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_map(self.0.iter().map(|(name, value)| (name, value)))
    }
}

impl Serialize for Relationship {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(None)?;
        map.serialize_entry("data", &self.data)?;
        if !self.links.is_empty() {
            map.serialize_entry("links", &Pairs(&self.links))?;
        }
        map.end()
    }
}

impl Serialize for ResourceObject {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(None)?;
        map.serialize_entry("id", &self.id)?;
        map.serialize_entry("type", self.kind)?;
        if let Some(attributes) = &self.attributes {
            map.serialize_entry("attributes", attributes)?;
        }
        if !self.relationships.is_empty() {
            map.serialize_entry("relationships", &Pairs(&self.relationships))?;
        }
        if !self.links.is_empty() {
            map.serialize_entry("links", &Pairs(&self.links))?;
        }
        map.end()
    }
}

/// Position of a page in its list.
#[derive(Clone, PartialEq, Eq, Serialize, Debug)]
#[serde(rename_all = "kebab-case")]
pub(crate) struct Pagination {
    current_page: usize,
    page_size: usize,
    prev_page: Option<usize>,
    next_page: Option<usize>,
    total_pages: usize,
    total_count: usize,
}

impl Pagination {
    pub(crate) fn of<T>(listed: &Listed<T>) -> Self {
        let (current_page, total_pages) = (listed.page.number(), listed.total_pages());
        Self {
            current_page,
            page_size: listed.page.size(),
            prev_page: (current_page > 1).then(|| (current_page - 1).min(total_pages)),
            next_page: (current_page < total_pages).then_some(current_page + 1),
            total_pages,
            total_count: listed.total,
        }
    }
}

#[derive(Serialize, Debug)]
#[serde(untagged)]
enum Data {
    Nothing,
    One(Box<ResourceObject>),
    Many(Vec<ResourceObject>),
}

#[derive(Serialize, Debug)]
#[serde(rename_all = "kebab-case")]
struct Meta {
    pagination: Pagination,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    taco_unreadable_organizations: Vec<UnreadableOrganization>,
}

/// An organization that is missing from a list because its ledger cannot be read, for site admins.
#[derive(Serialize, Debug)]
#[serde(rename_all = "kebab-case")]
pub(crate) struct UnreadableOrganization {
    pub(crate) id: String,
    pub(crate) name: String,
    pub(crate) object: String,
    pub(crate) reason: String,
    pub(crate) since: Timestamp,
}

/// A whole response document.
#[derive(Serialize, Debug)]
pub(crate) struct Document {
    data: Data,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    included: Vec<ResourceObject>,
    #[serde(skip_serializing_if = "Option::is_none")]
    meta: Option<Meta>,
}

impl Document {
    pub(crate) fn one(resource: ResourceObject) -> Self {
        Self { data: Data::One(Box::new(resource)), included: Vec::new(), meta: None }
    }

    /// Document without data, for something that could be there and is not, at an address of its own: `null`.
    pub(crate) fn none() -> Self {
        Self { data: Data::Nothing, included: Vec::new(), meta: None }
    }

    /// All there is.
    pub(crate) fn many(resources: Vec<ResourceObject>) -> Self {
        Self { data: Data::Many(resources), included: Vec::new(), meta: None }
    }

    /// One page of a list.
    pub(crate) fn page(listed: Listed<ResourceObject>) -> Self {
        let meta = Some(Meta { pagination: Pagination::of(&listed), taco_unreadable_organizations: Vec::new() });
        Self { data: Data::Many(listed.items), included: Vec::new(), meta }
    }

    /// An empty list has no pages: clients of some lists rely on it.
    pub(crate) fn counting_pages_from_none(mut self) -> Self {
        if let Some(meta) = self.meta.as_mut().filter(|meta| meta.pagination.total_count == 0) {
            meta.pagination.total_pages = 0;
        }
        self
    }

    /// Tells of what the page cannot show.
    pub(crate) fn without(mut self, unreadable: Vec<UnreadableOrganization>) -> Self {
        if let Some(meta) = &mut self.meta {
            meta.taco_unreadable_organizations = unreadable;
        }
        self
    }

    /// Sends something along, once however often it is named.
    pub(crate) fn include(&mut self, resource: ResourceObject) {
        if !self.included.iter().any(|known| known.is_same_as(&resource)) {
            self.included.push(resource);
        }
    }

    /// Sends a related resource along, if there is one.
    pub(crate) fn include_some<R: Resource>(
        &mut self,
        thing: Option<&R>,
        request: &ApiRequest,
    ) -> Result<(), ApiError> {
        if let Some(thing) = thing {
            self.include(thing.object(request)?);
        }
        Ok(())
    }

    /// Sends related resources along.
    pub(crate) fn include_all<'a, R: Resource + 'a>(
        &mut self,
        things: impl IntoIterator<Item = &'a R>,
        request: &ApiRequest,
    ) -> Result<(), ApiError> {
        things.into_iter().try_for_each(|thing| self.include_some(Some(thing), request))
    }

    pub(crate) fn including(mut self, resources: impl IntoIterator<Item = ResourceObject>) -> Self {
        for resource in resources {
            self.include(resource);
        }
        self
    }

    /// Text as it goes over the wire.
    pub(crate) fn to_bytes(&self) -> Bytes {
        // Room from the start: a long list would be copied each time that it outgrows what it has.
        let data = match &self.data {
            Data::Nothing => 0,
            Data::One(resource) => resource.rough_size(),
            Data::Many(resources) => resources.iter().map(ResourceObject::rough_size).sum(),
        };
        let included: usize = self.included.iter().map(ResourceObject::rough_size).sum();
        let mut text = Vec::with_capacity(256 + data + included);
        serde_json::to_writer(&mut text, self).expect("a document is plain data");
        text.into()
    }
}

/// An answer with a document that is text already.
pub(crate) fn response(document: Bytes) -> Response {
    ([(CONTENT_TYPE, HeaderValue::from_static(MEDIA_TYPE))], document).into_response()
}

impl IntoResponse for Document {
    fn into_response(self) -> Response {
        response(self.to_bytes())
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};
    use taco_control_plane::PageRequest;

    use super::*;

    fn text(document: &Document) -> Value {
        serde_json::to_value(document).expect("JSON")
    }

    #[derive(Serialize)]
    #[serde(rename_all = "kebab-case")]
    struct Attributes {
        created_at: Timestamp,
    }

    fn thing(id: &str) -> ResourceObject {
        ResourceObject::new("things", id, &Attributes { created_at: Timestamp::UNIX_EPOCH })
    }

    #[test]
    fn a_resource_has_attributes_relationships_and_links() {
        let resource = thing("1")
            .has_one("owner", Identifier::new("users", "user-1"))
            .related("/api/v2/users/user-1")
            .has_optional("parent", None)
            .has_many("children", [Identifier::new("things", "2")])
            .link("self", "/api/v2/things/1");
        let expected = json!({ "data": {
            "id": "1", "type": "things", "attributes": { "created-at": "1970-01-01T00:00:00Z" },
            "relationships": {
                "owner": { "data": { "id": "user-1", "type": "users" }, "links": { "related": "/api/v2/users/user-1" } },
                "parent": { "data": null },
                "children": { "data": [{ "id": "2", "type": "things" }] },
            },
            "links": { "self": "/api/v2/things/1" },
        }});
        assert_eq!(text(&Document::one(resource)), expected);
    }

    #[test]
    fn what_is_not_there_is_null() {
        assert_eq!(text(&Document::none()), json!({ "data": null }));
    }

    #[test]
    fn what_is_included_twice_comes_once() {
        let document = Document::one(thing("1")).including([thing("2"), thing("3"), thing("2")]);
        assert_eq!(text(&document)["included"].as_array().map(Vec::len), Some(2));
    }

    #[test]
    fn a_page_says_where_it_lies() {
        let listed = Listed::from_all(["a", "b", "c"], PageRequest::new(2, 2)).map(thing);
        assert_eq!(
            text(&Document::page(listed))["meta"]["pagination"],
            json!({ "current-page": 2, "page-size": 2, "prev-page": 1, "next-page": null, "total-pages": 2, "total-count": 3 })
        );
        let beyond = Listed::from_all(["a", "b", "c"], PageRequest::new(999, 100)).map(thing);
        let document = text(&Document::page(beyond));
        assert_eq!(document["data"], json!([]));
        assert_eq!(document["meta"]["pagination"]["current-page"], 999);
        assert_eq!(document["meta"]["pagination"]["total-count"], 3);
    }
}
