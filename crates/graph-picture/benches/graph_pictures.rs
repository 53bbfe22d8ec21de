//! What pictures of large graphs cost.

use std::hint::black_box;

use taco_bench::{Sample, Table};
use taco_graph_picture::{Graph, Grouping, Picture, Svg, sample, svg};

/// Times that each is measured.
const TIMES: usize = 30;

fn main() {
    let mut table = Table::new("Pictures of the graph");
    for (units, edges, milliseconds) in [(100, 300, 10), (300, 900, 30), (1000, 3000, 100)] {
        let graph = sample::estate(units, edges);
        let address = |name: &str| format!("/app/acme/workspaces/{name}");
        let options = Svg { title: "Graph", unit_address: Some(&address), ..Svg::default() };
        let draw = |graph: &Graph| svg(&Picture::of(graph, Grouping::Units), &options);
        let size = draw(&graph).len();
        let median = Sample::measure(TIMES, || drop(black_box(draw(&graph)))).median();
        let what = format!("{units} units with {edges} edges, laid out and written as SVG");
        table.row(&what, format!("{median:.1?}"), format!("{milliseconds} ms"), median.as_millis() < milliseconds);
        table.row("  its size", format!("{} KB", size / 1000), "500 KB", size < 500_000);
    }
    table.close();
}
