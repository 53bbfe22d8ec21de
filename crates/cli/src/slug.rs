//! A directory as the archive that a run gets, without what `.terraformignore` names.

use std::fs::{self, File};
use std::path::{Path, PathBuf};

use flate2::Compression;
use flate2::write::GzEncoder;
use ignore::Match;
use ignore::gitignore::{Gitignore, GitignoreBuilder};
use tar::{Builder, EntryType, Header, HeaderMode};

use crate::failure::Failure;

/// File that lists the files to leave out, in the syntax of `.gitignore`.
const IGNORE_FILE: &str = ".terraformignore";

/// Patterns that are always left out, unless that file says otherwise. Modules that were downloaded already come along.
const DEFAULT_IGNORES: [&str; 3] = [".git", ".terraform/", "!**/.terraform/modules/"];

/// A `tar.gz` of a directory.
pub(crate) fn pack(directory: &Path) -> Result<Vec<u8>, Failure> {
    let cannot = |error: std::io::Error| {
        Failure::error(format!("{} cannot be packed", directory.display()))
            .because(error)
            .hint("give the directory that has the configuration")
    };
    let root = directory.canonicalize().map_err(cannot)?;
    if !root.is_dir() {
        return Err(Failure::usage(format!("{} is no directory", directory.display()))
            .hint("give the directory that has the configuration"));
    }
    let mut archive = Builder::new(GzEncoder::new(Vec::new(), Compression::default()));
    archive.mode(HeaderMode::Deterministic);
    let mut slug = Slug { rules: Rules::of(&root)?, root, archive, followed: Vec::new() };
    let root = slug.root.clone();
    slug.add_children(&root, Path::new(""))?;
    slug.archive.into_inner().and_then(GzEncoder::finish).map_err(cannot)
}

struct Rules {
    ignored: Gitignore,
    /// True if something below an ignored directory may be wanted all the same.
    has_exceptions: bool,
}

impl Rules {
    fn of(root: &Path) -> Result<Self, Failure> {
        let mut rules = GitignoreBuilder::new("");
        let wrong = |error: ignore::Error| {
            Failure::error(format!("{IGNORE_FILE} is not understood"))
                .because(error)
                .hint("use the syntax of .gitignore")
        };
        for line in DEFAULT_IGNORES {
            rules.add_line(None, line).map_err(wrong)?;
        }
        let text = fs::read_to_string(root.join(IGNORE_FILE)).unwrap_or_default();
        for line in text.lines() {
            rules.add_line(None, line).map_err(wrong)?;
        }
        let ignored = rules.build().map_err(wrong)?;
        let has_exceptions = text.lines().any(|line| line.starts_with('!'));
        Ok(Self { ignored, has_exceptions })
    }

    /// Unlike in git, what is wanted comes along from a directory that is not: terraform does it in this way.
    fn is_ignored(&self, name: &Path, is_directory: bool) -> bool {
        matches!(self.ignored.matched_path_or_any_parents(name, is_directory), Match::Ignore(_))
    }

    /// Directories such as `.git` are large, and nothing in them is wanted.
    fn is_traversed(&self, name: &Path) -> bool {
        self.has_exceptions || name.file_name().is_some_and(|name| name == ".terraform")
    }
}

struct Slug {
    root: PathBuf,
    rules: Rules,
    archive: Builder<GzEncoder<Vec<u8>>>,
    /// Directories outside of the root that links lead to, and in which we are.
    followed: Vec<PathBuf>,
}

impl Slug {
    fn add_children(&mut self, directory: &Path, name: &Path) -> Result<(), Failure> {
        let cannot = |error: std::io::Error| unreadable(directory, &error);
        let entries = fs::read_dir(directory).map_err(cannot)?;
        let mut children = entries.collect::<Result<Vec<_>, _>>().map_err(cannot)?;
        // The same directory makes the same archive.
        children.sort_by_key(fs::DirEntry::file_name);
        children.iter().try_for_each(|child| self.add(&child.path(), &name.join(child.file_name())))
    }

    /// Adds what is at `path`, and below, under a name.
    fn add(&mut self, path: &Path, name: &Path) -> Result<(), Failure> {
        let cannot = |error: std::io::Error| unreadable(path, &error);
        let kind = fs::symlink_metadata(path).map_err(cannot)?.file_type();
        if self.rules.is_ignored(name, kind.is_dir()) {
            return if kind.is_dir() && self.rules.is_traversed(name) { self.add_children(path, name) } else { Ok(()) };
        }
        if kind.is_symlink() {
            return self.add_link(path, name);
        }
        if kind.is_dir() {
            self.archive.append_dir(name, path).map_err(cannot)?;
            return self.add_children(path, name);
        }
        if kind.is_file() {
            self.archive.append_file(name, &mut File::open(path).map_err(cannot)?).map_err(cannot)?;
        }
        Ok(())
    }

