//! `/app/{organization}/graph`: which state uses which outputs of which other, as a picture and as a list.

pub(crate) mod contract_choice;
pub(crate) mod dependencies;
pub(crate) mod dependency_forms;
pub(crate) mod graph_query;
pub(crate) mod output_history;

use askama::Template;
use axum::extract::{Path, Query, State};
use axum::http::StatusCode;
use axum::response::Response;
use taco_control_plane::Listed;
use taco_graph_picture::words::{Activity, Freshness, Health};
use taco_graph_picture::{Graph, Grouping, Look, MAX_UNITS_APART, Picture, Svg, Unit, svg, urgency};

use crate::error::PageError;
use crate::graph::graph_query::{GraphQuery, Groups};
use crate::navigation::{Section, organization_address, workspace_address};
use crate::page::Layout;
use crate::pagination::{self, Pagination};
use crate::visitor::Visitor;
use crate::{Web, page};

#[derive(Template)]
#[template(path = "graph.html")]
struct GraphPage {
    layout: Layout,
    /// Without a query.
    address: String,
    /// Address of the list of workspaces.
    workspaces: String,
    wanted: GraphQuery,
    groups: Vec<(Groups, bool)>,
    /// Steps around a unit that can be chosen.
    hops: [&'static str; 4],
    projects: Vec<String>,
    tags: Vec<String>,
    names: Vec<String>,
    /// There is no workspace at all, as far as the visitor can see.
    is_empty: bool,
    has_edges: bool,
    view: GraphView,
    /// What boxes stand for, where it is not workspaces.
    grouped_by: Option<&'static str>,
    rows: Vec<UnitRow>,
    pages: Pagination,
}

/// A picture of a graph with what it shows in words. See `graph_parts.html`.
pub(crate) struct GraphView {
    pub(crate) svg: String,
    pub(crate) legend: Vec<(Look, usize)>,
    /// Units that use each other in a circle.
    pub(crate) cycles: Vec<String>,
}

impl GraphView {
    /// `grouped` is the address of the picture of a group, without its name.
    pub(crate) fn of(
        graph: &Graph,
        grouping: Grouping,
        organization: &str,
        here: Option<&str>,
        grouped: Option<&dyn Fn(&str) -> String>,
    ) -> Self {
        let picture = Picture::of(graph, grouping);
        let address = |name: &str| workspace_address(organization, name);
        let options = Svg { unit_address: Some(&address), group_address: grouped, here, ..Svg::default() };
        let mut legend: Vec<(Look, usize)> = Freshness::ALL
            .iter()
            .map(|freshness| {
                let count = graph.units.iter().filter(|unit| unit.freshness == *freshness).count();
                (*freshness, count)
            })
            .filter(|(_, count)| *count > 0)
            .map(|(freshness, count)| (Look::of_freshness(freshness), count))
            .collect();
        legend.sort_by_key(|(look, _)| look.sign);
        Self {
            svg: svg(&picture, &options),
            legend,
            cycles: picture.cycles.iter().map(|names| names.join(", ")).collect(),
        }
    }
}

/// One unit of the list.
struct UnitRow {
    name: String,
    address: String,
    project: String,
    project_address: String,
    look: Look,
    /// What it is doing, and whether it is well; empty if there is nothing to tell.
    beside: String,
    why: String,
    around: String,
}

impl UnitRow {
    fn of(unit: Unit, organization: &str, list: &str) -> Self {
        let activity = (unit.activity != Activity::Idle).then(|| unit.activity.text());
        let health = (unit.health != Health::Ok).then(|| unit.health.text());
        let query = |query: GraphQuery| format!("{list}?{}", query.in_address());
        Self {
            address: format!("{}/dependencies", workspace_address(organization, &unit.name)),
            around: query(GraphQuery { around: unit.name.clone(), hops: "1".to_owned(), ..GraphQuery::default() }),
            project_address: query(GraphQuery { project: unit.project.clone(), ..GraphQuery::default() }),
            look: Look::of_freshness(unit.freshness),
            beside: [activity, health].into_iter().flatten().collect::<Vec<_>>().join(", "),
            name: unit.name,
            project: unit.project,
            why: unit.why,
        }
    }
}

/// `GET /app/{organization}/graph`
pub(crate) async fn show(
    State(web): State<Web>,
    visitor: Visitor,
    Path(organization): Path<String>,
    Query(wanted): Query<GraphQuery>,
) -> Result<Response, PageError> {
    let (org, graph) = web.control_plane.graph(&visitor.caller, &organization).await?;
    let organization = org.entry().name.as_str();
    let layout = Layout::for_visitor(&web, &visitor).in_organization(organization, Section::Graph);
    Ok(page::render(StatusCode::OK, &graph_page(layout, organization, &graph, wanted)))
}

fn graph_page(layout: Layout, organization: &str, graph: &Graph, wanted: GraphQuery) -> GraphPage {
    let address = format!("{}/graph", organization_address(organization));
    let mut part = wanted.filter().of(graph);
    let groups = wanted.groups(&part);
    let grouping = groups.grouping();
    let here = Some(wanted.around.as_str()).filter(|name| !name.is_empty());
    let group_address = |name: &str| format!("{address}?{}", wanted.within(groups, name).in_address());
    let view = GraphView::of(&part, grouping, organization, here, Some(&group_address));
    part.units.sort_by(|one, other| {
        let key = |unit: &Unit| std::cmp::Reverse(urgency(unit.freshness));
        key(one).cmp(&key(other)).then_with(|| one.name.cmp(&other.name))
    });
    let listed = Listed::from_all(part.units, pagination::asked_for(&wanted.page));
    let pages = Pagination::of(&listed, |number| format!("{address}?{}", wanted.on_page(number).in_address()));
    let owned = |texts: Vec<&str>| texts.into_iter().map(str::to_owned).collect();
    GraphPage {
        layout,
        groups: Groups::ALL.iter().map(|choice| (*choice, *choice == groups)).collect(),
        hops: ["1", "2", "3", ""],
        projects: owned(graph.projects()),
        tags: owned(graph.tags()),
        // Of more, browsers offer more than anyone reads.
        names: graph.units.iter().take(MAX_UNITS_APART).map(|unit| unit.name.clone()).collect(),
        is_empty: graph.units.is_empty(),
        has_edges: !graph.edges.is_empty(),
        view,
        grouped_by: match grouping {
            Grouping::Units => None,
            Grouping::Projects => Some("projects"),
            Grouping::Prefixes => Some("workspaces whose names begin alike"),
        },
        rows: listed.items.into_iter().map(|unit| UnitRow::of(unit, organization, &address)).collect(),
        pages,
        workspaces: format!("{}/workspaces", organization_address(organization)),
        address,
        wanted,
    }
}

#[cfg(test)]
mod tests {
    use taco_graph_picture::sample;

