use std::io::{self, Read};
use std::path::Path;

use flate2::Compression;
use flate2::write::GzEncoder;
use tar::{Builder, Entry, EntryType, Header};

use crate::{ArchiveError, LIMITS, Limits, MAX_README_BYTES, Visitor, inspect, walk};

type Packing = Builder<GzEncoder<Vec<u8>>>;

/// An entry whose name and target are written as they are: a well-behaved builder would refuse the corpus.
fn append(builder: &mut Packing, kind: EntryType, name: &str, target: &str, content: &[u8]) {
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

fn packed(fill: impl FnOnce(&mut Packing)) -> Vec<u8> {
    let mut builder = Builder::new(GzEncoder::new(Vec::new(), Compression::fast()));
    fill(&mut builder);
    builder.into_inner().and_then(GzEncoder::finish).expect("an archive")
}

fn files(files: &[(&str, &str)]) -> Vec<u8> {
    packed(|builder| {
        for (name, content) in files {
            append(builder, EntryType::Regular, name, "", content.as_bytes());
        }
    })
}

/// Remembers what it was shown.
#[derive(Default)]
struct Seen(Vec<String>);

impl Visitor for Seen {
    fn visit<R: Read>(&mut self, path: &Path, _entry: &mut Entry<'_, R>) -> io::Result<()> {
        self.0.push(path.display().to_string());
        Ok(())
    }
}

fn walked(limits: Limits, fill: impl FnOnce(&mut Packing)) -> Result<Vec<String>, String> {
    let mut seen = Seen::default();
    walk(&*packed(fill), limits, &mut seen).map(|()| seen.0).map_err(|error| error.to_string())
}

#[track_caller]
fn assert_refused(expected: &str, fill: impl FnOnce(&mut Packing)) {
    let error = walked(LIMITS, fill).expect_err(expected);
    assert!(error.contains(expected), "{error} instead of {expected}");
}

#[test]
fn a_configuration_with_links_is_shown_entry_by_entry() {
    let seen = walked(LIMITS, |builder| {
        append(builder, EntryType::XGlobalHeader, "pax_global_header", "", b"");
        append(builder, EntryType::Directory, "./", "", b"");
        append(builder, EntryType::Directory, "./modules/", "", b"");
        append(builder, EntryType::Directory, "modules", "", b"");
        append(builder, EntryType::Regular, "main.tf", "", b"# main");
        append(builder, EntryType::Regular, "modules/a/a.tf", "", b"# a");
        append(builder, EntryType::Symlink, "modules/b", "a", b"");
        append(builder, EntryType::Symlink, "modules/a/up.tf", "../../main.tf", b"");
        append(builder, EntryType::Symlink, "modules/a/around.tf", "../a/./a.tf", b"");
        append(builder, EntryType::Symlink, "modules/through.tf", "b/a.tf", b"");
        append(builder, EntryType::Symlink, "nowhere", "not/there", b"");
        append(builder, EntryType::Link, "copy.tf", "main.tf", b"");
    });
    let expected = [
        "",
        "modules",
        "modules",
        "main.tf",
        "modules/a/a.tf",
        "modules/b",
        "modules/a/up.tf",
        "modules/a/around.tf",
        "modules/through.tf",
        "nowhere",
        "copy.tf",
    ];
    assert_eq!(seen.expect("nothing is wrong with it"), expected);
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
        (E::Symlink, "link", "", "the link has no target"),
        (E::Link, "link", "/etc/passwd", "the link leads out"),
        (E::Link, "link", "../outside", "the link leads out"),
        (E::Link, "link", "missing", "the link leads to no file that came before it"),
        (E::Fifo, "pipe", "", "entry pipe: only files, directories and links"),
        (E::Char, "device", "", "only files, directories and links"),
        (E::Block, "device", "", "only files, directories and links"),
        (E::GNUSparse, "sparse", "", "entry sparse: only files, directories and links"),
        (E::Regular, "./", "", "entry ./: it has no name"),
        (E::Regular, "\u{1b}[31m/../x", "", "entry \\u{1b}[31m/../x: the name has .. in it"),
    ] {
        assert_refused(expected, |builder| append(builder, kind, name, target, b""));
    }
}

#[test]
fn a_link_through_another_link_does_not_lead_out_either() {
    assert_refused("entry out: the link leads out", |builder| {
        append(builder, EntryType::Directory, "sub", "", b"");
        append(builder, EntryType::Symlink, "sub/up", "..", b"");
        append(builder, EntryType::Symlink, "out", "sub/up/..", b"");
    });
    assert_refused("entry out: the link leads out", |builder| {
        append(builder, EntryType::Symlink, "out", "sub/up/deeper/../..", b"");
        append(builder, EntryType::Symlink, "sub/up", "..", b"");
    });
    // A second name for a link would be read from another directory.
    assert_refused("entry out: the link leads to no file", |builder| {
        append(builder, EntryType::Symlink, "sub/up", "../main.tf", b"");
        append(builder, EntryType::Link, "out", "sub/up", b"");
    });
}

