use super::*;
use crate::layout::{self, LedgerName};
use crate::object_bucket::ObjectBucket;

const NAME: &str = "blobs/site/states/sv-1";

fn key() -> Key {
    layout::blob(&LedgerName::site(), "states", "sv-1")
}

fn master(name: &str) -> MasterKey {
    MasterKey::from_secret(&name.repeat(32)).expect("long enough")
}

fn keys(seed: u64) -> MasterKeys {
    MasterKeys::new(master("a"), Vec::new(), SharedRng::from_seed(seed))
}

fn content(size: usize) -> Vec<u8> {
    (0..size).map(|at| (at * 31 % 251) as u8).collect()
}

fn below(rng: &SharedRng, limit: usize) -> usize {
    (rng.fraction() * limit as f64) as usize
}

fn in_pieces(bytes: &[u8], rng: &SharedRng) -> ByteStream {
    let mut rest = Bytes::copy_from_slice(bytes);
    let mut pieces = Vec::new();
    while !rest.is_empty() {
        pieces.push(Ok(rest.split_to((1 + below(rng, 100_000)).min(rest.len()))));
    }
    stream::iter(pieces).boxed()
}

async fn all(body: ByteStream) -> Result<Vec<u8>, BucketError> {
    Ok(body.try_collect::<Vec<Bytes>>().await?.concat())
}

async fn open_stream(keys: &MasterKeys, sealed: &[u8], rng: &SharedRng) -> Result<Vec<u8>, BucketError> {
    all(keys.open_stream(&key(), in_pieces(sealed, rng)).await?).await
}

/// Opened at once and as a stream: both must say the same.
async fn is_refused(keys: &MasterKeys, sealed: &[u8], rng: &SharedRng) -> bool {
    let (at_once, as_stream) = (keys.open_bytes(NAME, sealed), open_stream(keys, sealed, rng).await);
    assert_eq!(at_once.is_err(), as_stream.is_err());
    at_once.is_err()
}

#[tokio::test]
async fn what_is_sealed_opens_again_at_every_size() {
    let (keys, rng) = (keys(1), SharedRng::from_seed(2));
    for size in [0, 1, PIECE - 1, PIECE, PIECE + 1, 2 * PIECE - 1, 2 * PIECE, 2 * PIECE + 1, 1024 * 1024] {
        let plain = content(size);
        let sealed = keys.seal_bytes(NAME, &plain);
        assert_eq!(sealed.len() as u64, sealed_size(size as u64));
        assert_eq!(plain_size(sealed.len() as u64), Some(size as u64));
        assert!(is_sealed(&sealed));
        assert_eq!(keys.open_bytes(NAME, &sealed).expect("opens"), plain);
        assert_eq!(open_stream(&keys, &sealed, &rng).await.expect("opens"), plain);

        let streamed = all(keys.seal_stream(&key(), in_pieces(&plain, &rng))).await.expect("works");
        assert_eq!(streamed.len(), sealed.len());
        assert_ne!(streamed, sealed, "every object has a data key of its own");
        assert_eq!(keys.open_bytes(NAME, &streamed).expect("opens"), plain);
    }
}

#[tokio::test]
async fn sizes_that_no_sealed_object_has_are_known() {
    let sizes: Vec<u64> = (0..=3 * PIECE as u64).map(sealed_size).collect();
    for size in 0..3 * PIECE as u64 {
        let plain = sizes.binary_search(&size).ok().map(|plain| plain as u64);
        assert_eq!(plain_size(size), plain, "{size}");
    }
}

#[tokio::test]
async fn a_flipped_bit_anywhere_is_refused() {
    let (keys, rng) = (keys(1), SharedRng::from_seed(2));
    for size in [0, 1, 100] {
        let sealed = keys.seal_bytes(NAME, &content(size));
        for at in 0..sealed.len() {
            let mut changed = sealed.clone();
            changed[at] ^= 1 << (at % 8);
            assert!(is_refused(&keys, &changed, &rng).await, "byte {at} of {size}");
        }
    }
    let sealed = keys.seal_bytes(NAME, &content(3 * PIECE + 5));
    for _ in 0..200 {
        let mut changed = sealed.clone();
        let at = below(&rng, changed.len());
        changed[at] ^= 1 << below(&rng, 8);
        assert!(is_refused(&keys, &changed, &rng).await, "byte {at}");
    }
}

