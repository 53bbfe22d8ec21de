//! Authentication between the servers of a site: a peer proves that it knows the site's key, and that the request is
//! recent. The credential carries nothing else, so overhearing or replaying one reveals nothing.

use subtle::ConstantTimeEq;

use crate::control_plane::ControlPlane;
use crate::privileged::Privileged;

/// Two servers' clocks may differ by this many seconds.
const SKEW: i64 = 600;

impl ControlPlane {
    fn signature(&self, at: i64) -> String {
        self.hash_key().hash("peer", &at.to_string()).to_string()
    }
}

/// Verbs without permission checks, for the server itself.
impl Privileged {
    /// Credential for a peer of the same site.
    pub fn sign_peer_request(&self) -> String {
        let now = self.now().as_second();
        format!("{now}-{}", self.signature(now))
    }

    /// True if a peer of the same site has signed this recently.
    pub fn verify_peer_request(&self, word: &str) -> bool {
        let Some((at, signature)) = word.split_once('-') else { return false };
        let Ok(at) = at.parse::<i64>() else { return false };
        let genuine: bool = self.signature(at).as_bytes().ct_eq(signature.as_bytes()).into();
        genuine && (self.now().as_second() - at).abs() < SKEW
    }

    /// With what the agent within this server seals its journal: the same after a restart, and nothing else's key.
    pub fn journal_secret(&self) -> String {
        self.hash_key().hash("agent-journal", "").to_string()
    }
}
