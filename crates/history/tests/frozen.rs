//! Pages and catalogs as the first version that had them wrote them: `migrations-in-bucket/` keeps one of each, and every
//! later version reads them. A new format gets files of its own, written once by [`taco_history`] as it is then.

use std::fs;
use std::path::{Path, PathBuf};

use serde_json::value::RawValue;
use taco_history::{Bundle, Catalog, CatalogBuilder, IdIndex, Place, Row, RowId, Texts, read_bundle};
use taco_tables::RecordKey;

const PAGE: &str = "hs-4Tk9mXbq7cWvZpHn";

fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../migrations-in-bucket/0001-first-format/history")
}

fn frozen(name: &str) -> Vec<u8> {
    fs::read(folder().join(name)).unwrap_or_else(|error| panic!("{name}: {error}"))
}

fn id(number: u8) -> RowId {
    [b'A' + number; 16]
}

/// A run with a comment, and a run alone.
fn bundles() -> [Bundle; 2] {
    let record = |kind: &str, id: &str, value: &str| {
        let key = RecordKey { kind: kind.to_owned(), id: id.to_owned() };
        (key, RawValue::from_string(value.to_owned()).expect("JSON"))
    };
    let run = record("run", "run-AAAAAAAAAAAAAAAA", r#"{"id":"run-AAAAAAAAAAAAAAAA","status":"applied"}"#);
    let comment = record("comment", "wsc-CCCCCCCCCCCCCCCC", r#"{"id":"wsc-CCCCCCCCCCCCCCCC","body":"Done"}"#);
    let alone = record("run", "run-BBBBBBBBBBBBBBBB", r#"{"id":"run-BBBBBBBBBBBBBBBB","status":"errored"}"#);
    [Bundle { records: vec![run, comment] }, Bundle { records: vec![alone] }]
}

fn row(number: u8, status: &str, place: Place) -> Row<'_> {
    let (at, source, author) = (1_767_268_800_123_456_789 + i64::from(number), "tfe-api", "user-AAAAAAAAAAAAAAAA");
    Row {
        id: id(number),
        owner: id(9),
        at,
        number: u64::from(number) + 1,
        status,
        source,
        author,
        flags: number,
        place,
    }
}

fn texts_of(bundle: &Bundle) -> Vec<String> {
    bundle.records.iter().map(|(key, value)| format!("{key} {}", value.get())).collect()
}

/// Content of the catalog, with the places that the page has.
fn catalog(places: [Place; 2]) -> (Catalog, Vec<String>) {
    let mut builder = CatalogBuilder::default();
    builder.add(PAGE, &row(0, "applied", places[0]), "Raise the replicas");
    builder.add(PAGE, &row(1, "errored", places[1]), "Ein \"Überblick\"");
    builder.finish().expect("few")
}

#[test]
fn what_the_first_version_wrote_is_read() {
    let read = Catalog::decode(&frozen("runs.zst")).expect("a catalog");
    let places = [1, 0].map(|index| read.row(index).place);
    let (expected, texts) = catalog(places);
    assert_eq!(read, expected);
    let page = frozen("page");
    for (place, bundle) in places.into_iter().zip(bundles()) {
        let bytes = &page[place.offset as usize..(place.offset + place.length) as usize];
        assert_eq!(texts_of(&read_bundle(place, bytes).expect("a bundle")), texts_of(&bundle));
    }
    let comments = IdIndex::decode(&frozen("comments.zst")).expect("an index");
    assert_eq!(comments.find(&id(2)), Some((PAGE, places[0])));
    let found = Texts::decode(&frozen("texts.zst")).expect("texts");
    assert_eq!([found.get(0), found.get(1)], [texts[0].as_str(), texts[1].as_str()]);
}
