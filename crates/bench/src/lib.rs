//! The table that every benchmark prints: what was measured, the figure, the target, and whether it was reached.
//!
//! Targets are ratios within one run wherever that is possible, because machines differ and neighbours make noise.

use std::fmt::Display;
use std::time::{Duration, Instant};

/// Rows as they are measured; they are printed at once, so that a long run shows its progress.
#[derive(Default)]
pub struct Table {
    missed: usize,
}

impl Table {
    pub fn new(title: &str) -> Self {
        println!("\n## {title}\n");
        println!("| {:<62} | {:>18} | {:>22} | {:<6} |", "what", "measured", "target", "");
        println!("|{:-<64}|{:->20}|{:->24}|{:-<8}|", "", "", "", "");
        Self::default()
    }

    /// A figure with its target.
    pub fn row(&mut self, what: &str, measured: impl Display, target: impl Display, reached: bool) {
        let verdict = if reached { "ok" } else { "MISSED" };
        println!("| {what:<62} | {:>18} | {:>22} | {verdict:<6} |", measured.to_string(), target.to_string());
        self.missed += usize::from(!reached);
    }

    /// A figure that others are compared with.
    pub fn note(&self, what: &str, measured: impl Display) {
        println!("| {what:<62} | {:>18} | {:>22} | {:<6} |", measured.to_string(), "", "");
    }

    /// Says how many targets were missed. A benchmark never fails a build: a figure is for people to look at.
    pub fn close(self) {
        match self.missed {
            0 => println!("\nall targets reached"),
            missed => println!("\n{missed} missed"),
        }
    }
}

/// Durations in the order of their length.
pub struct Sample(Vec<Duration>);

impl Sample {
    pub fn of(mut durations: Vec<Duration>) -> Self {
        durations.sort_unstable();
        Self(durations)
    }

    /// Times `work` so many times.
    pub fn measure(times: usize, mut work: impl FnMut()) -> Self {
        Self::of(
            (0..times)
                .map(|_| {
                    let begun = Instant::now();
                    work();
                    begun.elapsed()
                })
                .collect(),
        )
    }

    pub fn median(&self) -> Duration {
        self.at(0.5)
    }

    /// The duration that this fraction of all did not exceed.
    pub fn at(&self, fraction: f64) -> Duration {
        let last = self.0.len().saturating_sub(1);
        self.0.get((last as f64 * fraction).round() as usize).copied().unwrap_or_default()
    }
}

/// A duration with three digits, in the unit that suits it.
pub fn time(duration: Duration) -> String {
    let seconds = duration.as_secs_f64();
    if seconds < 1e-3 {
        format!("{:.1} µs", seconds * 1e6)
    } else if seconds < 1.0 {
        format!("{:.2} ms", seconds * 1e3)
    } else {
        format!("{seconds:.2} s")
    }
}

/// Quotient of two durations.
pub fn ratio(of: Duration, to: Duration) -> f64 {
    of.as_secs_f64() / to.as_secs_f64()
}

/// The memory that a process holds now, in bytes.
pub fn resident_memory(process: u32) -> Option<u64> {
    let status = std::fs::read_to_string(format!("/proc/{process}/status")).ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"))?;
    let kilobytes: u64 = line.trim().strip_suffix("kB")?.trim().parse().ok()?;
    Some(kilobytes * 1024)
}
