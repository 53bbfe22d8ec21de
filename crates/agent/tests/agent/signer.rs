//! Signer of engines with OpenPGP, as their vendors do it.

use aws_lc_rs::rand::SystemRandom;
use aws_lc_rs::rsa::KeySize;
use aws_lc_rs::signature::{KeyPair as _, RSA_PKCS1_SHA512, RsaKeyPair};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;

pub(crate) struct Signer(RsaKeyPair);

impl Signer {
    pub(crate) fn new() -> Self {
        Self(RsaKeyPair::generate(KeySize::Rsa2048).expect("a key"))
    }

    /// Key as a file that agents are given.
    pub(crate) fn armored_key(&self) -> String {
        // A sequence of two integers, each with a length of its own.
        let mut der = self.0.public_key().as_ref();
        let mut numbers = content(&mut der);
        let (modulus, exponent) = (content(&mut numbers), content(&mut numbers));
        let body = [&[4, 0, 0, 0, 1, 1][..], &number(modulus), &number(exponent)].concat();
        let encoded = STANDARD.encode(packet(6, &body));
        format!("-----BEGIN PGP PUBLIC KEY BLOCK-----\n\n{encoded}\n-----END PGP PUBLIC KEY BLOCK-----\n")
    }

    /// A detached signature.
    pub(crate) fn sign(&self, message: &[u8]) -> Vec<u8> {
        // Of a binary document, by RSA, with SHA-512, and when.
        let hashed = [4, 0, 1, 10, 0, 6, 5, 2, 0, 0, 0, 2];
        let trailer = [4, 0xff, 0, 0, 0, u8::try_from(hashed.len()).expect("it is short")];
        let mut signature = vec![0; self.0.public_modulus_len()];
        let signed = [message, &hashed, &trailer].concat();
        self.0.sign(&RSA_PKCS1_SHA512, &SystemRandom::new(), &signed, &mut signature).expect("a signature");
        packet(2, &[&hashed[..], &[0, 0], &[0, 0], &number(&signature)].concat())
    }
}

fn packet(tag: u8, body: &[u8]) -> Vec<u8> {
    let length = u32::try_from(body.len()).expect("it is short").to_be_bytes();
    [&[0xc0 | tag, 255], &length[..], body].concat()
}

fn number(bytes: &[u8]) -> Vec<u8> {
    let bytes = &bytes[bytes.iter().take_while(|byte| **byte == 0).count()..];
    let bits = bytes.len() * 8 - bytes[0].leading_zeros() as usize;
    [&u16::try_from(bits).expect("it is short").to_be_bytes()[..], bytes].concat()
}

/// Content of the first DER element. The rest follows.
fn content<'a>(der: &mut &'a [u8]) -> &'a [u8] {
    let (length, start) = match der[1] {
        short @ ..0x80 => (usize::from(short), 2),
        long => {
            let size = usize::from(long & 0x7f);
            (der[2..2 + size].iter().fold(0, |sum, byte| sum << 8 | usize::from(*byte)), 2 + size)
        }
    };
    let (content, rest) = der[start..].split_at(length);
    *der = rest;
    content
}
