//! The minutes in which an agent was heard lately.

use jiff::Timestamp;

/// Number of minutes that are remembered.
pub const HEARTBEAT_MINUTES: usize = 30;

/// The minutes in which an agent was heard, of the last ones.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Heartbeats {
    first: i64,
    newest: i64,
    /// A bit for each minute before the newest, which is the lowest.
    heard: u64,
}

/// What is known of an agent and one minute.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Beat {
    Heard,
    Missed,
    /// It is not over yet, or was before the agent was first heard.
    Unknown,
}

impl Heartbeats {
    pub fn new(at: Timestamp) -> Self {
        let minute = minute_of(at);
        Self { first: minute, newest: minute, heard: 1 }
    }

    pub fn note(&mut self, at: Timestamp) {
        let minute = minute_of(at);
        let later = minute - self.newest;
        if later > 0 {
            self.heard = u32::try_from(later).ok().and_then(|later| self.heard.checked_shl(later)).unwrap_or(0);
            self.newest = minute;
        }
        if let Ok(age) = u32::try_from(self.newest - minute) {
            self.heard |= 1_u64.checked_shl(age).unwrap_or(0);
        }
    }

    /// The last minutes up to `now`, the oldest first.
    pub fn minutes(&self, now: Timestamp) -> [Beat; HEARTBEAT_MINUTES] {
        let last = minute_of(now);
        std::array::from_fn(|index| {
            let minute = last - (HEARTBEAT_MINUTES - 1 - index) as i64;
            let age = u32::try_from(self.newest - minute).ok();
            let heard = age.and_then(|age| self.heard.checked_shr(age)).is_some_and(|bits| bits & 1 == 1);
            match heard {
                true => Beat::Heard,
                false if minute < self.first || minute >= last => Beat::Unknown,
                false => Beat::Missed,
            }
        })
    }
}

fn minute_of(at: Timestamp) -> i64 {
    at.as_second().div_euclid(60)
}

#[cfg(test)]
mod tests {
    use jiff::SignedDuration;

    use super::*;

    fn at(seconds: i64) -> Timestamp {
        Timestamp::UNIX_EPOCH + SignedDuration::from_secs(100_000 * 60 + seconds)
    }

    fn told(beats: &Heartbeats, now: i64) -> String {
        let sign = |beat: &Beat| match beat {
            Beat::Heard => '#',
            Beat::Missed => '.',
            Beat::Unknown => ' ',
        };
        beats.minutes(at(now)).iter().map(sign).collect::<String>().trim_start().to_owned()
    }

    #[test]
    fn minutes_without_a_heartbeat_are_missed() {
        let mut beats = Heartbeats::new(at(0));
        beats.note(at(20));
        beats.note(at(60));
        beats.note(at(240));
        assert_eq!(told(&beats, 250), "##..#");
        assert_eq!(told(&beats, 420), "##..#.. ", "the current minute is not over");
        beats.note(at(130));
        assert_eq!(told(&beats, 250), "###.#", "another server heard it and says so late");
    }

    #[test]
    fn what_is_long_ago_is_forgotten() {
        let mut beats = Heartbeats::new(at(0));
        assert_eq!(told(&beats, 60 * 60), ".".repeat(29) + " ");
        beats.note(at(200 * 60));
        assert_eq!(told(&beats, 200 * 60), ".".repeat(29) + "#");
        beats.note(at(0));
        assert_eq!(told(&beats, 200 * 60), ".".repeat(29) + "#");
    }
}
