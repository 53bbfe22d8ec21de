//! The graph of states as people see it: as a picture, and as texts for other programs that draw.
//!
//! A [`Graph`] is the document that the API and `taco graph --format json` speak. A [`Filter`] keeps a part of it, a
//! [`Picture`] says which boxes and lines to draw of that, and [`svg()`], [`dot()`] and [`mermaid()`] write it down. All of this
//! is pure and deterministic: the same graph gives the same bytes, whatever the order of its units.

mod cycles;
mod document;
mod dot;
mod filter;
mod layout;
mod look;
mod mermaid;
mod picture;
#[doc(hidden)]
pub mod sample;
mod svg;
mod text;

pub use cycles::cycles;
pub use document::{Edge, Graph, Unit};
pub use dot::dot;
pub use filter::Filter;
pub use look::{Look, Sign, Tone};
pub use mermaid::mermaid;
pub use picture::{Body, Grouping, Link, MAX_UNITS_APART, Node, Picture, urgency};
pub use svg::{Svg, svg};
pub use taco_words::graph as words;
