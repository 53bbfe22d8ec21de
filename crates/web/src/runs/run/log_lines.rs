//! Index of the lines of a log. Logs are stored in the bucket as bytes; to show the end of one, the line breaks before
//! it are counted once, and some offsets are cached. With a distant bucket that takes longer than anyone waits for a
//! page. So it goes on in the background, and until then lines have no numbers.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use taco_control_plane::{Error, RunView};
use taco_domain::id::RunId;
use taco_domain::phase::PhaseKind;
use tokio::sync::{Semaphore, watch};
use tokio::time::timeout;

use crate::Web;

/// Limit for the number of cached logs.
const MAX_CACHED_LOGS: usize = 64;
/// Limit for the number of logs counted concurrently.
const MAX_CONCURRENT_COUNTS: usize = 8;
/// Every so many lines, it is remembered where one begins.
const STEP: u64 = 100;
/// Every so many bytes, it is remembered how many lines there were: some have few line breaks.
const STRIDE: u64 = 256 * 1024;
/// So many steps are shown behind a line that someone wants to see, where they fit.
const STEPS_BEHIND: usize = 4;
/// Number of bytes of a log read at a time.
const LOG_CHUNK_BYTES: u64 = 1024 * 1024;
/// Timeout of a page for the numbers of its lines.
const LINE_NUMBERS_TIMEOUT: Duration = Duration::from_millis(200);
/// Timeout for the one line that was requested.
const REQUESTED_LINE_TIMEOUT: Duration = Duration::from_secs(3);

/// A run, its phase and the attempt: with another attempt the log may go on elsewhere.
type Key = (RunId, PhaseKind, u64);

/// Cache of recent line counts.
#[derive(Debug)]
pub(crate) struct LineCache {
    logs: Mutex<VecDeque<(Key, Arc<watch::Sender<Progress>>)>>,
    turns: Semaphore,
}

impl Default for LineCache {
    fn default() -> Self {
        Self { logs: Mutex::default(), turns: Semaphore::new(MAX_CONCURRENT_COUNTS) }
    }
}

impl LineCache {
    fn log(&self, view: &RunView, kind: PhaseKind) -> Arc<watch::Sender<Progress>> {
        let key = (view.run.id, kind, view.run.phase(kind).epoch);
        let mut logs = self.logs.lock().unwrap_or_else(PoisonError::into_inner);
        let known = logs.iter().position(|(known, _)| *known == key).and_then(|place| logs.remove(place));
        let (key, log) = known.unwrap_or_else(|| (key, Arc::new(watch::Sender::new(Progress::default()))));
        logs.push_front((key, Arc::clone(&log)));
        logs.truncate(MAX_CACHED_LOGS);
        log
    }

    /// Takes bytes of a log that someone has read anyway.
    pub(crate) fn learn(&self, view: &RunView, kind: PhaseKind, from: u64, bytes: &[u8]) {
        self.log(view, kind).send_modify(|progress| progress.counted.learn(from, bytes));
    }
}

/// Progress of counting one log.
#[derive(Default, Debug)]
struct Progress {
    counted: Counted,
    /// As far as someone wants to know it.
    wanted: u64,
    /// Someone counts at the moment.
    goes_on: bool,
}

/// A log from its beginning up to a byte.
#[derive(Clone, Default, PartialEq, Eq, Debug)]
struct Counted {
    to: u64,
    /// Line breaks up to there.
    breaks: u64,
    /// Offsets of line 101, line 201, and so on.
    steps: Vec<u64>,
    /// Cumulative counts of line breaks per stride.
    strides: Vec<u64>,
}

impl Counted {
    /// Takes the bytes that follow.
    fn push(&mut self, bytes: &[u8]) {
        let mut rest = bytes;
        while !rest.is_empty() {
            let stride_ends = (self.to / STRIDE + 1) * STRIDE;
            let (now, later) = rest.split_at(rest.len().min((stride_ends - self.to) as usize));
            for (place, _) in now.iter().enumerate().filter(|(_, byte)| **byte == b'\n') {
                self.breaks += 1;
                if self.breaks.is_multiple_of(STEP) {
                    self.steps.push(self.to + place as u64 + 1);
                }
            }
            self.to += now.len() as u64;
            if self.to == stride_ends {
                self.strides.push(self.breaks);
            }
            rest = later;
        }
    }

    /// Takes those of the bytes at `from` that follow.
    fn learn(&mut self, from: u64, bytes: &[u8]) {
        let known = self.to.checked_sub(from).and_then(|known| usize::try_from(known).ok());
        if let Some(new) = known.and_then(|known| bytes.get(known..)) {
            self.push(new);
        }
    }

