//! The pictures of each page, from what the control plane shows to the visitor.

use taco_control_plane::{LoadSample, OrganizationSnapshot, SiteStatus, WorkspaceView};
use taco_domain::id::AgentPoolId;
use taco_domain::state_file::ResourceSummary;

use super::health::DrawnServer;
use super::slots::DrawnAgent;
use super::sparkline::{Point, Series};
use super::{Figure, Rows, bars, health, slots, sparkline, stacked_bar, strip};
use crate::Web;
use crate::navigation::organization_address;
use crate::text::Moment;
use crate::visitor::Visitor;

/// Days of the dashboard's first picture.
const DAYS: usize = 30;
/// Number of state versions whose resources are drawn.
const STATE_VERSIONS: usize = 100;

/// Pictures of the dashboard.
#[derive(Default, Debug)]
pub(crate) struct DashboardPictures {
    pub(crate) all: Vec<Figure>,
}

impl DashboardPictures {
    pub(crate) async fn of(web: &Web, visitor: &Visitor, org: &OrganizationSnapshot) -> Self {
        let activity = web.control_plane.run_activity(&visitor.caller, org, DAYS).await;
        let samples = web.control_plane.load_samples(&visitor.caller, org);
        let runs = format!("{}/runs", organization_address(org.entry().name.as_str()));
        let figures = [bars::runs_per_day(&activity, &runs), queue_depth(&samples), agent_use(&samples)];
        Self { all: figures.into_iter().flatten().collect() }
    }
}

const SINCE_START: &str = "One sample a minute, since this server started.";

fn queue_depth(samples: &[LoadSample]) -> Option<Figure> {
    let points = samples.iter().map(|sample| Some(point(sample, sample.waiting?)));
    let series = Series {
        id: "queue-depth",
        title: "Queued runs",
        head: ["Time", "Queued"],
        limit: None,
        class: "calm",
        note: SINCE_START,
    };
    sparkline::area(&series, &points.collect::<Option<Vec<Point>>>()?)
}

fn agent_use(samples: &[LoadSample]) -> Option<Figure> {
    let slots = samples.last()?.slots;
    let points: Vec<Point> = samples.iter().map(|sample| point(sample, sample.busy)).collect();
    let title = format!("Busy agent slots, of {slots}");
    let series = Series {
        id: "agent-use",
        title: &title,
        head: ["Time", "Busy slots"],
        limit: Some(slots.into()),
        class: "busy",
        note: SINCE_START,
    };
    sparkline::area(&series, &points)
}

fn point(sample: &LoadSample, count: u32) -> Point {
    Point { name: Moment(sample.at).text(), count: count.into() }
}

/// Pictures of a workspace's overview.
#[derive(Default, Debug)]
pub(crate) struct WorkspacePictures {
    pub(crate) runs: Option<Figure>,
    pub(crate) resources: Option<Figure>,
}

impl WorkspacePictures {
    /// `address` is that of the workspace's page.
    pub(crate) async fn of(web: &Web, visitor: &Visitor, view: &WorkspaceView, address: &str) -> Self {
        let runs = web.control_plane.recent_runs(&visitor.caller, view, strip::PLACES).await;
        let versions = web.control_plane.resource_history(&visitor.caller, view, STATE_VERSIONS);
        let point = |version: &taco_control_plane::ResourcesAt| Point {
            name: format!("Serial {}, {}", version.serial, Moment(version.created_at).text()),
            count: version.resources,
        };
        let points: Vec<Point> = versions.iter().map(point).collect();
        let title = format!("Resources over the last {} state versions", points.len());
        let series = Series {
            id: "resource-history",
            title: &title,
            head: ["State version", "Resources"],
            limit: None,
            class: "calm",
            note: "",
        };
        Self {
            runs: strip::recent_runs(&runs, &format!("{address}/runs")),
            resources: sparkline::area(&series, &points),
        }
    }
}

/// The managed resources of a state by type. `types` has data sources too, which are left out.
pub(crate) fn resource_types(summary: &ResourceSummary) -> Option<Figure> {
    let mut counts: std::collections::BTreeMap<&str, u64> = std::collections::BTreeMap::new();
    for resource in summary.resources.iter().filter(|resource| !resource.kind.starts_with("data.")) {
        *counts.entry(&resource.kind).or_default() += resource.count;
    }
    let mut counts: Vec<(String, u64)> =
        counts.into_iter().map(|(kind, count)| (crate::text::plain(kind), count)).collect();
    counts.sort_by_key(|(_, count)| std::cmp::Reverse(*count));
    stacked_bar::parts_of_whole("resource-types", "Resources by type", "resource", &counts)
}

/// The agents that could execute something for an organization, those within servers first.
pub(crate) fn agents(web: &Web, is_pool: impl Fn(AgentPoolId) -> bool) -> Option<Rows> {
    drawn_agents(web, |pool| pool.is_none_or(&is_pool))
}

/// The agents of one pool.
pub(crate) fn agents_of_pool(web: &Web, pool: AgentPoolId) -> Option<Rows> {
    drawn_agents(web, |of| of == Some(pool))
}

fn drawn_agents(web: &Web, is_shown: impl Fn(Option<AgentPoolId>) -> bool) -> Option<Rows> {
    let presence = web.control_plane.presence();
    let mut present: Vec<_> = presence.agents().iter().filter(|agent| is_shown(agent.pool)).cloned().collect();
    present.sort_by(|one, other| (one.pool.is_some(), &one.name).cmp(&(other.pool.is_some(), &other.name)));
    let drawn: Vec<DrawnAgent> =
        present.iter().map(|agent| DrawnAgent::of(agent, presence.heartbeats(&agent.agent))).collect();
    slots::agents(&drawn, web.control_plane.now())
}

/// Pictures of the site's administration.
#[derive(Default, Debug)]
pub(crate) struct SitePictures {
    pub(crate) bucket: Option<Figure>,
    pub(crate) servers: Option<Rows>,
}

impl SitePictures {
    pub(crate) fn of(web: &Web, status: &SiteStatus) -> Self {
        let now = web.control_plane.now();
        let this = status.bucket_times.as_ref().map(|times| DrawnServer {
            name: status.server.clone(),
            is_this: true,
            started: times.since,
            seen: now,
        });
        let others = status.others.iter().map(|server| DrawnServer {
            name: server.server.clone(),
            is_this: false,
            started: server.started_at,
            seen: server.seen_at,
        });
        let servers: Vec<DrawnServer> = this.into_iter().chain(others).collect();
        Self {
            bucket: status.bucket_times.as_ref().and_then(|times| health::bucket_times(times, now)),
            servers: health::servers(&servers, now),
        }
    }
}
