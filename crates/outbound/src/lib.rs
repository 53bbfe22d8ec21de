//! Requests to addresses that people configure: webhooks, and whatever else leaves the site because somebody typed an
//! address. Whoever may type one must not reach through the server what only the server can reach, so all of them go
//! through [`OutboundClient`], which looks at the addresses that it really connects to.
//! `docs/decisions/0042-requests-to-configured-addresses.md` says what is refused.

mod addresses;
mod client;
mod mail;
mod resolver;
mod url_rules;

pub use addresses::{AllowedNetworks, is_global};
pub use client::{Answer, Outbound, OutboundClient, OutboundError, REQUEST_TIMEOUT};
pub use mail::{Mail, MailError, Mailer};
pub use resolver::Lookup;
