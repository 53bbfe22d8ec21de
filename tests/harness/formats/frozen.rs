//! The files in `migrations-in-bucket/`.

use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};

use super::source::repository;

/// A bucket as a server left it, below the folder of its format.
pub const FROZEN_BUCKET: &str = "bucket";

/// Master key that seals it; no secret.
pub const FROZEN_BUCKET_KEY: &str = "a key that only these tests know";

/// The shape of all that this version stores.
pub fn shapes_file() -> PathBuf {
    migrations().join("shapes.txt")
}

pub fn migrations() -> PathBuf {
    repository().join("migrations-in-bucket")
}

/// The folders of all formats, oldest first. New samples belong into the last.
pub fn formats() -> Vec<PathBuf> {
    let entries = fs::read_dir(migrations()).expect("migrations").map(|entry| entry.expect("an entry").path());
    let mut formats: Vec<_> = entries.filter(|path| path.is_dir()).collect();
    formats.sort();
    formats
}

/// The samples of one kind, oldest first.
pub fn samples(name: &str) -> Vec<String> {
    let files = formats().into_iter().map(|format| file(&format, name));
    let texts = files.filter_map(|file| fs::read_to_string(file).ok());
    texts.flat_map(|text| text.lines().map(str::to_owned).collect::<Vec<_>>()).collect()
}

/// Adds samples behind those that are there, which stay as they are.
pub fn add_samples(name: &str, samples: &[String]) {
    if samples.is_empty() {
        return;
    }
    let file = file(formats().last().expect("there is a format"), name);
    fs::create_dir_all(file.parent().expect("it lies in a directory")).expect("a directory");
    let mut org = fs::OpenOptions::new().append(true).create(true).open(&file).expect("a file");
    for sample in samples {
        writeln!(org, "{sample}").expect("there is room");
    }
    println!("{}: {} more", file.display(), samples.len());
}

/// The names of all kinds that have samples.
pub fn names() -> Vec<String> {
    fn gather(directory: &Path, within: &str, names: &mut Vec<String>) {
        for entry in fs::read_dir(directory).into_iter().flatten() {
            let path = entry.expect("an entry").path();
            let name = path.file_stem().expect("a name").to_string_lossy().into_owned();
            let name = if within.is_empty() { name } else { format!("{within}/{name}") };
            if path.is_dir() {
                gather(&path, &name, names);
            } else {
                names.push(name);
            }
        }
    }
    let mut names = Vec::new();
    formats().iter().for_each(|format| gather(&format.join("samples"), "", &mut names));
    names
}

fn file(format: &Path, name: &str) -> PathBuf {
    format.join("samples").join(format!("{name}.jsonl"))
}

pub fn copy_directory(from: &Path, to: &Path) {
    fs::create_dir_all(to).expect("a directory");
    for entry in fs::read_dir(from).expect("a directory") {
        let entry = entry.expect("an entry");
        let target = to.join(entry.file_name());
        if entry.path().is_dir() {
            copy_directory(&entry.path(), &target);
        } else {
            fs::copy(entry.path(), target).expect("copied");
        }
    }
}
