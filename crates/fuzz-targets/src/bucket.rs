//! Objects in the bucket, where others may write, too.

use sha2::{Digest, Sha256};
use taco_history::{Catalog, IdIndex, Place, Texts, read_bundle};
use taco_ledger::{Commit, LedgerName, MasterKey, MasterKeys, SharedRng, layout};

const NAME: &str = "blobs/one";

fn keys() -> MasterKeys {
    let key = MasterKey::from_secret("a key that only these tests know").expect("long enough");
    MasterKeys::new(key, Vec::new(), SharedRng::from_seed(1))
}

/// Nothing opens that was not sealed, and nothing that was sealed under another name.
pub fn sealed_objects(data: &[u8]) {
    let keys = keys();
    if let Ok(plain) = keys.open_bytes(NAME, data) {
        assert!(plain.len() < data.len());
        assert!(keys.open_bytes("blobs/other", data).is_err(), "the name is bound into it");
    }
    let _ = keys.needs_rewrap(NAME, data);
    if let Ok(header) = keys.rewrap(NAME, data) {
        let rewrapped = [&header[..], data.get(header.len()..).unwrap_or_default()].concat();
        assert_eq!(keys.open_bytes(NAME, &rewrapped).ok(), keys.open_bytes(NAME, data).ok());
    }
    let mut sealed = keys.seal_bytes(NAME, data);
    assert_eq!(keys.open_bytes(NAME, &sealed).as_deref(), Ok(data), "whatever is sealed opens");
    let at = data.iter().fold(0, |sum, byte| (sum * 31 + usize::from(*byte)) & 0xffff) % sealed.len();
    sealed[at] ^= 1 << (at % 8);
    assert!(keys.open_bytes(NAME, &sealed).is_err(), "byte {at} was altered");
}

/// A commit is the one that was asked for, and is written as what it was read from.
pub fn commits(data: &[u8]) {
    let key = layout::commit(&LedgerName::site(), 1);
    let Ok(commit) = Commit::decode(&key, 1, data) else { return };
    assert_eq!(commit.seq, 1);
    let again = serde_json::to_vec(&commit).expect("plain data");
    assert_eq!(Commit::decode(&key, 1, &again).map(|again| serde_json::to_vec(&again).ok()).ok(), Some(Some(again)));
}

/// Each form of the bytes: as they lie there, and as what they would be once they are decompressed.
fn both_forms(data: &[u8]) -> [Vec<u8>; 2] {
    [data.to_vec(), zstd::bulk::compress(data, 1).expect("memory")]
}

/// Every row of what is read leads somewhere.
pub fn catalogs(data: &[u8]) {
    for bytes in both_forms(data) {
        if let Ok(catalog) = Catalog::decode(&bytes) {
            for row in catalog.rows() {
                catalog.page(row.place);
            }
            let again = Catalog::decode(&catalog.encode().expect("it was read"));
            assert_eq!(again.as_ref(), Ok(&catalog));
        }
        if let (Ok(texts), Ok(plain)) = (Texts::decode(&bytes), serde_json::from_slice::<Vec<String>>(data)) {
            assert!(plain.iter().enumerate().all(|(row, text)| texts.get(row) == text), "{plain:?}");
        }
    }
}

/// Every entry of what is read leads somewhere.
pub fn id_indexes(data: &[u8]) {
    for bytes in both_forms(data) {
        if let Ok(index) = IdIndex::decode(&bytes) {
            assert_eq!(index.iter().count(), index.len());
        }
    }
}

/// A bundle is what its digest says, and otherwise refused.
pub fn stored_bundles(data: &[u8]) {
    let whole: [u8; 32] = Sha256::digest(data).into();
    let mut digest = [0; 8];
    digest.copy_from_slice(&whole[..8]);
    let place = Place { page: 0, offset: 0, length: u32::try_from(data.len()).expect("short"), digest };
    let _ = read_bundle(place, data);
    assert!(read_bundle(Place { digest: [0; 8], ..place }, data).is_err() || digest == [0; 8]);
}
