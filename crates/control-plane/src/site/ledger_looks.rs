//! Cheap reads of ledgers, for servers that follow all of them.

use taco_boxed::boxed;
use taco_domain::id::OrganizationId;
use taco_ledger::LedgerName;

use crate::error::Error;
use crate::privileged::Privileged;

/// Verbs without permission checks, for the server itself.
#[boxed]
impl Privileged {
    /// Looks at one ledger, in which another server has written the commit `newest`. One that this server has not opened
    /// is nothing to it yet, and what it has seen it need not look for.
    pub async fn look_at(&self, ledger: &LedgerName, newest: u64) -> Result<(), Error> {
        if *ledger == LedgerName::site() {
            if self.shared.site.last_seen().seq() < newest {
                self.read_site().await?;
            }
            return Ok(());
        }
        let Ok(id) = ledger.as_str().parse::<OrganizationId>() else { return Ok(()) };
        match self.organization_last_seen(id.organization_prefix()) {
            Some(org) if org.id() == id && org.last_seen().seq() < newest => org.look().await,
            _ => Ok(()),
        }
    }
}
