//! Estates: units of Terraform in layers, with a known graph. They are written as directories for a real engine, or
//! applied in memory, which takes milliseconds and makes the states that an engine would write.
//!
//! Every unit has the same outputs: `digest` changes with the unit's salt or any value that it consumed, `endpoint` never,
//! `salt` with the salt alone and nobody uses it, `handle` is known only after the first apply and stays, `secret` is
//! sensitive and unused. An edge uses `digest` or `endpoint`, and perhaps `handle`.
//!
//! A hard estate makes it difficult to find edges by values: outputs that all have (`region`, `account`), one that says
//! nothing (`port`), one that passes on what its unit was given (`relay`), and values inside of longer texts.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::path::Path;
use std::{fs, io};

use serde_json::{Value, json};

const REGION: &str = "eu-central-1";
const ACCOUNT: &str = "123456789012";

/// Where the units of an estate keep their states, and read those of others.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum EstateBackend {
    /// Files under a directory.
    Local {
        directory: String,
    },
    /// Addresses that go on with a unit's name.
    Http {
        address: String,
        username: String,
        password: String,
    },
    Cloud {
        host: String,
        organization: String,
    },
}

/// What an estate is like.
#[derive(Clone, Debug)]
pub struct EstateOptions {
    pub units: usize,
    pub layers: usize,
    /// Least and greatest number of producers of a unit.
    pub fan_in: (usize, usize),
    pub seed: u64,
    /// Share of edges that use an output which changes.
    pub propagate: f64,
    /// Share of edges that also use an output which is unknown before its apply.
    pub handles: f64,
    pub hard: bool,
    /// Number of resources in each unit, and of blocks of 64 bytes in each of them.
    pub resources: usize,
    pub payload: usize,
    /// Before the names of workspaces.
    pub prefix: String,
    pub backend: EstateBackend,
}

impl EstateOptions {
    pub fn new(units: usize, layers: usize, seed: u64) -> Self {
        Self {
            units,
            layers,
            fan_in: (2, 3),
            seed,
            propagate: 0.5,
            handles: 0.5,
            hard: false,
            resources: 3,
            payload: 0,
            prefix: String::new(),
            backend: EstateBackend::Local { directory: "/estate".to_owned() },
        }
    }

    #[must_use]
    pub fn hard(mut self) -> Self {
        self.hard = true;
        self
    }

    #[must_use]
    pub fn backend(mut self, backend: EstateBackend) -> Self {
        self.backend = backend;
        self
    }
}

/// Units with a known graph.
#[derive(Clone, Debug)]
pub struct Estate {
    pub options: EstateOptions,
    /// Producers come before their consumers.
    pub units: Vec<EstateUnit>,
}

#[derive(Clone, Debug)]
pub struct EstateUnit {
    pub name: String,
    pub layer: usize,
    pub salt: u64,
    pub depends: Vec<EstateEdge>,
}

#[derive(Clone, Debug)]
pub struct EstateEdge {
    pub producer: String,
    pub uses: Vec<&'static str>,
    pub via: Via,
}

/// How a consumer uses a value.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Via {
    Plain,
    Arn,
    Json,
    Port,
}

/// Numbers that are the same for the same seed: SplitMix64.
pub struct Random(u64);

impl Random {
    pub fn new(seed: u64) -> Self {
        Self(seed)
    }

    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    pub fn below(&mut self, limit: usize) -> usize {
        (self.next() % limit.max(1) as u64) as usize
    }

    fn chance(&mut self, share: f64) -> bool {
        (self.next() >> 11) as f64 / (1_u64 << 53) as f64 <= share
    }
}

