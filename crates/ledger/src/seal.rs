//! Encryption at rest: what the bucket holds of a sealed object is of no use without a master key.
//!
//! Every object has a random data key of its own, which lies in the object's header, wrapped by a master key. So a new
//! master key means new headers and not new ciphertext. The content is cut into pieces of 64 KiB, each sealed with
//! AES-256-GCM under a nonce that counts them and marks the last (the STREAM construction), so an object of any size
//! flows past in little memory, a range of it can be opened alone, and a piece that was altered, swapped, dropped or
//! cut off is refused before a byte of it is handed out. The object's name is bound into all of it: a sealed object
//! that was copied to another key does not open.
//!
//! ```text
//! magic 8 | version 1 | master key id 4 | salt 16 | wrapped data key 32 + 16 | nonce prefix 7 | pieces …
//! piece: up to 65,536 bytes and a tag of 16; its nonce: prefix 7 | number 4 | 1 if it is the last
//! ```
//!
//! Why so, and what it does not protect against: `docs/decisions/0003-encryption-at-rest.md`.

use std::fmt;
use std::ops::Range;

use aws_lc_rs::aead::{AES_256_GCM, Aad, LessSafeKey, Nonce, UnboundKey};
use aws_lc_rs::hkdf;
use bytes::{Bytes, BytesMut};
use futures::{StreamExt, TryStreamExt, stream};

use crate::bucket::{Bucket, BucketError, ByteStream, Download, Key, Trouble};
use crate::byte_stream;
use crate::clock::Dice;

/// Plain bytes in a piece; only the last has fewer.
pub const PIECE: usize = 64 * 1024;

/// Bytes before the first piece.
pub const HEADER: usize = 84;

const TAG: usize = 16;
const SEALED_PIECE: usize = PIECE + TAG;
const DATA_KEY: usize = 32;

/// No text begins like this, and a transfer that mangles line ends is noticed.
const MAGIC: [u8; 8] = *b"\x93taco\r\n\x1a";
const VERSION: u8 = 1;

/// A secret shorter than this could be guessed.
const SHORTEST_SECRET: usize = 32;

/// The name of a master key, which tells nothing about it. Every sealed object bears one in its header.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct KeyId([u8; 4]);

impl fmt::Display for KeyId {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(&hex::encode(self.0))
    }
}

impl fmt::Debug for KeyId {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{self}")
    }
}

/// A key that wraps data keys and never leaves the servers.
pub struct MasterKey {
    id: KeyId,
    root: hkdf::Prk,
}

/// A secret that is too short to be random.
#[derive(Clone, PartialEq, Eq, thiserror::Error, Debug)]
#[error(
    "a master key needs at least {SHORTEST_SECRET} random characters and this one has {0}: try `openssl rand -hex 32`"
)]
pub struct WeakSecret(usize);

impl MasterKey {
    /// From a random text; blanks around it do not count, since files like to end in a line break.
    pub fn from_secret(secret: &str) -> Result<Self, WeakSecret> {
        let secret = secret.trim();
        if secret.len() < SHORTEST_SECRET {
            return Err(WeakSecret(secret.len()));
        }
        let root = hkdf::Salt::new(hkdf::HKDF_SHA256, b"taco seal 1").extract(secret.as_bytes());
        let mut id = [0; 32];
        let derived = root.expand(&[b"key id"], hkdf::HKDF_SHA256).and_then(|okm| okm.fill(&mut id));
        derived.expect("32 bytes can be derived");
        Ok(Self { id: KeyId([id[0], id[1], id[2], id[3]]), root })
    }

    pub fn id(&self) -> KeyId {
        self.id
    }

    /// A key for one header only. With a fresh key for each, no nonce can ever meet the same key twice, however many
    /// objects there are.
    fn wrapping_key(&self, salt: &[u8]) -> LessSafeKey {
        let info: [&[u8]; 2] = [b"wrap", salt];
        let key = self.root.expand(&info, &AES_256_GCM).expect("32 bytes can be derived");
        LessSafeKey::new(key.into())
    }
}

impl fmt::Debug for MasterKey {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "MasterKey({})", self.id)
    }
}

/// Why something sealed could not be opened. The object is named, its content never.
#[derive(Clone, PartialEq, Eq, thiserror::Error, Debug)]
#[error("{object} {why}")]
pub struct SealError {
    pub object: String,
    pub why: SealTrouble,
}