    /// The last place at or before `offset` of which the number of line breaks before it is known, and that number.
    fn known_before(&self, offset: u64) -> (u64, u64) {
        if offset >= self.to {
            return (self.to, self.breaks);
        }
        self.step(self.steps.partition_point(|step| *step <= offset)).max(self.stride((offset / STRIDE) as usize))
    }

    /// The last place known that is not behind the beginning of a line, and how many line breaks are before it.
    fn known_before_line(&self, line: u64) -> (u64, u64) {
        let breaks = line.saturating_sub(1);
        let step = usize::try_from(breaks / STEP).unwrap_or(usize::MAX).min(self.steps.len());
        self.step(step).max(self.stride(self.strides.partition_point(|before| *before < breaks)))
    }

    fn step(&self, number: usize) -> (u64, u64) {
        (number.checked_sub(1).map_or(0, |last| self.steps[last]), number as u64 * STEP)
    }

    fn stride(&self, number: usize) -> (u64, u64) {
        (number as u64 * STRIDE, number.checked_sub(1).map_or(0, |last| self.strides[last]))
    }

    /// Offsets of the next steps after a line.
    fn steps_behind(&self, line: u64) -> &[u64] {
        let first = usize::try_from(line.saturating_sub(1) / STEP).unwrap_or(usize::MAX);
        let behind = self.steps.get(first..).unwrap_or_default();
        &behind[..behind.len().min(STEPS_BEHIND)]
    }
}

/// Sees to it that a log is counted up to `offset`. One task does that, however many requests ask.
fn count(web: &Web, view: &RunView, kind: PhaseKind, offset: u64) -> watch::Receiver<Progress> {
    let log = web.lines.log(view, kind);
    let mut begins = false;
    log.send_if_modified(|progress| {
        progress.wanted = progress.wanted.max(offset);
        begins = !progress.goes_on && progress.counted.to < progress.wanted;
        progress.goes_on |= begins;
        false
    });
    let progress = log.subscribe();
    if begins {
        tokio::spawn(go_on(web.clone(), view.clone(), kind, log));
    }
    progress
}

async fn go_on(web: Web, view: RunView, kind: PhaseKind, log: Arc<watch::Sender<Progress>>) {
    let _turn = web.lines.turns.acquire().await;
    let mut goes_on = true;
    while goes_on {
        let (at, wanted) = (log.borrow().counted.to, log.borrow().wanted);
        let limit = wanted.saturating_sub(at).min(LOG_CHUNK_BYTES) as usize;
        let bytes = web.control_plane.log_part(&view, kind, at, limit).await.unwrap_or_else(|error| {
            tracing::warn!(
                event = "log_lines_not_counted", run = %view.run.id, %error,
                "the lines of a log are not counted"
            );
            Vec::new()
        });
        log.send_modify(|progress| {
            progress.counted.learn(at, &bytes);
            // A later request for more asks again.
            if bytes.is_empty() {
                progress.wanted = progress.counted.to;
            }
            goes_on = progress.counted.to < progress.wanted;
            progress.goes_on = goes_on;
        });
    }
}

/// The number of the line that contains the byte at `offset`; the first is 1. `None` where that takes too long.
pub(crate) async fn line_at(web: &Web, view: &RunView, kind: PhaseKind, offset: u64) -> Result<Option<u64>, Error> {
    let mut log = count(web, view, kind, offset);
    let look = async {
        let known = log.wait_for(|log| log.counted.to >= offset || !log.goes_on).await.ok().and_then(|log| {
            let counted = &log.counted;
            (counted.to >= offset).then(|| counted.known_before(offset))
        });
        let Some((from, breaks)) = known else { return Ok(None) };
        let between = web.control_plane.log_part(view, kind, from, (offset - from) as usize).await?;
        Ok(Some(1 + breaks + breaks_in(&between)))
    };
    timeout(LINE_NUMBERS_TIMEOUT, look).await.unwrap_or(Ok(None))
}

pub(crate) fn breaks_in(bytes: &[u8]) -> u64 {
    bytes.iter().filter(|byte| **byte == b'\n').count() as u64
}

/// Position of a line that someone has a link to.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum LinePlace {
    /// It begins at a byte, and a part of the log that ends before another shows it.
    Within { begins: u64, before: u64 },
    /// Among the last lines, or there is no such line.
    AtEnd,
    /// Not known yet, as it takes too long to find out now.
    NotKnownYet,
}

