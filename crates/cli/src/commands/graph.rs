//! `taco graph`

use clap::{Args, Subcommand, ValueEnum};
use taco_graph_picture::words::Freshness;
use taco_graph_picture::{Filter, Graph, Grouping, Picture, Svg, Unit, dot, mermaid, svg};

use crate::EXIT_CODES;
use crate::api::one;
use crate::browser;
use crate::failure::{Failure, Kind};
use crate::output;
use crate::print::Cell;
use crate::process_env::ProcessEnv;
use crate::session::{Flags, Session, WorkspaceName};
use crate::spelling_hints::did_you_mean;

/// Show which state uses which outputs of which other, and what is stale
#[derive(Args, Debug)]
#[command(after_help = format!("\
Producers are on the left of what uses their outputs. `taco why WS` explains one workspace.

With --json, or --format json:
  {{\"units\": [{{\"name\", \"project\", \"freshness\", \"activity\", \"health\", \"id\", \"tags\", \"why\"}}],
   \"edges\": [{{\"consumer\", \"producer\", \"outputs\", \"grades\", \"status\", \"certain\", \"confirmed\",
              \"since\", \"users\", \"muted\", \"policy\", \"id\"}}]}}
`taco graph status --json` prints the list of units alone.

Examples:
  taco graph --org acme | dot -Tpng > graph.png
  taco graph --format svg --around network --hops 1 > network.svg
  taco graph --format mermaid --project platform
  taco graph status --stale

{EXIT_CODES}"))]
pub struct Arguments {
    #[command(flatten)]
    flags: Flags,
    /// Language of the picture
    #[arg(long, value_enum, value_name = "FORMAT", default_value_t)]
    format: Format,
    /// Draw one box for each of these; not in JSON
    #[arg(long, value_enum, value_name = "WHAT", default_value_t)]
    group_by: GroupBy,
    /// Open the graph's page in the browser
    #[arg(long)]
    web: bool,
    #[command(flatten)]
    part: Part,
    #[command(subcommand)]
    verb: Option<Verb>,
}

#[derive(Subcommand, Debug)]
enum Verb {
    /// List workspaces with their freshness, and why they have it
    Status {
        #[command(flatten)]
        part: Part,
    },
}

/// The part of the graph that is wanted.
#[derive(Args, Clone, Debug)]
struct Part {
    /// Only workspaces of this project
    #[arg(long, value_name = "NAME")]
    project: Option<String>,
    /// Only workspaces with this tag, as KEY or KEY=VALUE
    #[arg(long, value_name = "TAG")]
    tag: Option<String>,
    /// Only what is stale or broken, and the producers that made it so
    #[arg(long)]
    stale: bool,
    /// Only this workspace, what it uses and what uses it
    #[arg(long, value_name = "NAME")]
    around: Option<String>,
    /// How many steps from that workspace [default: as far as it goes]
    #[arg(long, value_name = "NUMBER", requires = "around")]
    hops: Option<usize>,
}

#[derive(Clone, Copy, PartialEq, Eq, Default, ValueEnum, Debug)]
enum Format {
    /// For Graphviz
    #[default]
    Dot,
    /// A picture
    Svg,
    /// For programs
    Json,
    /// For Markdown
    Mermaid,
}

#[derive(Clone, Copy, Default, ValueEnum, Debug)]
enum GroupBy {
    #[default]
    Workspace,
    Project,
    /// What names have before their first `/`, `-` or `_`
    Prefix,
}

impl GroupBy {
    fn grouping(self) -> Grouping {
        match self {
            Self::Workspace => Grouping::Units,
            Self::Project => Grouping::Projects,
            Self::Prefix => Grouping::Prefixes,
        }
    }
}

impl Part {
    /// What was given before `status` and after it.
    fn and(&self, other: &Self) -> Self {
        Self {
            project: other.project.clone().or_else(|| self.project.clone()),
            tag: other.tag.clone().or_else(|| self.tag.clone()),
            stale: self.stale || other.stale,
            around: other.around.clone().or_else(|| self.around.clone()),
            hops: other.hops.or(self.hops),
        }
    }

    fn of(&self, graph: &Graph, organization: &str) -> Result<Graph, Failure> {
        if let Some(name) = self.around.as_ref().filter(|name| graph.unit(name).is_none()) {
            let names = graph.units.iter().map(|unit| unit.name.as_str());
            let hint =
                did_you_mean(name, names, || format!("`taco graph status --org {organization}` lists workspaces"));
            return Err(Failure::new(Kind::NotFound, format!("workspace {name} is not in the graph")).hint(hint));
        }
        if let Some(name) = self.project.as_ref().filter(|name| !graph.projects().contains(&name.as_str())) {
            let hint = did_you_mean(name, graph.projects(), || {
                format!("`taco project ls --org {organization}` lists projects")
            });
            return Err(
                Failure::new(Kind::NotFound, format!("project {name} has no workspaces in the graph")).hint(hint)
            );
        }
        let filter = Filter {
            project: self.project.clone(),
            tag: self.tag.as_ref().map(|tag| tag.replacen('=', ":", 1)),
            stale: self.stale,
            around: self.around.clone(),
            hops: self.hops,
            ..Filter::default()
        };
        Ok(filter.of(graph))
    }
}

pub(crate) async fn run(arguments: &Arguments, process_env: &ProcessEnv) -> Result<(), Failure> {
    let session = Session::open(&arguments.flags, process_env).await?;
    let organization = session.target.organization(None)?;
    if arguments.web {
        return browser::show(&session.target.host.at(&["app", &organization, "graph"]));
    }
    let graph = read(&session, &organization).await?;
    match &arguments.verb {
        Some(Verb::Status { part }) => {
            let part = arguments.part.and(part);
            let mut graph = part.of(&graph, &organization)?;
            if part.stale {
                // Producers are of use in a picture; here they would only seem to be stale.
                graph.units.retain(Unit::is_stale);
            }
            status(&session, &graph)
        }
        None => draw(&session, arguments, &organization, &arguments.part.of(&graph, &organization)?),
    }
}

/// The organization's graph, as far as the caller may see it.
pub(super) async fn read(session: &Session, organization: &str) -> Result<Graph, Failure> {
    let subject = format!("graph of organization {organization}");
    let found = one(session.api.get(&subject, &["organizations", organization, "graph"], &[]).await?)?;
    let document = serde_json::json!({ "units": found.get("units"), "edges": found.get("edges") });
    serde_json::from_value(document)
        .map_err(|error| Failure::error(format!("{subject}: the server's answer cannot be read")).because(error))
}

fn draw(session: &Session, arguments: &Arguments, organization: &str, graph: &Graph) -> Result<(), Failure> {
    if session.json || arguments.format == Format::Json {
        let document = serde_json::to_value(graph).map_err(|error| Failure::error(error.to_string()))?;
        return output::json(&document);
    }
    let picture = Picture::of(graph, arguments.group_by.grouping());
    let text = match arguments.format {
        Format::Dot | Format::Json => dot(&picture),
        Format::Mermaid => mermaid(&picture),
        Format::Svg => {
            let address = |name: &str| {
                let workspace = WorkspaceName { organization: organization.to_owned(), name: name.to_owned() };
                browser::workspace_page(&session.target.host, &workspace, &[]).to_string()
            };
            let title = format!("Graph of states of {organization}");
            let options = Svg {
                title: &title,
                unit_address: Some(&address),
                here: arguments.part.around.as_deref(),
                standalone: true,
                ..Svg::default()
            };
            svg(&picture, &options) + "\n"
        }
    };
    if !session.quiet {
        for cycle in &picture.cycles {
            eprintln!("warning: these workspaces use each other in a circle: {}", cycle.join(", "));
        }
    }
    output::bytes(text.as_bytes())
}

fn status(session: &Session, graph: &Graph) -> Result<(), Failure> {
    let mut units: Vec<&Unit> = graph.units.iter().collect();
    units.sort_by(|one, other| one.name.cmp(&other.name));
    if session.json {
        let units = serde_json::to_value(&units).map_err(|error| Failure::error(error.to_string()))?;
        return output::json(&units);
    }
    let row = |unit: &&Unit| {
        let [activity, health] = [unit.activity.word(), unit.health.word()].map(|word| Cell::Status(word.to_owned()));
        [unit.name.as_str().into(), freshness(unit.freshness), activity, health, unit.why.as_str().into()]
    };
    let headings = ["WORKSPACE", "FRESHNESS", "ACTIVITY", "HEALTH", "WHY"];
    session.table(headings, units.iter().map(row), "No workspaces match.")
}

/// Unknown is no alarm: it is grey, as text is.
fn freshness(freshness: Freshness) -> Cell {
    match freshness {
        Freshness::Unknown => Cell::Text(freshness.word().to_owned()),
        other => Cell::Status(other.word().to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn part() -> Part {
        Part { project: None, tag: None, stale: false, around: None, hops: None }
    }

    fn graph() -> Graph {
        let unit = |name: &str, tag: &str| Unit {
            project: "base".into(),
            tags: vec![tag.into()],
            ..Unit::new(name, Freshness::Clean)
        };
        Graph { units: vec![unit("network", "env:prod"), unit("app", "env:test")], edges: Vec::new() }
    }

    #[test]
    fn a_name_that_is_not_there_is_told_with_the_one_that_may_be_meant() {
        let around = Part { around: Some("netwrk".into()), ..part() };
        let said = around.of(&graph(), "acme").expect_err("there is none").to_string();
        assert!(
            said.contains("workspace netwrk is not in the graph") && said.contains("did you mean network?"),
            "{said}"
        );
        let project = Part { project: Some("bas".into()), ..part() };
        let said = project.of(&graph(), "acme").expect_err("there is none").to_string();
        assert!(said.contains("did you mean base?"), "{said}");
    }

    #[test]
    fn tags_are_written_as_everywhere() {
        let tagged = Part { tag: Some("env=prod".into()), ..part() };
        assert_eq!(tagged.of(&graph(), "acme").expect("a part").units.len(), 1);
    }

    #[test]
    fn what_is_given_before_and_after_the_verb_counts() {
        let before = Part { stale: true, project: Some("one".into()), ..part() };
        let after = Part { project: Some("other".into()), hops: Some(1), ..part() };
        let both = before.and(&after);
        assert_eq!((both.stale, both.project.as_deref(), both.hops), (true, Some("other"), Some(1)));
    }
}
