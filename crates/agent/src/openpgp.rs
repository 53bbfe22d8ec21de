//! Checks detached OpenPGP signatures (RFC 9580) by keys that are trusted as they are.
//!
//! It is the small part of OpenPGP that lists of checksums need: binary signatures of version 4 by RSA keys with SHA-2.
//! There is no web of trust, and nothing is asked of a key but whether it is in the list: who trusts a key block trusts each
//! key in it, and takes it out of the list to trust it no more. The arithmetic is not done here.

use aws_lc_rs::digest::{SHA1_FOR_LEGACY_USE_ONLY, digest};
use aws_lc_rs::signature::{
    RSA_PKCS1_2048_8192_SHA256, RSA_PKCS1_2048_8192_SHA384, RSA_PKCS1_2048_8192_SHA512, RsaParameters,
    RsaPublicKeyComponents,
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
/// Maximum number of signatures: a list of checksums has one, or a few by different keys.
const MAX_SIGNATURES: usize = 16;

/// A key, or a part of one that signs for it.
#[derive(Clone, PartialEq, Eq, Debug)]
struct Key {
    fingerprint: [u8; 20],
    modulus: Vec<u8>,
    exponent: Vec<u8>,
}

impl Key {
    fn id(&self) -> &[u8] {
        &self.fingerprint[12..]
    }
}

/// Keys whose signatures are believed.
#[derive(Clone, PartialEq, Eq, Default, Debug)]
pub(crate) struct PublicKeys(Vec<Key>);

impl PublicKeys {
    /// All keys of a text with one or more armored key blocks. The error completes the sentence "the file …".
    pub(crate) fn parse(text: &str) -> Result<Self, String> {
        let mut keys = Vec::new();
        for block in armored(text, "PUBLIC KEY BLOCK") {
            for packet in packets(&block.ok_or("has a key block that is cut off or damaged")?) {
                let (tag, body) = packet.ok_or("has a key block that is damaged")?;
                if matches!(tag, PUBLIC_KEY | PUBLIC_SUBKEY) {
                    keys.extend(rsa_key(body));
                }
            }
        }
        match keys.is_empty() {
            true => Err("has no RSA key in it, armored as -----BEGIN PGP PUBLIC KEY BLOCK-----".to_owned()),
            false => Ok(Self(keys)),
        }
    }

    pub(crate) fn len(&self) -> usize {
        self.0.len()
    }

    /// These and those.
    pub(crate) fn and(mut self, others: &Self) -> Self {
        self.0.extend(others.0.iter().cloned());
        self
    }

    /// Verifies that one of these keys has signed the message. The signature may be armored. The error completes the
    /// sentence "the signature …".
    pub(crate) fn verify(&self, message: &[u8], signature: &[u8]) -> Result<(), String> {
        let text = std::str::from_utf8(signature).ok();
        let armored = text.and_then(|text| armored(text, "SIGNATURE").next());
        let signature = match armored {
            Some(bytes) => bytes.ok_or("is damaged")?,
            None => signature.to_vec(),
        };
        let mut why = "is none of a kind that is known: binary, version 4, RSA, SHA-2".to_owned();
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

    #[cfg(test)]
    pub(crate) fn fingerprints(&self) -> Vec<String> {
        self.0.iter().map(|key| hex::encode_upper(key.fingerprint)).collect()
    }
}

fn rsa_key(body: &[u8]) -> Option<Key> {
    // Version, four bytes of time, and the algorithm: RSA, or RSA that only signs.
    if !matches!((body.first()?, body.get(5)?), (4, 1 | 3)) {
        return None;
    }
    let (modulus, rest) = number(body.get(6..)?)?;
    let (exponent, _) = number(rest)?;
    let length = u16::try_from(body.len()).ok()?.to_be_bytes();
    let hashed = digest(&SHA1_FOR_LEGACY_USE_ONLY, &[&[0x99], &length[..], body].concat());
    let fingerprint = hashed.as_ref().try_into().ok()?;
    Some(Key { fingerprint, modulus: modulus.to_vec(), exponent: exponent.to_vec() })
}

/// A signature of a binary document by RSA.
struct Signature<'a> {
    algorithm: &'static RsaParameters,
    /// Data that is signed in addition to the message.
    hashed: &'a [u8],
    /// Ends of fingerprints. Who signs need not say so.
    issuers: Vec<&'a [u8]>,
    value: &'a [u8],
}

impl<'a> Signature<'a> {
    fn parse(body: &'a [u8]) -> Option<Self> {
        let [4, BINARY_DOCUMENT, 1 | 3, hash, ..] = body else { return None };
        let algorithm = match hash {
            8 => &RSA_PKCS1_2048_8192_SHA256,
            9 => &RSA_PKCS1_2048_8192_SHA384,
            10 => &RSA_PKCS1_2048_8192_SHA512,
            _ => return None,
        };
        let (hashed_part, rest) = sized(body.get(4..)?)?;
        let (unhashed_part, rest) = sized(rest)?;
        // Two bytes of the digest, for those who want to know early that it is wrong.
        let (value, _) = number(rest.get(2..)?)?;
        let mut issuers = named_issuers(hashed_part)?;
        // Anyone could have changed these, but they are a hint: the signature decides.
        issuers.extend(named_issuers(unhashed_part)?);
        Some(Self { algorithm, hashed: body.get(..6 + hashed_part.len())?, issuers, value })
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
        // A number has no zeros at its beginning; a signature is as long as the key.
        let mut value = vec![0; key.modulus.len().saturating_sub(self.value.len())];
        value.extend_from_slice(self.value);
        let public = RsaPublicKeyComponents { n: &key.modulus, e: &key.exponent };
        public.verify(self.algorithm, &signed, &value).is_ok()
    }
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
mod tests {
    use super::*;

    /// Made by GnuPG 2.4: `gpg --detach-sign` of the text, by a key of RSA and by a subkey of it, armored and not.
    const KEY: &str = include_str!("openpgp/key.asc");
    const MESSAGE: &[u8] = include_bytes!("openpgp/SHA256SUMS");
    const SIGNATURES: [&[u8]; 3] = [
        include_bytes!("openpgp/by-key.sig"),
        include_bytes!("openpgp/by-subkey.sig"),
        include_bytes!("openpgp/armored.asc"),
    ];

    #[test]
    fn signatures_of_gnupg_are_believed_and_nothing_else_is() {
        let keys = PublicKeys::parse(KEY).expect("a key");
        for signature in SIGNATURES {
            keys.verify(MESSAGE, signature).expect("it is signed");
            let other = [MESSAGE, b" "].concat();
            assert_eq!(keys.verify(&other, signature), Err("does not belong to what it came with".to_owned()));
        }
        let others = PublicKeys::parse(include_str!("../keys/opentofu.asc")).expect("a key");
        let refused = others.verify(MESSAGE, SIGNATURES[0]).expect_err("nobody trusts it");
        assert!(refused.contains("which is not among those that are trusted"), "{refused}");
        others.and(&keys).verify(MESSAGE, SIGNATURES[0]).expect("one of them has signed it");
        keys.verify(MESSAGE, b"").expect_err("nothing is no signature");
    }

    #[test]
    fn no_changed_byte_of_a_signature_is_believed_or_breaks_anything() {
        let keys = PublicKeys::parse(KEY).expect("a key");
        let signature = SIGNATURES[0];
        let signed = Signature::parse(packet(signature).expect("a packet").1).expect("a signature");
        let (hashed, value) = (signed.hashed.len(), signed.value.len());
        for place in 0..signature.len() {
            let mut changed = signature.to_vec();
            changed[place] ^= 0x01;
            let is_signed_part = (3..3 + hashed).contains(&place) || place >= signature.len() - value;
            assert!(keys.verify(MESSAGE, &changed).is_err() || !is_signed_part, "byte {place}");
            let _ = keys.verify(MESSAGE, &signature[..place]);
            let _ = PublicKeys::parse(KEY.get(..place * 4).unwrap_or_default());
        }
    }

    #[test]
    fn a_file_without_a_key_is_told() {
        assert!(PublicKeys::parse("nothing").expect_err("none").contains("has no RSA key in it"));
        let cut = &KEY[..KEY.len() / 2];
        assert!(PublicKeys::parse(cut).expect_err("half").contains("cut off"));
    }
}