#[derive(Clone, Copy, PartialEq, Eq, thiserror::Error, Debug)]
pub enum SealTrouble {
    #[error("is not sealed")]
    NotSealed,
    #[error(
        "is sealed in version {0} of the format, and this version of taco knows version {VERSION}: start a newer taco"
    )]
    NewerVersion(u8),
    #[error("is sealed under master key {0}, which is not among the keys that this server was given")]
    MissingKey(KeyId),
    #[error("does not open: its header was altered, or it was sealed under another name")]
    BrokenHeader,
    #[error("does not open: it was altered or cut short at byte {at}")]
    Broken { at: u64 },
}

impl SealError {
    fn new(object: &str, why: SealTrouble) -> Self {
        Self { object: object.to_owned(), why }
    }
}

/// The key that seals from now on, and older ones that still open.
#[derive(Debug)]
pub struct MasterKeys {
    current: MasterKey,
    older: Vec<MasterKey>,
    /// Data keys come from here, so outside of tests it is seeded by the operating system.
    dice: Dice,
}

impl MasterKeys {
    pub fn new(current: MasterKey, older: Vec<MasterKey>, dice: Dice) -> Self {
        Self { current, older, dice }
    }

    /// The key that seals.
    pub fn current(&self) -> KeyId {
        self.current.id
    }

    /// Seals a small thing that will be known as `name`.
    pub fn seal_bytes(&self, name: &str, plain: &[u8]) -> Vec<u8> {
        let (header, pieces) = self.new_header(name);
        let mut sealed = Vec::with_capacity(sealed_size(plain.len() as u64) as usize);
        sealed.extend_from_slice(&header);
        let last = plain.len().div_ceil(PIECE).max(1) - 1;
        for number in 0..=last {
            let end = plain.len().min((number + 1) * PIECE);
            pieces.seal(&plain[number * PIECE..end], number as u64, number == last, &mut sealed);
        }
        sealed
    }

    /// Opens what [`Self::seal_bytes`] or [`Self::seal_stream`] made under the same name.
    pub fn open_bytes(&self, name: &str, sealed: &[u8]) -> Result<Vec<u8>, SealError> {
        let pieces = self.open_header(name, sealed)?;
        let body = &sealed[HEADER..];
        let last = body.len().div_ceil(SEALED_PIECE).max(1) - 1;
        let mut plain = Vec::with_capacity(body.len());
        for number in 0..=last {
            let end = body.len().min((number + 1) * SEALED_PIECE);
            let mut piece = BytesMut::from(&body[number * SEALED_PIECE..end]);
            pieces.open(name, &mut piece, number as u64, number == last)?;
            plain.extend_from_slice(&piece);
        }
        Ok(plain)
    }

    /// Seals what flows past, for an object that will lie at `key`.
    pub fn seal_stream(&self, key: &Key, plain: ByteStream) -> ByteStream {
        struct Sealing {
            plain: ByteStream,
            pieces: Pieces,
            number: u64,
            waiting: BytesMut,
        }
        let (header, pieces) = self.new_header(key.as_str());
        let begin = Sealing { plain, pieces, number: 0, waiting: BytesMut::new() };
        let body = stream::try_unfold(Some(begin), |state| async {
            let Some(mut state) = state else { return Ok(None) };
            // Whether a piece is the last shows only when more follows, or nothing.
            let mut last = false;
            while state.waiting.len() <= PIECE && !last {
                match state.plain.try_next().await? {
                    Some(bytes) => state.waiting.extend_from_slice(&bytes),
                    None => last = true,
                }
            }
            let piece = state.waiting.split_to(state.waiting.len().min(PIECE));
            let mut sealed = Vec::with_capacity(piece.len() + TAG);
            state.pieces.seal(&piece, state.number, last, &mut sealed);
            state.number += 1;
            Ok(Some((Bytes::from(sealed), (!last).then_some(state))))
        });
        stream::once(async move { Ok(Bytes::copy_from_slice(&header)) }).chain(body).boxed()
    }

