//! Answers of the API, and the plain objects that `--json` prints for them.

use serde_json::{Map, Value, json};

use crate::failure::Failure;

/// Document of a response.
#[derive(Default, Debug)]
pub(crate) struct Document {
    pub(crate) data: Vec<Resource>,
    pub(crate) included: Vec<Resource>,
    pub(crate) next_page: Option<u64>,
}

impl From<Value> for Document {
    fn from(mut document: Value) -> Self {
        let mut resources = |name: &str| match document.get_mut(name).map(Value::take) {
            Some(Value::Array(values)) => values.into_iter().map(Resource).collect(),
            Some(value @ Value::Object(_)) => vec![Resource(value)],
            _ => Vec::new(),
        };
        let (data, included) = (resources("data"), resources("included"));
        let next_page = document.pointer("/meta/pagination/next-page").and_then(Value::as_u64);
        Self { data, included, next_page }
    }
}

impl Document {
    /// Included resource that a relationship points to.
    pub(crate) fn related(&self, resource: &Resource, relationship: &str) -> Option<&Resource> {
        let id = resource.related_id(relationship)?;
        self.included.iter().find(|included| included.id() == id)
    }
}

/// One resource, as on the wire.
#[derive(Clone, Debug)]
pub(crate) struct Resource(Value);

impl Resource {
    pub(crate) fn id(&self) -> &str {
        self.0.get("id").and_then(Value::as_str).unwrap_or_default()
    }

    /// True for resources of this type.
    pub(crate) fn is_a(&self, kind: &str) -> bool {
        self.0.get("type").and_then(Value::as_str) == Some(kind)
    }

    pub(crate) fn get(&self, attribute: &str) -> &Value {
        self.0.get("attributes").and_then(|attributes| attributes.get(attribute)).unwrap_or(&Value::Null)
    }

    /// All attributes, where these alone are the document.
    pub(crate) fn attributes(&self) -> &Value {
        self.0.get("attributes").unwrap_or(&Value::Null)
    }

    /// An attribute as people read it.
    pub(crate) fn text(&self, attribute: &str) -> String {
        in_words(self.get(attribute))
    }

    /// Address of something that belongs to it.
    pub(crate) fn link(&self, name: &str) -> Result<String, Failure> {
        let link = self.0.get("links").and_then(|links| links.get(name)?.as_str());
        link.map(str::to_owned).ok_or_else(|| {
            Failure::error(format!("the server did not say where {name} is"))
                .because("your account may not upload there, or it is done already")
        })
    }

    pub(crate) fn related_id(&self, relationship: &str) -> Option<&str> {
        let relationships = self.0.get("relationships")?;
        relationships.get(relationship)?.get("data")?.get("id")?.as_str()
    }

    /// Ids that a relationship to many names.
    pub(crate) fn related_ids(&self, relationship: &str) -> impl Iterator<Item = &str> {
        let data = self.0.get("relationships").and_then(|all| all.get(relationship)?.get("data")?.as_array());
        data.into_iter().flatten().filter_map(|identifier| identifier.get("id")?.as_str())
    }

    /// The id, all attributes under their names on the wire, and the ids of what it belongs to, as far as no attribute
    /// has such a name. This shape is what scripts rely on.
    pub(crate) fn plain(&self) -> Value {
        let mut plain = Map::new();
        plain.insert("id".to_owned(), self.id().into());
        if let Some(attributes) = self.0.get("attributes").and_then(Value::as_object) {
            plain.extend(attributes.clone());
        }
        for (name, relationship) in self.0.get("relationships").and_then(Value::as_object).into_iter().flatten() {
            let id = match relationship.get("data") {
                Some(Value::Object(identifier)) => identifier.get("id").cloned().unwrap_or_default(),
                Some(Value::Null) => Value::Null,
                _ => continue,
            };
            plain.entry(name.clone()).or_insert(id);
        }
        // They are credentials, and out of date within the hour.
        plain.retain(|name, _| !(name.starts_with("hosted-") && name.ends_with("-url")));
        json!(plain)
    }
}

pub(crate) fn in_words(value: &Value) -> String {
    match value {
        Value::Null => String::new(),
        Value::Bool(true) => "yes".to_owned(),
        Value::Bool(false) => "no".to_owned(),
        Value::String(text) => text.clone(),
        Value::Array(values) => values.iter().map(in_words).collect::<Vec<_>>().join(", "),
        other => other.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_plain_object_has_attributes_and_ids_but_no_credentials() {
        let document = Document::from(json!({
            "data": {
                "id": "ws-1", "type": "workspaces",
                "attributes": { "name": "network", "locked": true, "hosted-state-download-url": "http://h/signed/x" },
                "relationships": {
                    "project": { "data": { "id": "prj-1", "type": "projects" } },
                    "name": { "data": { "id": "no", "type": "names" } },
                    "ssh-key": { "data": null },
                    "outputs": { "data": [] },
                },
            },
            "included": [{ "id": "prj-1", "type": "projects", "attributes": { "name": "Default" } }],
        }));
        let workspace = &document.data[0];
        let expected = json!({ "id": "ws-1", "name": "network", "locked": true, "project": "prj-1", "ssh-key": null });
        assert_eq!(workspace.plain(), expected);
        assert_eq!(workspace.text("locked"), "yes");
        assert_eq!(document.related(workspace, "project").expect("it is beside it").text("name"), "Default");
    }
}
