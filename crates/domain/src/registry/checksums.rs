//! Lists of checksums, as `sha256sum` writes them: `SHA256SUMS` of a provider.

use std::collections::BTreeMap;

use crate::attribute::shown;

/// Maximum size of such a list.
pub const MAX_CHECKSUMS_BYTES: u64 = 256 * 1024;

/// Checksums in lower-case hexadecimal, by the names of files.
#[derive(Clone, PartialEq, Eq, Default, Debug)]
pub struct Checksums(BTreeMap<String, String>);

impl Checksums {
    /// The error is a sentence for whoever sent the list.
    pub fn parse(bytes: &[u8]) -> Result<Self, String> {
        let text = str::from_utf8(bytes).map_err(|_| "SHA256SUMS is not text".to_owned())?;
        let mut sums = BTreeMap::new();
        for (number, line) in text.lines().enumerate().filter(|(_, line)| !line.trim().is_empty()) {
            let parsed = line.split_once(char::is_whitespace).map(|(sum, name)| {
                let name = name.trim();
                (sum, name.strip_prefix('*').unwrap_or(name))
            });
            match parsed {
                Some((sum, name)) if is_sha256(sum) && !name.is_empty() => {
                    sums.insert(name.to_owned(), sum.to_ascii_lowercase());
                }
                _ => {
                    return Err(format!(
                        "SHA256SUMS has a line {} that is no checksum and file name, as sha256sum writes them: {}",
                        number + 1,
                        shown(line)
                    ));
                }
            }
        }
        if sums.is_empty() {
            return Err("SHA256SUMS is empty: it lists the SHA-256 and the name of each archive".to_owned());
        }
        Ok(Self(sums))
    }

    pub fn of(&self, filename: &str) -> Option<&str> {
        self.0.get(filename).map(String::as_str)
    }

    /// The names of all files.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.0.keys().map(String::as_str)
    }
}

pub fn is_sha256(text: &str) -> bool {
    text.len() == 64 && text.bytes().all(|byte| byte.is_ascii_hexdigit())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lists_are_read_as_their_programs_write_them() {
        let sum = "AB".repeat(32);
        let sums = Checksums::parse(format!("{sum}  a.zip\n{sum} *b.zip\r\n\n").as_bytes()).expect("two");
        assert_eq!(sums.of("a.zip"), Some(sum.to_ascii_lowercase().as_str()));
        assert_eq!(sums.names().collect::<Vec<_>>(), ["a.zip", "b.zip"]);
        for (wrong, expected) in [
            ("", "is empty"),
            ("\n\n", "is empty"),
            ("abc  a.zip", "line 1"),
            (&format!("{sum}  a.zip\n{sum}\n"), "line 2"),
        ] {
            assert!(Checksums::parse(wrong.as_bytes()).expect_err(wrong).contains(expected), "{wrong}");
        }
        assert!(Checksums::parse(&[0xff, 0xfe]).is_err());
    }
}