    /// Opens what flows past. Every piece is proven before it is handed out, and the end too: a stream that was cut
    /// short ends in an error.
    pub async fn open_stream(&self, key: &Key, sealed: ByteStream) -> Result<ByteStream, BucketError> {
        let (header, pieces) = byte_stream::split(sealed, HEADER).await?;
        let opener = self.open_header(key.as_str(), &header).map_err(|error| explain(key, &error))?;
        Ok(opener.open_stream(key.clone(), pieces, 0, None))
    }

    /// A range of a sealed object's plain bytes, read with the header and the pieces it lies in and nothing else. A
    /// range that reaches behind the end is cut there. It proves the bytes, and the object's end only if it reaches it.
    pub async fn open_range(
        &self,
        bucket: &dyn Bucket,
        key: &Key,
        range: Range<u64>,
    ) -> Result<Option<Download>, BucketError> {
        let Some(beginning) = bucket.download(key, Some(0..HEADER as u64)).await? else { return Ok(None) };
        let (header, _) = byte_stream::split(beginning.body, HEADER).await?;
        self.open_range_after(bucket, key, &header, beginning.size, range).await
    }

    /// Like [`Self::open_range`], for who has read the header and the object's size already.
    pub(crate) async fn open_range_after(
        &self,
        bucket: &dyn Bucket,
        key: &Key,
        header: &[u8],
        sealed_size: u64,
        range: Range<u64>,
    ) -> Result<Option<Download>, BucketError> {
        let pieces = self.open_header(key.as_str(), header).map_err(|error| explain(key, &error))?;
        let Some(size) = plain_size(sealed_size) else {
            let why = SealTrouble::Broken { at: sealed_size };
            return Err(explain(key, &SealError::new(key.as_str(), why)));
        };
        let range = range.start.min(size)..range.end.min(size);
        if range.is_empty() {
            return Ok(Some(Download { size, body: stream::empty().boxed() }));
        }
        let (first, last) = (range.start / PIECE as u64, (range.end - 1) / PIECE as u64);
        let place = |number: u64| HEADER as u64 + number * SEALED_PIECE as u64;
        let wanted = place(first)..place(last + 1).min(sealed_size);
        let Some(download) = bucket.download(key, Some(wanted)).await? else { return Ok(None) };
        let body = pieces.open_stream(key.clone(), download.body, first, Some((last + 1, size)));
        let begin = first * PIECE as u64;
        let body = byte_stream::part(body, range.start - begin..range.end - begin);
        Ok(Some(Download { size, body }))
    }

    /// Whether the object that begins with `header` is sealed under an older master key.
    pub fn needs_rewrap(&self, name: &str, header: &[u8]) -> Result<bool, SealError> {
        Ok(Header::read(name, header)?.key_id != self.current.id)
    }

    /// A new header for the same object, under the current master key. What follows the header stays as it is.
    pub fn rewrap(&self, name: &str, header: &[u8]) -> Result<[u8; HEADER], SealError> {
        let header = Header::read(name, header)?;
        let data_key = self.unwrap(name, &header)?;
        Ok(self.wrap(name, &data_key, header.prefix))
    }

    fn new_header(&self, name: &str) -> ([u8; HEADER], Pieces) {
        let (mut data_key, mut prefix) = ([0; DATA_KEY], [0; 7]);
        self.dice.fill(&mut data_key);
        self.dice.fill(&mut prefix);
        (self.wrap(name, &data_key, prefix), Pieces::new(name, &data_key, prefix))
    }

    fn open_header(&self, name: &str, sealed: &[u8]) -> Result<Pieces, SealError> {
        let header = Header::read(name, sealed)?;
        Ok(Pieces::new(name, &self.unwrap(name, &header)?, header.prefix))
    }

    fn wrap(&self, name: &str, data_key: &[u8; DATA_KEY], prefix: [u8; 7]) -> [u8; HEADER] {
        let mut salt = [0; 16];
        self.dice.fill(&mut salt);
        let mut wrapped = *data_key;
        let key = self.current.wrapping_key(&salt);
        let tag = key
            .seal_in_place_separate_tag(only_nonce(), Header::bound(name, prefix), &mut wrapped)
            .expect("a key of 32 bytes can be sealed");
        let mut header = [0; HEADER];
        let mut rest = &mut header[..];
        for part in [&MAGIC[..], &[VERSION], &self.current.id.0, &salt, &wrapped, tag.as_ref(), &prefix] {
            let (here, after) = rest.split_at_mut(part.len());
            here.copy_from_slice(part);
            rest = after;
        }
        header
    }

