//! How long bucket operations took over the last day, for the pages of a site's admins. It is this process's own, and
//! begins with it; `/metrics` is for everything else.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use tokio::time::Instant;

/// Operations are counted together for so long.
const INTERVAL: Duration = Duration::from_secs(5 * 60);
/// Number of intervals that are kept: those of a day.
const MAX_INTERVALS: u64 = 24 * 60 / 5;
/// Number of classes of durations, and where the first ends. Each ends at 1.5 times the one before: the last at 9 s.
const CLASSES: usize = 28;
const FIRST_CLASS_ENDS: Duration = Duration::from_micros(150);
const GROWTH: f64 = 1.5;

/// Durations of operations by interval. Clones share them.
#[derive(Clone, Debug)]
pub struct OperationTimes(Arc<Mutex<Intervals>>);

#[derive(Debug)]
struct Intervals {
    begun: Instant,
    /// With their numbers since the beginning; those without operations are left out.
    counted: VecDeque<(u64, Counted)>,
}

#[derive(Clone, Copy, Default, Debug)]
struct Counted {
    classes: [u32; CLASSES],
    errors: u32,
}

/// The operations of one interval.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct IntervalTimes {
    /// Number of whole intervals between it and the current one.
    pub ago: u64,
    pub operations: u64,
    pub errors: u64,
    /// Half of them, and all but a hundredth, took at most this long.
    pub median: Duration,
    pub p99: Duration,
}

impl OperationTimes {
    pub const INTERVAL: Duration = INTERVAL;
    pub const MAX_INTERVALS: u64 = MAX_INTERVALS;

    pub(crate) fn begin() -> Self {
        Self(Arc::new(Mutex::new(Intervals { begun: Instant::now(), counted: VecDeque::new() })))
    }

    pub(crate) fn note(&self, took: Duration, succeeded: bool) {
        let mut intervals = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let number = intervals.current();
        if intervals.counted.back().is_none_or(|(last, _)| *last != number) {
            intervals.counted.push_back((number, Counted::default()));
            while intervals.counted.front().is_some_and(|(first, _)| first + MAX_INTERVALS <= number) {
                intervals.counted.pop_front();
            }
        }
        if let Some((_, counted)) = intervals.counted.back_mut() {
            let class = &mut counted.classes[class_of(took)];
            *class = class.saturating_add(1);
            counted.errors = counted.errors.saturating_add(u32::from(!succeeded));
        }
    }

    /// Time since the first operation could be counted.
    pub fn age(&self) -> Duration {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).begun.elapsed()
    }

    /// The intervals with operations, the oldest first.
    pub fn intervals(&self) -> Vec<IntervalTimes> {
        let intervals = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let current = intervals.current();
        let recent = intervals.counted.iter().filter(|(number, _)| number + MAX_INTERVALS > current);
        recent.map(|(number, counted)| counted.summary(current - number)).collect()
    }
}

impl Intervals {
    fn current(&self) -> u64 {
        self.begun.elapsed().as_secs() / INTERVAL.as_secs()
    }
}

impl Counted {
    fn summary(&self, ago: u64) -> IntervalTimes {
        let operations: u64 = self.classes.iter().map(|count| u64::from(*count)).sum();
        IntervalTimes {
            ago,
            operations,
            errors: self.errors.into(),
            median: self.quantile(operations, 50),
            p99: self.quantile(operations, 99),
        }
    }

    /// End of the class in which so many percent are reached.
    fn quantile(&self, operations: u64, percent: u64) -> Duration {
        let wanted = (operations * percent).div_ceil(100).max(1);
        let mut reached = 0;
        for (class, count) in self.classes.iter().enumerate() {
            reached += u64::from(*count);
            if reached >= wanted {
                return end_of(class);
            }
        }
        Duration::ZERO
    }
}

fn class_of(took: Duration) -> usize {
    (0..CLASSES - 1).find(|class| took <= end_of(*class)).unwrap_or(CLASSES - 1)
}

fn end_of(class: usize) -> Duration {
    FIRST_CLASS_ENDS.mul_f64(GROWTH.powi(class as i32))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn durations_are_counted_by_interval() {
        let times = OperationTimes::begin();
        assert_eq!(times.intervals(), []);
        for _ in 0..98 {
            times.note(Duration::from_millis(2), true);
        }
        for _ in 0..2 {
            times.note(Duration::from_millis(700), false);
        }
        tokio::time::advance(INTERVAL * 3).await;
        times.note(Duration::from_secs(3600), true);
        let told = times.intervals();
        let [first, last] = told[..] else { panic!("{told:?}") };
        assert_eq!((first.ago, first.operations, first.errors), (3, 100, 2));
        assert!((2..4).contains(&first.median.as_millis()), "{first:?}");
        assert!((700..1100).contains(&first.p99.as_millis()), "{first:?}");
        assert_eq!((last.ago, last.operations), (0, 1));
        assert!(last.median > Duration::from_secs(8), "the slowest are in one class");
        assert_eq!(times.age(), INTERVAL * 3);
    }

    #[tokio::test(start_paused = true)]
    async fn what_is_older_than_a_day_is_forgotten() {
        let times = OperationTimes::begin();
        times.note(Duration::ZERO, true);
        tokio::time::advance(Duration::from_secs(24 * 60 * 60)).await;
        assert_eq!(times.intervals(), []);
        for _ in 0..1000 {
            times.note(Duration::ZERO, true);
            tokio::time::advance(INTERVAL).await;
        }
        assert_eq!(times.intervals().len() as u64, MAX_INTERVALS - 1);
        assert!(times.0.lock().expect("no panic").counted.len() as u64 <= MAX_INTERVALS);
    }
}
