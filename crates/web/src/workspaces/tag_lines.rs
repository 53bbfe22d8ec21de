//! Tags as people type them: one per line, `key` or `key=value`.

use taco_domain::name::TagKey;
use taco_domain::tag::{TagBinding, Tags, with_tags};

/// Tags as lines of a form's text area.
pub(crate) fn lines(tags: &Tags) -> String {
    let line = |(key, value): (&TagKey, &String)| {
        if value.is_empty() { key.to_string() } else { format!("{key}={value}") }
    };
    tags.iter().map(line).collect::<Vec<_>>().join("\n")
}

/// The tags that lines name, or what is wrong with them.
pub(crate) fn bindings(lines: &str) -> Result<Vec<TagBinding>, String> {
    let lines = lines.lines().map(str::trim).filter(|line| !line.is_empty());
    let binding = |line: &str| match line.split_once('=') {
        Some((key, value)) => TagBinding { key: key.trim().to_owned(), value: Some(value.trim().to_owned()) },
        None => TagBinding { key: line.to_owned(), value: None },
    };
    let bindings: Vec<TagBinding> = lines.map(binding).collect();
    match with_tags(&Tags::new(), &bindings) {
        Ok(_) => Ok(bindings),
        Err(refusal) => Err(refusal.detail),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tags_are_lines_with_or_without_a_value() {
        let found = bindings("team = web\r\n\nprod\n a=b=c ").expect("legal");
        let found: Vec<_> = found.into_iter().map(|tag| (tag.key, tag.value)).collect();
        let tag = |key: &str, value: Option<&str>| (key.to_owned(), value.map(str::to_owned));
        assert_eq!(found, [tag("team", Some("web")), tag("prod", None), tag("a", Some("b=c"))]);
    }

    #[test]
    fn what_is_shown_is_what_was_typed_and_mistakes_are_told() {
        let typed = "prod\nteam=web";
        let tags = with_tags(&Tags::new(), &bindings(typed).expect("legal")).expect("legal");
        assert_eq!(lines(&tags), typed);
        assert!(bindings("a*b").expect_err("no key").starts_with("Key may only contain"));
    }
}
