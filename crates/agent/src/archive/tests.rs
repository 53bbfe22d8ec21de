use std::io::Write;

use flate2::Compression;
use flate2::write::GzEncoder;
use tar::{Builder, Header};

use super::*;

/// An entry whose name and target are written as they are: a well-behaved builder would refuse the corpus.
fn append(builder: &mut Builder<GzEncoder<File>>, kind: EntryType, name: &str, target: &str, content: &[u8]) {
    let mut header = Header::new_gnu();
    header.set_entry_type(kind);
    header.set_mode(0o644);
    header.set_size(content.len() as u64);
    if name.len() < 100 {
        header.as_old_mut().name[..name.len()].copy_from_slice(name.as_bytes());
        header.as_old_mut().linkname[..target.len()].copy_from_slice(target.as_bytes());
        header.set_cksum();
        builder.append(&header, content).expect("an entry");
    } else {
        builder.append_data(&mut header, name, content).expect("an entry");
    }
}

fn unpacked(
    limits: Limits,
    fill: impl FnOnce(&mut Builder<GzEncoder<File>>),
) -> (Result<(), String>, tempfile::TempDir) {
    let directory = tempfile::tempdir().expect("a directory");
    let archive = directory.path().join("archive");
    let mut builder = Builder::new(GzEncoder::new(File::create(&archive).expect("a file"), Compression::fast()));
    fill(&mut builder);
    builder.into_inner().and_then(GzEncoder::finish).expect("an archive");
    let root = directory.path().join("root");
    fs::create_dir(&root).expect("a directory");
    (unpack(&archive, &root, limits).map_err(|error| error.to_string()), directory)
}

#[test]
fn a_configuration_is_unpacked_with_links_and_modes() {
    let (result, directory) = unpacked(LIMITS, |builder| {
        append(builder, EntryType::XGlobalHeader, "pax_global_header", "", b"");
        append(builder, EntryType::Directory, "./modules/", "", b"");
        append(builder, EntryType::Regular, "main.tf", "", b"# main");
        append(builder, EntryType::Regular, "modules/a/a.tf", "", b"# a");
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
}

#[test]
fn what_reaches_out_is_refused_by_name() {
    use EntryType as E;
    for (kind, name, target, expected) in [
        (E::Regular, "../escape.tf", "", "entry ../escape.tf: the name has .. in it"),
        (E::Regular, "modules/../../escape.tf", "", "the name has .. in it"),
        (E::Regular, "/etc/passwd", "", "entry /etc/passwd: the name is absolute"),
        (E::Directory, "../escape/", "", "the name has .. in it"),
        (E::Symlink, "link", "/etc", "entry link: the link leads out"),
        (E::Symlink, "link", "../outside", "the link leads out"),
        (E::Symlink, "modules/link", "../../outside", "the link leads out"),
        (E::Link, "link", "/etc/passwd", "the link leads out"),
        (E::Link, "link", "../outside", "the link leads out"),
        (E::Fifo, "pipe", "", "entry pipe: only files, directories and links"),
        (E::Char, "device", "", "only files, directories and links"),
        (E::Block, "device", "", "only files, directories and links"),
    ] {
        let (result, directory) = unpacked(LIMITS, |builder| append(builder, kind, name, target, b""));
        let error = result.expect_err(name);
        assert!(error.contains(expected), "{name} -> {target}: {error}");
        assert!(!directory.path().join("escape.tf").exists());
    }
}

#[test]
fn a_link_through_another_link_does_not_lead_out_either() {
    let (result, _directory) = unpacked(LIMITS, |builder| {
        append(builder, EntryType::Directory, "sub", "", b"");
        append(builder, EntryType::Symlink, "sub/up", "..", b"");
        append(builder, EntryType::Symlink, "out", "sub/up/..", b"");
    });
    let error = result.expect_err("the last one leads out");
    assert!(error.contains("entry out: the link leads out"), "{error}");
}

#[test]
fn nothing_is_written_through_a_link() {
    let (result, directory) = unpacked(LIMITS, |builder| {
        append(builder, EntryType::Symlink, "sub/up", "..", b"");
        append(builder, EntryType::Symlink, "a", "sub/up", b"");
        append(builder, EntryType::Regular, "a/../escape", "", b"");
    });
    assert!(result.is_err());
    assert!(!directory.path().join("escape").exists());
}

#[test]
fn names_are_unique_and_not_too_long() {
    let twice = |builder: &mut Builder<GzEncoder<File>>| {
        append(builder, EntryType::Regular, "main.tf", "", b"1");
        append(builder, EntryType::Regular, "./main.tf", "", b"2");
    };
    let error = unpacked(LIMITS, twice).0.expect_err("twice");
    assert!(error.contains("entry ./main.tf: the name occurs twice"), "{error}");
    let long = "a/".repeat(2_100);
    let error = unpacked(LIMITS, |builder| append(builder, EntryType::Regular, &long, "", b"")).0.expect_err("long");
    assert!(error.contains("the name is too long"), "{error}");
}

#[test]
fn limits_count_what_comes_out() {
    let zeros = vec![0; 64 * 1024];
    let fill = |builder: &mut Builder<GzEncoder<File>>| append(builder, EntryType::Regular, "zeros", "", &zeros);
    let small = Limits { packed: 1024, unpacked: 32 * 1024, ratio: 1_000, ratio_counts_after: 0, entries: 2, name: 64 };
    let error = unpacked(small, fill).0.expect_err("too large");
    assert!(error.contains("expands beyond the limit of 32768 bytes"), "{error}");
    let error = unpacked(Limits { unpacked: u64::MAX, ratio: 10, ..small }, fill).0.expect_err("too tight");
    assert!(error.contains("expands beyond the limit of 10 times its packed size"), "{error}");
    let error = unpacked(Limits { packed: 10, ..small }, fill).0.expect_err("too large");
    assert!(error.contains("bytes packed; the limit is 10"), "{error}");
    let three = |builder: &mut Builder<GzEncoder<File>>| {
        for name in ["a", "b", "c"] {
            append(builder, EntryType::Regular, name, "", b"");
        }
    };
    let error = unpacked(Limits { ratio: u64::MAX, ..small }, three).0.expect_err("too many");
    assert!(error.contains("more than 2 entries"), "{error}");
}

#[test]
fn what_is_no_archive_says_so() {
    let directory = tempfile::tempdir().expect("a directory");
    let archive = directory.path().join("archive");
    for content in [b"resource {}".as_slice(), b"\x1f\x8b\x08\x00broken"] {
        File::create(&archive).and_then(|mut file| file.write_all(content)).expect("a file");
        let error = unpack(&archive, directory.path(), LIMITS).expect_err("no archive").to_string();
        assert!(error.contains("is no tar.gz archive"), "{error}");
    }
}
