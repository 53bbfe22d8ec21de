//! Entry points for `crates/fuzz-targets`, which render untrusted texts as pages do; no part of the API.

use crate::ansi::Renderer;
use crate::engine_line::EngineLine;

/// A log as HTML.
pub fn log(pieces: &[&[u8]]) -> String {
    let (mut renderer, mut html) = (Renderer::default(), String::new());
    for piece in pieces {
        renderer.render(piece, &mut html);
    }
    renderer.finish(&mut html);
    html
}

/// Markdown as HTML.
pub fn markdown(text: &str) -> String {
    crate::markdown::safe_html(text).html
}

/// A line of an engine that logs JSON, as a terminal would show it.
pub fn engine_line(line: &[u8]) -> Option<String> {
    EngineLine::parse(line).map(|line| line.in_words())
}

/// True if a character must not appear on a page: it changes how others look.
pub fn is_deceptive(character: char) -> bool {
    crate::text::is_deceptive(character)
}