    fn unwrap(&self, name: &str, header: &Header) -> Result<[u8; DATA_KEY], SealError> {
        let key = std::iter::once(&self.current)
            .chain(&self.older)
            .find(|key| key.id == header.key_id)
            .ok_or_else(|| SealError::new(name, SealTrouble::MissingKey(header.key_id)))?;
        let mut data_key = header.wrapped;
        let opened = key.wrapping_key(&header.salt).open_in_place_separate_tag(
            only_nonce(),
            Header::bound(name, header.prefix),
            &header.tag,
            &mut data_key,
        );
        match opened {
            Ok(_) => Ok(data_key),
            Err(_) => Err(SealError::new(name, SealTrouble::BrokenHeader)),
        }
    }
}

fn explain(key: &Key, error: &SealError) -> BucketError {
    BucketError::new("open", key, Trouble::Refused, error.why.to_string())
}

/// The nonce under a key that seals one message only.
fn only_nonce() -> Nonce {
    Nonce::assume_unique_for_key([0; 12])
}

/// Whether an object that begins so is a sealed one.
pub fn is_sealed(beginning: &[u8]) -> bool {
    beginning.starts_with(&MAGIC)
}

/// The size of what is sealed in an object of `sealed_size` bytes; `None` if no sealed object has this size.
pub fn plain_size(sealed_size: u64) -> Option<u64> {
    let body = sealed_size.checked_sub(HEADER as u64)?;
    let pieces = body.div_ceil(SEALED_PIECE as u64).max(1);
    let plain = body.checked_sub(pieces * TAG as u64)?;
    (self::sealed_size(plain) == sealed_size).then_some(plain)
}

/// The size of the object that holds `plain_size` bytes sealed.
pub fn sealed_size(plain_size: u64) -> u64 {
    HEADER as u64 + plain_size + plain_size.div_ceil(PIECE as u64).max(1) * TAG as u64
}

/// What stands before the pieces.
struct Header {
    key_id: KeyId,
    salt: [u8; 16],
    wrapped: [u8; DATA_KEY],
    tag: [u8; TAG],
    prefix: [u8; 7],
}

impl Header {
    fn read(name: &str, sealed: &[u8]) -> Result<Self, SealError> {
        let broken = |why| SealError::new(name, why);
        let rest = sealed.strip_prefix(&MAGIC).ok_or(broken(SealTrouble::NotSealed))?;
        match rest.first() {
            Some(&VERSION) => {}
            Some(&other) => return Err(broken(SealTrouble::NewerVersion(other))),
            None => return Err(broken(SealTrouble::BrokenHeader)),
        }
        let mut rest = &rest[1..];
        let mut read = || {
            Some(Self {
                key_id: KeyId(take(&mut rest)?),
                salt: take(&mut rest)?,
                wrapped: take(&mut rest)?,
                tag: take(&mut rest)?,
                prefix: take(&mut rest)?,
            })
        };
        read().ok_or(broken(SealTrouble::BrokenHeader))
    }

    /// What the wrapped key is bound to. The master key's id is not part of it: a wrong one opens nothing anyway.
    fn bound(name: &str, prefix: [u8; 7]) -> Aad<Vec<u8>> {
        Aad::from([b"taco seal 1 data key\0", &prefix[..], name.as_bytes()].concat())
    }
}

fn take<const LENGTH: usize>(rest: &mut &[u8]) -> Option<[u8; LENGTH]> {
    let (taken, after) = rest.split_first_chunk()?;
    *rest = after;
    Some(*taken)
}

/// Seals and opens the pieces of one object.
struct Pieces {
    key: LessSafeKey,
    prefix: [u8; 7],
    /// What every piece is bound to. It names no master key, so that a new one leaves the pieces as they are.
    bound: Vec<u8>,
}

impl Pieces {
    fn new(name: &str, data_key: &[u8; DATA_KEY], prefix: [u8; 7]) -> Self {
        let key = UnboundKey::new(&AES_256_GCM, data_key).expect("a data key has 32 bytes");
        let bound = [b"taco seal 1 piece\0", name.as_bytes()].concat();
        Self { key: LessSafeKey::new(key), prefix, bound }
    }

