//! Trust in engines: trusted are those whose vendors signed their checksums, or whose checksums somebody has pinned.

use std::collections::HashMap;
use std::path::Path;

use taco_agent_protocol::Engine;
use taco_openpgp::PublicKeys;

/// Signing keys of the vendors; their sources are noted in the same directory.
const HASHICORP: &str = include_str!("../keys/hashicorp.asc");
const OPENTOFU: &str = include_str!("../keys/opentofu.asc");

/// Keys and checksums that are trusted in addition to the vendors' signatures.
#[derive(Clone, PartialEq, Eq, Default, Debug)]
pub struct EngineTrust {
    /// Keys of those who sign engines of their own.
    keys: PublicKeys,
    /// By the names of archives, in hexadecimal.
    checksums: HashMap<String, String>,
}

impl EngineTrust {
    /// Reads a file with OpenPGP keys, and one with checksums as `sha256sum` prints them. The error is one for people.
    pub fn read(keys: Option<&Path>, checksums: Option<&Path>) -> Result<Self, String> {
        let read = |path: &Path| std::fs::read_to_string(path).map_err(|error| format!("{}: {error}", path.display()));
        let keys = match keys {
            None => PublicKeys::default(),
            Some(path) => {
                PublicKeys::parse(&read(path)?).map_err(|reason| format!("{}: the file {reason}", path.display()))?
            }
        };
        let checksums = match checksums {
            None => HashMap::new(),
            Some(path) => pinned(&read(path)?).map_err(|line| {
                let example = "«sha256»  terraform_1.11.4_linux_amd64.zip";
                format!("{}:{line}: this is no checksum; write lines such as {example}", path.display())
            })?,
        };
        Ok(Self { keys, checksums })
    }

    /// The checksum that somebody has pinned for an archive. Nothing else counts then.
    pub(crate) fn pinned(&self, archive: &str) -> Option<&str> {
        self.checksums.get(archive).map(String::as_str)
    }

    /// Checks that a list of checksums is signed by the engine's vendor, or by a key that was added. The error
    /// completes the sentence "the signature …".
    pub(crate) fn check(&self, engine: Engine, list: &[u8], signature: &[u8]) -> Result<(), String> {
        let makers = match engine {
            Engine::Terraform => HASHICORP,
            Engine::Tofu => OPENTOFU,
        };
        PublicKeys::parse(makers)?.and(&self.keys).verify(list, signature)
    }
}

/// The error is the number of the first line that is none.
fn pinned(text: &str) -> Result<HashMap<String, String>, usize> {
    let lines = text.lines().enumerate().filter(|(_, line)| !line.trim().is_empty() && !line.starts_with('#'));
    let pinned = lines.map(|(index, line)| {
        let mut words = line.split_whitespace();
        match (words.next(), words.next(), words.next()) {
            (Some(sum), Some(name), None) if sum.len() == 64 && sum.bytes().all(|byte| byte.is_ascii_hexdigit()) => {
                Ok((name.trim_start_matches('*').to_owned(), sum.to_ascii_lowercase()))
            }
            _ => Err(index + 1),
        }
    });
    pinned.collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_keys_are_those_of_the_makers() {
        let fingerprints = |text| PublicKeys::parse(text).expect("keys").fingerprints();
        assert_eq!(fingerprints(HASHICORP)[0], "C874011F0AB405110D02105534365D9472D7468F");
        assert_eq!(fingerprints(OPENTOFU)[0], "E3E6E43D84CB852EADB0051D0C0AF313E5FD9F80");
    }

    #[test]
    fn checksums_are_read_as_their_programs_print_them() {
        let sum = "AB".repeat(32);
        let text = format!("# ours\n\n{sum}  terraform_1.11.4_linux_amd64.zip\n{sum} *tofu_1.9.0_linux_arm64.zip\n");
        let trust = EngineTrust { checksums: pinned(&text).expect("two"), ..EngineTrust::default() };
        assert_eq!(trust.pinned("terraform_1.11.4_linux_amd64.zip"), Some(sum.to_ascii_lowercase().as_str()));
        assert!(trust.pinned("tofu_1.9.0_linux_arm64.zip").is_some() && trust.pinned("other").is_none());
        for wrong in [format!("{sum}x a.zip"), sum.clone(), format!("{sum} a b"), "zz".repeat(32) + " a"] {
            assert_eq!(pinned(&format!("\n{wrong}")), Err(2), "{wrong}");
        }
    }
}