impl Estate {
    pub fn new(options: EstateOptions) -> Self {
        let mut random = Random::new(options.seed);
        // The graph of a seed is the same whether it is hard or not.
        let mut dressing = Random::new(options.seed ^ 0x6861_7264);
        let mut units: Vec<EstateUnit> = Vec::new();
        let layers = options.layers.clamp(1, options.units.max(1));
        let mut above: Vec<String> = Vec::new();
        for layer in 0..layers {
            let size = options.units / layers + usize::from(layer < options.units % layers);
            let mut row = Vec::new();
            for _ in 0..size {
                let name = format!("u{:04}", units.len());
                let depends = edges(&options, &above, &mut random, &mut dressing);
                row.push(name.clone());
                units.push(EstateUnit { name, layer, salt: 0, depends });
            }
            above = row;
        }
        Self { options, units }
    }

    pub fn unit(&self, name: &str) -> &EstateUnit {
        self.units.iter().find(|unit| unit.name == name).expect("a unit of the estate")
    }

    /// Edges as (consumer, producer) with the outputs that they use.
    pub fn edges(&self) -> BTreeMap<(String, String), BTreeSet<String>> {
        let edges = self.units.iter().flat_map(|unit| unit.depends.iter().map(move |edge| (unit, edge)));
        edges
            .map(|(unit, edge)| {
                let uses = edge.uses.iter().map(|name| (*name).to_owned()).collect();
                ((unit.name.clone(), edge.producer.clone()), uses)
            })
            .collect()
    }

    /// Name of a unit's workspace.
    pub fn workspace(&self, unit: &str) -> String {
        format!("{}{unit}", self.options.prefix)
    }

    /// Gives a unit a new salt: its next apply changes its outputs.
    pub fn touch(&mut self, name: &str) {
        let unit = self.units.iter_mut().find(|unit| unit.name == name).expect("a unit of the estate");
        unit.salt += 1;
    }

    /// Units that see a changed input sooner or later when this one gets a new salt, in the order of their applies.
    pub fn expect(&self, changed: &str) -> Vec<String> {
        self.reached(changed, |edge| edge.uses.contains(&"digest"))
    }

    /// Units that see a changed input as soon as this one was applied with a new salt, and no other.
    pub fn expect_next(&self, changed: &str) -> Vec<String> {
        let uses = |unit: &&EstateUnit| {
            unit.depends.iter().any(|edge| edge.producer == changed && edge.uses.contains(&"digest"))
        };
        self.units.iter().filter(uses).map(|unit| unit.name.clone()).collect()
    }

    /// Units that depend on this one in any way.
    pub fn descendants(&self, changed: &str) -> Vec<String> {
        self.reached(changed, |_| true)
    }

    fn reached(&self, changed: &str, follows: impl Fn(&EstateEdge) -> bool) -> Vec<String> {
        let (mut moved, mut hit) = (BTreeSet::from([changed]), Vec::new());
        for unit in &self.units {
            if unit.depends.iter().any(|edge| moved.contains(edge.producer.as_str()) && follows(edge)) {
                moved.insert(&unit.name);
                hit.push(unit.name.clone());
            }
        }
        hit
    }

    /// Writes a directory for each unit.
    pub fn write(&self, directory: &Path) -> io::Result<()> {
        self.units.iter().try_for_each(|unit| self.write_unit(directory, &unit.name))
    }

    pub fn write_unit(&self, directory: &Path, name: &str) -> io::Result<()> {
        let place = directory.join(name);
        fs::create_dir_all(place.join("unit"))?;
        fs::write(place.join("main.tf"), self.root_module(self.unit(name)))?;
        fs::write(place.join("unit/main.tf"), self.shared_module())
    }