    fn nonce(&self, number: u64, last: bool) -> Nonce {
        let number = u32::try_from(number).expect("no bucket takes objects of 256 TiB");
        let mut nonce = [0; 12];
        nonce[..7].copy_from_slice(&self.prefix);
        nonce[7..11].copy_from_slice(&number.to_be_bytes());
        nonce[11] = u8::from(last);
        Nonce::assume_unique_for_key(nonce)
    }

    fn seal(&self, plain: &[u8], number: u64, last: bool, sealed: &mut Vec<u8>) {
        let begin = sealed.len();
        sealed.extend_from_slice(plain);
        let nonce = self.nonce(number, last);
        let tag = self
            .key
            .seal_in_place_separate_tag(nonce, Aad::from(&self.bound), &mut sealed[begin..])
            .expect("64 KiB can be sealed");
        sealed.extend_from_slice(tag.as_ref());
    }

    /// Turns a sealed piece into the plain one.
    fn open(&self, name: &str, piece: &mut BytesMut, number: u64, last: bool) -> Result<(), SealError> {
        let broken = || {
            let at = HEADER as u64 + number * SEALED_PIECE as u64;
            SealError::new(name, SealTrouble::Broken { at })
        };
        // Only an object without content has an empty piece.
        if piece.len() < TAG || (piece.len() == TAG && number > 0) {
            return Err(broken());
        }
        let nonce = self.nonce(number, last);
        let plain = self.key.open_in_place(nonce, Aad::from(&self.bound), piece).map_err(|_| broken())?.len();
        piece.truncate(plain);
        Ok(())
    }

    /// Opens the pieces from number `first` on. Where only some were asked for, `until` tells the number after them
    /// and the plain size of the whole object.
    fn open_stream(self, key: Key, sealed: ByteStream, first: u64, until: Option<(u64, u64)>) -> ByteStream {
        struct Opening {
            sealed: ByteStream,
            pieces: Pieces,
            key: Key,
            number: u64,
            waiting: BytesMut,
        }
        let begin = Opening { sealed, pieces: self, key, number: first, waiting: BytesMut::new() };
        stream::try_unfold(Some(begin), move |state| async move {
            let Some(mut state) = state else { return Ok(None) };
            let mut ended = false;
            while state.waiting.len() <= SEALED_PIECE && !ended {
                match state.sealed.try_next().await? {
                    Some(bytes) => state.waiting.extend_from_slice(&bytes),
                    None => ended = true,
                }
            }
            let last = match until {
                None => ended,
                Some((_, size)) => (state.number + 1) * PIECE as u64 >= size,
            };
            let mut piece = state.waiting.split_to(state.waiting.len().min(SEALED_PIECE));
            state
                .pieces
                .open(state.key.as_str(), &mut piece, state.number, last)
                .map_err(|error| explain(&state.key, &error))?;
            state.number += 1;
            let done = match until {
                None => last,
                Some((after, _)) => state.number == after,
            };
            Ok(Some((piece.freeze(), (!done).then_some(state))))
        })
        .boxed()
    }
}

