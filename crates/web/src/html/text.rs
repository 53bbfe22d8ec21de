//! Values as people read them.

use jiff::civil::DateTime;
use jiff::tz::TimeZone;
use jiff::{SignedDuration, Timestamp};
use taco_domain::lock_text;

use crate::ansi::push_escaped;

/// A moment for people, and for its `datetime` attribute.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Moment(pub(crate) Timestamp);

impl Moment {
    pub(crate) fn exact(&self) -> String {
        self.0.strftime("%Y-%m-%dT%H:%M:%SZ").to_string()
    }

    pub(crate) fn text(&self) -> String {
        self.0.to_zoned(TimeZone::UTC).strftime("%-d %b %Y, %H:%M UTC").to_string()
    }

    /// Relative time, such as `3 min ago`.
    pub(crate) fn ago(&self, now: &Timestamp) -> String {
        let passed = now.duration_since(self.0);
        if passed < SignedDuration::from_secs(5) { "just now".to_owned() } else { format!("{} ago", span(passed)) }
    }
}

/// A duration in its largest unit: `42 s`, `3 min`, `5 h`, `12 d`.
pub(crate) fn span(duration: SignedDuration) -> String {
    let seconds = duration.as_secs().max(0);
    match seconds {
        0..=89 => format!("{seconds} s"),
        90..=5399 => format!("{} min", (seconds + 30) / 60),
        5400..=129_599 => format!("{} h", (seconds + 1800) / 3600),
        _ => format!("{} d", (seconds + 43_200) / 86_400),
    }
}

/// A duration with minutes and seconds: `< 1 s`, `0:42`, `1:03:20`.
pub(crate) fn stopwatch(duration: SignedDuration) -> String {
    let seconds = duration.as_secs().max(0);
    if seconds == 0 {
        return "< 1 s".to_owned();
    }
    let (hours, minutes, seconds) = (seconds / 3600, seconds / 60 % 60, seconds % 60);
    if hours > 0 { format!("{hours}:{minutes:02}:{seconds:02}") } else { format!("{minutes}:{seconds:02}") }
}

/// A size: `640 B`, `1.5 KiB`.
pub(crate) fn size(bytes: u64) -> String {
    const UNITS: [&str; 4] = ["KiB", "MiB", "GiB", "TiB"];
    if bytes < 1024 {
        return format!("{bytes} B");
    }
    let mut value = bytes as f64 / 1024.0;
    let mut unit = 0;
    while value >= 1024.0 && unit + 1 < UNITS.len() {
        value /= 1024.0;
        unit += 1;
    }
    format!("{value:.1} {}", UNITS[unit])
}

/// `text` without what could make it look like something else: control characters but line breaks and tabs, and
/// characters that turn the direction of writing. Escaping for HTML is the templates' work.
pub(crate) fn plain(text: &str) -> String {
    text.chars().filter(|character| matches!(character, '\n' | '\t') || !is_deceptive(*character)).collect()
}

/// `text` as HTML in which moments, such as `2026-01-01T12:00:00Z`, and holders of locks are told as people read them.
pub(crate) fn with_times(text: &str) -> String {
    let text = lock_text::for_people(text);
    let mut html = String::new();
    let mut rest = &*text;
    while let Some(end) = rest.find("Z").map(|at| at + 1) {
        let (before, after) = rest.split_at(end);
        let moment = before.rfind(' ').map_or(0, |space| space + 1);
        let (words, word) = before.split_at(moment);
        match word.parse::<Timestamp>().map(Moment) {
            Ok(moment) => {
                push_all_escaped(words, &mut html);
                html.push_str(&format!("<time datetime=\"{}\">{}</time>", moment.exact(), moment.text()));
            }
            Err(_) => push_all_escaped(before, &mut html),
        }
        rest = after;
    }
    push_all_escaped(rest, &mut html);
    html
}

