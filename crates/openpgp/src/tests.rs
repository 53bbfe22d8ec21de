use super::*;

/// Made by GnuPG 2.4: `gpg --detach-sign` of the text, by a key of RSA and by a subkey of it, armored and not.
const KEY: &str = include_str!("tests/key.asc");
const MESSAGE: &[u8] = include_bytes!("tests/SHA256SUMS");
const SIGNATURES: [&[u8]; 3] =
    [include_bytes!("tests/by-key.sig"), include_bytes!("tests/by-subkey.sig"), include_bytes!("tests/armored.asc")];

#[test]
fn signatures_of_gnupg_are_believed_and_nothing_else_is() {
    let keys = PublicKeys::parse(KEY).expect("a key");
    for signature in SIGNATURES {
        keys.verify(MESSAGE, signature).expect("it is signed");
        let other = [MESSAGE, b" "].concat();
        assert_eq!(keys.verify(&other, signature), Err("does not belong to what it came with".to_owned()));
    }
    let others = PublicKeys::parse(include_str!("../../agent/keys/opentofu.asc")).expect("a key");
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
    let Value::Rsa(value) = signed.value else { panic!("it is by RSA") };
    let (hashed, value) = (signed.hashed.len(), value.len());
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
    assert!(PublicKeys::parse("nothing").expect_err("none").contains("has no RSA or Ed25519 key in it"));
    let cut = &KEY[..KEY.len() / 2];
    assert!(PublicKeys::parse(cut).expect_err("half").contains("cut off"));
}

#[test]
fn signatures_by_ed25519_are_believed_as_well() {
    let keys = PublicKeys::parse(include_str!("tests/ed25519.asc")).expect("a key");
    let signature: &[u8] = include_bytes!("tests/by-ed25519.sig");
    assert_eq!(keys.primary_ids(), ["24EB73B98BC983AC"]);
    keys.verify(MESSAGE, signature).expect("it is signed");
    keys.verify(&[MESSAGE, b" "].concat(), signature).expect_err("of another");
    let (body, changed) = (packet(signature).expect("a packet").1, signature.to_vec());
    let header = signature.len() - body.len();
    let signed = header + 4..header + Signature::parse(body).expect("a signature").hashed.len();
    for place in signed.chain(signature.len() - 64..signature.len()) {
        let mut changed = changed.clone();
        changed[place] ^= 0x01;
        assert!(keys.verify(MESSAGE, &changed).is_err(), "byte {place}");
    }
    PublicKeys::parse(KEY).expect("a key").verify(MESSAGE, signature).expect_err("by another");
}

#[test]
fn a_private_key_is_refused() {
    let text = KEY.replace("PUBLIC KEY BLOCK", "PRIVATE KEY BLOCK");
    assert!(PublicKeys::parse(&text).expect_err("private").contains("has a private key in it"));
}
