//! `taco registry`

use std::fs;

use harness::registry::{ARCHIVE, CHECKSUMS, FILENAME, MODULE, PUBLIC_KEY, SIGNATURE};

use crate::person::Person;

const ACME: [&str; 2] = ["--org", "acme"];

fn words<'a>(words: &[&'a str]) -> Vec<&'a str> {
    words.iter().chain(&ACME).copied().collect()
}

#[test]
fn a_directory_is_published_as_a_module() {
    let person = Person::with_workspace();
    let empty = person.succeeds(&words(&["registry", "module", "ls"])).stdout;
    assert_eq!(empty, "MODULE\tLATEST\tVERSIONS\tCHANGED\n");
    for (name, text) in MODULE {
        let path = person.home.path().join("greeter").join(name);
        fs::create_dir_all(path.parent().expect("a directory")).expect("made");
        fs::write(path, text).expect("written");
    }
    let publish = ["registry", "module", "publish", "greeter", "--name", "greeter", "--provider", "local", "--version"];
    let version = |version: &'static str| words(&[&publish[..], &[version]].concat());
    assert_eq!(person.succeeds(&version("1.0.0")).stdout, "Published acme/greeter/local 1.0.0.\n");
    person.succeeds(&version("1.1.0"));
    let rows = person.succeeds(&words(&["registry", "module", "ls"]));
    assert_eq!(rows.rows()[0][..3], ["acme/greeter/local", "1.1.0", "2"]);
    let taken = person.fails(4, &version("1.0.0"));
    assert!(taken.contains("already been taken"), "{taken}");
    let wrong = person.fails(1, &version("1.0"));
    assert!(wrong.contains("semantic version"), "{wrong}");

    // What is refused leaves no version behind that would be in the way.
    fs::create_dir_all(person.home.path().join("nothing")).expect("made");
    fs::write(person.home.path().join("nothing/README.md"), "# Nothing").expect("written");
    let nothing = ["registry", "module", "publish", "nothing", "--name", "greeter", "--provider", "local"];
    let refused = person.fails(1, &words(&[&nothing[..], &["--version", "2.0.0"]].concat()));
    assert!(refused.contains("no file that ends in .tf"), "{refused}");
    person.succeeds(&version("2.0.0"));
}

#[test]
fn a_release_is_published_as_a_provider() {
    let person = Person::with_workspace();
    let dist = person.home.path().join("dist");
    fs::create_dir_all(&dist).expect("made");
    let publish = words(&["registry", "provider", "publish", "dist", "--key", "dist/key.asc"]);
    let nothing = person.fails(2, &publish);
    assert!(nothing.contains("files that end in _SHA256SUMS"), "{nothing}");
    for (name, bytes) in [
        ("terraform-provider-null_1.0.0_SHA256SUMS", CHECKSUMS.as_bytes()),
        ("terraform-provider-null_1.0.0_SHA256SUMS.sig", SIGNATURE),
        (FILENAME, ARCHIVE),
        ("key.asc", PUBLIC_KEY.as_bytes()),
    ] {
        fs::write(dist.join(name), bytes).expect("written");
    }
    for _ in 0..2 {
        // Whoever does not know whether it was done does it again.
        let done = person.succeeds(&publish).stdout;
        assert_eq!(done, "Published acme/null 1.0.0 for 1 platform.\n");
    }
    let rows = person.succeeds(&words(&["registry", "provider", "ls"]));
    assert_eq!(rows.rows()[0][..2], ["acme/null", "1"]);
}
