//! Keys of the registry's files in the bucket.

use taco_ledger::{Key, LedgerName, layout};

/// Archive of a module.
pub(crate) fn module_key(ledger: &LedgerName, blob: &str) -> Key {
    layout::blob(ledger, "modules", blob)
}

/// Documentation that was made of it.
pub(crate) fn docs_key(ledger: &LedgerName, blob: &str) -> Key {
    layout::blob(ledger, "module-docs", blob)
}

/// File of a provider: its checksums, their signature, or an archive.
pub(crate) fn provider_file_key(ledger: &LedgerName, blob: &str) -> Key {
    layout::blob(ledger, "providers", blob)
}