    /// A link that stays inside remains a link; what another one leads to comes along, because the agent has only the
    /// archive.
    fn add_link(&mut self, path: &Path, name: &Path) -> Result<(), Failure> {
        let cannot = |error: std::io::Error| unreadable(path, &error);
        let to = fs::read_link(path).map_err(cannot)?;
        let target = path.canonicalize().map_err(|error| {
            unreadable(path, &error)
                .hint(format!("it links to {}; remove it, or name it in {IGNORE_FILE}", to.display()))
        })?;
        if to.is_relative() && target.starts_with(&self.root) && self.followed.is_empty() {
            let mut header = Header::new_gnu();
            header.set_entry_type(EntryType::Symlink);
            header.set_size(0);
            header.set_mode(0o777);
            return self.archive.append_link(&mut header, name, &to).map_err(cannot);
        }
        if !target.is_dir() {
            return self.add(&target, name);
        }
        if self.followed.contains(&target) || self.root.starts_with(&target) {
            return Err(Failure::error(format!("{} leads into itself", path.display()))
                .because(format!("it links to {}", to.display()))
                .hint(format!("remove it, or name it in {IGNORE_FILE}")));
        }
        self.followed.push(target.clone());
        let added = self.add(&target, name);
        self.followed.pop();
        added
    }
}

fn unreadable(path: &Path, error: &std::io::Error) -> Failure {
    Failure::error(format!("{} cannot be packed", path.display()))
        .because(error)
        .hint(format!("make it readable, or name it in {IGNORE_FILE}"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use flate2::read::GzDecoder;

    fn directory_with(files: &[&str]) -> tempfile::TempDir {
        let directory = tempfile::tempdir().expect("there is room");
        for file in files {
            let path = directory.path().join(file);
            fs::create_dir_all(path.parent().expect("it is in a directory")).expect("it is made");
            fs::write(path, file).expect("it is written");
        }
        directory
    }

    /// Names of files and links in an archive.
    fn names(archive: &[u8]) -> Vec<String> {
        let mut archive = tar::Archive::new(GzDecoder::new(archive));
        let entries = archive.entries().expect("it is an archive").map(|entry| entry.expect("it is an entry"));
        let files = entries.filter(|entry| entry.header().entry_type() != EntryType::Directory);
        files.map(|file| file.path().expect("it has a name").display().to_string()).collect()
    }

    #[test]
    fn history_and_what_can_be_fetched_again_stay_behind_but_modules_come_along() {
        let directory = directory_with(&[
            "main.tf",
            ".git/HEAD",
            ".terraform/providers/p",
            ".terraform/modules/m/main.tf",
            "deep/.terraform/modules/n.tf",
            "deep/.terraform/x",
            ".terraform.lock.hcl",
        ]);
        let archive = pack(directory.path()).expect("it is packed");
        let expected =
            [".terraform/modules/m/main.tf", ".terraform.lock.hcl", "deep/.terraform/modules/n.tf", "main.tf"];
        let mut found = names(&archive);
        found.sort();
        let mut expected = expected.map(str::to_owned).to_vec();
        expected.sort();
        assert_eq!(found, expected);
        assert_eq!(pack(directory.path()).expect("it is packed"), archive, "it is the same again");
    }

    #[test]
    fn a_file_says_what_else_stays_behind() {
        let directory =
            directory_with(&["main.tf", "secret.tfvars", "keep.tfvars", "docs/a.md", "docs/b.tf", "sub/docs/c"]);
        let rules = "# a comment\n*.tfvars\n!keep.tfvars\n/docs/\n!docs/b.tf\n";
        fs::write(directory.path().join(IGNORE_FILE), rules).expect("it is written");
        let found = names(&pack(directory.path()).expect("it is packed"));
        assert_eq!(found, [IGNORE_FILE, "docs/b.tf", "keep.tfvars", "main.tf", "sub/docs/c"]);
    }

    #[cfg(unix)]
    #[test]
    fn what_links_lead_to_outside_comes_along() {
        use std::os::unix::fs::symlink;
        let outside = directory_with(&["shared/common.tf"]);
        let directory = directory_with(&["modules/a/main.tf"]);
        let at = |name: &str| directory.path().join(name);
        symlink("modules/a", at("inside")).expect("it is linked");
        symlink(outside.path().join("shared"), at("shared")).expect("it is linked");
        let found = names(&pack(directory.path()).expect("it is packed"));
        assert_eq!(found, ["inside", "modules/a/main.tf", "shared/common.tf"]);
        symlink("nowhere", at("lost")).expect("it is linked");
        let failure = pack(directory.path()).expect_err("it leads nowhere").to_string();
        assert!(failure.contains("lost") && failure.contains(IGNORE_FILE), "{failure}");
        fs::remove_file(at("lost")).expect("it is removed");
        symlink("..", at("modules/up")).expect("it is linked");
        symlink(directory.path(), at("self")).expect("it is linked");
        assert!(pack(directory.path()).is_err_and(|failure| failure.to_string().contains("leads into itself")));
    }

    #[test]
    fn a_directory_that_is_not_there_is_named() {
        let failure = pack(Path::new("/nowhere/at/all")).expect_err("it is not there").to_string();
        assert!(failure.contains("/nowhere/at/all cannot be packed"), "{failure}");
    }
}
