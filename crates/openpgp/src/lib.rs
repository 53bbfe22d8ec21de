//! Checks detached OpenPGP signatures (RFC 9580) by keys that are trusted as they are.
//!
//! It is the small part of OpenPGP that lists of checksums need: binary signatures of version 4 by RSA and Ed25519 keys with
//! SHA-2.
//! There is no web of trust, and nothing is asked of a key but whether it is in the list: who trusts a key block trusts each
//! key in it, and takes it out of the list to trust it no more. The arithmetic is not done here.

use aws_lc_rs::digest::{Algorithm, SHA1_FOR_LEGACY_USE_ONLY, SHA256, SHA384, SHA512, digest};
use aws_lc_rs::signature::{
    ED25519, RSA_PKCS1_2048_8192_SHA256, RSA_PKCS1_2048_8192_SHA384, RSA_PKCS1_2048_8192_SHA512, RsaParameters,
    RsaPublicKeyComponents, VerificationAlgorithm as _,
};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;

const SIGNATURE: u8 = 2;
const PUBLIC_KEY: u8 = 6;
const PUBLIC_SUBKEY: u8 = 14;
/// Signature type of a document as it is, byte for byte.
const BINARY_DOCUMENT: u8 = 0;
const ISSUER: u8 = 16;
const ISSUER_FINGERPRINT: u8 = 33;
/// Object identifier of the curve Ed25519, behind its length.
const ED25519_CURVE: &[u8] = &[9, 0x2b, 6, 1, 4, 1, 0xda, 0x47, 15, 1];
/// Maximum number of signatures: a list of checksums has one, or a few by different keys.
const MAX_SIGNATURES: usize = 16;

/// A key, or a part of one that signs for it.
#[derive(Clone, PartialEq, Eq, Debug)]
struct Key {
    fingerprint: [u8; 20],
    is_primary: bool,
    material: Material,
}

/// Numbers of a key, by its algorithm.
#[derive(Clone, PartialEq, Eq, Debug)]
enum Material {
    Rsa {
        modulus: Vec<u8>,
        exponent: Vec<u8>,
    },
    Ed25519([u8; 32]),
    /// It signs nothing that is checked here.
    Other,
}

impl Key {
    fn id(&self) -> &[u8] {
        &self.fingerprint[12..]
    }
}

/// Keys whose signatures are believed.
#[derive(Clone, PartialEq, Eq, Default, Debug)]
pub struct PublicKeys(Vec<Key>);

impl PublicKeys {
    /// All keys of a text with one or more armored key blocks. The error completes the sentence "the file …".
    pub fn parse(text: &str) -> Result<Self, String> {
        if text.contains("PRIVATE KEY BLOCK-----") {
            return Err(
                "has a private key in it: only the public key is needed, and a private one is for its owner alone; \
                        consider it known to others from now on"
                    .to_owned(),
            );
        }
        let mut keys = Vec::new();
        for block in armored(text, "PUBLIC KEY BLOCK") {
            for packet in packets(&block.ok_or("has a key block that is cut off or damaged")?) {
                let (tag, body) = packet.ok_or("has a key block that is damaged")?;
                if matches!(tag, PUBLIC_KEY | PUBLIC_SUBKEY) {
                    keys.extend(key(body, tag == PUBLIC_KEY));
                }
            }
        }
        match keys.iter().any(|key| key.material != Material::Other) {
            true => Ok(Self(keys)),
            false => Err("has no RSA or Ed25519 key in it, armored as -----BEGIN PGP PUBLIC KEY BLOCK-----".to_owned()),
        }
    }

    pub fn len(&self) -> usize {
        self.0.len()
    }

    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Ids of the primary keys, in hexadecimal with upper case: the last 16 digits of their fingerprints.
    pub fn primary_ids(&self) -> Vec<String> {
        self.0.iter().filter(|key| key.is_primary).map(|key| hex::encode_upper(key.id())).collect()
    }

    /// These and those.
    pub fn and(mut self, others: &Self) -> Self {
        self.0.extend(others.0.iter().cloned());
        self
    }

    /// Verifies that one of these keys has signed the message. The signature may be armored. The error completes the
    /// sentence "the signature …".
    pub fn verify(&self, message: &[u8], signature: &[u8]) -> Result<(), String> {
        let text = std::str::from_utf8(signature).ok();
        let armored = text.and_then(|text| armored(text, "SIGNATURE").next());
        let signature = match armored {
            Some(bytes) => bytes.ok_or("is damaged")?,
            None => signature.to_vec(),
        };
        let mut why = "is none of a kind that is known: binary, version 4, RSA or Ed25519, SHA-2".to_owned();
        for packet in packets(&signature).take(MAX_SIGNATURES) {
            let (tag, body) = packet.ok_or("is damaged")?;
            let Some(signature) = (tag == SIGNATURE).then(|| Signature::parse(body)).flatten() else { continue };
            let mut signers = self.0.iter().filter(|key| signature.may_be_of(key)).peekable();
            if signers.peek().is_none() {
                why = format!("is by the key {}, which is not among those that are trusted", signature.signer());
                continue;
            }
            if signers.any(|key| signature.is_of(key, message)) {
                return Ok(());
            }
            why = "does not belong to what it came with".to_owned();
        }
        Err(why)
    }