#[cfg(test)]
mod tests {
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
        MasterKeys::new(master("a"), Vec::new(), Dice::from_seed(seed))
    }

    fn content(size: usize) -> Vec<u8> {
        (0..size).map(|at| (at * 31 % 251) as u8).collect()
    }

    fn below(dice: &Dice, limit: usize) -> usize {
        (dice.fraction() * limit as f64) as usize
    }

    fn in_pieces(bytes: &[u8], dice: &Dice) -> ByteStream {
        let mut rest = Bytes::copy_from_slice(bytes);
        let mut pieces = Vec::new();
        while !rest.is_empty() {
            pieces.push(Ok(rest.split_to((1 + below(dice, 100_000)).min(rest.len()))));
        }
        stream::iter(pieces).boxed()
    }

    async fn all(body: ByteStream) -> Result<Vec<u8>, BucketError> {
        Ok(body.try_collect::<Vec<Bytes>>().await?.concat())
    }

    async fn open_stream(keys: &MasterKeys, sealed: &[u8], dice: &Dice) -> Result<Vec<u8>, BucketError> {
        all(keys.open_stream(&key(), in_pieces(sealed, dice)).await?).await
    }

    /// Opened at once and as a stream: both must say the same.
    async fn is_refused(keys: &MasterKeys, sealed: &[u8], dice: &Dice) -> bool {
        let (at_once, as_stream) = (keys.open_bytes(NAME, sealed), open_stream(keys, sealed, dice).await);
        assert_eq!(at_once.is_err(), as_stream.is_err());
        at_once.is_err()
    }

    #[tokio::test]
    async fn what_is_sealed_opens_again_at_every_size() {
        let (keys, dice) = (keys(1), Dice::from_seed(2));
        for size in [0, 1, PIECE - 1, PIECE, PIECE + 1, 2 * PIECE - 1, 2 * PIECE, 2 * PIECE + 1, 1024 * 1024] {
            let plain = content(size);
            let sealed = keys.seal_bytes(NAME, &plain);
            assert_eq!(sealed.len() as u64, sealed_size(size as u64));
            assert_eq!(plain_size(sealed.len() as u64), Some(size as u64));
            assert!(is_sealed(&sealed));
            assert_eq!(keys.open_bytes(NAME, &sealed).expect("opens"), plain);
            assert_eq!(open_stream(&keys, &sealed, &dice).await.expect("opens"), plain);

            let streamed = all(keys.seal_stream(&key(), in_pieces(&plain, &dice))).await.expect("works");
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
        let (keys, dice) = (keys(1), Dice::from_seed(2));
        for size in [0, 1, 100] {
            let sealed = keys.seal_bytes(NAME, &content(size));
            for at in 0..sealed.len() {
                let mut changed = sealed.clone();
                changed[at] ^= 1 << (at % 8);
                assert!(is_refused(&keys, &changed, &dice).await, "byte {at} of {size}");
            }
        }
        let sealed = keys.seal_bytes(NAME, &content(3 * PIECE + 5));
        for _ in 0..200 {
            let mut changed = sealed.clone();
            let at = below(&dice, changed.len());
            changed[at] ^= 1 << below(&dice, 8);
            assert!(is_refused(&keys, &changed, &dice).await, "byte {at}");
        }
    }

    #[tokio::test]
    async fn what_was_cut_short_or_made_longer_is_refused() {
        let (keys, dice) = (keys(1), Dice::from_seed(2));
        for size in [0, 1, PIECE, 3 * PIECE, 3 * PIECE + 5] {
            let sealed = keys.seal_bytes(NAME, &content(size));
            let borders = (0..=4).map(|number| HEADER + number * SEALED_PIECE);
            let around = borders.flat_map(|border| [border - 1, border, border + 1, border + TAG]);
            let mut cuts: Vec<usize> = around.chain([0, 1, 8, 9, HEADER / 2]).collect();
            cuts.extend((0..20).map(|_| below(&dice, sealed.len())));
            for cut in cuts.into_iter().filter(|cut| *cut < sealed.len()) {
                assert!(is_refused(&keys, &sealed[..cut], &dice).await, "{cut} of {}", sealed.len());
            }
            for more in [1, TAG, TAG + 1, SEALED_PIECE] {
                let longer = [&sealed[..], &vec![0; more]].concat();
                assert!(is_refused(&keys, &longer, &dice).await, "{more} more than {}", sealed.len());
            }
        }
    }

    #[tokio::test]
    async fn pieces_that_were_swapped_repeated_or_left_out_are_refused() {
        let (keys, dice) = (keys(1), Dice::from_seed(2));
        let sealed = keys.seal_bytes(NAME, &content(4 * PIECE));
        let pieces: Vec<&[u8]> = sealed[HEADER..].chunks(SEALED_PIECE).collect();
        for order in
            [&[1, 0, 2, 3][..], &[0, 1, 3, 2], &[0, 0, 1, 2, 3], &[0, 1, 3], &[1, 2, 3], &[3], &[0, 1, 2, 3, 3]]
        {
            let body: Vec<&[u8]> = order.iter().map(|number| pieces[*number]).collect();
            let changed = [&sealed[..HEADER], &body.concat()].concat();
            assert!(is_refused(&keys, &changed, &dice).await, "{order:?}");
        }
        let other = keys.seal_bytes(NAME, &content(4 * PIECE));
        let mixed = [&sealed[..HEADER + SEALED_PIECE], &other[HEADER + SEALED_PIECE..]].concat();
        assert!(is_refused(&keys, &mixed, &dice).await, "pieces of another version of the same object");
    }

    #[test]
    fn a_key_that_is_missing_is_named() {
        let sealed = keys(1).seal_bytes(NAME, b"secret");
        let others = MasterKeys::new(master("b"), vec![master("c")], Dice::from_seed(1));
        let error = others.open_bytes(NAME, &sealed).expect_err("no key");
        assert_eq!(error.why, SealTrouble::MissingKey(master("a").id()));
        assert!(error.to_string().starts_with(&format!("{NAME} is sealed under master key {}", master("a").id())));
    }

    #[test]
    fn another_name_or_no_seal_at_all_is_refused() {
        let keys = keys(1);
        let sealed = keys.seal_bytes(NAME, b"secret");
        let error = keys.open_bytes("blobs/site/states/sv-2", &sealed).expect_err("moved");
        assert_eq!(error.why, SealTrouble::BrokenHeader);
        for nothing in [&b""[..], b"{}", &MAGIC[..7]] {
            assert_eq!(keys.open_bytes(NAME, nothing).expect_err("plain").why, SealTrouble::NotSealed);
        }
        let newer = [&MAGIC[..], &[2], &sealed[9..]].concat();
        assert_eq!(keys.open_bytes(NAME, &newer).expect_err("newer").why, SealTrouble::NewerVersion(2));
    }

    #[tokio::test]
    async fn ranges_are_slices_of_the_whole() {
        let (keys, dice) = (keys(1), Dice::from_seed(2));
        let bucket = ObjectBucket::in_memory();
        for size in [0, 1, PIECE, PIECE + 1, 5 * PIECE, 5 * PIECE + 77] {
            let plain = content(size);
            bucket.put(&key(), keys.seal_bytes(NAME, &plain).into()).await.expect("works");
            for _ in 0..60 {
                let start = below(&dice, size + 10);
                let end = start + below(&dice, size + 10);
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
        let dice = Dice::from_seed(2);
        let plain = content(2 * PIECE + 1);
        let sealed = keys(1).seal_bytes(NAME, &plain);
        let rotated = MasterKeys::new(master("b"), vec![master("a")], Dice::from_seed(3));
        assert_eq!(rotated.open_bytes(NAME, &sealed).expect("older keys still open"), plain);
        assert!(rotated.needs_rewrap(NAME, &sealed).expect("sealed"));

        let header = rotated.rewrap(NAME, &sealed[..HEADER]).expect("works");
        assert!(!rotated.needs_rewrap(NAME, &header).expect("sealed"));
        let rewrapped = [&header[..], &sealed[HEADER..]].concat();
        let alone = MasterKeys::new(master("b"), Vec::new(), Dice::from_seed(4));
        assert_eq!(alone.open_bytes(NAME, &rewrapped).expect("opens"), plain);
        assert_eq!(open_stream(&alone, &rewrapped, &dice).await.expect("opens"), plain);
        assert!(is_refused(&keys(1), &rewrapped, &dice).await);
        assert!(alone.rewrap(NAME, &sealed).is_err(), "without the old key");
        assert!(rotated.rewrap("blobs/site/states/sv-2", &sealed).is_err(), "under another name");
    }

    #[test]
    fn a_weak_secret_is_refused_and_no_secret_is_ever_shown() {
        assert_eq!(MasterKey::from_secret("  short \n").expect_err("weak"), WeakSecret(5));
        let secret = "0123456789abcdef0123456789abcdef";
        let key = MasterKey::from_secret(secret).expect("long enough");
        assert_eq!(MasterKey::from_secret(&format!("{secret}\n")).expect("the same").id(), key.id());
        let keys = MasterKeys::new(key, Vec::new(), Dice::from_seed(1));
        let shown = format!("{keys:?}");
        assert!(shown.contains(&keys.current().to_string()) && !shown.contains("0123"), "{shown}");
    }

    #[tokio::test]
    async fn random_content_in_random_pieces_comes_back() {
        for seed in 0..50 {
            let (keys, dice) = (keys(seed), Dice::from_seed(seed + 1_000));
            let mut plain = vec![0; below(&dice, 4 * PIECE)];
            dice.fill(&mut plain);
            let sealed = all(keys.seal_stream(&key(), in_pieces(&plain, &dice))).await.expect("works");
            assert_eq!(open_stream(&keys, &sealed, &dice).await.expect("opens"), plain, "seed {seed}");
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
}
