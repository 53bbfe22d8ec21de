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
//! Reasons, and limits of the protection: `docs/decisions/0003-encryption-at-rest.md`.

use std::fmt;
use std::ops::Range;

use aws_lc_rs::aead::{AES_256_GCM, Aad, LessSafeKey, Nonce, UnboundKey};
use aws_lc_rs::{hkdf, hmac};
use bytes::{Bytes, BytesMut};
use futures::{StreamExt, TryStreamExt, stream};

use crate::bucket::{Bucket, BucketError, BucketErrorKind, ByteStream, Download, Key};
use crate::byte_stream;
use crate::clock::SharedRng;

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

/// Minimum length of a secret: a shorter one could be guessed.
const MIN_SECRET_LENGTH: usize = 32;

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
    mac: hmac::Key,
}

/// A secret that is too short to be random.
#[derive(Clone, PartialEq, Eq, thiserror::Error, Debug)]
#[error(
    "a master key needs at least {MIN_SECRET_LENGTH} random characters and this one has {0}: try `openssl rand -hex 32`"
)]
pub struct WeakSecret(usize);

impl MasterKey {
    /// From a random text; blanks around it do not count, since files like to end in a line break.
    pub fn from_secret(secret: &str) -> Result<Self, WeakSecret> {
        let secret = secret.trim();
        if secret.len() < MIN_SECRET_LENGTH {
            return Err(WeakSecret(secret.len()));
        }
        let root = hkdf::Salt::new(hkdf::HKDF_SHA256, b"taco seal 1").extract(secret.as_bytes());
        let mut id = [0; 32];
        let derived = root.expand(&[b"key id"], hkdf::HKDF_SHA256).and_then(|okm| okm.fill(&mut id));
        derived.expect("32 bytes can be derived");
        let mac = root.expand(&[b"mac"], hmac::HMAC_SHA256).expect("32 bytes can be derived").into();
        Ok(Self { id: KeyId([id[0], id[1], id[2], id[3]]), root, mac })
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

/// Error of opening something sealed. The object is named, its content never.
#[derive(Clone, PartialEq, Eq, thiserror::Error, Debug)]
#[error("{object} {why}")]
pub struct SealError {
    pub object: String,
    pub why: SealErrorKind,
}

#[derive(Clone, Copy, PartialEq, Eq, thiserror::Error, Debug)]
pub enum SealErrorKind {
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
    fn new(object: &str, why: SealErrorKind) -> Self {
        Self { object: object.to_owned(), why }
    }
}

/// Reason why a keyed digest proves nothing, or too much.
#[derive(Clone, PartialEq, Eq, thiserror::Error, Debug)]
pub enum MacError {
    #[error("its MAC was made with secret key {0}, which was not given")]
    MissingKey(String),
    #[error("its MAC does not fit: it was altered")]
    Wrong,
}

/// Length of what [`MasterKeys::mac`] returns.
pub(crate) const MAC_TEXT: usize = 8 + 1 + 64;

/// The key that seals from now on, and older ones that still open.
#[derive(Debug)]
pub struct MasterKeys {
    current: MasterKey,
    older: Vec<MasterKey>,
    /// Data keys come from here, so outside of tests it is seeded by the operating system.
    rng: SharedRng,
}

impl MasterKeys {
    pub fn new(current: MasterKey, older: Vec<MasterKey>, rng: SharedRng) -> Self {
        Self { current, older, rng }
    }

    /// The key that seals.
    pub fn current(&self) -> KeyId {
        self.current.id
    }

    /// A keyed digest (HMAC-SHA256) of something that everyone may read and nobody else may make, as `key id:digest`.
    /// Keyed digest. One that is known under one `context` is not taken for something else.
    pub fn mac(&self, context: &str, bytes: &[u8]) -> String {
        let tag = tag(&self.current.mac, context, bytes);
        format!("{}:{}", self.current.id, hex::encode(tag.as_ref()))
    }

    /// Checks that [`Self::mac`] made this digest of these bytes, with the current key or an older one.
    pub fn check_mac(&self, context: &str, bytes: &[u8], mac: &str) -> Result<(), MacError> {
        let (id, digest) = mac.split_once(':').ok_or(MacError::Wrong)?;
        let key = std::iter::once(&self.current).chain(&self.older).find(|key| key.id.to_string() == id);
        let key = key.ok_or_else(|| MacError::MissingKey(id.to_owned()))?;
        let digest = hex::decode(digest).map_err(|_| MacError::Wrong)?;
        let expected = tag(&key.mac, context, bytes);
        aws_lc_rs::constant_time::verify_slices_are_equal(expected.as_ref(), &digest).map_err(|_| MacError::Wrong)
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
            let mut piece = body[number * SEALED_PIECE..end].to_vec();
            let length = pieces.open(name, &mut piece, number as u64, number == last)?;
            plain.extend_from_slice(&piece[..length]);
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
                    Some(bytes) => byte_stream::append(&mut state.waiting, bytes),
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
            let why = SealErrorKind::Broken { at: sealed_size };
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

    /// True if the object that begins with `header` is sealed under an older master key.
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
        self.rng.fill(&mut data_key);
        self.rng.fill(&mut prefix);
        (self.wrap(name, &data_key, prefix), Pieces::new(name, &data_key, prefix))
    }

    fn open_header(&self, name: &str, sealed: &[u8]) -> Result<Pieces, SealError> {
        let header = Header::read(name, sealed)?;
        Ok(Pieces::new(name, &self.unwrap(name, &header)?, header.prefix))
    }

    fn wrap(&self, name: &str, data_key: &[u8; DATA_KEY], prefix: [u8; 7]) -> [u8; HEADER] {
        let mut salt = [0; 16];
        self.rng.fill(&mut salt);
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
            .ok_or_else(|| SealError::new(name, SealErrorKind::MissingKey(header.key_id)))?;
        let mut data_key = header.wrapped;
        let opened = key.wrapping_key(&header.salt).open_in_place_separate_tag(
            only_nonce(),
            Header::bound(name, header.prefix),
            &header.tag,
            &mut data_key,
        );
        match opened {
            Ok(_) => Ok(data_key),
            Err(_) => Err(SealError::new(name, SealErrorKind::BrokenHeader)),
        }
    }
}

fn explain(key: &Key, error: &SealError) -> BucketError {
    BucketError::new("open", key, BucketErrorKind::Refused, error.why.to_string())
}

/// The nonce under a key that seals one message only.
fn only_nonce() -> Nonce {
    Nonce::assume_unique_for_key([0; 12])
}

/// True if an object that begins so is a sealed one.
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

/// Header before the pieces.
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
        let rest = sealed.strip_prefix(&MAGIC).ok_or(broken(SealErrorKind::NotSealed))?;
        match rest.first() {
            Some(&VERSION) => {}
            Some(&other) => return Err(broken(SealErrorKind::NewerVersion(other))),
            None => return Err(broken(SealErrorKind::BrokenHeader)),
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
        read().ok_or(broken(SealErrorKind::BrokenHeader))
    }

    /// Data that the wrapped key is bound to. The master key's id is not part of it: a wrong one opens nothing anyway.
    fn bound(name: &str, prefix: [u8; 7]) -> Aad<Vec<u8>> {
        Aad::from([b"taco seal 1 data key\0", &prefix[..], name.as_bytes()].concat())
    }
}

fn tag(key: &hmac::Key, context: &str, bytes: &[u8]) -> hmac::Tag {
    let mut signing = hmac::Context::with_key(key);
    signing.update(context.as_bytes());
    signing.update(&[0]);
    signing.update(bytes);
    signing.sign()
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
    /// Data that every piece is bound to. It names no master key, so that a new one leaves the pieces as they are.
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

    /// Turns a sealed piece into the plain one, which is at its beginning, and says how long that is.
    fn open(&self, name: &str, piece: &mut [u8], number: u64, last: bool) -> Result<usize, SealError> {
        let broken = || {
            let at = HEADER as u64 + number * SEALED_PIECE as u64;
            SealError::new(name, SealErrorKind::Broken { at })
        };
        // Only an object without content has an empty piece.
        if piece.len() < TAG || (piece.len() == TAG && number > 0) {
            return Err(broken());
        }
        let nonce = self.nonce(number, last);
        Ok(self.key.open_in_place(nonce, Aad::from(&self.bound), piece).map_err(|_| broken())?.len())
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
                    Some(bytes) => byte_stream::append(&mut state.waiting, bytes),
                    None => ended = true,
                }
            }
            // What is there is opened together, since what is handed out together is sent together. Whether a piece is
            // the last shows only when more follows, or nothing.
            let there =
                if ended { state.waiting.len() } else { (state.waiting.len() - 1) / SEALED_PIECE * SEALED_PIECE };
            let mut pieces = state.waiting.split_to(there);
            let (mut at, mut plain) = (0, 0);
            let done = loop {
                let end = pieces.len().min(at + SEALED_PIECE);
                let last = match until {
                    None => ended && end == pieces.len(),
                    Some((_, size)) => (state.number + 1) * PIECE as u64 >= size,
                };
                let opened = state.pieces.open(state.key.as_str(), &mut pieces[at..end], state.number, last);
                let length = opened.map_err(|error| explain(&state.key, &error))?;
                pieces.copy_within(at..at + length, plain);
                (at, plain, state.number) = (end, plain + length, state.number + 1);
                let done = match until {
                    None => last,
                    Some((after, _)) => state.number == after,
                };
                if done || at == pieces.len() {
                    break done;
                }
            };
            pieces.truncate(plain);
            Ok(Some((pieces.freeze(), (!done).then_some(state))))
        })
        .boxed()
    }
}

#[cfg(test)]
mod tests;
