//! Pages in a real browser.

mod accessibility;
mod axe;
mod graph;
mod journeys;
mod large;
mod outputs;
mod poison;
mod security;
mod themes;
mod tls;