/// A sentence about a workspace as HTML: names between backticks as code, moments such as `2026-01-01 12:00 UTC` as times.
pub(crate) fn sentence(text: &str) -> String {
    let parts: Vec<&str> = text.split('`').collect();
    let mut html = String::new();
    for (at, part) in parts.iter().enumerate() {
        // The last backtick of an odd number of them begins nothing.
        match at % 2 == 1 && at + 1 < parts.len() {
            true => {
                html.push_str("<code>");
                push_all_escaped(part, &mut html);
                html.push_str("</code>");
            }
            false => push_with_minutes(part, &mut html),
        }
    }
    html
}

const MINUTE_FORMAT: &str = "%Y-%m-%d %H:%M";

fn push_with_minutes(text: &str, html: &mut String) {
    const LENGTH: usize = "2026-01-01 12:00".len();
    let mut rest = text;
    while let Some(end) = rest.find(" UTC") {
        let (before, after) = rest.split_at(end);
        let begin = before.len().saturating_sub(LENGTH);
        let moment = before.get(begin..).and_then(|text| DateTime::strptime(MINUTE_FORMAT, text).ok());
        match moment.and_then(|moment| moment.to_zoned(TimeZone::UTC).ok()).map(|zoned| Moment(zoned.timestamp())) {
            Some(moment) => {
                push_all_escaped(&before[..begin], html);
                html.push_str(&format!("<time datetime=\"{}\">{}</time>", moment.exact(), moment.text()));
            }
            None => push_all_escaped(&rest[..end + " UTC".len()], html),
        }
        rest = &after[" UTC".len()..];
    }
    push_all_escaped(rest, html);
}

fn push_all_escaped(text: &str, html: &mut String) {
    plain(text).chars().for_each(|character| push_escaped(character, html));
}

pub(crate) fn is_deceptive(character: char) -> bool {
    character.is_control()
        || matches!(character, '\u{200e}' | '\u{200f}' | '\u{061c}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}' | '\u{feff}')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sentences_have_code_and_times() {
        let html = sentence(
            "web changed `sub<net` in commit 2 (2026-11-19 19:38 UTC); 19:38 UTC is no moment, nor is ` code.",
        );
        let time = "<time datetime=\"2026-11-19T19:38:00Z\">19 Nov 2026, 19:38 UTC</time>";
        let expected =
            format!("web changed <code>sub&lt;net</code> in commit 2 ({time}); 19:38 UTC is no moment, nor is  code.");
        assert_eq!(html.replace("&#60;", "&lt;"), expected);
        assert_eq!(sentence("née 2026-13-19 19:38 UTC é"), "née 2026-13-19 19:38 UTC é");
    }

    #[test]
    fn durations_are_told_in_their_largest_unit() {
        for (seconds, expected) in
            [(-3, "0 s"), (0, "0 s"), (89, "89 s"), (90, "2 min"), (3600, "60 min"), (7200, "2 h"), (172_800, "2 d")]
        {
            assert_eq!(span(SignedDuration::from_secs(seconds)), expected);
        }
        assert_eq!(stopwatch(SignedDuration::from_millis(900)), "< 1 s");
        assert_eq!(stopwatch(SignedDuration::from_secs(42)), "0:42");
        assert_eq!(stopwatch(SignedDuration::from_secs(3800)), "1:03:20");
    }

    #[test]
    fn sizes_have_one_digit_after_the_point() {
        for (bytes, expected) in [(0, "0 B"), (1023, "1023 B"), (1536, "1.5 KiB"), (5 << 20, "5.0 MiB")] {
            assert_eq!(size(bytes), expected);
        }
    }

    #[test]
    fn moments_within_a_sentence_are_told_as_people_read_them() {
        assert_eq!(
            with_times("Zoe <b> since 2026-01-01T12:00:00Z from Zone Z"),
            "Zoe &#60;b&#62; since <time datetime=\"2026-01-01T12:00:00Z\">1 Jan 2026, 12:00 UTC</time> from Zone Z"
        );
        assert_eq!(with_times("x\"Z\u{202e}"), "x&#34;Z");
    }

    #[test]
    fn what_deceives_the_eye_is_left_out() {
        assert_eq!(plain("a\u{202e}b\u{0007}c\u{1b}[31md\u{85}e\n\tf\u{feff}"), "abc[31mde\n\tf");
    }
}
