//! Archives of providers: a zip with the program in it, and the hash that dependency lock files have of it.

use std::io::{Read, Seek};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use sha2::{Digest, Sha256};
use zip::ZipArchive;

/// Maximum number of entries in an archive.
const MAX_ENTRIES: usize = 10_000;
/// Maximum size of what an archive holds.
const MAX_UNPACKED_BYTES: u64 = 4 * 1024 * 1024 * 1024;

/// Hash of an archive's files, as `h1:…`: independent of how they are packed. The error completes "The archive …".
pub(crate) fn hash_of(archive: impl Read + Seek, program: &str) -> Result<String, String> {
    let mut archive = ZipArchive::new(archive).map_err(|error| format!("is no zip archive: {error}"))?;
    if archive.len() > MAX_ENTRIES {
        return Err(format!("has more than {MAX_ENTRIES} entries"));
    }
    let mut files = Vec::new();
    let mut rest = MAX_UNPACKED_BYTES;
    let mut has_program = false;
    for index in 0..archive.len() {
        let mut file = archive.by_index(index).map_err(|error| format!("is damaged: {error}"))?;
        let name = file.name().to_owned();
        if file.enclosed_name().is_none() || name.contains(['\n', '\\']) {
            return Err(format!("has an entry that leads out of it: {:?}", name.chars().take(100).collect::<String>()));
        }
        has_program |= name.starts_with(program) && file.is_file();
        let mut hash = Sha256::new();
        let mut buffer = vec![0; 64 * 1024];
        loop {
            let count = file.read(&mut buffer).map_err(|error| format!("is damaged: {error}"))?;
            if count == 0 {
                break;
            }
            rest = rest.checked_sub(count as u64).ok_or("expands beyond the limit of 4 GiB")?;
            hash.update(&buffer[..count]);
        }
        files.push((name, hex::encode(hash.finalize())));
    }
    if !has_program {
        return Err(format!("has no file whose name begins with {program}, which is what the engines start"));
    }
    files.sort();
    let mut whole = Sha256::new();
    for (name, hash) in files {
        whole.update(format!("{hash}  {name}\n"));
    }
    Ok(format!("h1:{}", STANDARD.encode(whole.finalize())))
}

#[cfg(test)]
mod tests {
    use std::io::{Cursor, Write};

    use zip::ZipWriter;
    use zip::write::SimpleFileOptions;

    use super::*;

    fn zipped(files: &[(&str, &str)]) -> Cursor<Vec<u8>> {
        let mut writer = ZipWriter::new(Cursor::new(Vec::new()));
        for (name, content) in files {
            writer.start_file(*name, SimpleFileOptions::default()).expect("a file");
            writer.write_all(content.as_bytes()).expect("written");
        }
        writer.finish().expect("an archive")
    }

    #[test]
    fn the_hash_is_that_of_lock_files() {
        let program = "terraform-provider-null";
        let hash = hash_of(zipped(&[("terraform-provider-null_v1", "x"), ("LICENSE", "y")]), program).expect("a hash");
        // `printf '%s  LICENSE\n%s  terraform-provider-null_v1\n' …  | openssl dgst -sha256 -binary | base64`
        let line = |text: &str, name: &str| format!("{}  {name}\n", hex::encode(Sha256::digest(text)));
        let expected = Sha256::digest(line("y", "LICENSE") + &line("x", "terraform-provider-null_v1"));
        assert_eq!(hash, format!("h1:{}", STANDARD.encode(expected)));
    }

    #[test]
    fn what_is_no_provider_is_refused() {
        let program = "terraform-provider-null";
        let refused = |files: &[(&str, &str)]| hash_of(zipped(files), program).expect_err("refused");
        assert!(refused(&[("other", "x")]).contains("has no file whose name begins with terraform-provider-null"));
        assert!(refused(&[("../terraform-provider-null", "x")]).contains("leads out of it"));
        assert!(hash_of(Cursor::new(b"hello".to_vec()), program).expect_err("no zip").contains("is no zip archive"));
        let mut cut = zipped(&[("terraform-provider-null", "x")]).into_inner();
        cut.truncate(cut.len() / 2);
        assert!(hash_of(Cursor::new(cut), program).is_err());
    }
}