    pub fn fingerprints(&self) -> Vec<String> {
        self.0.iter().map(|key| hex::encode_upper(key.fingerprint)).collect()
    }
}

fn key(body: &[u8], is_primary: bool) -> Option<Key> {
    // Version, four bytes of time, and the algorithm.
    let (4, algorithm) = (*body.first()?, *body.get(5)?) else { return None };
    let numbers = body.get(6..)?;
    let length = u16::try_from(body.len()).ok()?.to_be_bytes();
    let hashed = digest(&SHA1_FOR_LEGACY_USE_ONLY, &[&[0x99], &length[..], body].concat());
    let fingerprint = hashed.as_ref().try_into().ok()?;
    Some(Key { fingerprint, is_primary, material: material(algorithm, numbers).unwrap_or(Material::Other) })
}

fn material(algorithm: u8, numbers: &[u8]) -> Option<Material> {
    match algorithm {
        // RSA, or RSA that only signs.
        1 | 3 => {
            let (modulus, rest) = number(numbers)?;
            let (exponent, _) = number(rest)?;
            Some(Material::Rsa { modulus: modulus.to_vec(), exponent: exponent.to_vec() })
        }
        // As GnuPG writes it: a point of the curve, marked as such.
        22 => {
            let (point, _) = number(numbers.strip_prefix(ED25519_CURVE)?)?;
            Some(Material::Ed25519(point.strip_prefix(&[0x40])?.try_into().ok()?))
        }
        27 => Some(Material::Ed25519(*numbers.first_chunk()?)),
        _ => None,
    }
}

/// A signature of a binary document.
struct Signature<'a> {
    hash: Hash,
    /// Data that is signed in addition to the message.
    hashed: &'a [u8],
    /// Ends of fingerprints. Who signs need not say so.
    issuers: Vec<&'a [u8]>,
    value: Value<'a>,
}

#[derive(Clone, Copy)]
struct Hash {
    digest: &'static Algorithm,
    with_rsa: &'static RsaParameters,
}

enum Value<'a> {
    Rsa(&'a [u8]),
    Ed25519([u8; 64]),
}

impl<'a> Signature<'a> {
    fn parse(body: &'a [u8]) -> Option<Self> {
        let [4, BINARY_DOCUMENT, algorithm, hash, ..] = *body else { return None };
        let hash = match hash {
            8 => Hash { digest: &SHA256, with_rsa: &RSA_PKCS1_2048_8192_SHA256 },
            9 => Hash { digest: &SHA384, with_rsa: &RSA_PKCS1_2048_8192_SHA384 },
            10 => Hash { digest: &SHA512, with_rsa: &RSA_PKCS1_2048_8192_SHA512 },
            _ => return None,
        };
        let (hashed_part, rest) = sized(body.get(4..)?)?;
        let (unhashed_part, rest) = sized(rest)?;
        // Two bytes of the digest, for those who want to know early that it is wrong.
        let numbers = rest.get(2..)?;
        let value = match algorithm {
            1 | 3 => Value::Rsa(number(numbers)?.0),
            22 => {
                let (first, rest) = number(numbers)?;
                let (second, _) = number(rest)?;
                Value::Ed25519(halves(first, second)?)
            }
            27 => Value::Ed25519(*numbers.first_chunk()?),
            _ => return None,
        };
        let mut issuers = named_issuers(hashed_part)?;
        // Anyone could have changed these, but they are a hint: the signature decides.
        issuers.extend(named_issuers(unhashed_part)?);
        Some(Self { hash, hashed: body.get(..6 + hashed_part.len())?, issuers, value })
    }

    fn may_be_of(&self, key: &Key) -> bool {
        self.issuers.is_empty() || self.issuers.iter().any(|issuer| *issuer == key.id())
    }

    fn signer(&self) -> String {
        self.issuers.first().map_or_else(|| "of nobody".to_owned(), hex::encode_upper)
    }

    fn is_of(&self, key: &Key, message: &[u8]) -> bool {
        let length = u32::try_from(self.hashed.len()).unwrap_or_default().to_be_bytes();
        let signed = [message, self.hashed, &[4, 0xff], &length].concat();
        match (&self.value, &key.material) {
            (Value::Rsa(number), Material::Rsa { modulus, exponent }) => {
                // A number has no zeros at its beginning; a signature is as long as the key.
                let mut value = vec![0; modulus.len().saturating_sub(number.len())];
                value.extend_from_slice(number);
                let public = RsaPublicKeyComponents { n: modulus, e: exponent };
                public.verify(self.hash.with_rsa, &signed, &value).is_ok()
            }
            (Value::Ed25519(value), Material::Ed25519(public)) => {
                // What is signed is the digest.
                let hashed = digest(self.hash.digest, &signed);
                ED25519.verify_sig(public, hashed.as_ref(), value).is_ok()
            }
            _ => false,
        }
    }
}

