//! Versions of terraform and tofu.

use crate::attribute::InvalidAttribute;
use crate::engine::Engine;

/// The newest major version of either engine that was known when this was written.
const NEWEST_MAJOR: u64 = 1;

/// Number of versions listed in a refusal.
const NAMED: usize = 3;

/// Refuses a version that no release can have: one of a major version that is newer than all that are known.
/// `at_agents` are those of the engine that agents have, and so an agent that has a newer one makes it known. Any other
/// well-formed version is plausible, because a mirror may have it; whether an agent can have it, a run finds out.
pub fn check_version_exists<'a>(
    engine: Engine,
    wanted: &str,
    at_agents: impl IntoIterator<Item = &'a str>,
) -> Result<(), InvalidAttribute> {
    // Neither `latest` nor a constraint has one.
    let Some(major) = numbers(wanted).and_then(|numbers| numbers.first().copied()) else { return Ok(()) };
    let mut at_agents: Vec<(Vec<u64>, &str)> =
        at_agents.into_iter().filter_map(|version| Some((numbers(version)?, version))).collect();
    at_agents.sort_unstable();
    let newest = at_agents.last().and_then(|(numbers, _)| numbers.first().copied());
    if major <= newest.unwrap_or_default().max(NEWEST_MAJOR) {
        return Ok(());
    }
    let nearest: Vec<&str> = at_agents.iter().rev().take(NAMED).map(|(_, version)| *version).collect();
    let nearest = match nearest.as_slice() {
        [] => "no agent says at the moment which it has".to_owned(),
        nearest => format!("the nearest that agents have: {}", nearest.join(", ")),
    };
    let detail =
        format!("There is no {engine} {wanted} that this server knows of; {nearest}, and latest is the newest");
    Err(InvalidAttribute::new("terraform-version", detail))
}

/// The longest version of an engine that is believed, in bytes.
const MAX_VERSION_BYTES: usize = 64;

/// True if a text is the exact version of a release, as engines report it: `1.11.4`, `1.13.0-alpha1`, `1.5.0+ent`.
pub fn is_exact_version(text: &str) -> bool {
    let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'.' | b'-' | b'+');
    let has_three_numbers = numbers(text).is_some_and(|numbers| numbers.len() == 3);
    text.len() <= MAX_VERSION_BYTES && text.bytes().all(is_plain) && has_three_numbers
}

/// `1.11.4` in numbers, without what follows a hyphen or a plus.
fn numbers(version: &str) -> Option<Vec<u64>> {
    let core = version.split(['-', '+']).next()?;
    core.split('.').map(|number| number.parse().ok()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_can_be_there_is_accepted() {
        for wanted in ["latest", "0.11.0", "1.99.0", "1.12.6-dev", "1.5.0+ent", "~> 9.0", ">= 1.2, < 9", "1"] {
            check_version_exists(Engine::Terraform, wanted, []).expect(wanted);
        }
        check_version_exists(Engine::Tofu, "2.7.1", ["1.12.0", "2.0.0-alpha1"]).expect("an agent has a newer one");
    }

    #[test]
    fn exact_versions_are_short_and_plain() {
        for version in ["1.11.4", "0.1.0", "1.13.0-alpha1", "1.5.0+ent", "1.11.4-plan-1"] {
            assert!(is_exact_version(version), "{version}");
        }
        let long = format!("1.0.0-{}", "a".repeat(60));
        for wrong in ["", "latest", "1.11", "1.2.3.4", "1.0.0-<b>", "1.0.0 ", "v1.0.0", "~> 1.0.0", &long] {
            assert!(!is_exact_version(wrong), "{wrong}");
        }
    }

    #[test]
    fn a_refusal_names_the_nearest() {
        let refused = |at_agents: &[&'static str]| {
            let refusal = check_version_exists(Engine::Tofu, "9.9.9", at_agents.iter().copied());
            refusal.expect_err("there is none").detail
        };
        assert_eq!(
            refused(&["1.9.4", "1.12.0", "1.10.2", "1.11.4", "nonsense"]),
            "There is no tofu 9.9.9 that this server knows of; the nearest that agents have: 1.12.0, 1.11.4, 1.10.2, \
             and latest is the newest"
        );
        assert!(refused(&[]).contains("no agent says at the moment which it has"));
    }
}