    /// The root module of a unit, in which `terraform_remote_state` reads its producers.
    pub fn root_module(&self, unit: &EstateUnit) -> String {
        let EstateOptions { resources, payload, hard, .. } = &self.options;
        let mut text = self.backend_block(&unit.name);
        let mut upstream = String::new();
        for edge in &unit.depends {
            let _ = write!(
                text,
                "data \"terraform_remote_state\" \"{}\" {{\n{}}}\n\n",
                edge.producer,
                self.read_arguments(&edge.producer)
            );
            for output in &edge.uses {
                let value = format!("data.terraform_remote_state.{}.outputs.{output}", edge.producer);
                let _ = writeln!(upstream, "    \"{}.{output}\" = {}", edge.producer, edge.via.expression(&value));
            }
        }
        let ambient = if *hard {
            format!(
                "  ambient   = {{ region = \"{REGION}\", account = \"{ACCOUNT}\", environment = \"production\" }}\n"
            )
        } else {
            String::new()
        };
        let _ = write!(
            text,
            "module \"unit\" {{\n  source    = \"./unit\"\n  name      = \"{}\"\n  salt      = \"{}\"\n  resources = {resources}\n  \
             payload   = {payload}\n{ambient}  upstream  = {{\n{upstream}  }}\n}}\n\n",
            unit.name, unit.salt
        );
        for output in self.output_names() {
            let sensitive = if output == "secret" { "\n  sensitive = true" } else { "" };
            let _ = write!(text, "output \"{output}\" {{\n  value = module.unit.{output}{sensitive}\n}}\n\n");
        }
        text
    }

    fn output_names(&self) -> Vec<&'static str> {
        let mut names = vec!["digest", "endpoint", "salt", "handle", "secret"];
        if self.options.hard {
            names.extend(["region", "account", "port", "relay"]);
        }
        names
    }

    fn backend_block(&self, unit: &str) -> String {
        match &self.options.backend {
            EstateBackend::Local { directory } => {
                format!("terraform {{\n  backend \"local\" {{\n    path = \"{directory}/{unit}.tfstate\"\n  }}\n}}\n\n")
            }
            EstateBackend::Http { address, username, password } => {
                let address = format!("{address}/{}", self.workspace(unit));
                format!(
                    "terraform {{\n  backend \"http\" {{\n    address        = \"{address}\"\n    lock_address   = \"{address}/lock\"\n    \
                     unlock_address = \"{address}/lock\"\n    lock_method    = \"POST\"\n    unlock_method  = \"DELETE\"\n    \
                     username       = \"{username}\"\n    password       = \"{password}\"\n  }}\n}}\n\n"
                )
            }
            EstateBackend::Cloud { host, organization } => format!(
                "terraform {{\n  cloud {{\n    hostname     = \"{host}\"\n    organization = \"{organization}\"\n    workspaces {{\n      \
                 name = \"{}\"\n    }}\n  }}\n}}\n\n",
                self.workspace(unit)
            ),
        }
    }

    fn read_arguments(&self, producer: &str) -> String {
        let (backend, config) = match &self.options.backend {
            EstateBackend::Local { directory } => ("local", format!("    path = \"{directory}/{producer}.tfstate\"\n")),
            EstateBackend::Http { address, username, password } => (
                "http",
                format!(
                    "    address  = \"{address}/{}\"\n    username = \"{username}\"\n    password = \"{password}\"\n",
                    self.workspace(producer)
                ),
            ),
            EstateBackend::Cloud { host, organization } => (
                "remote",
                format!(
                    "    hostname     = \"{host}\"\n    organization = \"{organization}\"\n    workspaces   = {{ name = \"{}\" }}\n",
                    self.workspace(producer)
                ),
            ),
        };
        format!("  backend = \"{backend}\"\n  config = {{\n{config}  }}\n")
    }

    /// Backend and configuration of a read, as a state has them.
    fn read_config(&self, producer: &str) -> (&'static str, Value) {
        match &self.options.backend {
            EstateBackend::Local { directory } => ("local", json!({"path": format!("{directory}/{producer}.tfstate")})),
            EstateBackend::Http { address, .. } => {
                ("http", json!({"address": format!("{address}/{}", self.workspace(producer))}))
            }
            EstateBackend::Cloud { host, organization } => (
                "remote",
                json!({"hostname": host, "organization": organization, "workspaces": {"name": self.workspace(producer)}}),
            ),
        }
    }

    /// The module that every unit calls.
    pub fn shared_module(&self) -> String {
        let hard = r#"
output "region" {
  value = "eu-central-1"
}

output "account" {
  value = "123456789012"
}

output "port" {
  value = 8443
}

output "relay" {
  value = try(values(var.upstream)[0], "none")
}
"#;
        format!("{SHARED_MODULE}{}", if self.options.hard { hard } else { "" })
    }
}

