//! Confinement by Landlock, with which a process gives up rights for itself and all that it starts.

use std::fs::{self, File, OpenOptions};
use std::io;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

use caps::{CapSet, Capability};
use landlock::{
    ABI, Access, AccessFs, BitFlags, CompatLevel, Compatible, PathBeneath, Ruleset, RulesetAttr, RulesetCreated,
    RulesetCreatedAttr, Scope,
};
use nix::fcntl::OFlag;

use super::Confinement;

/// Minimum version the kernel must support: before it, restricted processes cannot move files between directories.
const MIN_LANDLOCK_ABI: ABI = ABI::V2;
/// Version of the restrictions we ask for, as far as the kernel supports it.
const LANDLOCK_ABI: ABI = ABI::V6;

/// True if this kernel supports it.
pub(crate) fn is_supported() -> bool {
    let needed = Ruleset::default().set_compatibility(CompatLevel::HardRequirement);
    needed.handle_access(AccessFs::from_all(MIN_LANDLOCK_ABI)).and_then(Ruleset::create).is_ok()
}

/// True if this kernel can keep runs from sending signals to others.
pub(crate) fn keeps_signals() -> bool {
    let needed = Ruleset::default().set_compatibility(CompatLevel::HardRequirement);
    needed.scope(Scope::Signal).and_then(Ruleset::create).is_ok()
}

impl Confinement {
    /// Restricts this thread and all that it starts from now on.
    pub(crate) fn enforce(&self) -> io::Result<()> {
        let all = AccessFs::from_all(LANDLOCK_ABI);
        let ruleset = Ruleset::default().set_compatibility(CompatLevel::BestEffort);
        let ruleset = ruleset.handle_access(all).and_then(|ruleset| ruleset.scope(Scope::from_all(LANDLOCK_ABI)));
        let mut ruleset = ruleset.and_then(Ruleset::create).map_err(io::Error::other)?;
        // What is not there needs no protection.
        let forbidden: Vec<_> = self.forbidden.iter().filter_map(|path| fs::canonicalize(path).ok()).collect();
        for path in paths_around(&forbidden) {
            // A path that cannot be allowed stays forbidden; it may be gone by now.
            let _ = allow(&mut ruleset, &path, all);
        }
        let leads_to_forbidden = |path: &Path| forbidden.iter().any(|forbidden| forbidden.starts_with(path));
        for (paths, rights) in [(&self.own, all), (&self.readable, AccessFs::from_read(LANDLOCK_ABI))] {
            let paths = paths.iter().filter_map(|path| fs::canonicalize(path).ok());
            for path in paths.filter(|path| !leads_to_forbidden(path)) {
                allow(&mut ruleset, &path, rights)?;
            }
        }
        restrict(ruleset)?;
        if nix::unistd::geteuid().is_root() {
            give_up_capabilities();
        }
        Ok(())
    }
}

/// Drops the capabilities with which root looks into all processes in spite of Landlock, or at the machine's memory and
/// disks beneath all files. A container may have dropped some of them before, and a kernel may not know all of them.
fn give_up_capabilities() {
    for capability in [
        Capability::CAP_SYS_ADMIN,
        Capability::CAP_SYS_PTRACE,
        Capability::CAP_PERFMON,
        Capability::CAP_BPF,
        Capability::CAP_SYS_MODULE,
        Capability::CAP_SYS_RAWIO,
        Capability::CAP_SYS_BOOT,
        Capability::CAP_CHECKPOINT_RESTORE,
        Capability::CAP_MAC_ADMIN,
        Capability::CAP_MAC_OVERRIDE,
        Capability::CAP_MKNOD,
    ] {
        // What is gone from this set, no program that is started from now on gets back.
        let _ = caps::drop(None, CapSet::Bounding, capability);
    }
}

/// Everything that is not on the way to what is forbidden, as few paths as possible. `forbidden` has no links in it.
fn paths_around(forbidden: &[PathBuf]) -> Vec<PathBuf> {
    let mut around = Vec::new();
    let mut ways = vec![PathBuf::from("/")];
    while let Some(way) = ways.pop() {
        let found: Vec<PathBuf> = match fs::read_dir(&way) {
            Ok(entries) => entries.flatten().map(|entry| entry.path()).collect(),
            // One may go through it without seeing what is in it.
            Err(_) => forbidden.iter().filter_map(|path| next_component(&way, path)).collect(),
        };
        for path in found {
            match forbidden.iter().any(|forbidden| forbidden.starts_with(&path)) {
                false => around.push(path),
                true if forbidden.contains(&path) => {}
                true if ways.contains(&path) => {}
                true => ways.push(path),
            }
        }
    }
    around
}

fn next_component(way: &Path, path: &Path) -> Option<PathBuf> {
    let rest = path.strip_prefix(way).ok()?;
    Some(way.join(rest.components().next()?))
}

/// Allows a path, and what is in it. A link is passed over: it leads to what is allowed, or it does not.
fn allow(ruleset: &mut RulesetCreated, path: &Path, rights: BitFlags<AccessFs>) -> io::Result<()> {
    let flags = OFlag::O_PATH | OFlag::O_NOFOLLOW;
    let place: File = OpenOptions::new().read(true).custom_flags(flags.bits()).open(path)?;
    let kind = place.metadata()?.file_type();
    if kind.is_symlink() {
        return Ok(());
    }
    let rights = if kind.is_dir() { rights } else { rights & AccessFs::from_file(LANDLOCK_ABI) };
    ruleset.add_rule(PathBeneath::new(place, rights)).map(|_| ()).map_err(io::Error::other)
}

