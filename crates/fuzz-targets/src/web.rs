//! Logs and texts of strangers on pages.

use taco_web::fuzzing;

use crate::in_pieces;

const SPAN: &str = "<span class=\"";

/// Elements that Markdown may become.
const ELEMENTS: &[&str] = &[
    "a",
    "blockquote",
    "br",
    "code",
    "del",
    "em",
    "h3",
    "h4",
    "h5",
    "h6",
    "hr",
    "li",
    "ol",
    "p",
    "pre",
    "strong",
    "table",
    "tbody",
    "td",
    "th",
    "thead",
    "tr",
    "ul",
];

/// Of a log come text and spans of known classes, and nothing else.
pub fn logs(data: &[u8]) {
    let (pieces, log) = in_pieces(data);
    let html = fuzzing::log(&pieces);
    assert_eq!(html, fuzzing::log(&[log]), "pieces make no difference");
    let mut open = 0;
    for part in html.split_inclusive('>').filter(|part| part.contains(['<', '>'])) {
        let tag = &part[part.find('<').expect("what closes was opened")..];
        if tag == "</span>" {
            open -= 1;
            continue;
        }
        let classes = tag.strip_prefix(SPAN).and_then(|rest| rest.strip_suffix("\">")).expect("a span");
        assert!(
            classes.bytes().all(|byte| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b' '),
            "{tag}"
        );
        open += 1;
    }
    assert_eq!(open, 0, "{html}");
    assert!(!html.chars().any(|character| character != '\n' && fuzzing::is_deceptive(character)), "{html:?}");
}

/// Of Markdown come known elements without anything that could run, load or deceive.
pub fn markdown(data: &[u8]) {
    let Ok(text) = std::str::from_utf8(data) else { return };
    let html = fuzzing::markdown(text);
    for tag in html.split('<').skip(1) {
        let tag = tag.split('>').next().unwrap_or_default();
        let name: String = tag.trim_start_matches('/').chars().take_while(char::is_ascii_alphanumeric).collect();
        assert!(ELEMENTS.contains(&name.as_str()), "<{tag}> in {html}");
        let attributes = tag.trim_start_matches('/')[name.len()..].trim().trim_end_matches('/').trim_end();
        let allowed = match name.as_str() {
            "a" => {
                attributes.is_empty()
                    || ["http://", "https://", "mailto:"]
                        .iter()
                        .any(|scheme| attributes.starts_with(&format!("href=\"{scheme}")))
            }
            "pre" => ["", "tabindex=\"0\""].contains(&attributes),
            "ol" => attributes.is_empty() || attributes.starts_with("start=\""),
            _ => attributes.is_empty(),
        };
        assert!(allowed, "<{tag}> in {html}");
    }
}

/// A line that is JSON is shown, and what is shown goes through the same as a log.
pub fn engine_lines(data: &[u8]) {
    if let Some(words) = fuzzing::engine_line(data) {
        logs(&[&[255], words.as_bytes()].concat());
    }
}
