//! Archives of configurations.

use std::io::{self, Read, Write};
use std::path::{Component, Path};

use flate2::Compression;
use flate2::write::GzEncoder;
use taco_configuration_archive::{LIMITS, Limits, Visitor, inspect, walk};
use tar::Entry;

const MAX_ENTRIES: usize = 64;

/// No entry leads out of the directory, and nothing is read beyond the limits. The bytes are tried as an archive, and as
/// what an archive holds once it is decompressed.
pub fn archives(data: &[u8]) {
    look(data);
    let mut packed = GzEncoder::new(Vec::new(), Compression::fast());
    packed.write_all(data).expect("memory");
    look(&packed.finish().expect("memory"));
}

fn look(packed: &[u8]) {
    let limits = Limits { entries: MAX_ENTRIES, unpacked: 1024 * 1024, ..LIMITS };
    let mut seen = Seen::default();
    let walked = walk(packed, limits, &mut seen);
    assert!(seen.entries <= MAX_ENTRIES);
    if let Ok(inspected) = inspect(packed, limits, "") {
        walked.expect("agents unpack what servers take");
        assert!(inspected.readme.is_none_or(|text| text.len() <= seen.bytes + 1024));
    }
}

#[derive(Default)]
struct Seen {
    entries: usize,
    bytes: usize,
}

impl Visitor for Seen {
    fn visit<R: Read>(&mut self, path: &Path, entry: &mut Entry<'_, R>) -> io::Result<()> {
        let stays = path.components().all(|component| matches!(component, Component::Normal(_)));
        assert!(stays, "{} leads out", path.display());
        self.entries += 1;
        self.bytes += io::copy(entry, &mut io::sink())? as usize;
        Ok(())
    }
}
