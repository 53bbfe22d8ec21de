//! Pictures as SVG. Colours and lines are classes, so that a page's style sheet decides about them and its policy can
//! forbid styles within; a picture that is saved as a file brings `style.css` along.
//!
//! No state is told by colour alone: each has a sign of its own shape, and its word.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;

use taco_words::graph::{EdgeStatus, Freshness, Health};

use crate::document::Unit;
use crate::layout::{Layout, Point, Size, layout};
use crate::look::{Look, Sign, Tone};
use crate::picture::{Body, Link, Node, Picture};
use crate::text::{counted, fitting, some_of, xml};

/// Style of pictures that are files.
const STYLE: &str = include_str!("style.css");

const MARGIN: f64 = 16.0;
const HEIGHT: f64 = 42.0;
/// Of a line in the box of a cycle.
const LINE: f64 = 18.0;
/// Widths of letters, about; a font that is wider uses up the space on the right.
const LETTER: f64 = 7.3;
const SMALL_LETTER: f64 = 6.3;
const LEFT_OF_TEXT: f64 = 34.0;
const RIGHT_OF_TEXT: f64 = 14.0;
/// Longer names lose their middle.
const LONGEST_NAME: usize = 32;
const LONGEST_WORDS: usize = 36;
/// Of a cycle's units, so many have a line of their own.
const LISTED_IN_CYCLE: usize = 8;
/// Of a group, so many kinds of units are counted.
const TOLD_OF_GROUP: usize = 2;
/// Outputs that the title of a line names.
const NAMED_OUTPUTS: usize = 6;
/// Where there are more lines, those of one producer that look the same are one shape.
const MAX_LINES_APART: usize = 800;

/// How a picture is written.
#[derive(Clone, Copy, Default)]
pub struct Svg<'a> {
    pub title: &'a str,
    /// Address of a unit's page, by its name.
    pub unit_address: Option<&'a dyn Fn(&str) -> String>,
    /// Address of a picture of a group alone, by its name.
    pub group_address: Option<&'a dyn Fn(&str) -> String>,
    /// How units look; by their freshness, if nothing else is said.
    pub look: Option<&'a dyn Fn(&Unit) -> Look>,
    /// The unit that it is all about.
    pub here: Option<&'a str>,
    /// A file of its own: it has its own style, and is an image to screen readers. Within a page it is for the eye alone,
    /// and what it says must stand beside it.
    pub standalone: bool,
}

/// Writes a picture.
pub fn svg(picture: &Picture, options: &Svg<'_>) -> String {
    let writer = Writer { picture, options };
    let width = writer.box_width();
    let sizes: Vec<Size> = picture.nodes.iter().map(|node| Size { width, height: height_of(node) }).collect();
    let links: Vec<(usize, usize)> = picture.links.iter().map(|link| (link.producer, link.consumer)).collect();
    writer.write(&layout(&sizes, &links), &sizes, width)
}

struct Writer<'a> {
    picture: &'a Picture,
    options: &'a Svg<'a>,
}

/// What a box says.
struct Label {
    look: Look,
    name: String,
    title: String,
    address: Option<String>,
}

fn height_of(node: &Node) -> f64 {
    match &node.body {
        Body::Cycle(units) => {
            let listed = units.len().min(LISTED_IN_CYCLE) + usize::from(units.len() > LISTED_IN_CYCLE);
            HEIGHT + listed as f64 * LINE
        }
        _ => HEIGHT,
    }
}

/// Whole pixels are exact enough.
fn pixel(value: f64) -> i64 {
    value.round() as i64
}