const SHARED_MODULE: &str = r#"variable "name" {
  type = string
}

variable "salt" {
  type    = string
  default = "0"
}

variable "upstream" {
  type    = map(string)
  default = {}
}

variable "resources" {
  type    = number
  default = 3
}

variable "payload" {
  type    = number
  default = 0
}

variable "ambient" {
  type    = map(string)
  default = {}
}

resource "terraform_data" "node" {
  count = var.resources
  input = {
    name     = var.name
    salt     = var.salt
    upstream = var.upstream
    ambient  = var.ambient
    index    = count.index
    payload  = join("", [for i in range(var.payload) : "xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx"])
  }
}

output "digest" {
  value = sha256(jsonencode([var.name, var.salt, var.upstream]))
}

output "endpoint" {
  value = "${var.name}.internal"
}

output "salt" {
  value = var.salt
}

output "handle" {
  value = terraform_data.node[0].id
}

output "secret" {
  value     = "s3cr3t-${var.name}-${var.salt}"
  sensitive = true
}
"#;

fn edges(options: &EstateOptions, above: &[String], random: &mut Random, dressing: &mut Random) -> Vec<EstateEdge> {
    let (least, greatest) = options.fan_in;
    let count = (least + random.below(greatest - least + 1)).min(above.len());
    let mut producers = BTreeSet::new();
    while producers.len() < count {
        producers.insert(above[random.below(above.len())].clone());
    }
    let edge = |producer: String| {
        let mut uses = vec![if random.chance(options.propagate) { "digest" } else { "endpoint" }];
        if random.chance(options.handles) {
            uses.push("handle");
        }
        let via = match dressing.below(10) {
            _ if !options.hard => Via::Plain,
            0..6 => Via::Plain,
            6..8 => Via::Arn,
            8 => Via::Json,
            _ => Via::Port,
        };
        if via == Via::Port {
            uses = vec!["port"];
        }
        EstateEdge { producer, uses, via }
    };
    producers.into_iter().map(edge).collect()
}

impl Via {
    fn expression(self, value: &str) -> String {
        match self {
            Self::Plain => value.to_owned(),
            Self::Arn => format!("\"arn:aws:thing:{REGION}:{ACCOUNT}:item/${{{value}}}\""),
            Self::Json => format!("jsonencode({{ Statement = [{{ Resource = {value} }}] }})"),
            Self::Port => format!("tostring({value})"),
        }
    }

    fn dress(self, value: &str) -> String {
        match self {
            Self::Plain | Self::Port => value.to_owned(),
            Self::Arn => format!("arn:aws:thing:{REGION}:{ACCOUNT}:item/{value}"),
            Self::Json => json!({"Statement": [{"Resource": value}]}).to_string(),
        }
    }
}

/// How units get their values.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Passing {
    /// By data blocks.
    Reads,
    /// As variables, of which a state says nothing.
    Variables,
}

/// An estate whose units are applied in memory. Their states are like those that an engine writes.
#[derive(Clone, Debug)]
pub struct AppliedEstate {
    pub estate: Estate,
    passing: Passing,
    applied: BTreeMap<String, AppliedUnit>,
}

#[derive(Clone, Debug)]
struct AppliedUnit {
    serial: u64,
    /// What its resources were given.
    upstream: BTreeMap<String, String>,
    salt: u64,
    outputs: BTreeMap<&'static str, String>,
    /// All outputs of each producer as they were read last.
    read: BTreeMap<String, BTreeMap<&'static str, String>>,
}

