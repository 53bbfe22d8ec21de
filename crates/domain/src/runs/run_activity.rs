//! Runs per day, by outcome.

use jiff::civil::Date;
use jiff::tz::TimeZone;
use jiff::{SignedDuration, Timestamp};

use crate::run_outcome::RunOutcome;

const DAY_SECONDS: i64 = 24 * 60 * 60;

/// The runs that began on the last days, the oldest first. Days are those of UTC.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct RunActivity {
    begins: Timestamp,
    days: Vec<DayCounts>,
}

/// The runs that began on one day.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct DayCounts {
    pub day: Date,
    counts: [u64; 4],
}

impl DayCounts {
    pub fn count(&self, outcome: RunOutcome) -> u64 {
        self.counts[outcome as usize]
    }

    pub fn total(&self) -> u64 {
        self.counts.iter().sum()
    }
}

impl RunActivity {
    /// No runs on the day of `now` and those before it.
    pub fn of_days(number: usize, now: Timestamp) -> Self {
        let midnight = now.as_second().div_euclid(DAY_SECONDS) * DAY_SECONDS;
        let before = i64::try_from(number.saturating_sub(1)).unwrap_or_default() * DAY_SECONDS;
        let begins = Timestamp::from_second(midnight - before).unwrap_or(Timestamp::UNIX_EPOCH);
        let day = |index: usize| {
            let at = begins + SignedDuration::from_secs(index as i64 * DAY_SECONDS);
            DayCounts { day: at.to_zoned(TimeZone::UTC).date(), counts: [0; 4] }
        };
        Self { begins, days: (0..number).map(day).collect() }
    }

    /// The moment when the first day begins: what is older does not count.
    pub fn begins(&self) -> Timestamp {
        self.begins
    }

    pub fn days(&self) -> &[DayCounts] {
        &self.days
    }

    /// Counts a run that began at `at`.
    pub fn add(&mut self, at: Timestamp, outcome: RunOutcome) {
        self.add_second(at.as_second(), outcome);
    }

    /// Counts a run that began in this second since 1970.
    pub fn add_second(&mut self, second: i64, outcome: RunOutcome) {
        let index = (second - self.begins.as_second()).div_euclid(DAY_SECONDS);
        if let Some(day) = usize::try_from(index).ok().and_then(|index| self.days.get_mut(index)) {
            day.counts[outcome as usize] += 1;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(text: &str) -> Timestamp {
        text.parse().expect("a timestamp")
    }

    #[test]
    fn each_run_counts_on_its_day() {
        let mut activity = RunActivity::of_days(3, at("2026-03-01T00:00:00Z"));
        assert_eq!(activity.begins(), at("2026-02-27T00:00:00Z"));
        for (moment, outcome) in [
            ("2026-02-26T23:59:59Z", RunOutcome::Failed),
            ("2026-02-27T00:00:00Z", RunOutcome::Failed),
            ("2026-02-28T23:59:59.9Z", RunOutcome::Succeeded),
            ("2026-02-28T10:00:00Z", RunOutcome::Succeeded),
            ("2026-03-01T23:00:00Z", RunOutcome::Open),
            ("2026-03-02T00:00:00Z", RunOutcome::Open),
        ] {
            activity.add(at(moment), outcome);
        }
        let told: Vec<_> = activity.days().iter().map(|day| (day.day.to_string(), day.total())).collect();
        let expected = [("2026-02-27", 1), ("2026-02-28", 2), ("2026-03-01", 1)];
        assert_eq!(told, expected.map(|(day, total)| (day.to_owned(), total)));
        assert_eq!(activity.days()[1].count(RunOutcome::Succeeded), 2);
    }
}
