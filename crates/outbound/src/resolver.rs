//! Names are resolved here, and what they lead to is looked at before anyone connects: a name that was fine when it was
//! saved may lead elsewhere today.

use std::error::Error as StdError;
use std::io;
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;

use async_trait::async_trait;
use reqwest::dns::{Addrs, Name, Resolve, Resolving};
use tokio::net::lookup_host;

use crate::addresses::AllowedNetworks;

/// Finds the addresses of a host.
#[async_trait]
pub trait Lookup: Send + Sync + 'static {
    async fn addresses(&self, host: &str) -> io::Result<Vec<IpAddr>>;
}

/// The way in which every program on this machine does it.
pub(crate) struct SystemLookup;

#[async_trait]
impl Lookup for SystemLookup {
    async fn addresses(&self, host: &str) -> io::Result<Vec<IpAddr>> {
        Ok(lookup_host((host, 0)).await?.map(|address| address.ip()).collect())
    }
}

/// A host has no address to which a request may go.
#[derive(Clone, PartialEq, Eq, thiserror::Error, Debug)]
#[error("address not allowed: {host} leads to {address}, which is not on the internet")]
pub(crate) struct NotAllowed {
    pub(crate) host: String,
    pub(crate) address: IpAddr,
}

/// Resolves names to addresses that are allowed, and to nothing else.
pub(crate) struct GuardedResolver {
    pub(crate) lookup: Arc<dyn Lookup>,
    pub(crate) allowed: AllowedNetworks,
    pub(crate) is_encrypted: bool,
}

impl Resolve for GuardedResolver {
    fn resolve(&self, name: Name) -> Resolving {
        let (lookup, allowed, is_encrypted) = (Arc::clone(&self.lookup), self.allowed.clone(), self.is_encrypted);
        Box::pin(async move {
            let found = lookup.addresses(name.as_str()).await?;
            // One that is not allowed spoils the others: whoever mixes them wants to get through by chance.
            if let Some(address) = found.iter().find(|address| !allowed.lets_through(**address, is_encrypted)) {
                let refusal = NotAllowed { host: name.as_str().to_owned(), address: *address };
                return Err(Box::new(refusal) as Box<dyn StdError + Send + Sync>);
            }
            let addresses: Addrs = Box::new(found.into_iter().map(|address| SocketAddr::new(address, 0)));
            Ok(addresses)
        })
    }
}
