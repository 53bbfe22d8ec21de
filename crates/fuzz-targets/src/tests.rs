//! Variations of seeds, the same each time.

use std::collections::BTreeSet;
use std::fs;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::path::{Path, PathBuf};

use rand::rngs::StdRng;
use rand::{RngExt, SeedableRng};

use crate::TARGETS;

const VARIATIONS: usize = 2000;
const MAX_INPUT_BYTES: usize = 8 * 1024;

fn fuzz() -> PathBuf {
    Path::new(&std::env::var("CARGO_MANIFEST_DIR").expect("cargo runs the tests")).join("../../fuzz")
}

fn seeds(target: &str) -> Vec<Vec<u8>> {
    let directory = fuzz().join("seeds").join(target);
    let mut files: Vec<_> =
        (fs::read_dir(&directory).into_iter().flatten()).map(|entry| entry.expect("an entry").path()).collect();
    files.sort();
    assert!(!files.is_empty(), "{} has no seeds", directory.display());
    files.iter().map(|file| fs::read(file).expect("a seed")).collect()
}

/// Runs a target with all seeds, and with variations of them.
pub(crate) fn hold_for_variations_of_seeds(target: &str, run: fn(&[u8])) {
    let seeds = seeds(target);
    let mut random = StdRng::seed_from_u64(1);
    let variations = (0..VARIATIONS).map(|_| variation(&seeds, &mut random));
    for input in seeds.iter().cloned().chain(variations) {
        if let Err(panic) = catch_unwind(AssertUnwindSafe(|| run(&input))) {
            eprintln!("as text: {}", String::from_utf8_lossy(&input));
            eprintln!("To see it again, put these bytes into fuzz/seeds/{target}/: {input:?}");
            resume_unwind(panic);
        }
    }
}

fn variation(seeds: &[Vec<u8>], random: &mut StdRng) -> Vec<u8> {
    let any = |random: &mut StdRng| &seeds[random.random_range(0..seeds.len())];
    let mut input = any(random).clone();
    for _ in 0..random.random_range(1..=4) {
        let at = random.random_range(0..=input.len());
        let upto = (at + random.random_range(0..16)).min(input.len());
        match random.random_range(0..8) {
            0 if at < input.len() => input[at] ^= 1 << random.random_range(0..8),
            1 if at < input.len() => input[at] = [0, 0x7f, 0x80, 0xff][random.random_range(0..4)],
            2 => input.insert(at, random.random()),
            3 => _ = input.drain(at..upto),
            4 => input.truncate(at),
            5 => {
                let copy = input[at..upto].repeat(random.random_range(1..64));
                input.splice(at..at, copy);
            }
            6 => {
                let other = any(random);
                let from = random.random_range(0..=other.len());
                let part = &other[from..(from + random.random_range(0..64)).min(other.len())];
                input.splice(at..upto, part.iter().copied());
            }
            _ => {
                let signs = b"\"'\\{}[]()<>:;,.=&%#$\n\r\t \x1b\0-+0919aZ";
                input.insert(at, signs[random.random_range(0..signs.len())]);
            }
        }
    }
    input.truncate(MAX_INPUT_BYTES);
    input
}

#[test]
fn every_target_can_be_fuzzed() {
    let names: BTreeSet<_> = TARGETS.iter().map(|target| target.name.to_owned()).collect();
    let files = fs::read_dir(fuzz().join("fuzz_targets")).expect("a directory");
    let files = files.map(|entry| entry.expect("an entry").path());
    let found: BTreeSet<_> = files.filter_map(|file| Some(file.file_stem()?.to_str()?.to_owned())).collect();
    assert_eq!(found, names);
    let manifest = fs::read_to_string(fuzz().join("Cargo.toml")).expect("a manifest");
    for name in names {
        assert!(manifest.contains(&format!("name = \"{name}\"\n")), "fuzz/Cargo.toml does not have {name}");
    }
}
