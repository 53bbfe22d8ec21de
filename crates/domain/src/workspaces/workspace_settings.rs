//! Rules for single settings of workspaces and projects.

use crate::attribute::{InvalidAttribute, is_plain_text, shown};

/// Text that is shown as it is.
pub fn check_description(text: &str) -> Result<String, InvalidAttribute> {
    const MAX_DESCRIPTION_CHARACTERS: usize = 4096;
    if text.chars().count() > MAX_DESCRIPTION_CHARACTERS || !is_plain_text(text) {
        let detail = format!(
            "Description may have at most {MAX_DESCRIPTION_CHARACTERS} visible characters; it is {}",
            shown(text)
        );
        return Err(InvalidAttribute::new("description", detail));
    }
    Ok(text.to_owned())
}

/// `24h`, `14d`: up to four digits and a unit.
pub fn check_auto_destroy_duration(text: &str) -> Result<(), InvalidAttribute> {
    let legal = text
        .strip_suffix(['d', 'h'])
        .is_some_and(|digits| (1..=4).contains(&digits.len()) && digits.bytes().all(|digit| digit.is_ascii_digit()));
    if legal {
        return Ok(());
    }
    let detail = format!(
        "Auto destroy activity duration has an incorrect format, we expect up to 4 numeric digits and 1 unit \
         ('d' or 'h'); it is {}",
        shown(text)
    );
    Err(InvalidAttribute::new("auto-destroy-activity-duration", detail))
}

/// `latest`, a version, or a constraint such as `~> 1.11`. Whether there is such a version, `engine_version` asks.
pub fn check_engine_version(text: &str) -> Result<(), InvalidAttribute> {
    let refuse = || {
        let detail = format!(
            "Terraform version must be latest, a version such as 1.11.4 or a constraint such as ~> 1.11; it is {}",
            shown(text)
        );
        Err(InvalidAttribute::new("terraform-version", detail))
    };
    if text == "latest" {
        return Ok(());
    }
    if text.len() > 100 || text.is_empty() {
        return refuse();
    }
    let is_version = |version: &str| {
        let (core, suffix) = version.split_once(['-', '+']).map_or((version, None), |(core, rest)| (core, Some(rest)));
        let numbers: Vec<&str> = core.split('.').collect();
        let numeric =
            |part: &&str| !part.is_empty() && part.len() <= 9 && part.bytes().all(|byte| byte.is_ascii_digit());
        let plain = |rest: &str| {
            !rest.is_empty()
                && rest.bytes().all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'.' | b'-' | b'+'))
        };
        numbers.len() <= 3 && numbers.iter().all(numeric) && suffix.is_none_or(plain)
    };
    let is_term = |term: &str| {
        let term = term.trim_matches(' ');
        let version = ["~>", ">=", "<=", "!=", "=", ">", "<"]
            .iter()
            .find_map(|operator| term.strip_prefix(operator))
            .map_or(term, |version| version.trim_start_matches(' '));
        is_version(version)
    };
    if text.split(',').all(is_term) { Ok(()) } else { refuse() }
}

/// A path below the root of the configuration.
pub fn check_working_directory(text: &str) -> Result<(), InvalidAttribute> {
    let leaves = text.starts_with(['/', '\\']) || text.split(['/', '\\']).any(|part| part == "..");
    if leaves || text.len() > 1024 || text.contains(['\n', '\r', '\t']) || !is_plain_text(text) {
        let detail = format!(
            "Working directory must be a path below the root of the configuration, without '..'; it is {}",
            shown(text)
        );
        return Err(InvalidAttribute::new("working-directory", detail));
    }
    Ok(())
}

/// Patterns with `*`, `**`, `?` and `[…]`.
pub fn check_trigger_pattern(pattern: &str) -> Result<(), InvalidAttribute> {
    let refuse = |what: &str, position: usize| {
        let detail = format!("Trigger patterns: {what} at character {position} of {}", shown(pattern));
        Err(InvalidAttribute::new("trigger-patterns", detail))
    };
    if pattern.is_empty() {
        return refuse("the pattern is empty", 1);
    }
    let mut open = None;
    let mut characters = pattern.chars().enumerate();
    while let Some((index, character)) = characters.next() {
        match character {
            '\\' if characters.next().is_none() => return refuse("nothing follows the backslash", index + 1),
            '[' if open.is_none() => open = Some(index + 1),
            ']' => open = None,
            _ if character.is_control() => return refuse("there is a control character", index + 1),
            _ => {}
        }
    }
    match open {
        Some(position) => refuse("the bracket is never closed", position),
        None => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_and_constraints_are_told_from_anything_else() {
        for text in [
            "latest",
            "0.11.0",
            "1.11.4",
            "9.9.9",
            "1.12",
            "~>1.11",
            "~> 1.11.0",
            ">= 1.2, < 2.0",
            "1.12.6-dev",
            "1.9.0-rc1",
            "1.5.0+ent",
        ] {
            check_engine_version(text).expect(text);
        }
        for text in
            ["", "nonexisting", "1.11.4; rm", "1.2.3.4", "v1.2.3", "~>", "1..2", "1.2.3-", "../1.2", "1.2\n", ">= 1,"]
        {
            assert!(check_engine_version(text).is_err(), "{text:?}");
        }
    }

    #[test]
    fn a_working_directory_stays_inside() {
        for text in ["", "bar/", "a/b/c", "./a", "a..b"] {
            check_working_directory(text).expect(text);
        }
        for text in ["/etc", "..", "a/../b", "a\\..\\b", "a\0", "\u{202e}"] {
            assert!(check_working_directory(text).is_err(), "{text:?}");
        }
    }

    #[test]
    fn a_bad_pattern_says_where() {
        for text in ["/module-1/**/*", "/**/networking/*", "a[bc]?", "a\\[b"] {
            check_trigger_pattern(text).expect(text);
        }
        let refusal = check_trigger_pattern("ab[c").expect_err("open bracket");
        assert_eq!(refusal.detail, r#"Trigger patterns: the bracket is never closed at character 3 of "ab[c""#);
        for text in ["", "a\\", "a\0"] {
            assert!(check_trigger_pattern(text).is_err(), "{text:?}");
        }
    }

    #[test]
    fn durations_are_days_or_hours() {
        for text in ["1d", "24h", "9999h"] {
            check_auto_destroy_duration(text).expect(text);
        }
        for text in ["", "d", "20m", "12345d", "-1d", "1 d", "bar"] {
            assert!(check_auto_destroy_duration(text).is_err(), "{text:?}");
        }
    }
}
