//! The limit of open files, which is what connections, the bucket and runs share.

use nix::sys::resource::{Resource, getrlimit, setrlimit};

use crate::connections::ConnectionLimits;

/// Most systems start a process with a soft limit of 1024, for programs that cannot count further. More than this is of
/// no use, and programs that runs start may try to close each file that could be open.
const MAX_OPEN_FILES: u64 = 65_536;

/// Kept for the bucket, the server's own agent and runs.
const RESERVED_FILES: u64 = 128;

/// Default limit of connections, if the limit of open files allows it.
const MAX_CONNECTIONS: u64 = 10_000;

/// Raises the soft limit as far as the system lets us, and returns it.
pub(crate) fn raise() -> u64 {
    let Ok((soft, hard)) = getrlimit(Resource::RLIMIT_NOFILE) else { return 1024 };
    let wanted = hard.min(MAX_OPEN_FILES).max(soft);
    match wanted > soft && setrlimit(Resource::RLIMIT_NOFILE, wanted, hard).is_ok() {
        true => wanted,
        false => soft,
    }
}

/// Connection limits of a server that may open so many files. A request needs a file or two besides its connection.
pub(crate) fn connection_limits(open_files: u64, max: Option<u16>, per_address: u16) -> ConnectionLimits {
    let possible = (open_files.saturating_sub(RESERVED_FILES) / 2).max(16);
    let all = match max {
        Some(max) if u64::from(max) > possible => {
            tracing::warn!(
                event = "max_connections_lowered",
                open_files,
                "max_connections is {max}, but the limit of open files has room for {possible}; raise it with `ulimit -n`"
            );
            possible
        }
        Some(max) => max.max(1).into(),
        None => possible.min(MAX_CONNECTIONS),
    };
    let all = usize::try_from(all).unwrap_or(usize::MAX);
    let per_address = if per_address == 0 { usize::MAX } else { per_address.into() };
    // However few there are, one address cannot have all.
    ConnectionLimits { all, per_address: per_address.min(all - all / 4) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn connections_leave_files_for_everything_else() {
        let limits = |files, max, per_address| {
            let limits = connection_limits(files, max, per_address);
            (limits.all, limits.per_address)
        };
        assert_eq!(limits(65_536, None, 1000), (10_000, 1000));
        assert_eq!(limits(1024, None, 1000), (448, 336));
        assert_eq!(limits(1024, Some(2000), 1000), (448, 336));
        assert_eq!(limits(65_536, Some(2000), 0), (2000, 1500));
        assert_eq!(limits(65_536, Some(1), 0), (1, 1));
        assert_eq!(limits(10, None, 10), (16, 10));
    }
}