/// Two numbers of 32 bytes at most, one behind the other.
fn halves(first: &[u8], second: &[u8]) -> Option<[u8; 64]> {
    let mut both = [0; 64];
    both.get_mut(32usize.checked_sub(first.len())?..32)?.copy_from_slice(first);
    both.get_mut(64 - second.len().min(64)..)?.get_mut(..second.len())?.copy_from_slice(second);
    (second.len() <= 32).then_some(both)
}

/// Claimed issuers of the signature; `None` if the list is damaged.
fn named_issuers(mut list: &[u8]) -> Option<Vec<&[u8]>> {
    let mut issuers = Vec::new();
    while !list.is_empty() {
        let (length, rest) = length(list)?;
        let (&[kind, ref data @ ..], rest) = rest.split_at_checked(length)? else { return None };
        list = rest;
        // The highest bit says that it is important.
        match (kind & 0x7f, data.len()) {
            (ISSUER, 8) => issuers.push(data),
            (ISSUER_FINGERPRINT, 21) => issuers.push(&data[13..]),
            _ => {}
        }
    }
    Some(issuers)
}

/// The packets of a message, as tag and body; `None` at the first that is not whole.
fn packets(bytes: &[u8]) -> impl Iterator<Item = Option<(u8, &[u8])>> {
    let mut rest = bytes;
    std::iter::from_fn(move || {
        if rest.is_empty() {
            return None;
        }
        let found = packet(rest);
        rest = found.map_or(&[], |(_, _, rest)| rest);
        Some(found.map(|(tag, body, _)| (tag, body)))
    })
}

fn packet(bytes: &[u8]) -> Option<(u8, &[u8], &[u8])> {
    let (&first, rest) = bytes.split_first()?;
    let (tag, length, rest) = match first {
        0xc0.. => {
            let (length, rest) = length(rest)?;
            (first & 0x3f, length, rest)
        }
        0x80.. => {
            let size = match first & 3 {
                0 => 1,
                1 => 2,
                2 => 4,
                // Without a length: for messages that are not read here.
                _ => return None,
            };
            let (length, rest) = rest.split_at_checked(size)?;
            (first >> 2 & 0xf, length.iter().fold(0, |sum, byte| sum << 8 | usize::from(*byte)), rest)
        }
        _ => return None,
    };
    let (body, rest) = rest.split_at_checked(length)?;
    Some((tag, body, rest))
}

/// A length of one, two or five bytes.
fn length(bytes: &[u8]) -> Option<(usize, &[u8])> {
    match *bytes {
        [first @ ..192, ref rest @ ..] => Some((first.into(), rest)),
        [first @ 192..224, second, ref rest @ ..] => {
            Some((((usize::from(first) - 192) << 8) + usize::from(second) + 192, rest))
        }
        [255, a, b, c, d, ref rest @ ..] => Some((usize::try_from(u32::from_be_bytes([a, b, c, d])).ok()?, rest)),
        // In parts: for messages that are not read here.
        _ => None,
    }
}

/// Bytes behind their length of two bytes.
fn sized(bytes: &[u8]) -> Option<(&[u8], &[u8])> {
    let (length, rest) = bytes.split_first_chunk()?;
    rest.split_at_checked(u16::from_be_bytes(*length).into())
}

/// A number behind its length in bits.
fn number(bytes: &[u8]) -> Option<(&[u8], &[u8])> {
    let (bits, rest) = bytes.split_first_chunk()?;
    rest.split_at_checked(usize::from(u16::from_be_bytes(*bits)).div_ceil(8))
}

/// The bytes of all blocks of a kind in a text; `None` for one that is damaged.
fn armored<'a>(text: &'a str, kind: &str) -> impl Iterator<Item = Option<Vec<u8>>> + use<'a> {
    let (begin, end) = (format!("-----BEGIN PGP {kind}-----"), format!("-----END PGP {kind}-----"));
    let mut rest = text;
    std::iter::from_fn(move || {
        let (_, after) = rest.split_once(&begin)?;
        let Some((block, after)) = after.split_once(&end) else {
            rest = "";
            return Some(None);
        };
        rest = after;
        // Headers end with an empty line, and there may be none. The checksum at the end is for noise on telephone lines.
        let lines = block.lines().map(str::trim).skip(1).skip_while(|line| line.contains(": "));
        let encoded: String = lines.take_while(|line| !line.starts_with('=')).collect();
        Some(STANDARD.decode(encoded).ok())
    })
}

#[cfg(test)]
mod tests;
