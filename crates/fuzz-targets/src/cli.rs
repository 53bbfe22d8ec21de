//! Input of the command line from directories that came from elsewhere.

use taco_cli::fuzzing;

/// Names come from the text.
pub fn cloud_blocks(data: &[u8]) {
    let Ok(text) = std::str::from_utf8(data) else { return };
    for name in fuzzing::cloud_block(text).into_iter().flatten().flatten() {
        assert!(name.len() <= text.len());
    }
}

/// A host's name is a host with the same address.
pub fn hosts(data: &[u8]) {
    let Ok(text) = std::str::from_utf8(data) else { return };
    let Some((name, address)) = fuzzing::host(text) else { return };
    assert!(address.ends_with('/') && !address.contains('@'), "{address}");
    if !text.contains("://") {
        assert_eq!(fuzzing::host(&name), Some((name, address)));
    }
}
