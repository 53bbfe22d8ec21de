//! Terraform's flags have one dash, and hands are used to that.

use std::ffi::OsString;

/// Flags of `taco run start` that are terraform's.
const FLAGS: [&str; 8] = ["auto-apply", "destroy", "message", "plan-only", "refresh-only", "replace", "target", "var"];

/// The same command line with two dashes where `taco run start` has terraform's one.
pub fn with_two_dashes(words: impl Iterator<Item = OsString>) -> Vec<OsString> {
    let mut words: Vec<OsString> = words.collect();
    let is = |index: usize, word: &str| words.get(index).is_some_and(|found| found == word);
    if !is(1, "run") || !words.iter().any(|word| word == "start") {
        return words;
    }
    for word in &mut words {
        let Some(flag) = word.to_str().and_then(|word| word.strip_prefix('-')) else { continue };
        if FLAGS.contains(&flag.split('=').next().unwrap_or_default()) {
            *word = format!("--{flag}").into();
        }
    }
    words
}

#[cfg(test)]
mod tests {
    use super::*;

    fn respelled(line: &str) -> String {
        let words = with_two_dashes(line.split(' ').map(OsString::from));
        words.iter().map(|word| word.to_string_lossy()).collect::<Vec<_>>().join(" ")
    }

    #[test]
    fn flags_of_terraform_may_have_one_dash_where_they_are_meant() {
        let line = "taco run start . -destroy -target=a.b -var x=-y --message -m -w";
        assert_eq!(respelled(line), "taco run start . --destroy --target=a.b --var x=-y --message -m -w");
        assert_eq!(respelled("taco state push -var"), "taco state push -var");
        assert_eq!(respelled("taco"), "taco");
    }
}
