//! The resources of a state as a map: each module is a region, each resource in it an area that grows with its
//! instances and leads to its attributes. States with many resources show their types instead.

use std::collections::BTreeMap;

use taco_domain::state_file::{ResourceCount, ResourceSummary};
use url::form_urlencoded::Serializer;

use super::{Drawing, Figure, Key, Mark, Shape, counted, shortened};
use crate::state_resource::resource_address;
use crate::text::plain;

/// More areas cannot be told apart, and make the page heavy.
const MAX_AREAS: usize = 60;
const HEIGHT: u32 = 320;
/// The place is about this much wider than high.
const ASPECT: f64 = 3.2;
/// Characters of a label that may be seen at all.
const LONGEST_LABEL: usize = 48;
/// In percent: distance between regions, and between areas.
const REGION_GAP: f64 = 0.6;
const AREA_GAP: f64 = 0.15;
/// Of a region's height, in percent of the picture: what its name takes.
const NAME_HEIGHT: f64 = 6.5;

/// What an area stands for.
struct Item {
    label: String,
    detail: String,
    title: String,
    href: String,
    weight: f64,
    is_data: bool,
}

/// `address` is that of the state's page. `None` without resources.
pub(crate) fn resource_map(summary: &ResourceSummary, address: &str) -> Option<Figure> {
    if summary.resources.is_empty() {
        return None;
    }
    let is_detailed = summary.resources.len() <= MAX_AREAS;
    let modules = match is_detailed {
        true => by_resource(summary, address),
        false => by_type(summary, address),
    };
    let shown: usize = modules.iter().map(|(_, items)| items.len()).sum();
    let regions: Vec<f64> = modules.iter().map(|(_, items)| items.iter().map(|item| item.weight).sum()).collect();
    let mut marks = Vec::new();
    let single = modules.len() == 1 && modules[0].0.is_empty();
    for ((module, items), region) in modules.iter().zip(squarified(&regions, Place::WHOLE)) {
        let region = region.inset(REGION_GAP / 2.0, REGION_GAP * ASPECT / 2.0);
        let inside = match single {
            true => region,
            false => {
                let name = if module.is_empty() { "root module".to_owned() } else { shortened(module, LONGEST_LABEL) };
                marks.push(area("region", &region, name, String::new()).titled(module_title(module, items)));
                region.below(NAME_HEIGHT).inset(AREA_GAP * 2.0, AREA_GAP * 2.0 * ASPECT)
            }
        };
        let weights: Vec<f64> = items.iter().map(|item| item.weight).collect();
        for (item, place) in items.iter().zip(squarified(&weights, inside)) {
            let place = place.inset(AREA_GAP, AREA_GAP * ASPECT);
            let class = if item.is_data { "area-data" } else { "area-resource" };
            let mark = area(class, &place, fitting(&item.label, &place), fitting(&item.detail, &place));
            marks.push(mark.titled(item.title.as_str()).leading_to(item.href.as_str()));
        }
    }
    let note = match is_detailed {
        true => "Larger areas have more instances. The table below lists the same.".to_owned(),
        false => format!(
            "Areas are types, of {} in all; larger ones have more instances. The table below lists the resources.",
            counted(summary.resources.len() as u64, "resource")
        ),
    };
    let has_data = summary.resources.iter().any(is_data);
    let legend = match has_data {
        true => vec![Key::new("area-resource", "", "managed"), Key::new("area-data", "", "data source")],
        false => Vec::new(),
    };
    Some(Figure {
        id: "resource-map",
        title: "Resource map".to_owned(),
        summary: format!(
            "{} in {}{}",
            counted(summary.managed(), "managed instance"),
            counted(modules.len() as u64, "module"),
            if shown >= MAX_AREAS { ", the largest are shown" } else { "" }
        ),
        drawing: Drawing { width: None, height: HEIGHT, marks },
        legend,
        table: None,
        note,
    })
}

fn is_data(resource: &ResourceCount) -> bool {
    resource.kind.starts_with("data.")
}

fn area(class: &'static str, place: &Place, label: String, detail: String) -> Mark {
    let Place { x, y, width, height } = *place;
    Mark::new(class, Shape::Area { x, y, width, height, label, detail })
}

/// A label for a place; empty where not even its beginning would be seen.
fn fitting(label: &str, place: &Place) -> String {
    if place.height < 6.0 || place.width < 2.5 { String::new() } else { shortened(label, LONGEST_LABEL) }
}

fn module_title(module: &str, items: &[Item]) -> String {
    let name = if module.is_empty() { "root module" } else { module };
    let instances: f64 = items.iter().map(|item| item.weight).sum();
    format!("{}: {}", shortened(name, 200), counted(instances as u64, "instance"))
}