    use super::*;

    fn page_of(units: usize, edges: usize, wanted: GraphQuery) -> String {
        let graph = sample::estate(units, edges);
        let layout = Layout::for_tests();
        graph_page(layout, "acme", &graph, wanted).render().expect("a page")
    }

    #[test]
    fn a_thousand_units_are_shown_as_projects_in_a_light_page() {
        let html = page_of(1000, 3000, GraphQuery::default());
        assert!(html.len() < 500_000, "{}", html.len());
        assert!(html.contains("/app/acme/graph?project=team-1") && html.contains("1–100 of 1000"), "{html}");
        let units = page_of(1000, 3000, GraphQuery { group: "workspaces".into(), ..GraphQuery::default() });
        assert!(units.len() < 500_000, "{}", units.len());
        assert!(units.contains("/app/acme/workspaces/prod-app-0000\""));
    }

    #[test]
    fn one_unit_is_shown_with_its_neighbours() {
        let wanted = GraphQuery { around: "prod-app-0012".into(), hops: "1".into(), ..GraphQuery::default() };
        let html = page_of(40, 60, wanted);
        assert!(html.contains(" here\"") && !html.contains("style="), "{html}");
    }

    #[test]
    fn what_urgently_needs_someone_comes_first_in_the_list() {
        let html = page_of(40, 60, GraphQuery::default());
        let list = &html[html.find("<tbody>").expect("a list")..];
        let at = |word: &str| list.find(word).expect(word);
        assert!(at("broken") < at("stale") && at("stale") < at("clean"), "{list}");
    }
}
