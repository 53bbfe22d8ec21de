//! Declarations that a new record must not forget: which other records it names, so that deletions reach it, and which of its
//! texts are sealed, so that a new master key does.

use std::any::type_name;
use std::collections::BTreeSet;

use harness::formats::frozen::samples;
use harness::formats::roots::roots;
use harness::formats::shape::{Content, Field, Named, Shape, Shapes};
use serde_json::Value;
use taco_domain::site_secret::SiteSecret;
use taco_domain::{OrganizationState, Site};
use taco_tables::{Record, RecordTypes, VisitRecordType};

/// Declarations of one type of record.
struct Declared {
    kind: &'static str,
    noun: &'static str,
    id: &'static str,
    /// Fields, and the types of the ids in them.
    references: BTreeSet<(String, String)>,
    sealed_texts: fn(&str) -> Vec<String>,
}

struct Records(Vec<Declared>);

impl VisitRecordType for Records {
    fn visit<R: Record>(&mut self) {
        let references = R::references().into_iter();
        self.0.push(Declared {
            kind: R::KIND,
            noun: R::NOUN,
            id: last_word(type_name::<R::Id>()),
            references: references.map(|it| (it.field.to_owned(), last_word(it.to).to_owned())).collect(),
            sealed_texts: |sample| {
                let mut record: R = serde_json::from_str(sample).expect("a sample");
                record.sealed_mut().into_iter().map(|(_, text)| text.clone()).collect()
            },
        });
    }
}

fn records_of<S: RecordTypes>() -> Vec<Declared> {
    let mut records = Records(Vec::new());
    S::visit(&mut records);
    records.0
}

fn last_word(path: &'static str) -> &'static str {
    path.rsplit("::").next().unwrap_or(path)
}

#[test]
fn every_id_that_a_record_of_an_organization_names_is_declared_as_a_reference() {
    let (roots, shapes) = roots();
    let records = records_of::<OrganizationState>();
    let ids: BTreeSet<&str> = records.iter().map(|record| record.id).collect();
    for record in &records {
        let root = roots.iter().find(|root| root.name == format!("records/{}", record.kind)).expect("a record");
        let fields = fields_of(&shapes, &root.shape);
        let named = fields.iter().flat_map(|field| {
            let of_records = ids_in(&shapes, &field.shape).into_iter().filter(|id| ids.contains(id.as_str()));
            of_records.map(|id| (field.name.clone(), id))
        });
        let named: BTreeSet<_> = named.filter(|(field, _)| field != "id").collect();
        assert_eq!(
            named, record.references,
            "left: the ids in the fields of {}; right: its `references!`, which say what becomes of it when what it names \
             is deleted",
            record.kind
        );
    }
}

/// Fields of a record, as its JSON has them.
fn fields_of<'a>(shapes: &'a Shapes, shape: &Shape) -> Vec<&'a Field> {
    let Shape::Named(name) = shape else { panic!("{shape:?} is no record") };
    let Named::Struct(fields) = &shapes.types[name] else { panic!("{name} is no struct") };
    let own = |field: &'a Field| if field.is_flat { fields_of(shapes, &field.shape) } else { vec![field] };
    fields.iter().flat_map(own).collect()
}

/// Types of the ids in a value. An author tells who did something, and stays when they are gone.
fn ids_in(shapes: &Shapes, shape: &Shape) -> BTreeSet<String> {
    match shape {
        Shape::Leaf(name) => shapes.id_prefix(name).map(|_| name.clone()).into_iter().collect(),
        Shape::Option(inner) | Shape::List(inner) => ids_in(shapes, inner),
        Shape::Map(key, inner) => ids_in(shapes, key).into_iter().chain(ids_in(shapes, inner)).collect(),
        Shape::Named(name) if name == "domain::Author" => BTreeSet::new(),
        Shape::Named(name) => {
            let in_fields = |fields: &[Field]| -> BTreeSet<String> {
                fields.iter().flat_map(|field| ids_in(shapes, &field.shape)).collect()
            };
            match &shapes.types[name] {
                Named::Struct(fields) => in_fields(fields),
                Named::Transparent(inner) => ids_in(shapes, inner),
                Named::Enum { variants, .. } => {
                    let contents = variants.iter().map(|variant| match &variant.content {
                        Content::Nothing => BTreeSet::new(),
                        Content::One(inner) => ids_in(shapes, inner),
                        Content::Fields(fields) => in_fields(fields),
                    });
                    contents.flatten().collect()
                }
            }
        }
    }
}

#[test]
fn every_sealed_text_of_a_record_is_declared() {
    let mut found = 0;
    for record in records_of::<Site>().into_iter().chain(records_of::<OrganizationState>()) {
        // A server seals the site's own key anew when it starts.
        if record.kind == SiteSecret::KIND {
            continue;
        }
        for sample in samples(&format!("records/{}", record.kind)) {
            let mut secrets = Vec::new();
            secrets_in(&serde_json::from_str(&sample).expect("JSON"), &mut secrets);
            let declared = (record.sealed_texts)(&sample);
            found += secrets.len();
            for secret in secrets {
                assert!(
                    declared.contains(&secret),
                    "{} has a sealed text that its `sealed_mut` does not list, so that it would be lost with the master \
                     key that it was sealed with: {secret:?} in {sample}",
                    record.kind
                );
            }
        }
    }
    assert!(found > 0, "there are some");
}

/// The texts whose names say that they are sealed. What is hashed for good is called a hash.
fn secrets_in(value: &Value, secrets: &mut Vec<String>) {
    match value {
        Value::Object(fields) => {
            for (name, value) in fields {
                match value {
                    Value::String(text) if name.starts_with("sealed") || name == "password" => {
                        secrets.push(text.clone());
                    }
                    _ => secrets_in(value, secrets),
                }
            }
        }
        Value::Array(values) => values.iter().for_each(|value| secrets_in(value, secrets)),
        _ => {}
    }
}

#[test]
fn every_record_has_a_name_for_people() {
    for record in records_of::<Site>().into_iter().chain(records_of::<OrganizationState>()) {
        assert!(!record.noun.contains(['-', '_']), "say what a {} is called when it is not found: NOUN", record.kind);
    }
}
