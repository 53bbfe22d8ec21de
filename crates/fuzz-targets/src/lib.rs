//! Promises of every parser of untrusted input, as functions of bytes: no input makes them panic.
//!
//! `fuzz/` lets libFuzzer look for inputs that break a promise; the tests here try the seeds in `fuzz/seeds/` and a few
//! thousand variations of them, the same each time. An input that broke a promise once becomes a seed.

pub mod agent;
pub mod archive;
pub mod bucket;
pub mod cli;
pub mod domain;
pub mod server;
pub mod tfc_api;
pub mod web;

#[cfg(test)]
mod tests;

/// A promise about whatever bytes there may be.
#[derive(Clone, Copy)]
pub struct Target {
    /// Of its file in `fuzz/fuzz_targets/` and its folder in `fuzz/seeds/`.
    pub name: &'static str,
    /// Panics if the promise is broken.
    pub run: fn(&[u8]),
}

macro_rules! targets {
    ($($module:ident::$name:ident),* $(,)?) => {
        /// All of them.
        pub const TARGETS: &[Target] = &[$(Target { name: stringify!($name), run: $module::$name }),*];

        #[cfg(test)]
        mod promises {
            $(#[test]
            fn $name() {
                crate::tests::hold_for_variations_of_seeds(stringify!($name), crate::$module::$name);
            })*
        }
    };
}

targets![
    agent::engine_versions,
    agent::masks,
    agent::openpgp,
    agent::plans,
    archive::archives,
    archive::module_docs,
    bucket::catalogs,
    bucket::commits,
    bucket::id_indexes,
    bucket::sealed_objects,
    bucket::stored_bundles,
    cli::cloud_blocks,
    cli::hosts,
    domain::identifiers,
    domain::json_cuts,
    domain::json_trees,
    domain::plan_evidence,
    domain::producer_addresses,
    domain::resource_addresses,
    domain::state_evidence,
    domain::state_files,
    domain::variable_files,
    server::forwarded_addresses,
    tfc_api::base64_texts,
    tfc_api::bodies,
    tfc_api::queries,
    web::engine_lines,
    web::logs,
    web::markdown,
];

/// Calls `act` with the input in pieces: the first byte says how long they are.
fn in_pieces(data: &[u8]) -> (Vec<&[u8]>, &[u8]) {
    match data.split_first() {
        Some((size, rest)) => (rest.chunks(usize::from(*size).max(1)).collect(), rest),
        None => (Vec::new(), data),
    }
}
