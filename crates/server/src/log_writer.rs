//! Writer of log lines: to stderr, those of the access log in batches.
//!
//! A line in the access log is there for every request, and a system call for each would cost more than many a
//! response. So these lines are buffered for a moment and written together. All other lines are written at once, after
//! flushing the buffer. Nothing is lost when the process ends ([`LogWriter::flush`]) or a part of it panics, which logs
//! an error; if it is killed, the last moment's requests may lack their lines.

use std::io::{self, Write};
use std::mem;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::Duration;

use tracing::Metadata;
use tracing_subscriber::fmt::MakeWriter;

use crate::access_log::ACCESS;

/// Maximum time that lines are buffered.
const FLUSH_INTERVAL: Duration = Duration::from_millis(5);

/// Maximum size of the buffer; the thread that fills it writes it: a reader who is too slow for the log slows the
/// server down, rather than filling its memory.
const MAX_BUFFERED_BYTES: usize = 256 * 1024;

/// Writes log lines, whole and in their order. Clones write to the same place.
#[derive(Clone)]
pub(crate) struct LogWriter(Arc<Shared>);

struct Shared {
    gathered: Mutex<Vec<u8>>,
    /// Tells that there is something to write.
    some: Condvar,
    /// Taken before what is gathered, so that lines stay in their order.
    output: Mutex<Output>,
}

struct Output {
    stream: Box<dyn Write + Send>,
    /// Takes the place of what is gathered while that is written.
    spare: Vec<u8>,
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl LogWriter {
    pub(crate) fn to_stderr() -> Self {
        let writer = Self::to(Box::new(io::stderr()));
        let shared = Arc::clone(&writer.0);
        let begun = thread::Builder::new().name("log".to_owned()).spawn(move || shared.write_now_and_then());
        begun.expect("a process can have one more thread when it starts");
        writer
    }

    fn to(stream: Box<dyn Write + Send>) -> Self {
        let output = Mutex::new(Output { stream, spare: Vec::new() });
        Self(Arc::new(Shared { gathered: Mutex::default(), some: Condvar::new(), output }))
    }

    /// Writes what was gathered.
    pub(crate) fn flush(&self) {
        self.0.flush();
    }
}

impl Shared {
    fn add(&self, line: &[u8], at_once: bool) {
        let mut gathered = lock(&self.gathered);
        if gathered.is_empty() && !at_once {
            self.some.notify_one();
        }
        gathered.extend_from_slice(line);
        let is_much = gathered.len() >= MAX_BUFFERED_BYTES;
        drop(gathered);
        if at_once || is_much {
            self.flush();
        }
    }

    fn flush(&self) {
        let Output { stream, spare } = &mut *lock(&self.output);
        mem::swap(&mut *lock(&self.gathered), spare);
        // If the log has no reader, there is no one to tell.
        stream.write_all(spare).and_then(|()| stream.flush()).ok();
        spare.clear();
    }

    fn write_now_and_then(&self) {
        loop {
            let gathered = lock(&self.gathered);
            drop(self.some.wait_while(gathered, |gathered| gathered.is_empty()));
            thread::sleep(FLUSH_INTERVAL);
            self.flush();
        }
    }
}

impl<'a> MakeWriter<'a> for LogWriter {
    type Writer = LineWriter<'a>;

    fn make_writer(&'a self) -> LineWriter<'a> {
        LineWriter { shared: &self.0, at_once: true }
    }

    fn make_writer_for(&'a self, metadata: &Metadata<'_>) -> LineWriter<'a> {
        LineWriter { shared: &self.0, at_once: metadata.target() != ACCESS }
    }
}

/// Takes one line, with one call.
pub(crate) struct LineWriter<'a> {
    shared: &'a Shared,
    at_once: bool,
}

impl Write for LineWriter<'_> {
    fn write(&mut self, line: &[u8]) -> io::Result<usize> {
        self.shared.add(line, self.at_once);
        Ok(line.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A stream whose text can be read, and which counts the calls.
    #[derive(Clone, Default)]
    struct Seen(Arc<Mutex<Vec<String>>>);

    impl Write for Seen {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            lock(&self.0).push(String::from_utf8_lossy(bytes).into_owned());
            Ok(bytes.len())
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    impl Seen {
        fn take(&self) -> Vec<String> {
            mem::take(&mut *lock(&self.0))
        }
    }

    fn log() -> (LogWriter, Seen) {
        let seen = Seen::default();
        (LogWriter::to(Box::new(seen.clone())), seen)
    }

    #[test]
    fn lines_of_the_access_log_are_written_together() {
        let (log, seen) = log();
        log.0.add(b"one\n", false);
        log.0.add(b"two\n", false);
        assert!(seen.take().is_empty());
        log.flush();
        assert_eq!(seen.take(), ["one\ntwo\n"]);
    }

    #[test]
    fn another_line_is_written_at_once_and_after_what_came_before_it() {
        let (log, seen) = log();
        log.0.add(b"request\n", false);
        log.0.add(b"error\n", true);
        assert_eq!(seen.take(), ["request\nerror\n"]);
    }

    #[test]
    fn no_more_is_gathered_than_there_is_room_for() {
        let (log, seen) = log();
        let line = [b'x'; 1024];
        let count = MAX_BUFFERED_BYTES / line.len();
        for _ in 0..count {
            log.0.add(&line, false);
        }
        assert_eq!(seen.take().concat().len(), MAX_BUFFERED_BYTES);
    }

    #[test]
    fn lines_of_many_threads_stay_whole() {
        let (log, seen) = log();
        thread::scope(|scope| {
            for _ in 0..4 {
                scope.spawn(|| (0..1000).for_each(|number| log.0.add(b"a whole line\n", number % 10 == 0)));
            }
        });
        log.flush();
        assert_eq!(seen.take().concat(), "a whole line\n".repeat(4000));
    }
}
