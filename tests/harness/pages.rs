//! Every page, and where to look at it once there is something to see: see [`crate::gallery`].

#[derive(Clone, Copy, Debug)]
pub struct Page {
    /// What its pictures are called.
    pub name: &'static str,
    /// Its address; words in braces stand for ids that only the gallery knows.
    pub address: &'static str,
    pub visitor: Visitor,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Visitor {
    Admin,
    /// Someone who is not logged in.
    Stranger,
}

/// How wide a phone is, in pixels.
pub const PHONE: u32 = 390;

pub const DESK: u32 = 1280;

pub const PAGES: &[Page] = &[
    Page { name: "login", address: "/login", visitor: Visitor::Stranger },
    Page { name: "password-link", address: "{setup}", visitor: Visitor::Stranger },
    admin("consent", "/oauth/authorize?{consent}"),
    admin("start", "/app"),
    admin("tokens", "/app/settings/tokens"),
    admin("not-found", "/app/acme/nothing/here"),
];

const fn admin(name: &'static str, address: &'static str) -> Page {
    Page { name, address, visitor: Visitor::Admin }
}

/// Routes that answer with no page of their own.
pub const NO_PAGES: &[&str] = &[
    // Leads to `/app`.
    "/",
];