impl AppliedEstate {
    /// An estate of which nothing was applied yet.
    pub fn new(estate: Estate, passing: Passing) -> Self {
        Self { estate, passing, applied: BTreeMap::new() }
    }

    /// Applies all units, producers first.
    pub fn apply_all(&mut self) {
        for name in self.estate.units.iter().map(|unit| unit.name.clone()).collect::<Vec<_>>() {
            self.apply(&name);
        }
    }

    /// Applies one unit with what its producers say now. All of them must have been applied.
    pub fn apply(&mut self, name: &str) {
        let unit = self.estate.unit(name).clone();
        let read = self.read(&unit);
        let upstream: BTreeMap<String, String> = unit
            .depends
            .iter()
            .flat_map(|edge| edge.uses.iter().map(move |output| (edge, *output)))
            .map(|(edge, output)| {
                (format!("{}.{output}", edge.producer), edge.via.dress(&read[&edge.producer][output]))
            })
            .collect();
        let mut outputs = BTreeMap::from([
            ("digest", digest(&(name, unit.salt, &upstream))),
            ("endpoint", format!("{name}.internal")),
            ("salt", unit.salt.to_string()),
            ("handle", id(self.estate.options.seed, name, 0)),
            ("secret", format!("s3cr3t-{name}-{}", unit.salt)),
        ]);
        if self.estate.options.hard {
            let relay = upstream.values().next().cloned().unwrap_or_else(|| "none".to_owned());
            outputs.extend([
                ("region", REGION.to_owned()),
                ("account", ACCOUNT.to_owned()),
                ("port", "8443".to_owned()),
                ("relay", relay),
            ]);
        }
        let serial = self.applied.get(name).map_or(1, |before| before.serial + 1);
        let applied = AppliedUnit { serial, upstream, salt: unit.salt, outputs, read };
        self.applied.insert(name.to_owned(), applied);
    }

    /// What `apply -refresh-only` does: data blocks take new values, resources keep the old.
    pub fn refresh(&mut self, name: &str) {
        let read = self.read(self.estate.unit(name));
        let applied = self.applied.get_mut(name).expect("it was applied before");
        applied.read = read;
        applied.serial += 1;
    }

