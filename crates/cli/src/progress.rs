//! Progress of what takes long, on a terminal: it stands on standard error, and is gone when it is over.

use std::io::{self, IsTerminal, Write};
use std::time::Duration;

/// Time after which people wonder.
const QUIET_TIME: Duration = Duration::from_millis(700);

const REFRESH_INTERVAL: Duration = Duration::from_millis(250);

/// Size in units that people read.
pub(crate) fn size(bytes: usize) -> String {
    const UNITS: [&str; 4] = ["B", "KiB", "MiB", "GiB"];
    let (mut number, mut unit) = (bytes, 0);
    let mut tenths = 0;
    while number >= 1024 && unit + 1 < UNITS.len() {
        tenths = number % 1024 * 10 / 1024;
        (number, unit) = (number / 1024, unit + 1);
    }
    if unit == 0 || number >= 100 {
        format!("{number} {}", UNITS[unit])
    } else {
        format!("{number}.{tenths} {}", UNITS[unit])
    }
}

/// One line that changes.
#[derive(Debug)]
pub(crate) struct Progress {
    shown: bool,
    wanted: bool,
}

impl Progress {
    /// Nothing is shown to those who want quiet, nor where nobody looks.
    pub(crate) fn new(wanted: bool) -> Self {
        Self { shown: false, wanted: wanted && io::stderr().is_terminal() }
    }

    pub(crate) fn show(&mut self, text: &str) {
        if self.wanted {
            eprint!("\r\u{1b}[K{text}");
            io::stderr().flush().ok();
            self.shown = true;
        }
    }

    fn clear(&mut self) {
        if std::mem::take(&mut self.shown) {
            eprint!("\r\u{1b}[K");
            io::stderr().flush().ok();
        }
    }
}

impl Drop for Progress {
    fn drop(&mut self) {
        self.clear();
    }
}

/// Waits for something, and tells what it is and how long it has taken if that is long.
pub(crate) async fn while_waiting<T>(wanted: bool, what: &str, work: impl Future<Output = T>) -> T {
    let mut progress = Progress::new(wanted);
    let mut elapsed = QUIET_TIME;
    let mut work = std::pin::pin!(work);
    let mut pause = QUIET_TIME;
    loop {
        tokio::select! {
            done = &mut work => return done,
            () = tokio::time::sleep(pause) => {
                progress.show(&format!("{what} ({} s)", elapsed.as_secs()));
                elapsed += REFRESH_INTERVAL;
                pause = REFRESH_INTERVAL;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_have_units() {
        for (bytes, text) in
            [(0, "0 B"), (1023, "1023 B"), (1536, "1.5 KiB"), (13_000_000, "12.3 MiB"), (300 << 20, "300 MiB")]
        {
            assert_eq!(size(bytes), text);
        }
    }
}