fn by_resource(summary: &ResourceSummary, address: &str) -> Vec<(String, Vec<Item>)> {
    let mut modules: BTreeMap<String, Vec<Item>> = BTreeMap::new();
    for resource in &summary.resources {
        let module = module_address(&resource.module);
        let own = plain(&format!("{}.{}", resource.kind, resource.name));
        let full = if module.is_empty() { own.clone() } else { format!("{module}.{own}") };
        modules.entry(module).or_default().push(Item {
            label: plain(&resource.name),
            detail: plain(&resource.kind),
            title: format!("{}, {}", shortened(&full, 200), counted(resource.count, "instance")),
            href: resource_address(address, &full),
            weight: resource.count.max(1) as f64,
            is_data: is_data(resource),
        });
    }
    largest_first(modules)
}

/// Types within modules; where there are too many of these too, the largest.
fn by_type(summary: &ResourceSummary, address: &str) -> Vec<(String, Vec<Item>)> {
    let mut counts: BTreeMap<(String, &str), (u64, u64)> = BTreeMap::new();
    for resource in &summary.resources {
        let (resources, instances) = counts.entry((module_address(&resource.module), &resource.kind)).or_default();
        *resources += 1;
        *instances += resource.count.max(1);
    }
    let mut counts = Vec::from_iter(counts);
    counts.sort_by_key(|(_, (_, instances))| std::cmp::Reverse(*instances));
    counts.truncate(MAX_AREAS);
    let mut modules: BTreeMap<String, Vec<Item>> = BTreeMap::new();
    for ((module, kind), (resources, instances)) in counts {
        let query = Serializer::new(String::new()).append_pair("resource", kind).finish();
        modules.entry(module).or_default().push(Item {
            label: plain(kind),
            detail: counted(instances, "instance"),
            title: format!("{}: {}, {}", plain(kind), counted(resources, "resource"), counted(instances, "instance")),
            href: format!("{address}?{query}#resources"),
            weight: instances as f64,
            is_data: kind.starts_with("data."),
        });
    }
    largest_first(modules)
}

fn largest_first(modules: BTreeMap<String, Vec<Item>>) -> Vec<(String, Vec<Item>)> {
    let mut modules: Vec<(String, Vec<Item>)> = modules.into_iter().collect();
    for (_, items) in &mut modules {
        items.sort_by(|one, other| other.weight.total_cmp(&one.weight));
    }
    let weight = |items: &[Item]| items.iter().map(|item| item.weight).sum::<f64>();
    modules.sort_by(|(_, one), (_, other)| weight(other).total_cmp(&weight(one)));
    modules
}

/// The address that engines give a module, from how summaries call it: `a.b["x.y"]` is `module.a.module.b["x.y"]`.
fn module_address(name: &str) -> String {
    if name == "root" {
        return String::new();
    }
    let mut address = "module.".to_owned();
    let (mut is_quoted, mut is_escaped, mut depth) = (false, false, 0);
    for character in plain(name).chars() {
        match character {
            '"' if !is_escaped => is_quoted = !is_quoted,
            '[' if !is_quoted => depth += 1,
            ']' if !is_quoted => depth -= 1,
            _ => {}
        }
        is_escaped = character == '\\' && !is_escaped;
        address.push(character);
        if character == '.' && !is_quoted && depth == 0 {
            address.push_str("module.");
        }
    }
    address
}

/// A rectangle in percent of the picture.
#[derive(Clone, Copy, PartialEq, Debug)]
struct Place {
    x: f64,
    y: f64,
    width: f64,
    height: f64,
}

impl Place {
    const WHOLE: Self = Self { x: 0.0, y: 0.0, width: 100.0, height: 100.0 };

    /// Smaller on all sides, but never nothing.
    fn inset(self, across: f64, down: f64) -> Self {
        let (across, down) = (across.min(self.width / 4.0), down.min(self.height / 4.0));
        Self {
            x: self.x + across,
            y: self.y + down,
            width: self.width - 2.0 * across,
            height: self.height - 2.0 * down,
        }
    }

    /// What is left below so much of it.
    fn below(self, height: f64) -> Self {
        let height = height.min(self.height / 3.0);
        Self { y: self.y + height, height: self.height - height, ..self }
    }
}