#[tokio::test]
async fn what_was_cut_short_or_made_longer_is_refused() {
    let (keys, rng) = (keys(1), SharedRng::from_seed(2));
    for size in [0, 1, PIECE, 3 * PIECE, 3 * PIECE + 5] {
        let sealed = keys.seal_bytes(NAME, &content(size));
        let borders = (0..=4).map(|number| HEADER + number * SEALED_PIECE);
        let around = borders.flat_map(|border| [border - 1, border, border + 1, border + TAG]);
        let mut cuts: Vec<usize> = around.chain([0, 1, 8, 9, HEADER / 2]).collect();
        cuts.extend((0..20).map(|_| below(&rng, sealed.len())));
        for cut in cuts.into_iter().filter(|cut| *cut < sealed.len()) {
            assert!(is_refused(&keys, &sealed[..cut], &rng).await, "{cut} of {}", sealed.len());
        }
        for more in [1, TAG, TAG + 1, SEALED_PIECE] {
            let longer = [&sealed[..], &vec![0; more]].concat();
            assert!(is_refused(&keys, &longer, &rng).await, "{more} more than {}", sealed.len());
        }
    }
}

#[tokio::test]
async fn pieces_that_were_swapped_repeated_or_left_out_are_refused() {
    let (keys, rng) = (keys(1), SharedRng::from_seed(2));
    let sealed = keys.seal_bytes(NAME, &content(4 * PIECE));
    let pieces: Vec<&[u8]> = sealed[HEADER..].chunks(SEALED_PIECE).collect();
    for order in [&[1, 0, 2, 3][..], &[0, 1, 3, 2], &[0, 0, 1, 2, 3], &[0, 1, 3], &[1, 2, 3], &[3], &[0, 1, 2, 3, 3]] {
        let body: Vec<&[u8]> = order.iter().map(|number| pieces[*number]).collect();
        let changed = [&sealed[..HEADER], &body.concat()].concat();
        assert!(is_refused(&keys, &changed, &rng).await, "{order:?}");
    }
    let other = keys.seal_bytes(NAME, &content(4 * PIECE));
    let mixed = [&sealed[..HEADER + SEALED_PIECE], &other[HEADER + SEALED_PIECE..]].concat();
    assert!(is_refused(&keys, &mixed, &rng).await, "pieces of another version of the same object");
}

#[test]
fn a_key_that_is_missing_is_named() {
    let sealed = keys(1).seal_bytes(NAME, b"secret");
    let others = MasterKeys::new(master("b"), vec![master("c")], SharedRng::from_seed(1));
    let error = others.open_bytes(NAME, &sealed).expect_err("no key");
    assert_eq!(error.why, SealErrorKind::MissingKey(master("a").id()));
    assert!(error.to_string().starts_with(&format!("{NAME} is sealed under master key {}", master("a").id())));
}

#[test]
fn another_name_or_no_seal_at_all_is_refused() {
    let keys = keys(1);
    let sealed = keys.seal_bytes(NAME, b"secret");
    let error = keys.open_bytes("blobs/site/states/sv-2", &sealed).expect_err("moved");
    assert_eq!(error.why, SealErrorKind::BrokenHeader);
    for nothing in [&b""[..], b"{}", &MAGIC[..7]] {
        assert_eq!(keys.open_bytes(NAME, nothing).expect_err("plain").why, SealErrorKind::NotSealed);
    }
    let newer = [&MAGIC[..], &[2], &sealed[9..]].concat();
    assert_eq!(keys.open_bytes(NAME, &newer).expect_err("newer").why, SealErrorKind::NewerVersion(2));
}

#[tokio::test]
async fn ranges_are_slices_of_the_whole() {
    let (keys, rng) = (keys(1), SharedRng::from_seed(2));
    let bucket = ObjectBucket::in_memory();
    for size in [0, 1, PIECE, PIECE + 1, 5 * PIECE, 5 * PIECE + 77] {
        let plain = content(size);
        bucket.put(&key(), keys.seal_bytes(NAME, &plain).into()).await.expect("works");
        for _ in 0..60 {
            let start = below(&rng, size + 10);
            let end = start + below(&rng, size + 10);
            let range = start as u64..end as u64;
            let read = keys.open_range(&bucket, &key(), range).await.expect("works").expect("there");
            assert_eq!(read.size, size as u64);
            let expected = &plain[start.min(size)..end.min(size)];
            assert_eq!(all(read.body).await.expect("opens"), expected, "{start}..{end} of {size}");
        }
    }
    let nowhere = layout::blob(&LedgerName::site(), "states", "sv-9");
    assert!(keys.open_range(&bucket, &nowhere, 0..1).await.expect("works").is_none());
}

