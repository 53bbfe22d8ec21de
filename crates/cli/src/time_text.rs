//! Points in time: for people "12 min ago", for programs RFC 3339 with whole seconds.

use jiff::{SignedDuration, Timestamp};

/// The machine's clock.
#[expect(clippy::disallowed_methods, reason = "the one place of the command line that asks the machine for the time")]
pub(crate) fn now() -> Timestamp {
    Timestamp::now()
}

/// A time as servers send it, cut to whole seconds; any other text stays as it is.
pub(crate) fn whole_seconds(text: &str) -> String {
    match text.parse::<Timestamp>() {
        Ok(time) => time.strftime("%Y-%m-%dT%H:%M:%SZ").to_string(),
        Err(_) => text.to_owned(),
    }
}

/// Time that has passed since then, or a date where that says more.
pub(crate) fn ago(text: &str, now: Timestamp) -> String {
    let Ok(time) = text.parse::<Timestamp>() else { return text.to_owned() };
    let seconds = now.as_second() - time.as_second();
    let (count, suffix) = if seconds < 0 { (-seconds, "from now") } else { (seconds, "ago") };
    const MINUTE: i64 = 60;
    const HOUR: i64 = 60 * MINUTE;
    const DAY: i64 = 24 * HOUR;
    match count {
        // Clocks of two machines differ by so much.
        0..10 => "just now".to_owned(),
        10..MINUTE => format!("{count} s {suffix}"),
        MINUTE..HOUR => format!("{} min {suffix}", count / MINUTE),
        HOUR..DAY => format!("{} h {suffix}", count / HOUR),
        DAY..2_592_000 => format!("{} d {suffix}", count / DAY),
        _ => time.strftime("%Y-%m-%d").to_string(),
    }
}

/// A distance such as 90s, 15m, 12h or 30d.
pub(crate) fn distance(text: &str) -> Option<SignedDuration> {
    let (number, unit) = text.split_at_checked(text.len().checked_sub(1)?)?;
    let seconds: i64 = match unit {
        "s" => 1,
        "m" => 60,
        "h" => 3600,
        "d" => 86_400,
        _ => return None,
    };
    Some(SignedDuration::from_secs(number.parse::<u32>().map(i64::from).ok()?.checked_mul(seconds)?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_time_is_told_by_what_has_passed_since() {
        let now: Timestamp = "2026-11-17T12:00:00Z".parse().expect("a time");
        for (time, expected) in [
            ("2026-11-17T11:59:55.476579995Z", "just now"),
            ("2026-11-17T11:59:30Z", "30 s ago"),
            ("2026-11-17T11:47:10Z", "12 min ago"),
            ("2026-11-17T09:00:00Z", "3 h ago"),
            ("2026-11-10T12:00:00Z", "7 d ago"),
            ("2026-08-01T12:00:00Z", "2026-08-01"),
            ("2026-11-18T13:00:00Z", "1 d from now"),
            ("never", "never"),
        ] {
            assert_eq!(ago(time, now), expected, "{time}");
        }
    }

    #[test]
    fn programs_get_whole_seconds() {
        assert_eq!(whole_seconds("2026-11-17T09:48:15.476579995Z"), "2026-11-17T09:48:15Z");
        assert_eq!(whole_seconds(""), "");
    }
}