/// Divides a place in proportion to weights, the largest first, so that areas are as square as they can be. See Bruls,
/// Huizing and van Wijk, "Squarified treemaps".
fn squarified(weights: &[f64], place: Place) -> Vec<Place> {
    let total: f64 = weights.iter().sum();
    let mut places = Vec::with_capacity(weights.len());
    if total <= 0.0 {
        return places;
    }
    let (mut rest, mut left, mut from) = (place, total, 0);
    while from < weights.len() {
        // As the eye sees it, the picture is wider than it is high.
        let (wide, high) = (rest.width * ASPECT, rest.height);
        let area_of = |weight: f64| weight / left * wide * high;
        let short = wide.min(high);
        let worst = |row: &[f64]| {
            let sum: f64 = row.iter().map(|weight| area_of(*weight)).sum();
            let ratio = |weight: &f64| {
                let (depth, length) = (sum / short, area_of(*weight) / (sum / short));
                (depth / length).max(length / depth)
            };
            row.iter().map(ratio).fold(0.0, f64::max)
        };
        let mut to = from + 1;
        while to < weights.len() && worst(&weights[from..=to]) <= worst(&weights[from..to]) {
            to += 1;
        }
        let row: f64 = weights[from..to].iter().sum();
        let part = row / left;
        let mut along = 0.0;
        for weight in &weights[from..to] {
            let share = weight / row;
            places.push(match wide >= high {
                true => Place {
                    x: rest.x,
                    y: rest.y + along * rest.height,
                    width: rest.width * part,
                    height: rest.height * share,
                },
                false => Place {
                    x: rest.x + along * rest.width,
                    y: rest.y,
                    width: rest.width * share,
                    height: rest.height * part,
                },
            });
            along += share;
        }
        rest = match wide >= high {
            true => Place { x: rest.x + rest.width * part, width: rest.width * (1.0 - part), ..rest },
            false => Place { y: rest.y + rest.height * part, height: rest.height * (1.0 - part), ..rest },
        };
        left -= row;
        from = to;
    }
    places
}

#[cfg(test)]
mod tests {
    use super::*;

    fn resource(name: &str, kind: &str, count: u64, module: &str) -> ResourceCount {
        ResourceCount { name: name.into(), kind: kind.into(), count, module: module.into(), provider: "p".into() }
    }

    fn summary(resources: Vec<ResourceCount>) -> ResourceSummary {
        ResourceSummary { resources, ..ResourceSummary::default() }
    }

    #[test]
    fn areas_are_in_proportion_and_fill_the_place() {
        let weights = [6.0, 6.0, 4.0, 3.0, 2.0, 2.0, 1.0];
        let places = squarified(&weights, Place::WHOLE);
        assert_eq!(places.len(), weights.len());
        for (place, weight) in places.iter().zip(weights) {
            assert!((place.width * place.height / 10_000.0 - weight / 24.0).abs() < 1e-9, "{place:?}");
            assert!(place.x >= 0.0 && place.x + place.width <= 100.0 + 1e-9, "{place:?}");
            assert!(place.y >= 0.0 && place.y + place.height <= 100.0 + 1e-9, "{place:?}");
        }
        assert_eq!(squarified(&[5.0], Place::WHOLE), [Place::WHOLE]);
        assert!(squarified(&[], Place::WHOLE).is_empty());
    }

    #[test]
    fn modules_have_the_addresses_that_engines_give_them() {
        assert_eq!(module_address("root"), "");
        assert_eq!(module_address("network"), "module.network");
        assert_eq!(module_address(r#"media.bucket["a.b"]"#), r#"module.media.module.bucket["a.b"]"#);
        assert_eq!(module_address("app[0].db"), "module.app[0].module.db");
    }

    #[test]
    fn each_resource_leads_to_its_attributes() {
        let figure = resource_map(
            &summary(vec![
                resource("main", "aws_vpc", 1, "root"),
                resource("a&b\"", "aws_subnet", 3, r#"net["x"]"#),
                resource("ami", "data.aws_ami", 1, "root"),
            ]),
            "/app/acme/workspaces/web/states/sv-1",
        )
        .expect("a picture");
        let links: Vec<&str> = figure.drawing.marks.iter().map(|mark| mark.href.as_str()).collect();
        assert!(links.contains(&"/app/acme/workspaces/web/states/sv-1/resources?address=aws_vpc.main"), "{links:?}");
        let nasty =
            "/app/acme/workspaces/web/states/sv-1/resources?address=module.net%5B%22x%22%5D.aws_subnet.a%26b%22";
        assert!(links.contains(&nasty), "{links:?}");
        assert_eq!(figure.summary, "4 managed instances in 2 modules");
        assert!(figure.drawing.marks.iter().any(|mark| mark.class == "area-data"));
        assert!(resource_map(&summary(Vec::new()), "/").is_none());
    }

    #[test]
    fn ten_thousand_resources_show_their_types() {
        let kinds = ["aws_instance", "aws_subnet", "aws_very_long_name_of_a_type_that_does_not_fit_into_any_area"];
        let many = (0..10_000)
            .map(|number| resource(&format!("r{number}"), kinds[number % 3], 1, &format!("team{}.app", number % 500)));
        let figure = resource_map(&summary(many.collect()), "/app/acme/workspaces/web/states/sv-1").expect("a picture");
        assert!(figure.drawing.marks.iter().filter(|mark| mark.class == "area-resource").count() <= MAX_AREAS);
        let html = figure.to_string();
        assert!(html.len() < 40_000, "{}", html.len());
    }
}
