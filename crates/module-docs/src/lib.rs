//! What a module's source says about it: inputs, outputs, providers, resources, calls of other modules, submodules and
//! examples. Read from untrusted files, so everything is bounded and nothing panics.

mod collect;
mod docs;
mod files;
mod hcl;
mod json;

pub use collect::{MAX_FILE_BYTES, SourceFiles, module_calls};
pub use docs::{Input, ModuleCall, ModuleDocs, ModulePart, Output, RequiredProvider, Resource, UnreadableFile};
pub use files::is_source;

#[cfg(test)]
mod tests;