#[test]
fn nothing_lies_behind_a_link() {
    for kind in [EntryType::Regular, EntryType::Directory, EntryType::Symlink] {
        assert_refused("entry a/escape: it lies behind a link", |builder| {
            append(builder, EntryType::Symlink, "a", "sub", b"");
            append(builder, kind, "a/escape", "x", b"");
        });
        assert_refused("entry a/b/escape: it lies behind a link", |builder| {
            append(builder, kind, "a/b/escape", "x", b"");
            append(builder, EntryType::Symlink, "a", "sub", b"");
        });
    }
}

#[test]
fn nothing_lies_behind_a_file() {
    for kind in [EntryType::Regular, EntryType::Directory, EntryType::Symlink] {
        for file_first in [true, false] {
            assert_refused("entry a/b/c: it lies behind a file", |builder| {
                if file_first {
                    append(builder, EntryType::Regular, "a", "", b"x");
                }
                append(builder, kind, "a/b/c", "x", b"");
                if !file_first {
                    append(builder, EntryType::Regular, "a", "", b"x");
                }
            });
        }
    }
}

#[test]
fn names_are_unique_and_not_too_long() {
    assert_refused("a part of the name is too long", |builder| {
        append(builder, EntryType::Regular, &format!("a/{}", "x".repeat(256)), "", b"");
    });
    use EntryType as E;
    for (first, second) in [
        ((E::Regular, "main.tf"), (E::Regular, "./main.tf")),
        ((E::Regular, "main.tf"), (E::Symlink, "./main.tf")),
        ((E::Symlink, "main.tf"), (E::Directory, "./main.tf")),
        ((E::Directory, "main.tf"), (E::Regular, "./main.tf")),
    ] {
        assert_refused("entry ./main.tf: the name occurs twice", |builder| {
            append(builder, first.0, first.1, "x", b"");
            append(builder, second.0, second.1, "x", b"");
        });
    }
    let (long, deep, longer) = ("a".repeat(4_200), "a/".repeat(200), "a".repeat(2 * 1024 * 1024));
    assert_refused("the name is too long", |builder| append(builder, E::Regular, &long, "", b""));
    assert_refused("leads through too many directories", |builder| append(builder, E::Regular, &deep, "", b""));
    assert_refused("the name is too long", |builder| append(builder, E::Regular, &longer, "", b""));
    let limits = Limits { names: 20, ..LIMITS };
    let error = walked(limits, |builder| (0..9).for_each(|n| append(builder, E::Regular, &format!("{n}.tf"), "", b"")));
    assert!(error.expect_err("names").contains("have more than 20 bytes together"));
}

/// Extended headers can say another size than the header itself, and readers disagree about which one counts.
#[test]
fn an_entry_has_one_size() {
    assert_refused("entry main.tf: it has two sizes", |builder| {
        append(builder, EntryType::XHeader, "pax", "", b"13 size=1024\n");
        append(builder, EntryType::Regular, "main.tf", "", b"content");
    });
    assert_refused("the name has a NUL in it", |builder| {
        append(builder, EntryType::XHeader, "pax", "", b"14 path=ma\0in\n");
        append(builder, EntryType::Regular, "main.tf", "", b"content");
    });
}

#[test]
fn limits_count_what_comes_out() {
    let zeros = vec![0; 64 * 1024];
    let fill = |builder: &mut Packing| append(builder, EntryType::Regular, "zeros", "", &zeros);
    let small = Limits { packed: 1024, unpacked: 32 * 1024, ratio: 1_000, ratio_counts_after: 0, entries: 2, ..LIMITS };
    let error = walked(small, fill).expect_err("too large");
    assert!(error.contains("expands beyond the limit of 32768 bytes"), "{error}");
    let error = walked(Limits { unpacked: u64::MAX, ratio: 10, ..small }, fill).expect_err("too tight");
    assert!(error.contains("expands beyond the limit of 10 times its packed size"), "{error}");
    let error = walked(Limits { packed: 10, ..small }, fill).expect_err("too large");
    assert!(error.contains("more than 10 bytes packed"), "{error}");
    let three = |builder: &mut Packing| {
        for name in ["a", "b", "c"] {
            append(builder, EntryType::Regular, name, "", b"");
        }
    };
    let error = walked(Limits { ratio: u64::MAX, ..small }, three).expect_err("too many");
    assert!(error.contains("more than 2 entries"), "{error}");
}