/// Without root, or in a container, this also requires giving up becoming another user (by `sudo`, say).
fn restrict(ruleset: RulesetCreated) -> io::Result<()> {
    if nix::unistd::geteuid().is_root() && ruleset.try_clone()?.no_new_privs(false).restrict_self().is_ok() {
        return Ok(());
    }
    ruleset.restrict_self().map(|_| ()).map_err(io::Error::other)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn everything_beside_the_way_is_allowed_and_nothing_on_it() {
        let place = tempfile::tempdir().expect("a directory");
        let root = fs::canonicalize(place.path()).expect("a path");
        for directory in ["a/secret/deep", "a/open", "b/c", "other"] {
            fs::create_dir_all(root.join(directory)).expect("a directory");
        }
        fs::write(root.join("b/c/key"), "").expect("a file");
        fs::write(root.join("b/c/certificate"), "").expect("a file");
        let around = paths_around(&[root.join("a/secret"), root.join("b/c/key"), root.join("a/secret/deep")]);
        let mut below: Vec<_> = around.iter().filter_map(|path| path.strip_prefix(&root).ok()).collect();
        below.sort();
        assert_eq!(below, [Path::new("a/open"), Path::new("b/c/certificate"), Path::new("other")]);
        assert!(around.contains(&"/proc".into()) && around.contains(&"/dev".into()));
        assert!(!around.iter().any(|path| root.starts_with(path)), "{around:?}");
    }

    /// Runs `look` in a thread of its own, which is all that it restricts.
    fn confined<T: Send>(confinement: &Confinement, look: impl FnOnce() -> T + Send) -> Option<T> {
        if !is_supported() {
            println!("this kernel cannot restrict: nothing was tried");
            return None;
        }
        let enforced = || {
            confinement.enforce().expect("it is restricted");
            look()
        };
        Some(std::thread::scope(|scope| scope.spawn(enforced).join().expect("no panic")))
    }

    #[test]
    fn nothing_outside_can_be_sent_a_signal() {
        if !keeps_signals() {
            println!("this kernel cannot restrict signals: nothing was tried");
            return;
        }
        let mut outside = std::process::Command::new("sleep").arg("600").spawn().expect("a process");
        let pid = nix::unistd::Pid::from_raw(i32::try_from(outside.id()).expect("a number"));
        confined(&Confinement::default(), || {
            let mut inside = std::process::Command::new("sleep").arg("600").spawn().expect("a process");
            let refused = nix::sys::signal::kill(pid, nix::sys::signal::Signal::SIGKILL);
            assert_eq!(refused, Err(nix::errno::Errno::EPERM));
            inside.kill().expect("its own it may");
            inside.wait().expect("it ended");
        });
        assert!(outside.try_wait().expect("a child").is_none(), "it lives");
        outside.kill().expect("who is not restricted may");
        outside.wait().expect("it ended");
    }

    #[test]
    fn what_is_forbidden_can_neither_be_read_nor_listed_nor_changed() {
        let place = tempfile::tempdir().expect("a directory");
        let root = place.path();
        for directory in ["work/runs/own", "work/runs/other", "work/engines", "beside"] {
            fs::create_dir_all(root.join(directory)).expect("a directory");
        }
        for file in ["work/journal", "work/runs/own/a", "work/runs/other/a", "work/engines/terraform", "beside/a"] {
            fs::write(root.join(file), "text").expect("a file");
        }
        // A link does not help.
        std::os::unix::fs::symlink(root.join("work/runs/other"), root.join("beside/link")).expect("a link");
        std::os::unix::fs::symlink(root.join("work"), root.join("link")).expect("a link");
        let texts = |paths: &[&str]| paths.iter().map(|path| root.join(path).into()).collect();
        let confinement = Confinement {
            forbidden: texts(&["work", "not there"]),
            own: texts(&["work/runs/own"]),
            readable: texts(&["work/engines", ""]),
        };
        confined(&confinement, || {
            for file in ["work/journal", "work/runs/other/a", "beside/link/a", "link/journal"] {
                let refused = fs::read(root.join(file)).expect_err(file);
                assert_eq!(refused.kind(), io::ErrorKind::PermissionDenied, "{file}");
            }
            for directory in ["work", "work/runs", "work/runs/other", "link", ""] {
                fs::read_dir(root.join(directory)).map(|_| ()).expect_err(directory);
            }
            fs::write(root.join("work/journal"), "").expect_err("it cannot be written");
            fs::write(root.join("work/engines/terraform"), "").expect_err("nor can a program");
            fs::hard_link(root.join("work/journal"), root.join("beside/b")).expect_err("nor linked");
            fs::rename(root.join("work/runs/other"), root.join("beside/c")).expect_err("nor moved");
            for file in ["work/runs/own/a", "work/engines/terraform", "beside/a"] {
                assert_eq!(fs::read_to_string(root.join(file)).expect(file), "text");
            }
            fs::write(root.join("work/runs/own/b"), "new").expect("its own is its own");
            fs::rename(root.join("work/runs/own/b"), root.join("beside/b")).expect("so is everything else");
            fs::read_dir("/proc").expect("a directory beside the way");
            fs::write("/dev/null", "").expect("a device");
        });
    }
}
