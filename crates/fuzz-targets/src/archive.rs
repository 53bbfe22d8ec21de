//! Archives of configurations.

use std::io::{self, Read, Write};
use std::path::{Component, Path};

use flate2::Compression;
use flate2::write::GzEncoder;
use taco_configuration_archive::{LIMITS, Limits, Visitor, inspect, walk};
use taco_module_docs::{ModuleDocs, SourceFiles, module_calls};
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

/// Whatever a module's files say, there is documentation of it that can be stored and read again, and no larger than they
/// are. The bytes are tried as HCL and as JSON.
pub fn module_docs(data: &[u8]) {
    let mut files = SourceFiles::default();
    for path in ["main.tf", "more.tf.json", "modules/one/main.tofu", "README.md"] {
        files.add(path, Some(data));
    }
    let docs = files.docs();
    let stored = serde_json::to_string(&docs).expect("JSON");
    assert!(serde_json::from_str::<ModuleDocs>(&stored).is_ok_and(|read| read == docs));
    assert!(docs.root.inputs.len() + docs.root.outputs.len() <= data.len());
    if let Ok(text) = std::str::from_utf8(data) {
        assert!(module_calls([("main.tf", text)]).len() <= text.len());
    }
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