#[tokio::test]
async fn a_range_of_something_altered_or_cut_short_is_refused() {
    let keys = keys(1);
    let bucket = ObjectBucket::in_memory();
    let sealed = keys.seal_bytes(NAME, &content(3 * PIECE));
    let border = HEADER + 2 * SEALED_PIECE;
    let mut altered = sealed.clone();
    altered[border - 1] ^= 1;
    for (broken, range) in [
        (&altered[..], PIECE..PIECE + 1),
        (&sealed[..border], PIECE..PIECE + 1),
        (&sealed[..border + 20], 2 * PIECE..2 * PIECE + 1),
        (&sealed[..border + TAG], 0..1),
        (&sealed[..HEADER], 0..1),
    ] {
        bucket.put(&key(), Bytes::copy_from_slice(broken)).await.expect("works");
        let range = range.start as u64..range.end as u64;
        let opened = match keys.open_range(&bucket, &key(), range.clone()).await {
            Ok(download) => all(download.expect("there").body).await,
            Err(error) => Err(error),
        };
        let error = opened.expect_err("broken");
        assert!(error.to_string().contains(NAME), "{error}");
    }
}

#[tokio::test]
async fn a_new_master_key_needs_a_new_header_only() {
    let rng = SharedRng::from_seed(2);
    let plain = content(2 * PIECE + 1);
    let sealed = keys(1).seal_bytes(NAME, &plain);
    let rotated = MasterKeys::new(master("b"), vec![master("a")], SharedRng::from_seed(3));
    assert_eq!(rotated.open_bytes(NAME, &sealed).expect("older keys still open"), plain);
    assert!(rotated.needs_rewrap(NAME, &sealed).expect("sealed"));

    let header = rotated.rewrap(NAME, &sealed[..HEADER]).expect("works");
    assert!(!rotated.needs_rewrap(NAME, &header).expect("sealed"));
    let rewrapped = [&header[..], &sealed[HEADER..]].concat();
    let alone = MasterKeys::new(master("b"), Vec::new(), SharedRng::from_seed(4));
    assert_eq!(alone.open_bytes(NAME, &rewrapped).expect("opens"), plain);
    assert_eq!(open_stream(&alone, &rewrapped, &rng).await.expect("opens"), plain);
    assert!(is_refused(&keys(1), &rewrapped, &rng).await);
    assert!(alone.rewrap(NAME, &sealed).is_err(), "without the old key");
    assert!(rotated.rewrap("blobs/site/states/sv-2", &sealed).is_err(), "under another name");
}

#[test]
fn a_weak_secret_is_refused_and_no_secret_is_ever_shown() {
    assert_eq!(MasterKey::from_secret("  short \n").expect_err("weak"), WeakSecret(5));
    let secret = "0123456789abcdef0123456789abcdef";
    let key = MasterKey::from_secret(secret).expect("long enough");
    assert_eq!(MasterKey::from_secret(&format!("{secret}\n")).expect("the same").id(), key.id());
    let keys = MasterKeys::new(key, Vec::new(), SharedRng::from_seed(1));
    let shown = format!("{keys:?}");
    assert!(shown.contains(&keys.current().to_string()) && !shown.contains("0123"), "{shown}");
}

#[tokio::test]
async fn random_content_in_random_pieces_comes_back() {
    for seed in 0..50 {
        let (keys, rng) = (keys(seed), SharedRng::from_seed(seed + 1_000));
        let mut plain = vec![0; below(&rng, 4 * PIECE)];
        rng.fill(&mut plain);
        let sealed = all(keys.seal_stream(&key(), in_pieces(&plain, &rng))).await.expect("works");
        assert_eq!(open_stream(&keys, &sealed, &rng).await.expect("opens"), plain, "seed {seed}");
    }
}

#[test]
fn what_the_first_version_sealed_opens_for_ever() {
    let sealed = "937461636f0d0a1a01acf91fdc3b159584c1226df6eccfc4caa8cd7b6385e35bc7d48ac60c6782d2b65a9b5652234c0c\
        4e11ad73c0049cc1f9b012c27d2d5c14c7a614847cc2d97f701109618054743dc5e24d2aa2115056a8ceb3a4e74915ea66f0fd42bc57\
        90665b0378c98e4675a56cd2526b95fa899ac68b92";
    let sealed = hex::decode(sealed).expect("hexadecimal");
    assert_eq!(master("a").id().to_string(), "acf91fdc");
    assert_eq!(keys(99).open_bytes(NAME, &sealed).expect("opens"), b"sealed in the year 2026");
}
