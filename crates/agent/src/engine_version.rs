//! Versions of engines, and which of them a workspace asks for.

use std::str::FromStr;

use semver::Version;

/// Version requested by a workspace: `latest`, `1.11.4`, or constraints such as `~> 1.11.0, != 1.11.2`.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) enum VersionRequest {
    Latest,
    Exactly(Version),
    Constrained(Vec<Constraint>),
}

#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Constraint {
    operator: Operator,
    version: Version,
    /// Number of components as written: `~> 1.2` is not the same as `~> 1.2.0`.
    numbers: usize,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Operator {
    Equal,
    NotEqual,
    Greater,
    GreaterOrEqual,
    Less,
    LessOrEqual,
    Pessimistic,
}

/// The longer ones first, because they begin with the shorter ones.
const OPERATORS: [(&str, Operator); 7] = [
    ("~>", Operator::Pessimistic),
    ("!=", Operator::NotEqual),
    (">=", Operator::GreaterOrEqual),
    ("<=", Operator::LessOrEqual),
    ("=", Operator::Equal),
    (">", Operator::Greater),
    ("<", Operator::Less),
];

/// Not a version and not a constraint.
#[derive(Clone, PartialEq, Eq, thiserror::Error, Debug)]
#[error("{0:?} is no version: use latest, 1.11.4, or a constraint such as ~> 1.11.0")]
pub(crate) struct InvalidVersion(String);

impl FromStr for VersionRequest {
    type Err = InvalidVersion;

    fn from_str(text: &str) -> Result<Self, InvalidVersion> {
        let text = text.trim();
        if text == "latest" || text.is_empty() {
            return Ok(Self::Latest);
        }
        if let Ok(version) = Version::parse(text.trim_start_matches('v')) {
            return Ok(Self::Exactly(version));
        }
        let constraints = text.split(',').map(constraint).collect::<Option<Vec<_>>>();
        constraints.map(Self::Constrained).ok_or_else(|| InvalidVersion(text.to_owned()))
    }
}

fn constraint(text: &str) -> Option<Constraint> {
    let text = text.trim();
    let found = OPERATORS.iter().find_map(|(sign, operator)| Some((text.strip_prefix(sign)?, *operator)));
    let (rest, operator) = found.unwrap_or((text, Operator::Equal));
    let (version, numbers) = partial(rest.trim().trim_start_matches('v'))?;
    Some(Constraint { operator, version, numbers })
}

/// `1`, `1.2` or `1.2.3-rc1`, filled up with zeros.
fn partial(text: &str) -> Option<(Version, usize)> {
    let (numbers, suffix) = match text.find(['-', '+']) {
        Some(position) => text.split_at(position),
        None => (text, ""),
    };
    let count = numbers.split('.').count();
    let filled = format!("{numbers}{}{suffix}", ".0".repeat(3_usize.checked_sub(count)?));
    Some((Version::parse(&filled).ok()?, count))
}

impl VersionRequest {
    /// True if a version is allowed; of several that are, the newest counts. A prerelease is for those who name it.
    pub(crate) fn allows(&self, version: &Version) -> bool {
        match self {
            Self::Latest => version.pre.is_empty(),
            Self::Exactly(wanted) => wanted == version,
            Self::Constrained(constraints) => constraints.iter().all(|constraint| constraint.allows(version)),
        }
    }
}

impl Constraint {
    fn allows(&self, version: &Version) -> bool {
        let wanted = &self.version;
        let same_release = (version.major, version.minor, version.patch) == (wanted.major, wanted.minor, wanted.patch);
        if !version.pre.is_empty() && (wanted.pre.is_empty() || !same_release) {
            return false;
        }
        match self.operator {
            Operator::Equal => version == wanted,
            Operator::NotEqual => version != wanted,
            Operator::Greater => version > wanted,
            Operator::GreaterOrEqual => version >= wanted,
            Operator::Less => version < wanted,
            Operator::LessOrEqual => version <= wanted,
            // All numbers but the last one stay.
            Operator::Pessimistic => {
                version >= wanted
                    && (self.numbers < 2 || version.major == wanted.major)
                    && (self.numbers < 3 || version.minor == wanted.minor)
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn constraints_allow_what_the_engines_allow() {
        for (wanted, allowed, refused) in [
            ("latest", vec!["1.0.0", "9.9.9"], vec!["1.12.0-rc1"]),
            ("1.11.4", vec!["1.11.4"], vec!["1.11.5", "1.11.4-rc1"]),
            ("v1.11.4", vec!["1.11.4"], vec!["1.11.3"]),
            ("1.12.0-rc1", vec!["1.12.0-rc1"], vec!["1.12.0"]),
            ("~> 1.11.0", vec!["1.11.0", "1.11.9"], vec!["1.12.0", "1.10.9", "1.11.5-beta1"]),
            ("~>1.11", vec!["1.11.0", "1.99.0"], vec!["2.0.0", "1.10.0"]),
            ("~> 1", vec!["1.0.0", "2.0.0"], vec!["0.9.0"]),
            (">= 1.5, < 1.8.0, != 1.6.1", vec!["1.5.0", "1.7.9"], vec!["1.4.9", "1.8.0", "1.6.1"]),
            ("= 1.2.3", vec!["1.2.3"], vec!["1.2.4"]),
            ("<= 1.2", vec!["1.2.0"], vec!["1.2.1"]),
            ("> 1.2.3", vec!["1.2.4"], vec!["1.2.3"]),
            ("1.11", vec!["1.11.0"], vec!["1.11.1"]),
            (">= 1.12.0-alpha1", vec!["1.12.0-beta1", "1.12.0", "1.13.0"], vec!["1.13.0-alpha1"]),
        ] {
            let parsed: VersionRequest = wanted.parse().expect(wanted);
            for version in allowed {
                assert!(parsed.allows(&version.parse().expect(version)), "{wanted} allows {version}");
            }
            for version in refused {
                assert!(!parsed.allows(&version.parse().expect(version)), "{wanted} refuses {version}");
            }
        }
    }

    #[test]
    fn what_is_no_version_is_refused() {
        for text in ["1.11.4; rm", "newest", "~> x", ">= 1.2.3.4", "1.2,", ">="] {
            assert!(text.parse::<VersionRequest>().is_err(), "{text}");
        }
    }
}
