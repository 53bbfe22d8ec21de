//! Style sheet and scripts, compiled into the binary. No build but cargo's is needed.

use std::borrow::Cow;
use std::sync::LazyLock;

use axum::http::header::{CACHE_CONTROL, CONTENT_TYPE};
use axum::response::IntoResponse;
use axum::routing::{MethodRouter, get};
use sha2::{Digest, Sha256};

/// A file that browsers may keep for ever: its content is part of its address.
pub(crate) struct StaticFile {
    pub(crate) path: String,
    kind: &'static str,
    content: Cow<'static, str>,
}

impl StaticFile {
    fn new(name: &str, extension: &str, content: impl Into<Cow<'static, str>>) -> Self {
        let content = content.into();
        let kind = match extension {
            "css" => "text/css; charset=utf-8",
            "svg" => "image/svg+xml",
            _ => "text/javascript; charset=utf-8",
        };
        let digest = hex::encode(&Sha256::digest(content.as_bytes())[..6]);
        Self { path: format!("/static/{name}-{digest}.{extension}"), kind, content }
    }

    /// Handler that serves it at its address.
    pub(crate) fn serve<S: Clone + Send + Sync + 'static>(&'static self) -> MethodRouter<S> {
        get(move || async move {
            let headers = [(CONTENT_TYPE, self.kind), (CACHE_CONTROL, "public, max-age=31536000, immutable")];
            (headers, self.content.as_ref()).into_response()
        })
    }
}

/// All static files.
pub(crate) struct StaticFiles {
    pub(crate) style_sheet: StaticFile,
    /// See `static/vendor`.
    pub(crate) htmx: StaticFile,
    /// htmx's extension for streams of events.
    pub(crate) htmx_events: StaticFile,
    /// Script of our own pages: shortcuts, copying, relative times.
    pub(crate) script: StaticFile,
    /// Follows a run on its page.
    pub(crate) run_script: StaticFile,
    /// Zooms and moves the graph.
    pub(crate) graph_script: StaticFile,
    /// The taco: favicon and mark.
    pub(crate) icon: StaticFile,
    /// The taco with a dot in the colour of a tone: favicons of pages that have a status.
    status_icons: Vec<(&'static str, StaticFile)>,
    /// Sprite of icons: see `templates/icons.html`.
    pub(crate) icons: StaticFile,
}

impl StaticFiles {
    pub(crate) fn all(&'static self) -> Vec<&'static StaticFile> {
        let named = [&self.style_sheet, &self.htmx, &self.htmx_events, &self.script, &self.run_script];
        let icons = self.status_icons.iter().map(|(_, icon)| icon);
        named.into_iter().chain([&self.graph_script, &self.icon, &self.icons]).chain(icons).collect()
    }

    /// Address of the favicon for a tone of a badge.
    pub(crate) fn icon_of(&self, tone: &str) -> &str {
        let icon = self.status_icons.iter().find(|(name, _)| *name == tone);
        icon.map_or(&self.icon.path, |(_, icon)| &icon.path)
    }
}

/// The parts of the one style sheet, in their order.
const STYLE_SHEET: &str = concat!(
    include_str!("../../../static/base.css"),
    include_str!("../../../static/parts.css"),
    include_str!("../../../static/tables.css"),
    include_str!("../../../static/run.css"),
    include_str!("../../../static/pictures.css"),
    include_str!("../../../static/graph.css"),
    include_str!("../../../static/dialogs.css"),
    include_str!("../../../static/palette.css"),
);

const ICON: &str = include_str!("../../../static/icon.svg");

/// Tones of badges, and colours that stand out in a browser's tabs, light or dark. See `badge::Badge`.
const TONES: [(&str, &str); 6] = [
    ("calm", "#8a8f98"),
    ("busy", "#2f7de1"),
    ("asks", "#f0a500"),
    ("good", "#2da44e"),
    ("bad", "#e5484d"),
    ("off", "#6a6f78"),
];

fn dotted(colour: &str) -> String {
    let dot =
        format!(r##"<circle cx="24" cy="9" r="7.5" fill="{colour}" stroke="#ffffff" stroke-width="1.5"/></svg>"##);
    ICON.replace("</svg>", &dot)
}

pub(crate) static STATIC_FILES: LazyLock<StaticFiles> = LazyLock::new(|| StaticFiles {
    style_sheet: StaticFile::new("app", "css", STYLE_SHEET),
    htmx: StaticFile::new("htmx", "js", include_str!("../../../static/vendor/htmx-4.0.0.min.js")),
    htmx_events: StaticFile::new("hx-sse", "js", include_str!("../../../static/vendor/hx-sse-4.0.0.min.js")),
    script: StaticFile::new(
        "app",
        "js",
        concat!(
            include_str!("../../../static/app.js"),
            include_str!("../../../static/palette.js"),
            include_str!("../../../static/live.js")
        ),
    ),
    run_script: StaticFile::new("run", "js", include_str!("../../../static/run.js")),
    graph_script: StaticFile::new("graph", "js", include_str!("../../../static/graph.js")),
    icon: StaticFile::new("icon", "svg", ICON),
    status_icons: TONES
        .map(|(tone, colour)| (tone, StaticFile::new(&format!("icon-{tone}"), "svg", dotted(colour))))
        .into(),
    icons: StaticFile::new("icons", "svg", include_str!("../../../static/icons.svg")),
});

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_others_wrote_is_what_they_published() {
        for (file, digest) in [(&STATIC_FILES.htmx, HTMX), (&STATIC_FILES.htmx_events, HTMX_EVENTS)] {
            assert_eq!(hex::encode(Sha256::digest(file.content.as_bytes())), digest, "{}", file.path);
        }
    }

    /// A misspelt name would leave a hole in the page, and nothing else would tell.
    #[test]
    fn every_icon_that_a_template_names_is_in_the_sprite() {
        let templates = concat!(env!("CARGO_MANIFEST_DIR"), "/../../templates");
        let mut names = 0;
        for file in std::fs::read_dir(templates).expect("the templates") {
            let path = file.expect("a file").path();
            if path.is_dir() {
                continue;
            }
            let text = std::fs::read_to_string(&path).expect("text");
            for call in text.split("icon(\"").skip(1) {
                let name = call.split('"').next().unwrap_or_default();
                let symbol = format!("<symbol id=\"{name}\"");
                assert!(STATIC_FILES.icons.content.contains(&symbol), "{}: no icon {name}", path.display());
                names += 1;
            }
        }
        assert!(names > 0);
    }

    const HTMX: &str = "e484d9171a9db30a39c8f16e3d709d4137f3211c659f8e6125816635033d593f";
    const HTMX_EVENTS: &str = "8a834680c4000a9034d79228872372a92e140c810a075cb6d4a76690dfc13085";
}
