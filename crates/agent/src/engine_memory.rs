//! Memory settings of engines. They are written in Go, whose garbage collector begins when four megabytes are full and
//! then whenever what is in use has doubled: a small plan spends a third of its time in it and gains nothing. Where the
//! machine has memory to spare, engines and their providers collect less often, below a limit that all of them together
//! stay within. A workspace's own variables win.

use std::fs;
use std::path::Path;

/// Heap growth before a collection, in percent of what is in use; the engines' own default is 100.
const GOGC_PERCENT: &str = "400";
/// Number of processes that share the memory of a phase: the engine, and some providers.
const PROCESSES_PER_PHASE: u64 = 4;
/// A large provider has half of this in use. With less it would do nothing but collect.
const MIN_MEMORY_LIMIT_BYTES: u64 = 1 << 30;

/// Environment variables for engines, on a machine that executes so many phases at a time.
pub(crate) fn settings(concurrency: u32) -> Vec<(&'static str, String)> {
    let [machine, group] = [machine_memory(), group_memory()];
    let memory = machine.into_iter().chain(group).min();
    memory.map(|memory| settings_within(memory, concurrency)).unwrap_or_default()
}

fn settings_within(memory: u64, concurrency: u32) -> Vec<(&'static str, String)> {
    let limit = memory / (u64::from(concurrency.max(1)) * PROCESSES_PER_PHASE);
    match limit >= MIN_MEMORY_LIMIT_BYTES {
        true => vec![("GOGC", GOGC_PERCENT.to_owned()), ("GOMEMLIMIT", limit.to_string())],
        false => Vec::new(),
    }
}

fn machine_memory() -> Option<u64> {
    total(&fs::read_to_string("/proc/meminfo").ok()?)
}

/// `MemTotal:       24620188 kB`
fn total(meminfo: &str) -> Option<u64> {
    let line = meminfo.lines().find_map(|line| line.strip_prefix("MemTotal:"))?;
    Some(line.trim().strip_suffix("kB")?.trim().parse::<u64>().ok()? * 1024)
}

/// Memory limit of the container: the smallest limit of the agent's control group and those around it.
fn group_memory() -> Option<u64> {
    let groups = fs::read_to_string("/proc/self/cgroup").ok()?;
    let own = groups.lines().find_map(|line| line.strip_prefix("0::/"))?;
    let root = Path::new("/sys/fs/cgroup");
    root.join(own).ancestors().take_while(|group| group.starts_with(root)).filter_map(limit_of).min()
}

fn limit_of(group: &Path) -> Option<u64> {
    fs::read_to_string(group.join("memory.max")).ok()?.trim().parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    const GIB: u64 = 1 << 30;

    #[test]
    fn engines_collect_less_often_where_there_is_memory_to_spare() {
        let settings = settings_within(24 * GIB, 2);
        assert_eq!(settings, [("GOGC", "400".to_owned()), ("GOMEMLIMIT", (3 * GIB).to_string())]);
        assert_eq!(settings_within(24 * GIB, 8), [], "a quarter of three gigabytes is too little");
        assert_eq!(settings_within(2 * GIB, 1), []);
    }

    #[test]
    fn the_kernel_tells_how_much_there_is() {
        assert_eq!(total("MemFree: 1 kB\nMemTotal:       24620188 kB\n"), Some(24_620_188 * 1024));
        assert_eq!(total("MemTotal: much\n"), None);
        assert!(machine_memory().is_some());
    }
}
