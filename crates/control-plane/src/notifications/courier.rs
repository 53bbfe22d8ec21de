//! The way out of the site. What leaves it, and how, the server knows; verbs know what is to be said.

use std::fmt;
use std::sync::Arc;

use futures::future::{BoxFuture, FutureExt};

/// A request to an address that somebody configured.
#[derive(Clone)]
pub struct Webhook {
    pub url: String,
    pub headers: Vec<(&'static str, String)>,
    pub body: Vec<u8>,
}

/// An e-mail to addresses that somebody configured.
#[derive(Clone)]
pub struct Letter {
    /// The same with every attempt.
    pub id: String,
    pub to: Vec<String>,
    pub subject: String,
    pub text: String,
    pub html: String,
}

/// What came back.
#[derive(Clone, PartialEq, Eq, Default, Debug)]
pub struct Reply {
    pub successful: bool,
    /// Status of the response, if there was one.
    pub code: Option<u16>,
    /// The beginning of its body, or why there is none.
    pub body: String,
    pub headers: Vec<(String, String)>,
}

/// Sends things to addresses that people configure.
pub trait Courier: Send + Sync + 'static {
    /// Checks an address as it is typed. The error is a sentence.
    fn check_url(&self, url: &str) -> Result<(), String>;

    /// Checks whether e-mail can be sent at all. The error is a sentence.
    fn check_email(&self) -> Result<(), String>;

    fn post(&self, webhook: Webhook) -> BoxFuture<'_, Reply>;

    fn mail(&self, letter: Letter) -> BoxFuture<'_, Reply>;
}

/// The way out, and the address under which people find the site.
#[derive(Clone)]
pub struct NotificationSettings {
    pub courier: Arc<dyn Courier>,
    /// Without a slash at the end.
    pub site_url: String,
}

impl Default for NotificationSettings {
    /// Nothing leaves the site.
    fn default() -> Self {
        Self { courier: Arc::new(NoCourier), site_url: String::new() }
    }
}

impl fmt::Debug for NotificationSettings {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("NotificationSettings").field("site_url", &self.site_url).finish_non_exhaustive()
    }
}

/// For programs that open a site and send nothing.
struct NoCourier;

impl NoCourier {
    const WHY: &'static str = "This program sends nothing";
}

impl Courier for NoCourier {
    fn check_url(&self, _: &str) -> Result<(), String> {
        Ok(())
    }

    fn check_email(&self) -> Result<(), String> {
        Err(Self::WHY.to_owned())
    }

    fn post(&self, _: Webhook) -> BoxFuture<'_, Reply> {
        async { Reply { body: Self::WHY.to_owned(), ..Reply::default() } }.boxed()
    }

    fn mail(&self, _: Letter) -> BoxFuture<'_, Reply> {
        async { Reply { body: Self::WHY.to_owned(), ..Reply::default() } }.boxed()
    }
}
