//! Pages in a real browser.

mod accessibility;
mod axe;
mod journeys;
mod security;
mod themes;
