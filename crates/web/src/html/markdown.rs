//! Markdown of strangers as HTML that does no harm.
//!
//! No HTML of the text comes through: it is shown as it was written. Of addresses only those of other sites and of mail
//! become links; nothing is loaded from anywhere, so a picture is its description. No class, id or style of the text
//! reaches the page.

use pulldown_cmark::{Alignment, CowStr, Event, HeadingLevel, LinkType, Options, Parser, Tag, TagEnd, html};
use url::Url;

use crate::ansi::push_escaped;
use crate::text::plain;

/// Limit for what is shown; no one reads more of it here.
const MAX_MARKDOWN_BYTES: usize = 256 * 1024;
/// Lists within lists, and quotations within quotations, are taken for one from here on.
const MAX_NESTING: usize = 32;
/// Number of lines from which a text is collapsed at first.
const LONG: usize = 40;

/// A text that templates show as it is.
pub(crate) struct SafeHtml {
    pub(crate) html: String,
    pub(crate) is_long: bool,
}

/// `markdown` as a part of a page whose last heading has two signs: its own begin with three.
pub(crate) fn safe_html(markdown: &str) -> SafeHtml {
    let end = markdown.floor_char_boundary(MAX_MARKDOWN_BYTES);
    let markdown = plain(&markdown[..end]);
    let options = Options::ENABLE_TABLES | Options::ENABLE_STRIKETHROUGH | Options::ENABLE_TASKLISTS;
    let mut open = Open::default();
    let events = Parser::new_ext(&markdown, options).map(|event| harmless(event, &mut open));
    let mut written = String::new();
    html::push_html(&mut written, events);
    SafeHtml { html: written, is_long: markdown.lines().count() > LONG || markdown.len() > LONG * 100 }
}

/// Elements that have begun and not ended.
#[derive(Default)]
struct Open {
    /// For each link, true if it leads anywhere.
    links: Vec<bool>,
    /// Lists and quotations within each other.
    depth: usize,
}

fn harmless<'a>(event: Event<'a>, open: &mut Open) -> Event<'a> {
    match event {
        Event::Start(Tag::BlockQuote(_) | Tag::List(_) | Tag::Item) if open.goes_too_deep() => ours(None),
        Event::End(TagEnd::BlockQuote(_) | TagEnd::List(_) | TagEnd::Item) if open.came_from_too_deep() => ours(None),
        Event::Html(text) | Event::InlineHtml(text) => Event::Text(text),
        Event::Start(Tag::HtmlBlock) => Event::Start(Tag::Paragraph),
        Event::End(TagEnd::HtmlBlock) => Event::End(TagEnd::Paragraph),
        Event::Start(Tag::Heading { level, .. }) => {
            Event::Start(Tag::Heading { level: lowered(level), id: None, classes: Vec::new(), attrs: Vec::new() })
        }
        Event::End(TagEnd::Heading(level)) => Event::End(TagEnd::Heading(lowered(level))),
        Event::Start(Tag::Link { link_type, dest_url, .. }) => {
            let mail = if link_type == LinkType::Email { "mailto:" } else { "" };
            let address = safe_address(&format!("{mail}{dest_url}"));
            open.links.push(address.is_some());
            ours(address.map(|address| format!("<a href=\"{}\" rel=\"noopener nofollow\">", escaped(&address))))
        }
        Event::End(TagEnd::Link) => ours(open.links.pop().filter(|leads| *leads).map(|_| "</a>".to_owned())),
        Event::Start(Tag::Image { .. }) => ours(Some("<em>[picture: ".to_owned())),
        Event::End(TagEnd::Image) => ours(Some("]</em>".to_owned())),
        Event::TaskListMarker(done) => Event::Text(CowStr::Borrowed(if done { "☑ " } else { "☐ " })),
        // Alignment would be a style of its own.
        Event::Start(Tag::Table(columns)) => Event::Start(Tag::Table(vec![Alignment::None; columns.len()])),
        // Visitors without a mouse can scroll a long line sideways, too.
        Event::Start(Tag::CodeBlock(_)) => ours(Some("<pre tabindex=\"0\"><code>".to_owned())),
        Event::End(TagEnd::CodeBlock) => ours(Some("</code></pre>\n".to_owned())),
        other => other,
    }
}

impl Open {
    fn goes_too_deep(&mut self) -> bool {
        self.depth += 1;
        self.depth > MAX_NESTING
    }

    fn came_from_too_deep(&mut self) -> bool {
        self.depth -= 1;
        self.depth >= MAX_NESTING
    }
}

/// Markup that this file wrote.
fn ours<'a>(markup: Option<String>) -> Event<'a> {
    Event::InlineHtml(CowStr::from(markup.unwrap_or_default()))
}

fn lowered(level: HeadingLevel) -> HeadingLevel {
    match level {
        HeadingLevel::H1 => HeadingLevel::H3,
        HeadingLevel::H2 => HeadingLevel::H4,
        HeadingLevel::H3 => HeadingLevel::H5,
        _ => HeadingLevel::H6,
    }
}

