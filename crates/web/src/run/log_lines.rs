//! Which line of a log begins where. Logs lie in the bucket as bytes; whoever shows the end of one counts the line
//! breaks before it once, and remembers every hundredth.

use std::collections::VecDeque;
use std::sync::{Mutex, PoisonError};

use taco_control_plane::{Error, RunView};
use taco_domain::id::RunId;
use taco_domain::phase::PhaseKind;

use crate::Web;

/// How many logs are remembered.
const MOST: usize = 64;
/// Every so many lines, it is remembered where one begins.
const STEP: u64 = 100;
/// So many steps are shown behind a line that someone wants to see.
const STEPS_BEHIND: usize = 3;
/// How much of a log is read at a time.
const PIECE: usize = 4 * 1024 * 1024;

/// A run, its phase and the attempt: with another attempt the log may go on elsewhere.
type Key = (RunId, PhaseKind, u64);

/// What was counted lately.
#[derive(Default, Debug)]
pub(crate) struct LineCache {
    logs: Mutex<VecDeque<(Key, Counted)>>,
}

impl LineCache {
    fn get(&self, key: &Key) -> Counted {
        let logs = self.logs.lock().unwrap_or_else(PoisonError::into_inner);
        logs.iter().find(|(known, _)| known == key).map(|(_, counted)| counted.clone()).unwrap_or_default()
    }

    fn put(&self, key: Key, counted: Counted) {
        let mut logs = self.logs.lock().unwrap_or_else(PoisonError::into_inner);
        logs.retain(|(known, _)| *known != key);
        logs.push_front((key, counted));
        logs.truncate(MOST);
    }
}

/// A log from its beginning up to a byte.
#[derive(Clone, Default, PartialEq, Eq, Debug)]
struct Counted {
    to: u64,
    /// Line breaks up to there.
    breaks: u64,
    /// Where line 101 begins, line 201, and so on.
    steps: Vec<u64>,
}

impl Counted {
    /// Takes the bytes that follow.
    fn push(&mut self, bytes: &[u8]) {
        for (place, _) in bytes.iter().enumerate().filter(|(_, byte)| **byte == b'\n') {
            self.breaks += 1;
            if self.breaks.is_multiple_of(STEP) {
                self.steps.push(self.to + place as u64 + 1);
            }
        }
        self.to += bytes.len() as u64;
    }

    /// The last place at or before `offset` of which the number of line breaks before it is known, and that number.
    fn known_before(&self, offset: u64) -> (u64, u64) {
        if offset >= self.to {
            return (self.to, self.breaks);
        }
        let steps = self.steps.partition_point(|step| *step <= offset);
        (steps.checked_sub(1).map_or(0, |last| self.steps[last]), steps as u64 * STEP)
    }
}

/// The number of the line in which the byte at `offset` lies; the first is 1.
pub(crate) async fn line_at(web: &Web, view: &RunView, kind: PhaseKind, offset: u64) -> Result<u64, Error> {
    let counted = counted_to(web, view, kind, offset).await?;
    let (from, breaks) = counted.known_before(offset);
    let limit = usize::try_from(offset - from).unwrap_or(usize::MAX);
    let between = web.control_plane.log_part(view, kind, from, limit).await?;
    Ok(1 + breaks + between.iter().filter(|byte| **byte == b'\n').count() as u64)
}

/// A place some lines behind line `line` at which a line begins; `None` where the log ends before.
pub(crate) async fn place_behind(web: &Web, view: &RunView, kind: PhaseKind, line: u64) -> Result<Option<u64>, Error> {
    let counted = counted_to(web, view, kind, u64::MAX).await?;
    let step = usize::try_from(line / STEP).unwrap_or(usize::MAX);
    Ok(counted.steps.get(step.saturating_add(STEPS_BEHIND)).copied())
}

/// What is known of a log once it is counted up to `offset`, or to its end.
async fn counted_to(web: &Web, view: &RunView, kind: PhaseKind, offset: u64) -> Result<Counted, Error> {
    let key = (view.run.id, kind, view.run.phase(kind).epoch);
    let mut counted = web.lines.get(&key);
    let before = counted.to;
    while counted.to < offset {
        let limit = usize::try_from(offset - counted.to).unwrap_or(usize::MAX).min(PIECE);
        let bytes = web.control_plane.log_part(view, kind, counted.to, limit).await?;
        if bytes.is_empty() {
            break;
        }
        counted.push(&bytes);
    }
    if counted.to > before {
        web.lines.put(key, counted.clone());
    }
    Ok(counted)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_counted_however_the_bytes_come() {
        let log = "line\n".repeat(250);
        let mut whole = Counted::default();
        whole.push(log.as_bytes());
        let mut pieces = Counted::default();
        log.as_bytes().chunks(7).for_each(|piece| pieces.push(piece));
        assert_eq!(whole, pieces);
        assert_eq!((whole.breaks, whole.steps.as_slice()), (250, &[500, 1000][..]));
        for (offset, expected) in
            [(0, (0, 0)), (499, (0, 0)), (500, (500, 100)), (1200, (1000, 200)), (1250, (1250, 250))]
        {
            assert_eq!(whole.known_before(offset), expected, "{offset}");
        }
    }
}