/// Finds a line in a log that ends at `end`. The part with it holds `window` bytes.
pub(crate) async fn place_of(
    web: &Web,
    view: &RunView,
    kind: PhaseKind,
    line: u64,
    window: u64,
    end: u64,
) -> Result<LinePlace, Error> {
    let mut log = count(web, view, kind, end);
    let is_found = |counted: &Counted| counted.steps_behind(line).len() == STEPS_BEHIND || counted.to >= end;
    let look = async {
        let known = log.wait_for(|log| is_found(&log.counted) || !log.goes_on).await.ok().and_then(|log| {
            let counted = &log.counted;
            let places = || (counted.breaks, counted.known_before_line(line), counted.steps_behind(line).to_vec());
            is_found(counted).then(places)
        });
        let Some((all_breaks, (from, breaks), behind)) = known else { return Ok(LinePlace::NotKnownYet) };
        if all_breaks + 1 < line {
            return Ok(LinePlace::AtEnd);
        }
        let near = web.control_plane.log_part(view, kind, from, STRIDE as usize).await?;
        let begins = from + after_breaks(&near, line.saturating_sub(1).saturating_sub(breaks));
        // The break before the line is within the window, too.
        let latest = begins + window - 1;
        if behind.len() < STEPS_BEHIND && end <= latest {
            return Ok(LinePlace::AtEnd);
        }
        if let Some(before) = behind.iter().rev().find(|step| **step <= latest) {
            return Ok(LinePlace::Within { begins, before: *before });
        }
        let following = web.control_plane.log_part(view, kind, begins, (latest - begins) as usize).await?;
        let whole_lines = following.iter().rposition(|byte| *byte == b'\n').map_or(following.len(), |end| end + 1);
        Ok(LinePlace::Within { begins, before: begins + whole_lines as u64 })
    };
    timeout(REQUESTED_LINE_TIMEOUT, look).await.unwrap_or(Ok(LinePlace::NotKnownYet))
}

/// The place behind so many line breaks.
fn after_breaks(bytes: &[u8], breaks: u64) -> u64 {
    let Some(last) = breaks.checked_sub(1) else { return 0 };
    let mut ends = bytes.iter().enumerate().filter(|(_, byte)| **byte == b'\n');
    ends.nth(last as usize).map_or(bytes.len(), |(end, _)| end + 1) as u64
}

#[cfg(test)]
mod tests {
    use super::*;

    fn counted(log: &[u8]) -> Counted {
        let mut counted = Counted::default();
        counted.push(log);
        counted
    }

    #[test]
    fn lines_are_counted_however_the_bytes_come() {
        let log = "line\n".repeat(250);
        let whole = counted(log.as_bytes());
        let mut pieces = Counted::default();
        log.as_bytes().chunks(7).for_each(|piece| pieces.push(piece));
        assert_eq!(whole, pieces);
        assert_eq!((whole.breaks, whole.steps.as_slice()), (250, &[500, 1000][..]));
        for (offset, expected) in
            [(0, (0, 0)), (499, (0, 0)), (500, (500, 100)), (1200, (1000, 200)), (1250, (1250, 250))]
        {
            assert_eq!(whole.known_before(offset), expected, "{offset}");
        }
        let mut twice = Counted::default();
        for (from, to) in [(0, 300), (200, 600), (100, 200), (900, 1250), (500, 1250)] {
            twice.learn(from as u64, &log.as_bytes()[from..to]);
        }
        assert_eq!(whole, twice, "what is known already counts once, and nothing is left out");
    }

    #[test]
    fn places_are_known_within_long_lines() {
        let text = ("x".repeat(100_000 - 1) + "\n").repeat(20);
        let log = counted(text.as_bytes());
        assert_eq!(log.strides, [2, 5, 7, 10, 13, 15, 18], "every 262,144 bytes");
        assert_eq!(log.known_before(1_000_000), (3 * STRIDE, 7));
        for number in 1..=21 {
            let (from, breaks) = log.known_before_line(number);
            let begins = (number - 1) * 100_000;
            assert!(from <= begins && begins - from <= STRIDE, "{number}: {from}");
            let near = &text.as_bytes()[from as usize..];
            assert_eq!(from + after_breaks(near, number - 1 - breaks), begins, "{number}");
        }
        let one = counted("x".repeat(3 * STRIDE as usize).as_bytes());
        assert_eq!((one.strides.as_slice(), one.known_before_line(1)), (&[0, 0, 0][..], (0, 0)));
    }

    #[test]
    fn the_steps_behind_a_line_begin_with_the_next() {
        let log = counted("x\n".repeat(450).as_bytes());
        for (line, expected) in [
            (1, &[200, 400, 600, 800][..]),
            (100, &[200, 400, 600, 800]),
            (101, &[400, 600, 800]),
            (401, &[]),
            (u64::MAX, &[]),
        ] {
            assert_eq!(log.steps_behind(line), expected, "{line}");
        }
    }
}
