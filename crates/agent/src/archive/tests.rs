use flate2::Compression;
use flate2::write::GzEncoder;
use taco_configuration_archive::LIMITS;
use tar::{Builder, Header};

use super::*;

fn append(builder: &mut Builder<GzEncoder<File>>, kind: EntryType, name: &str, target: &str, content: &[u8]) {
    let mut header = Header::new_gnu();
    header.set_entry_type(kind);
    header.set_mode(if name.ends_with(".sh") { 0o755 } else { 0o644 });
    header.set_size(content.len() as u64);
    header.as_old_mut().name[..name.len()].copy_from_slice(name.as_bytes());
    header.as_old_mut().linkname[..target.len()].copy_from_slice(target.as_bytes());
    header.set_cksum();
    builder.append(&header, content).expect("an entry");
}

fn unpacked(fill: impl FnOnce(&mut Builder<GzEncoder<File>>)) -> (Result<(), String>, tempfile::TempDir) {
    let directory = tempfile::tempdir().expect("a directory");
    let archive = directory.path().join("archive");
    let mut builder = Builder::new(GzEncoder::new(File::create(&archive).expect("a file"), Compression::fast()));
    fill(&mut builder);
    builder.into_inner().and_then(GzEncoder::finish).expect("an archive");
    let root = directory.path().join("root");
    fs::create_dir(&root).expect("a directory");
    (unpack(&archive, &root, LIMITS).map_err(|error| error.to_string()), directory)
}

#[test]
fn a_configuration_is_unpacked_with_links_and_modes() {
    use std::os::unix::fs::PermissionsExt;
    let (result, directory) = unpacked(|builder| {
        append(builder, EntryType::XGlobalHeader, "pax_global_header", "", b"");
        append(builder, EntryType::Directory, "./modules/", "", b"");
        append(builder, EntryType::Regular, "main.tf", "", b"# main");
        append(builder, EntryType::Regular, "modules/a/a.tf", "", b"# a");
        append(builder, EntryType::Regular, "hook.sh", "", b"true");
        append(builder, EntryType::Symlink, "modules/b", "a", b"");
        append(builder, EntryType::Symlink, "modules/a/up.tf", "../../main.tf", b"");
        append(builder, EntryType::Link, "copy.tf", "main.tf", b"");
    });
    assert_eq!(result, Ok(()));
    let root = directory.path().join("root");
    for (path, content) in
        [("main.tf", "# main"), ("modules/b/a.tf", "# a"), ("modules/a/up.tf", "# main"), ("copy.tf", "# main")]
    {
        assert_eq!(fs::read_to_string(root.join(path)).expect(path), content);
    }
    let mode = fs::metadata(root.join("hook.sh")).expect("a file").permissions().mode();
    assert_eq!(mode & 0o111, 0o111, "a program stays one");
}

#[test]
fn what_reaches_out_is_written_nowhere() {
    use EntryType as E;
    for (kind, name, target) in [
        (E::Regular, "../escape", ""),
        (E::Regular, "modules/../../escape", ""),
        (E::Directory, "../escape/", ""),
        (E::Symlink, "link", "../outside"),
        (E::Link, "link", "../archive"),
    ] {
        let (result, directory) = unpacked(|builder| append(builder, kind, name, target, b""));
        result.expect_err(name);
        assert!(!directory.path().join("escape").exists(), "{name}");
        assert!(fs::symlink_metadata(directory.path().join("root/link")).is_err(), "{name}");
    }
}

#[test]
fn nothing_is_written_through_a_link() {
    for kind in [EntryType::Regular, EntryType::Directory] {
        let (result, directory) = unpacked(|builder| {
            append(builder, EntryType::Symlink, "sub/up", "..", b"");
            append(builder, EntryType::Symlink, "out", "sub/up/..", b"");
            append(builder, kind, "out/escape", "", b"");
        });
        let error = result.expect_err("it is behind a link");
        assert!(error.contains("entry out/escape: it lies behind a link"), "{error}");
        assert!(!directory.path().join("escape").exists());
    }
}

#[test]
fn what_is_no_archive_says_so() {
    let directory = tempfile::tempdir().expect("a directory");
    let archive = directory.path().join("archive");
    fs::write(&archive, "resource {}").expect("a file");
    let error = unpack(&archive, directory.path(), LIMITS).expect_err("no archive").to_string();
    assert!(error.contains("is no tar.gz archive"), "{error}");
    let error = unpack(&directory.path().join("missing"), directory.path(), LIMITS).expect_err("no file").to_string();
    assert!(error.contains("could not be unpacked"), "{error}");
}
