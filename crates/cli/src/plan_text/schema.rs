//! Types of attributes and nested blocks, as far as they change how a plan looks.

use std::collections::BTreeMap;

use serde_json::Value;

/// Type of an attribute.
#[derive(PartialEq, Debug)]
pub(super) enum Type<'a> {
    /// Nothing is known about it.
    Dynamic,
    Scalar,
    List(Box<Self>),
    Set(Box<Self>),
    Map(Box<Self>),
    Object(BTreeMap<&'a str, Self>),
    Tuple(Vec<Self>),
}

impl<'a> Type<'a> {
    /// Type of an attribute in a provider's schema.
    pub(super) fn of_attribute(schema: &'a Value) -> Self {
        match schema.get("nested_type") {
            None => schema.get("type").map_or(Self::Dynamic, Self::parse),
            Some(nested) => {
                let attributes = nested.get("attributes").and_then(Value::as_object).into_iter().flatten();
                let object =
                    Self::Object(attributes.map(|(name, one)| (name.as_str(), Self::of_attribute(one))).collect());
                match nested.get("nesting_mode").and_then(Value::as_str) {
                    Some("list") => Self::List(Box::new(object)),
                    Some("set") => Self::Set(Box::new(object)),
                    Some("map") => Self::Map(Box::new(object)),
                    _ => object,
                }
            }
        }
    }

    /// A type as JSON spells it: `"string"`, `["list", "string"]`.
    fn parse(json: &'a Value) -> Self {
        let (kind, of) = match json {
            Value::String(name) if name == "dynamic" => return Self::Dynamic,
            Value::String(_) => return Self::Scalar,
            Value::Array(parts) => (parts.first().and_then(Value::as_str).unwrap_or_default(), parts.get(1)),
            _ => return Self::Dynamic,
        };
        let element = || Box::new(of.map_or(Self::Dynamic, Self::parse));
        match kind {
            "list" => Self::List(element()),
            "set" => Self::Set(element()),
            "map" => Self::Map(element()),
            "object" => {
                let attributes = of.and_then(Value::as_object).into_iter().flatten();
                Self::Object(attributes.map(|(name, one)| (name.as_str(), Self::parse(one))).collect())
            }
            "tuple" => Self::Tuple(of.and_then(Value::as_array).into_iter().flatten().map(Self::parse).collect()),
            _ => Self::Dynamic,
        }
    }
}

/// Attributes and nested blocks of a resource, or of a block.
#[derive(Clone, Copy, Debug)]
pub(super) struct BlockSchema<'a>(Option<&'a Value>);

/// Number of blocks of one name.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Nesting {
    Single,
    List,
    Set,
    Map,
}

impl<'a> BlockSchema<'a> {
    /// Schema of a resource type, or none.
    pub(super) fn of_resource(schema: Option<&'a Value>) -> Self {
        Self(schema.and_then(|schema| schema.get("block")))
    }

    pub(super) fn attribute(self, name: &str) -> Type<'a> {
        let schema = self.0.and_then(|block| block.get("attributes")?.get(name));
        schema.map_or(Type::Dynamic, Type::of_attribute)
    }

    /// The nested block of that name, if it is one.
    pub(super) fn block(self, name: &str) -> Option<(Nesting, Self)> {
        let schema = self.0?.get("block_types")?.get(name)?;
        let nesting = match schema.get("nesting_mode").and_then(Value::as_str) {
            Some("list") => Nesting::List,
            Some("set") => Nesting::Set,
            Some("map") => Nesting::Map,
            _ => Nesting::Single,
        };
        Some((nesting, Self(schema.get("block"))))
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn types_are_read_as_providers_spell_them() {
        let of = |schema: &'static str| serde_json::from_str::<Value>(schema).expect("it is JSON");
        let list = of(r#"{"type": ["list", ["object", {"a": "string"}]]}"#);
        let object = Type::Object([("a", Type::Scalar)].into());
        assert_eq!(Type::of_attribute(&list), Type::List(Box::new(object)));
        let nested = json!({ "nested_type": { "nesting_mode": "set", "attributes": { "a": { "type": "number" } } } });
        assert_eq!(Type::of_attribute(&nested), Type::Set(Box::new(Type::Object([("a", Type::Scalar)].into()))));
        assert_eq!(Type::of_attribute(&json!({ "type": "dynamic" })), Type::Dynamic);
        assert_eq!(Type::of_attribute(&json!({})), Type::Dynamic);
    }
}