/// The address if a link may lead there. One within the repository leads nowhere here.
fn safe_address(address: &str) -> Option<String> {
    let address = Url::parse(address).ok()?;
    matches!(address.scheme(), "http" | "https" | "mailto").then(|| address.to_string())
}

fn escaped(text: &str) -> String {
    let mut html = String::new();
    text.chars().for_each(|character| push_escaped(character, &mut html));
    html
}

#[cfg(test)]
mod tests {
    use super::*;

    fn html(markdown: &str) -> String {
        safe_html(markdown).html.trim().to_owned()
    }

    #[test]
    fn what_readmes_are_made_of_is_shown() {
        for (markdown, expected) in [
            ("# Network\n\nFor *all*.", "<h3>Network</h3>\n<p>For <em>all</em>.</p>"),
            ("###### six", "<h6>six</h6>"),
            (
                "[docs](https://example.com/a?b=1&c \"title\")",
                "<p><a href=\"https://example.com/a?b=1&#38;c\" rel=\"noopener nofollow\">docs</a></p>",
            ),
            (
                "<ops@example.com>",
                "<p><a href=\"mailto:ops@example.com\" rel=\"noopener nofollow\">ops@example.com</a></p>",
            ),
            ("[file](docs/a.md)", "<p>file</p>"),
            ("[top](#top)", "<p>top</p>"),
            ("![a *b*](https://example.com/x.png)", "<p><em>[picture: a <em>b</em>]</em></p>"),
            ("- [x] done\n- [ ] not", "<ul>\n<li>☑ done</li>\n<li>☐ not</li>\n</ul>"),
            ("~~old~~", "<p><del>old</del></p>"),
            ("```hcl evil\na = 1\n```", "<pre tabindex=\"0\"><code>a = 1\n</code></pre>"),
        ] {
            assert_eq!(html(markdown), expected, "{markdown}");
        }
        let table = html("|a|b|\n|:-:|--:|\n|1|2|");
        assert!(table.contains("<td>1</td>") && !table.contains("style"), "{table}");
    }

    #[test]
    fn nothing_that_a_browser_would_obey_comes_through() {
        for markdown in [
            "<script>alert(1)</script>",
            "a <img src=x onerror=alert(1)> b",
            "<div\nonclick=alert(1)>\n\ntext\n\n</div>",
            "<style>*{display:none}</style>",
            "[x](javascript:alert(1))",
            "[x](JaVaScRiPt:alert(1))",
            "[x](java\tscript:alert(1))",
            "[x](&#106;avascript:alert(1))",
            "[x](data:text/html;base64,PHNjcmlwdD4=)",
            "[x](vbscript:x)",
            "[x](//evil.test)",
            "<javascript:alert(1)>",
            "[x]: javascript:alert(1)\n\n[x]",
            "![x](javascript:alert(1))",
            "[![x](x\" onerror=\"alert(1))](javascript:alert(1))",
            "[x](https://a.test/\"onmouseover=\"alert(1))",
            "[x](https://a.test/ \"t\\\" onmouseover=alert(1) \\\"\")",
            "```\"><script>alert(1)</script>\nx\n```",
            "`<script>alert(1)</script>`",
            "# <b onclick=alert(1)>h</b> {#id .class onclick=alert(1)}",
            "|<script>|\n|-|\n|<img src=x onerror=alert(1)>|",
            "<!-- <script>alert(1)</script> -->",
            "<![CDATA[<script>alert(1)</script>]]>",
            "[a](https://x.test/[b](javascript:alert(1)))",
        ] {
            let html = html(markdown);
            for forbidden in
                ["<script", "<img", "<style", "<div", "<b ", "<!", "href=\"java", "href=\"data", "href=\"/"]
            {
                assert!(!html.to_lowercase().contains(forbidden), "{forbidden} in {html}, of {markdown}");
            }
            assert!(only_known_attributes(&html), "{html}, of {markdown}");
        }
    }

    /// True if no tag has an attribute that this file does not write.
    fn only_known_attributes(html: &str) -> bool {
        html.split('<').skip(1).all(|rest| {
            let tag = rest.split('>').next().unwrap_or_default();
            let attributes = tag.split_once(' ').map_or("", |(_, attributes)| attributes).trim_end_matches(" /");
            let is_link = attributes.starts_with("href=\"http") && attributes.matches('"').count() == 4;
            is_link || ["", "/", "tabindex=\"0\""].contains(&attributes)
        })
    }

    #[test]
    fn characters_that_deceive_are_left_out_and_long_texts_are_folded() {
        assert_eq!(html("a\u{202e}b\u{1b}[31m"), "<p>ab[31m</p>");
        assert!(!safe_html("short").is_long);
        assert!(safe_html(&"line\n".repeat(LONG + 1)).is_long);
        for nested in [">", "- ", "1. > "] {
            let deep = safe_html(&nested.repeat(MAX_MARKDOWN_BYTES));
            assert!(deep.is_long && deep.html.len() < 2 * MAX_MARKDOWN_BYTES, "{} bytes", deep.html.len());
        }
    }
}
