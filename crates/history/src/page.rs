//! Pages of bundles.

use std::sync::LazyLock;

use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use sha2::{Digest, Sha256};
use taco_tables::RecordKey;
use zstd::dict::DecoderDictionary;

use crate::Malformed;

/// Bundles are small and alike, so each is compressed with the help of a text that has what all of them have. It is a
/// part of the format: what was compressed with it can be read with nothing else. A better one gets another number.
const DICTIONARY: &[u8] = include_bytes!("dictionary.jsonl");

/// The dictionary as a decoder needs it: made once, and not for every bundle.
static PREPARED: LazyLock<DecoderDictionary<'static>> = LazyLock::new(|| DecoderDictionary::copy(DICTIONARY));

/// A bundle is larger than this only if something is wrong with it.
const MAX_BUNDLE_BYTES: usize = 256 * 1024 * 1024;

const LEVEL: i32 = 9;

/// Records that leave memory, and come back, together.
#[derive(Clone, Default, Debug)]
pub struct Bundle {
    pub records: Vec<(RecordKey, Box<RawValue>)>,
}

/// Position of a bundle.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct Place {
    /// Index of the page in the catalog's pages.
    pub page: u16,
    pub offset: u32,
    pub length: u32,
    /// The first bytes of the SHA-256 of what lies there.
    pub digest: [u8; 8],
}

#[derive(Serialize)]
struct BundleLineOut<'a> {
    kind: &'a str,
    id: &'a str,
    value: &'a RawValue,
}

#[derive(Deserialize)]
struct BundleLine {
    kind: String,
    id: String,
    value: Box<RawValue>,
}

/// A page that is being filled.
pub struct PageWriter {
    bytes: Vec<u8>,
    compressor: zstd::bulk::Compressor<'static>,
}

impl PageWriter {
    pub fn new() -> Result<Self, Malformed> {
        let compressor = zstd::bulk::Compressor::with_dictionary(LEVEL, DICTIONARY).map_err(malformed)?;
        Ok(Self { bytes: Vec::new(), compressor })
    }

    /// Adds a bundle, and tells where it lies. `page` is the number that the page will have in its catalog.
    pub fn add(&mut self, page: u16, bundle: &Bundle) -> Result<Place, Malformed> {
        let mut plain = Vec::new();
        for (key, value) in &bundle.records {
            let line = BundleLineOut { kind: &key.kind, id: &key.id, value };
            serde_json::to_writer(&mut plain, &line).map_err(malformed)?;
            plain.push(b'\n');
        }
        let compressed = self.compressor.compress(&plain).map_err(malformed)?;
        let too_long = |_| Malformed("the page is too long".to_owned());
        let place = Place {
            page,
            offset: u32::try_from(self.bytes.len()).map_err(too_long)?,
            length: u32::try_from(compressed.len()).map_err(too_long)?,
            digest: digest(&compressed),
        };
        self.bytes.extend_from_slice(&compressed);
        Ok(place)
    }

    pub fn finish(self) -> Vec<u8> {
        self.bytes
    }
}

/// Reads bundles one after the other. What a decompressor needs is larger than most of them, so it is made once.
pub struct BundleReader(zstd::bulk::Decompressor<'static>);

impl BundleReader {
    pub fn new() -> Result<Self, Malformed> {
        let decompressor = zstd::bulk::Decompressor::with_prepared_dictionary(&PREPARED).map_err(malformed)?;
        Ok(Self(decompressor))
    }

    /// Reads the bundle that lies at `place`, from the bytes there.
    pub fn read(&mut self, place: Place, bytes: &[u8]) -> Result<Bundle, Malformed> {
        if bytes.len() != place.length as usize || digest(bytes) != place.digest {
            return Err(Malformed("it is not what was written there".to_owned()));
        }
        let size = zstd::bulk::Decompressor::upper_bound(bytes).filter(|size| *size <= MAX_BUNDLE_BYTES);
        let size = size.ok_or_else(|| Malformed("it does not say how large it is, or too large".to_owned()))?;
        let plain = self.0.decompress(bytes, size).map_err(malformed)?;
        let plain = std::str::from_utf8(&plain).map_err(malformed)?;
        let record = |line: &str| {
            let BundleLine { kind, id, value } = serde_json::from_str(line).map_err(malformed)?;
            Ok((RecordKey { kind, id }, value))
        };
        Ok(Bundle { records: plain.lines().map(record).collect::<Result<_, _>>()? })
    }
}

/// Reads a single bundle.
pub fn read_bundle(place: Place, bytes: &[u8]) -> Result<Bundle, Malformed> {
    BundleReader::new()?.read(place, bytes)
}

fn digest(bytes: &[u8]) -> [u8; 8] {
    let whole: [u8; 32] = Sha256::digest(bytes).into();
    let mut first = [0; 8];
    first.copy_from_slice(&whole[..8]);
    first
}

pub(crate) fn malformed(error: impl std::fmt::Display) -> Malformed {
    Malformed(error.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn bundle(id: &str, value: &str) -> Bundle {
        let key = RecordKey { kind: "run".to_owned(), id: id.to_owned() };
        let value = RawValue::from_string(value.to_owned()).expect("JSON");
        Bundle { records: vec![(key.clone(), value.clone()), (key, value)] }
    }

    #[test]
    fn a_bundle_is_read_back_without_the_others() {
        let mut page = PageWriter::new().expect("a page");
        let bundles = [bundle("run-1", r#"{"a":1}"#), bundle("run-2", r#"{"b":[null]}"#), Bundle::default()];
        let places: Vec<Place> = bundles.iter().map(|bundle| page.add(3, bundle).expect("room")).collect();
        let bytes = page.finish();
        for (bundle, place) in bundles.iter().zip(places) {
            assert_eq!(place.page, 3);
            let range = place.offset as usize..(place.offset + place.length) as usize;
            let found = read_bundle(place, &bytes[range]).expect("sound");
            let text = |bundle: &Bundle| {
                let line = |(key, value): &(RecordKey, Box<RawValue>)| format!("{} {}", key.id, value.get());
                bundle.records.iter().map(line).collect::<Vec<_>>()
            };
            assert_eq!(text(&found), text(bundle));
        }
    }

    #[test]
    fn a_bundle_that_was_changed_is_refused() {
        let mut page = PageWriter::new().expect("a page");
        let place = page.add(0, &bundle("run-1", r#"{"a":1}"#)).expect("room");
        let bytes = page.finish();
        for at in 0..bytes.len() {
            let mut changed = bytes.clone();
            changed[at] ^= 1;
            assert!(read_bundle(place, &changed).is_err(), "byte {at}");
        }
        assert!(read_bundle(place, &bytes[1..]).is_err());
    }

    /// `cargo xtask samples` adds new ones.
    #[test]
    fn lines_of_earlier_versions_are_read() {
        for sample in crate::samples("history-line") {
            let BundleLine { kind, id, value } = serde_json::from_str(&sample).expect("a line");
            let again = serde_json::to_string(&BundleLineOut { kind: &kind, id: &id, value: &value });
            assert_eq!(again.expect("JSON"), sample);
        }
    }
}