    fn read(&self, unit: &EstateUnit) -> BTreeMap<String, BTreeMap<&'static str, String>> {
        let read = |edge: &EstateEdge| (edge.producer.clone(), self.applied[&edge.producer].outputs.clone());
        unit.depends.iter().map(read).collect()
    }

    /// Units whose resources were given other values than their producers have now: those that are really stale.
    pub fn stale(&self) -> BTreeSet<String> {
        let is_stale = |unit: &&EstateUnit| {
            let applied = &self.applied[&unit.name];
            unit.depends.iter().any(|edge| {
                edge.uses.iter().any(|output| {
                    let now = edge.via.dress(&self.applied[&edge.producer].outputs[output]);
                    applied.upstream[&format!("{}.{output}", edge.producer)] != now
                })
            })
        };
        self.estate.units.iter().filter(is_stale).map(|unit| unit.name.clone()).collect()
    }

    /// The newest state of a unit.
    pub fn state(&self, name: &str) -> String {
        let applied = &self.applied[name];
        let unit = self.estate.unit(name);
        let outputs: serde_json::Map<String, Value> = applied
            .outputs
            .iter()
            .map(|(output, value)| {
                let mut described = json!({"value": typed(output, value), "type": type_of(output)});
                if *output == "secret" {
                    described["sensitive"] = json!(true);
                }
                ((*output).to_owned(), described)
            })
            .collect();
        let mut resources = Vec::new();
        let mut dependencies = Vec::new();
        if self.passing == Passing::Reads {
            for (producer, read) in &applied.read {
                resources.push(self.data_block(producer, read));
                dependencies.push(format!("data.terraform_remote_state.{producer}"));
            }
        }
        let nodes = (0..self.estate.options.resources).map(|index| self.node(unit, applied, index, &dependencies));
        resources.push(json!({
            "module": "module.unit", "mode": "managed", "type": "terraform_data", "name": "node",
            "provider": "provider[\"terraform.io/builtin/terraform\"]", "instances": nodes.collect::<Vec<_>>(),
        }));
        let state = json!({
            "version": 4, "terraform_version": "1.11.4", "serial": applied.serial,
            "lineage": id(self.estate.options.seed, name, 999), "outputs": outputs, "resources": resources,
            "check_results": null,
        });
        serde_json::to_string_pretty(&state).expect("JSON")
    }

    fn data_block(&self, producer: &str, read: &BTreeMap<&'static str, String>) -> Value {
        let values: serde_json::Map<String, Value> =
            read.iter().map(|(output, value)| ((*output).to_owned(), typed(output, value))).collect();
        let types: serde_json::Map<String, Value> =
            read.keys().map(|output| ((*output).to_owned(), type_of(output))).collect();
        let (backend, config) = self.estate.read_config(producer);
        json!({
            "mode": "data", "type": "terraform_remote_state", "name": producer,
            "provider": "provider[\"terraform.io/builtin/terraform\"]",
            "instances": [{"schema_version": 0, "sensitive_attributes": [], "attributes": {
                "backend": backend, "config": {"value": config, "type": config_type(&config)}, "defaults": null,
                "outputs": {"value": values, "type": ["object", types]}, "workspace": null,
            }}],
        })
    }

    fn node(&self, unit: &EstateUnit, applied: &AppliedUnit, index: usize, dependencies: &[String]) -> Value {
        let ambient = match self.estate.options.hard {
            true => json!({"region": REGION, "account": ACCOUNT, "environment": "production"}),
            false => json!({}),
        };
        let payload = "x".repeat(64 * self.estate.options.payload);
        let input = json!({
            "value": {"name": unit.name, "salt": applied.salt.to_string(), "upstream": applied.upstream, "ambient": ambient,
                "index": index, "payload": payload},
            "type": ["object", {"name": "string", "salt": "string", "upstream": ["map", "string"],
                "ambient": ["map", "string"], "index": "number", "payload": "string"}],
        });
        let id = id(self.estate.options.seed, &unit.name, index);
        let mut instance = json!({
            "index_key": index, "schema_version": 0, "sensitive_attributes": [],
            "attributes": {"id": id, "input": input, "output": input, "triggers_replace": null},
        });
        if !dependencies.is_empty() {
            instance["dependencies"] = json!(dependencies);
        }
        instance
    }
}

fn typed(output: &str, value: &str) -> Value {
    match output {
        "port" => json!(value.parse::<u64>().expect("a port")),
        _ => json!(value),
    }
}

fn type_of(output: &str) -> Value {
    json!(if output == "port" { "number" } else { "string" })
}

fn config_type(config: &Value) -> Value {
    match config {
        Value::Object(fields) => {
            let types = fields.iter().map(|(name, value)| (name.clone(), config_type(value)));
            json!(["object", types.collect::<serde_json::Map<_, _>>()])
        }
        _ => json!("string"),
    }
}

/// 64 digits that depend on all of it, like those of a SHA-256.
fn digest(of: &impl Hash) -> String {
    let part = |number: u8| {
        let mut hasher = DefaultHasher::new();
        (number, of).hash(&mut hasher);
        format!("{:016x}", hasher.finish())
    };
    (0..4).map(part).collect()
}

fn id(seed: u64, unit: &str, index: usize) -> String {
    let digits = digest(&(seed, unit, index));
    format!("{}-{}-{}-{}-{}", &digits[..8], &digits[8..12], &digits[12..16], &digits[16..20], &digits[20..32])
}
