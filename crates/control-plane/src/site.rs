//! The site as a whole: its servers, its peers, its keys.

pub(crate) mod ledger_looks;
pub(crate) mod peer_auth;
pub(crate) mod rewraps;
pub(crate) mod site_status;
