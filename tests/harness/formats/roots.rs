//! Everything that has samples.

use std::collections::BTreeMap;

use serde::Serialize;
use serde::de::DeserializeOwned;
use taco_agent_protocol::{FromAgent, FromServer, LogConflict, Outcome};
use taco_domain::agent::AgentPresence;
use taco_domain::organization_state::OrganizationState;
use taco_domain::site::Site;
use taco_ledger::Commit;
use taco_ledger::beacon::Beacon;
use taco_ledger::format::Format;
use taco_tables::{Record, RecordTypes, VisitRecordType};

use super::shape::{Shape, Shapes};
use super::source::Source;

/// Reads a sample with its type, and writes it again.
type RoundTrip = fn(&str) -> Result<String, String>;

/// One kind of thing that is stored or sent.
pub struct Root {
    /// Of its file of samples, without the ending.
    pub name: String,
    pub shape: Shape,
    /// `None` where the type is its crate's own affair: a test there reads the samples.
    pub round_trip: Option<RoundTrip>,
    /// Fields that the constants of a record name.
    pub part_of: &'static [&'static str],
    pub unique: &'static [&'static str],
}

/// All of them, and the types that they are made of.
pub fn roots() -> (Vec<Root>, Shapes) {
    let mut shapes = Shapes::new(Source::read());
    let mut records = Records(BTreeMap::new());
    Site::visit(&mut records);
    OrganizationState::visit(&mut records);
    let mut roots = Vec::new();
    for (kind, (round_trip, part_of, unique)) in records.0 {
        let shape = shapes.add_record(kind);
        roots.push(Root { name: format!("records/{kind}"), shape, round_trip: Some(round_trip), part_of, unique });
    }
    let others: [(&str, &str, &str, Option<RoundTrip>); 19] = [
        ("bucket/format", "ledger", "Format", Some(round_trip::<Format>)),
        ("bucket/commit", "ledger", "Commit", Some(round_trip::<Commit>)),
        ("bucket/snapshot-header", "ledger", "Header", None),
        ("bucket/snapshot-line", "ledger", "Line", None),
        ("bucket/delta-header", "ledger", "DeltaHeader", None),
        ("bucket/pack-header", "ledger", "PackHeader", None),
        ("bucket/packed-commit", "ledger", "PackedCommit", None),
        ("bucket/head", "ledger", "HeadObject", None),
        ("bucket/history-line", "history", "BundleLine", None),
        ("bucket/history-catalog", "history", "CatalogHeader", None),
        ("bucket/history-index", "history", "IndexHeader", None),
        ("bucket/beacon", "ledger", "Beacon", Some(round_trip::<Beacon>)),
        ("bucket/agent-in-beacon", "domain", "AgentPresence", Some(round_trip::<AgentPresence>)),
        ("agent/from-agent", "agent-protocol", "FromAgent", Some(round_trip::<FromAgent>)),
        ("agent/from-server", "agent-protocol", "FromServer", Some(round_trip::<FromServer>)),
        ("agent/outcome", "agent-protocol", "Outcome", Some(round_trip::<Outcome>)),
        ("agent/log-conflict", "agent-protocol", "LogConflict", Some(round_trip::<LogConflict>)),
        ("agent/journal-entry", "agent", "Entry", None),
        ("servers/look", "server", "Look", None),
    ];
    for (name, crate_name, type_name, round_trip) in others {
        let shape = shapes.add_root(crate_name, type_name);
        roots.push(Root { name: name.to_owned(), shape, round_trip, part_of: &[], unique: &[] });
    }
    (roots, shapes)
}

/// The records of both states, by kind.
struct Records(BTreeMap<&'static str, (RoundTrip, &'static [&'static str], &'static [&'static str])>);

impl VisitRecordType for Records {
    fn visit<R: Record>(&mut self) {
        self.0.insert(R::KIND, (round_trip::<R>, R::PART_OF, R::UNIQUE));
    }
}

fn round_trip<T: Serialize + DeserializeOwned>(sample: &str) -> Result<String, String> {
    let read: T = serde_json::from_str(sample).map_err(|error| error.to_string())?;
    serde_json::to_string(&read).map_err(|error| error.to_string())
}