/// As many zeros as someone likes to pack: what was promised is counted before anything else happens to it.
#[test]
fn a_bomb_is_stopped_early() {
    struct Counting<'a>(&'a [u8], u64);
    impl Read for Counting<'_> {
        fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
            let count = self.0.read(buffer)?;
            self.1 += count as u64;
            Ok(count)
        }
    }
    let bomb = packed(|builder| {
        let mut header = Header::new_gnu();
        header.set_size(512 * 1024 * 1024);
        header.set_mode(0o644);
        builder.append_data(&mut header, "zeros.tf", io::repeat(0).take(512 * 1024 * 1024)).expect("an entry");
    });
    let mut counting = Counting(&bomb, 0);
    let error = inspect(io::BufReader::new(&mut counting), LIMITS, "").expect_err("a bomb").to_string();
    assert!(error.contains("expands beyond the limit of 200 times its packed size"), "{error}");
    assert!(counting.1 < bomb.len() as u64 / 10, "{} of {} bytes were read", counting.1, bomb.len());
}

#[test]
fn what_is_no_archive_says_so() {
    let mut text = GzEncoder::new(Vec::new(), Compression::fast());
    io::Write::write_all(&mut text, "resource {}".repeat(100).as_bytes()).expect("in memory");
    let text = text.finish().expect("in memory");
    let whole = files(&[("main.tf", &"# a line\n".repeat(1_000))]);
    let mut damaged = whole.clone();
    let last = damaged.len() - 5;
    damaged[last] ^= 1;
    let cut = &whole[..whole.len() / 2];
    for content in [b"resource {}".as_slice(), b"\x1f\x8b\x08\x00broken", b"", b"\x1f", &text, cut, &damaged] {
        let error = inspect(content, LIMITS, "").expect_err("no archive").to_string();
        assert!(error.contains("is no tar.gz archive"), "{content:?}: {error}");
    }
}

#[test]
fn a_configuration_has_a_file_that_engines_read() {
    let looked = |archive: Vec<u8>, directory| inspect(&*archive, LIMITS, directory).map_err(|error| error.to_string());
    for name in ["main.tf", "main.tf.json", "main.tofu", "main.tofu.json", "below/some/main.tf"] {
        looked(files(&[(name, "")]), "").expect(name);
    }
    let error = looked(files(&[("main.hcl", ""), ("tf", "")]), "").expect_err("nothing to run");
    assert!(error.contains("no file that ends in .tf, .tf.json, .tofu, .tofu.json: pack"), "{error}");
    for nothing in [files(&[]), packed(|builder| append(builder, EntryType::Directory, "a/", "", b""))] {
        assert_eq!(looked(nothing, "").expect_err("empty"), ArchiveError::Empty.to_string());
    }
    let two = || files(&[("main.tf", ""), ("live/web/main.tf", "")]);
    for directory in ["live/web", "./live//web/"] {
        looked(two(), directory).expect(directory);
    }
    for directory in ["live", "live/web/main.tf", "other"] {
        let error = looked(two(), directory).expect_err(directory);
        assert!(error.contains(&format!("in the working directory {directory}: pack")), "{error}");
    }
    let linked = packed(|builder| {
        append(builder, EntryType::Regular, "modules/web/main.tf", "", b"");
        append(builder, EntryType::Symlink, "live/web", "../stacks/web", b"");
        append(builder, EntryType::Symlink, "stacks", "modules", b"");
        append(builder, EntryType::Symlink, "loop", "loop", b"");
    });
    looked(linked.clone(), "live/web").expect("links are followed");
    assert!(looked(linked, "loop").is_err());
}

#[test]
fn the_readme_of_the_working_directory_comes_first() {
    let readme =
        |content: &[(&str, &str)], directory| inspect(&*files(content), LIMITS, directory).expect("an archive").readme;
    let both = [("ReadMe.md", "of the root"), ("a/main.tf", ""), ("a/README.MD", "of a"), ("b/README.md", "of b")];
    assert_eq!(readme(&both, "").as_deref(), Some("of the root"));
    assert_eq!(readme(&both, "a").as_deref(), Some("of a"));
    assert_eq!(readme(&[("README.md", "of the root"), ("a/x.tf", "")], "a").as_deref(), Some("of the root"));
    assert_eq!(readme(&[("README.txt", ""), ("a/x.tf", ""), ("b/README.md", "")], "a"), None);
    let long = "ä".repeat(MAX_README_BYTES);
    let kept = readme(&[("main.tf", ""), ("README.md", &format!("a{long}"))], "").expect("its beginning");
    assert_eq!((kept.len(), kept.chars().last()), (MAX_README_BYTES - 1, Some('ä')));
    let linked = packed(|builder| {
        append(builder, EntryType::Regular, "main.tf", "", b"");
        append(builder, EntryType::Symlink, "README.md", "main.tf", b"");
    });
    assert_eq!(inspect(&*linked, LIMITS, "").expect("an archive").readme, None, "links are not followed");
}