impl Writer<'_> {
    fn write(&self, layout: &Layout, sizes: &[Size], box_width: f64) -> String {
        let (width, height) = (pixel(layout.width + 2.0 * MARGIN), pixel(layout.height + 2.0 * MARGIN));
        let title = xml(self.options.title);
        let mut svg = String::with_capacity(self.picture.nodes.len() * 320 + self.picture.links.len() * 120);
        let namespace = if self.options.standalone { r#" xmlns="http://www.w3.org/2000/svg""# } else { "" };
        write!(
            svg,
            r#"<svg{namespace} class="graph" width="{width}" height="{height}" viewBox="0 0 {width} {height}""#
        )
        .expect("a text takes all");
        if self.options.standalone {
            write!(svg, r#" role="img"><title>{title}</title><style>{STYLE}</style><rect class="page" width="100%" height="100%"/>"#)
                .expect("a text takes all");
        } else {
            svg.push_str(r#" aria-hidden="true">"#);
        }
        self.definitions(&mut svg, box_width);
        self.lines(&mut svg, layout);
        if let Some(rest) = layout.rest {
            let y = pixel(rest + MARGIN - 16.0);
            write!(svg, r#"<text class="heading" x="{}" y="{y}">No dependencies known</text>"#, pixel(MARGIN))
                .expect("a text takes all");
        }
        for (node, (place, size)) in self.picture.nodes.iter().zip(layout.places.iter().zip(sizes)) {
            self.node(&mut svg, node, Point { x: place.x + MARGIN, y: place.y - size.height / 2.0 + MARGIN }, size);
        }
        svg.push_str("</svg>");
        svg
    }

    /// One width for all boxes, in which the longest text has its place.
    fn box_width(&self) -> f64 {
        let width = |node: &Node| {
            let label = self.label(node);
            let name = label.name.chars().count().min(LONGEST_NAME) as f64 * LETTER;
            let words = label.look.words.chars().count().min(LONGEST_WORDS) as f64 * SMALL_LETTER;
            name.max(words) + LEFT_OF_TEXT + RIGHT_OF_TEXT
        };
        self.picture.nodes.iter().map(width).fold(140.0, f64::max).round()
    }

    fn definitions(&self, svg: &mut String, box_width: f64) {
        let mut signs: BTreeSet<Sign> = self.picture.nodes.iter().map(|node| self.label(node).look.sign).collect();
        for node in &self.picture.nodes {
            if let Body::Cycle(units) = &node.body {
                signs.extend(units.iter().take(LISTED_IN_CYCLE).map(|unit| self.look_of(unit).sign));
            }
        }
        write!(svg, r#"<defs><rect id="graph-box" width="{}" height="{}" rx="6"/>"#, pixel(box_width), pixel(HEIGHT))
            .expect("a text takes all");
        for sign in signs {
            write!(svg, r#"<path id="graph-{}" transform="translate(10 13)" d="{}"/>"#, sign.word(), sign.path())
                .expect("a text takes all");
        }
        svg.push_str(
            r#"<marker id="graph-tip" viewBox="0 0 8 8" refX="7" refY="4" markerWidth="8" markerHeight="8" markerUnits="userSpaceOnUse" orient="auto"><path class="tip" d="M0 0 8 4 0 8Z"/></marker></defs>"#,
        );
    }

    /// Lines lie below boxes, and those that ask for attention above the others.
    fn lines(&self, svg: &mut String, layout: &Layout) {
        let mut links: Vec<(&Link, &Vec<Point>)> = self.picture.links.iter().zip(&layout.routes).collect();
        links.sort_by_key(|(link, _)| weight(link));
        if links.len() <= MAX_LINES_APART {
            svg.push_str(r#"<g class="lines" marker-end="url(#graph-tip)">"#);
            for (link, route) in links {
                let class = line_class(link);
                write!(
                    svg,
                    r#"<path{class} d="{}"><title>{}</title></path>"#,
                    path(route),
                    xml(&self.line_title(link))
                )
                .expect("a text takes all");
            }
        } else {
            svg.push_str(r#"<g class="lines">"#);
            // So many lines have no names: it would cost more than the lines do, and the list beside the picture has them.
            let mut bundles: BTreeMap<(u8, usize, String), BTreeSet<Segment>> = BTreeMap::new();
            for (link, route) in links {
                let bundle = bundles.entry((weight(link), link.producer, line_class(link))).or_default();
                bundle.extend(segments(route));
            }
            for ((_, _, class), segments) in bundles {
                write!(svg, r#"<path{class} d="{}"/>"#, joined(segments)).expect("a text takes all");
            }
        }
        svg.push_str("</g>");
    }

    fn line_title(&self, link: &Link) -> String {
        let [producer, consumer] = [link.producer, link.consumer].map(|at| self.picture.nodes[at].name.as_str());
        let used = if link.outputs.is_empty() {
            String::new()
        } else {
            format!(" {} of", some_of(&link.outputs, NAMED_OUTPUTS))
        };
        let probably = if link.certain || link.status == EdgeStatus::Unknown { "" } else { "probably " };
        let muted = if link.counts { "" } else { ", does not count" };
        let grades: Vec<&str> = link.grades.iter().map(|grade| grade.word()).collect();
        let known = if grades.is_empty() { String::new() } else { format!(", known by {}", grades.join(", ")) };
        format!("{consumer} uses{used} {producer}: {probably}{}{known}{muted}", link.status)
    }

    fn look_of(&self, unit: &Unit) -> Look {
        self.options.look.map_or_else(|| Look::of(unit), |look| look(unit))
    }

    fn label(&self, node: &Node) -> Label {
        match &node.body {
            Body::Unit(unit) => self.unit_label(unit),
            Body::Group(units) => {
                let look = Look { words: in_numbers(units), ..Look::of_freshness(node.freshness()) };
                Label {
                    title: format!("{}: {}", node.name, look.words),
                    address: self.options.group_address.map(|address| address(group_name(node, units, self.picture))),
                    name: node.name.clone(),
                    look,
                }
            }
            Body::Cycle(units) => {
                let names: Vec<&str> = units.iter().map(|unit| unit.name.as_str()).collect();
                let words = format!("{} use each other", counted(units.len(), "workspace"));
                Label {
                    title: format!("{words} in a circle: {}", some_of(&names, 20)),
                    look: Look { tone: Tone::Bad, sign: Sign::Circle, words },
                    name: "Dependency cycle".to_owned(),
                    address: None,
                }
            }
            Body::Elsewhere => Label {
                look: Look { tone: Tone::Off, sign: Sign::Outside, words: "outside of this graph".to_owned() },
                name: node.name.clone(),
                title: format!("{}: outside of this graph", node.name),
                address: None,
            },
        }
    }

    fn unit_label(&self, unit: &Unit) -> Label {
        let look = self.look_of(unit);
        let project = if unit.project.is_empty() { String::new() } else { format!(" (project {})", unit.project) };
        let why = if unit.why.is_empty() { String::new() } else { format!(". {}", unit.why) };
        Label {
            title: format!("{}{project}: {}{why}", unit.name, look.words),
            name: unit.name.clone(),
            address: self.options.unit_address.map(|address| address(&unit.name)),
            look,
        }
    }

    fn node(&self, svg: &mut String, node: &Node, at: Point, size: &Size) {
        let label = self.label(node);
        let kind = match &node.body {
            Body::Unit(unit) if self.options.here == Some(unit.name.as_str()) => " here",
            Body::Unit(_) => "",
            Body::Group(_) => " group",
            Body::Cycle(_) => " cycle",
            Body::Elsewhere => " elsewhere",
        };
        let place = format!(r#" transform="translate({} {})""#, pixel(at.x), pixel(at.y));
        let element = self.open(svg, &label, kind, &place);
        match &node.body {
            Body::Cycle(_) => {
                write!(svg, r#"<rect width="{}" height="{}" rx="6"/>"#, pixel(size.width), pixel(size.height))
                    .expect("a text takes all");
            }
            Body::Group(_) => {
                svg.push_str(r##"<use href="#graph-box" x="4" y="4"/><use href="#graph-box"/>"##);
            }
            Body::Unit(_) | Body::Elsewhere => svg.push_str(r##"<use href="#graph-box"/>"##),
        }
        texts(svg, &label);
        if let Body::Cycle(units) = &node.body {
            self.units_of_cycle(svg, units);
        }
        write!(svg, "</{element}>").expect("a text takes all");
    }

    fn units_of_cycle(&self, svg: &mut String, units: &[Unit]) {
        for (number, unit) in units.iter().take(LISTED_IN_CYCLE).enumerate() {
            let label = self.unit_label(unit);
            let y = HEIGHT + number as f64 * LINE;
            let element = self.open(svg, &label, " line", &format!(r#" transform="translate(4 {})""#, pixel(y - 13.0)));
            let name = xml(&fitting(&label.name, LONGEST_NAME - 2));
            write!(
                svg,
                r##"<use class="sign" href="#graph-{}"/><text x="32" y="25">{name}</text></{element}>"##,
                label.look.sign.word(),
            )
            .expect("a text takes all");
        }
        if let Some(more) = units.len().checked_sub(LISTED_IN_CYCLE).filter(|more| *more > 0) {
            let y = pixel(HEIGHT + LISTED_IN_CYCLE as f64 * LINE + 12.0);
            write!(svg, r#"<text class="more" x="36" y="{y}">and {more} more</text>"#).expect("a text takes all");
        }
    }

    /// Begins a link, or a group where there is nothing to lead to.
    fn open(&self, svg: &mut String, label: &Label, kind: &str, place: &str) -> &'static str {
        let (tone, title) = (label.look.tone.word(), xml(&label.title));
        match &label.address {
            Some(address) => {
                let tab = if self.options.standalone { "" } else { r#" tabindex="-1""# };
                write!(svg, r#"<a href="{}"{tab} class="{tone}{kind}"{place}><title>{title}</title>"#, xml(address))
                    .expect("a text takes all");
                "a"
            }
            None => {
                write!(svg, r#"<g class="{tone}{kind}"{place}><title>{title}</title>"#).expect("a text takes all");
                "g"
            }
        }
    }
}

fn texts(svg: &mut String, label: &Label) {
    let (name, words) = (xml(&fitting(&label.name, LONGEST_NAME)), xml(&fitting(&label.look.words, LONGEST_WORDS)));
    let (sign, x) = (label.look.sign.word(), pixel(LEFT_OF_TEXT));
    write!(
        svg,
        r##"<use class="sign" href="#graph-{sign}"/><text x="{x}" y="18">{name}</text><text x="{x}" y="33">{words}</text>"##,
    )
    .expect("a text takes all");
}

/// The name under which a filter finds a group.
fn group_name<'a>(node: &'a Node, units: &'a [Unit], picture: &Picture) -> &'a str {
    units.first().map_or(node.name.as_str(), |unit| picture.grouping.group_of(unit))
}

/// `12 workspaces · 1 broken · 3 stale`: what asks for attention most.
fn in_numbers(units: &[Unit]) -> String {
    let mut text = counted(units.len(), "workspace");
    let urgent =
        [Freshness::Broken, Freshness::Stale, Freshness::Unknown, Freshness::MayChange, Freshness::NeverApplied];
    let of_freshness = urgent.map(|wanted| {
        let count = units.iter().filter(|unit| unit.freshness == wanted).count();
        (count, wanted.text())
    });
    let unhealthy = (units.iter().filter(|unit| unit.health != Health::Ok).count(), "unhealthy");
    let told = of_freshness.into_iter().chain([unhealthy]).filter(|(count, _)| *count > 0);
    for (count, word) in told.take(TOLD_OF_GROUP) {
        write!(text, " · {count} {word}").expect("a text takes all");
    }
    text
}

fn weight(link: &Link) -> u8 {
    match link.status {
        _ if !link.counts => 0,
        EdgeStatus::Unobserved => 1,
        EdgeStatus::Fresh => 2,
        EdgeStatus::Unbound | EdgeStatus::Opaque | EdgeStatus::Unknown => 3,
        EdgeStatus::Stale => 4,
        EdgeStatus::Missing | EdgeStatus::Retyped => 5,
    }
}

/// Attribute with the classes of a line; none for a fresh one.
fn line_class(link: &Link) -> String {
    let status = match link.status {
        _ if !link.counts => "muted",
        EdgeStatus::Fresh => "",
        EdgeStatus::Stale => "stale",
        EdgeStatus::Missing | EdgeStatus::Retyped => "broken",
        EdgeStatus::Unbound | EdgeStatus::Opaque | EdgeStatus::Unknown | EdgeStatus::Unobserved => "unknown",
    };
    match (status, link.certain) {
        ("", true) => String::new(),
        ("", false) => r#" class="probably""#.to_owned(),
        (status, true) => format!(r#" class="{status}""#),
        (status, false) => format!(r#" class="{status} probably""#),
    }
}

/// A piece of a line in whole pixels.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Segment {
    from: (i64, i64),
    to: (i64, i64),
}

impl Segment {
    /// The same without a curve, which in large pictures nobody can follow.
    fn straight(&self) -> String {
        let (across, down) = (self.to.0 - self.from.0, self.to.1 - self.from.1);
        match down {
            0 => format!("h{across}"),
            ..0 => format!("l{across}{down}"),
            _ => format!("l{across} {down}"),
        }
    }

    /// With a curve that leaves and arrives level.
    fn relative(&self) -> String {
        let (across, down) = (self.to.0 - self.from.0, self.to.1 - self.from.1);
        let half = across / 2;
        if down == 0 { format!("h{across}") } else { format!("c{half} 0 {half} {down} {across} {down}") }
    }
}

fn segments(route: &[Point]) -> Vec<Segment> {
    let place = |point: &Point| (pixel(point.x + MARGIN), pixel(point.y + MARGIN));
    route.windows(2).map(|pair| Segment { from: place(&pair[0]), to: place(&pair[1]) }).collect()
}

/// Straight segments as one path, as short as it can be: where one ends, the next goes on.
fn joined(mut segments: BTreeSet<Segment>) -> String {
    let mut path = String::new();
    let mut at = None;
    while let Some(first) = segments.first() {
        let follows = at.and_then(|from| segments.iter().find(|segment| segment.from == from));
        let next = *follows.unwrap_or(first);
        segments.remove(&next);
        if at != Some(next.from) {
            path.push_str(&format!("M{} {}", next.from.0, next.from.1));
        }
        path.push_str(&next.straight());
        at = Some(next.to);
    }
    path
}

fn path(route: &[Point]) -> String {
    let segments = segments(route);
    let begin = segments.first().map(|first| format!("M{} {}", first.from.0, first.from.1)).unwrap_or_default();
    segments.iter().fold(begin, |path, segment| path + &segment.relative())
}

#[cfg(test)]
mod tests {
    use taco_words::graph::Grade;

    use super::*;
    use crate::document::{Edge, Graph};
    use crate::picture::Grouping;

    fn small() -> Graph {
        let mut edge = Edge::new("app", "network", EdgeStatus::Stale);
        edge.outputs = vec!["vpc_id".into(), "a<b".into()];
        edge.grades = vec![Grade::Plan];
        let mut probable = Edge::new("web", "network", EdgeStatus::Stale);
        probable.certain = false;
        Graph {
            units: vec![
                Unit {
                    project: "Base \"x\"".into(),
                    why: "nothing <changed>".into(),
                    ..Unit::new("network", Freshness::Clean)
                },
                Unit::new("app", Freshness::Stale),
                Unit::new("web", Freshness::Unknown),
                Unit::new("alone", Freshness::NeverApplied),
            ],
            edges: vec![edge, probable],
        }
    }

    fn options<'a>() -> Svg<'a> {
        Svg {
            title: "Graph of <acme>",
            unit_address: Some(&|name| format!("/app/acme/workspaces/{name}")),
            ..Svg::default()
        }
    }

    #[test]
    fn each_unit_has_its_word_its_sign_and_its_page() {
        let svg = svg(&Picture::of(&small(), Grouping::Units), &options());
        for (name, word, sign) in [
            ("network", "clean", "check"),
            ("app", "stale", "triangle"),
            ("web", "unknown", "question"),
            ("alone", "never applied", "dashes"),
        ] {
            let begin = svg.find(&format!(r#"<a href="/app/acme/workspaces/{name}""#)).expect(name);
            let unit = &svg[begin..begin + svg[begin..].find("</a>").expect("its end")];
            assert!(unit.contains(&format!(">{word}</text>")) && unit.contains(&format!("#graph-{sign}\"")), "{unit}");
            assert!(svg.contains(&format!(r#"<path id="graph-{sign}""#)));
        }
        assert!(svg.contains("app uses a&lt;b, vpc_id of network: stale, known by plan"), "{svg}");
        assert!(svg.contains("web uses network: probably stale") && svg.contains(r#"class="stale probably""#), "{svg}");
        assert!(svg.contains("network (project Base &quot;x&quot;): clean. nothing &lt;changed&gt;"), "{svg}");
        assert!(svg.contains("No dependencies known"), "alone has none");
    }

    #[test]
    fn a_page_gets_no_styles_of_its_own_and_a_file_gets_all() {
        let picture = Picture::of(&small(), Grouping::Units);
        let in_page = svg(&picture, &options());
        assert!(!in_page.contains("style") && !in_page.contains("<script"), "{in_page}");
        assert!(
            in_page.contains(r#"aria-hidden="true""#)
                && !in_page.contains(r#"<a href="/app/acme/workspaces/app" class"#)
        );
        let file = svg(&picture, &Svg { standalone: true, ..options() });
        assert!(file.starts_with(r#"<svg xmlns="http://www.w3.org/2000/svg""#) && file.contains("<style>"), "{file}");
        assert!(file.contains("<title>Graph of &lt;acme&gt;</title>"), "{file}");
    }

    #[test]
    fn a_cycle_warns_and_names_its_units() {
        let graph = Graph {
            units: ["a", "b", "c"].map(|name| Unit::new(name, Freshness::Stale)).into(),
            edges: vec![
                Edge::new("b", "a", EdgeStatus::Fresh),
                Edge::new("a", "b", EdgeStatus::Fresh),
                Edge::new("c", "b", EdgeStatus::Fresh),
            ],
        };
        let svg = svg(&Picture::of(&graph, Grouping::Units), &options());
        assert!(
            svg.contains("Dependency cycle") && svg.contains("2 workspaces use each other in a circle: a, b"),
            "{svg}"
        );
        assert!(svg.contains("/workspaces/a\"") && svg.contains("/workspaces/b\""), "{svg}");
    }

    #[test]
    fn a_walk_paints_units_in_its_own_way() {
        let look = |_: &Unit| Look { tone: Tone::Busy, sign: Sign::Play, words: "planning".into() };
        let svg = svg(&Picture::of(&small(), Grouping::Units), &Svg { look: Some(&look), ..options() });
        assert_eq!(svg.matches(">planning</text>").count(), 4);
        assert!(!svg.contains("never applied"), "{svg}");
    }

    #[test]
    fn a_thousand_units_are_less_than_half_a_megabyte_and_always_the_same() {
        let graph = crate::sample::estate(1000, 3000);
        let picture = Picture::of(&graph, Grouping::Units);
        let one = svg(&picture, &options());
        assert!(one.len() < 500_000, "{}", one.len());
        let mut shuffled = graph.clone();
        shuffled.units.reverse();
        shuffled.edges.reverse();
        assert!(one == svg(&Picture::of(&shuffled, Grouping::Units), &options()));
        for grouping in [Grouping::Projects, Grouping::Prefixes] {
            let grouped = svg(&Picture::of(&graph, grouping), &options());
            assert!(grouped.len() < 60_000, "{grouping:?}: {}", grouped.len());
        }
    }
}
