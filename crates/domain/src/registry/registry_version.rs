//! Versions of what a registry has: semantic versions, in the order that they have.

use std::cmp::Ordering;
use std::fmt;
use std::str::FromStr;

use semver::Version;
use serde::{Deserialize, Serialize};
use taco_tables::{KeyBytes, SortKey};

use crate::attribute::{InvalidAttribute, shown};

const MAX_VERSION_BYTES: usize = 128;

/// A version of a module or a provider, such as `1.2.3` or `1.2.3-beta.1+build`.
#[derive(Clone, PartialEq, Eq, Hash, Serialize, Deserialize, Debug)]
#[serde(transparent)]
pub struct RegistryVersion(String);

impl RegistryVersion {
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// True for one that constraints do not choose by themselves.
    pub fn is_prerelease(&self) -> bool {
        self.parts().is_some_and(|version| !version.pre.is_empty())
    }

    /// `None` for one that was stored under other rules.
    fn parts(&self) -> Option<Version> {
        Version::parse(&self.0).ok()
    }
}

impl FromStr for RegistryVersion {
    type Err = InvalidAttribute;

    fn from_str(text: &str) -> Result<Self, InvalidAttribute> {
        let refuse = |what: String| Err(InvalidAttribute::new("version", what));
        if text.is_empty() {
            return refuse("Version can't be blank".to_owned());
        }
        if text.len() <= MAX_VERSION_BYTES && Version::parse(text).is_ok() {
            return Ok(Self(text.to_owned()));
        }
        let hint = match text.strip_prefix('v') {
            Some(bare) if Version::parse(bare).is_ok() => "leave out the v: ",
            _ => "",
        };
        refuse(format!("Version must be a semantic version such as 1.2.3 or 1.2.3-beta.1; {hint}it is {}", shown(text)))
    }
}

impl Ord for RegistryVersion {
    fn cmp(&self, other: &Self) -> Ordering {
        self.parts().cmp(&other.parts()).then_with(|| self.0.cmp(&other.0))
    }
}

impl PartialOrd for RegistryVersion {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

/// By its text: only for finding one.
impl SortKey for RegistryVersion {
    fn encode(&self, key: &mut KeyBytes) {
        self.0.encode(key);
    }
}

impl fmt::Display for RegistryVersion {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(&self.0)
    }
}

/// The version that people mean who name none: the newest release, or the newest of all where there is no release.
pub fn latest<'a>(versions: impl IntoIterator<Item = &'a RegistryVersion>) -> Option<&'a RegistryVersion> {
    versions.into_iter().max_by_key(|version| (!version.is_prerelease(), *version))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn version(text: &str) -> RegistryVersion {
        text.parse().expect(text)
    }

    #[test]
    fn versions_sort_as_their_numbers_do() {
        let mut versions = ["1.10.0", "1.9.0", "2.0.0-rc.1", "2.0.0", "1.9.0+b"].map(version);
        versions.sort();
        let sorted: Vec<&str> = versions.iter().map(RegistryVersion::as_str).collect();
        assert_eq!(sorted, ["1.9.0", "1.9.0+b", "1.10.0", "2.0.0-rc.1", "2.0.0"]);
        let latest_of = |texts: &[&str]| {
            let versions: Vec<_> = texts.iter().map(|text| version(text)).collect();
            latest(&versions).map(ToString::to_string)
        };
        assert_eq!(latest_of(&["1.0.0", "2.0.0-rc.1"]), Some("1.0.0".to_owned()));
        assert_eq!(latest_of(&["1.0.0-a", "2.0.0-rc.1"]), Some("2.0.0-rc.1".to_owned()));
        assert_eq!(latest_of(&[]), None);
    }

    #[test]
    fn a_refusal_says_what_is_allowed() {
        for (text, expected) in [
            ("", "can't be blank"),
            ("1.2", "such as 1.2.3"),
            ("v1.2.3", "leave out the v"),
            ("latest", r#"it is "latest""#),
            ("01.2.3", "semantic version"),
        ] {
            let detail = text.parse::<RegistryVersion>().expect_err(text).detail;
            assert!(detail.contains(expected), "{detail}");
        }
        assert!(format!("1.2.3-{}", "a".repeat(200)).parse::<RegistryVersion>().is_err());
    }
}
