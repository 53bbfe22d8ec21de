//! What the gallery shows, made through the API as its users would make it, and executed by the server's own agent.

use std::time::Duration;

use flate2::Compression;
use flate2::write::GzEncoder;
use serde_json::{Value, json};
use tokio::time::{Instant, sleep};

use crate::api_client::ApiClient;

/// Long enough for a machine that is busy with other tests.
const PATIENCE: Duration = Duration::from_secs(180);

/// Someone who fills an organization.
pub struct Curator {
    pub admin: ApiClient,
    pub organization: &'static str,
}

impl Curator {
    pub async fn found(admin: ApiClient, organization: &'static str) -> Self {
        let attributes = json!({ "name": organization, "email": "ops@acme.test" });
        let body = json!({ "data": { "type": "organizations", "attributes": attributes } });
        admin.post("/api/v2/organizations", body).await;
        Self { admin, organization }
    }

    /// Makes something in the organization, and tells its id.
    pub async fn makes(&self, collection: &str, attributes: Value, relationships: Value) -> String {
        self.makes_at(
            &format!("/api/v2/organizations/{}/{collection}", self.organization),
            collection,
            attributes,
            relationships,
        )
        .await
    }

    pub async fn makes_at(&self, path: &str, kind: &str, attributes: Value, relationships: Value) -> String {
        let data = json!({ "type": kind, "attributes": attributes, "relationships": relationships });
        let made = self.admin.post(path, json!({ "data": data })).await;
        made["data"]["id"].as_str().expect("an id").to_owned()
    }

    pub async fn workspace(&self, project: &str, name: &str, description: &str) -> String {
        let relationships = json!({ "project": { "data": { "type": "projects", "id": project } } });
        let attributes =
            json!({ "name": name, "description": description, "execution-mode": "remote", "taco-engine": "terraform" });
        self.makes("workspaces", attributes, relationships).await
    }

    pub async fn variable(&self, workspace: &str, attributes: Value) -> String {
        self.makes_at(&format!("/api/v2/workspaces/{workspace}/vars"), "vars", attributes, json!({})).await
    }

    /// Uploads a configuration of these files, without a run.
    pub async fn configuration(&self, workspace: &str, files: &[(&str, &str)]) {
        let path = format!("/api/v2/workspaces/{workspace}/configuration-versions");
        let body = json!({ "data": { "type": "configuration-versions", "attributes": { "auto-queue-runs": false } } });
        let announced = self.admin.post(&path, body).await;
        let address = announced["data"]["attributes"]["upload-url"].as_str().expect("an address").to_owned();
        let sent = self.admin.client.put(address).body(packed(files)).send().await.expect("an answer");
        assert!(sent.status().is_success(), "the upload is refused: {}", sent.status());
    }

    /// Starts a run of the newest configuration, and waits until it has this status.
    pub async fn run(&self, workspace: &str, attributes: Value, status: &str) -> String {
        let relationships = json!({ "workspace": { "data": { "type": "workspaces", "id": workspace } } });
        let run = self.makes_at("/api/v2/runs", "runs", attributes, relationships).await;
        self.until(&run, status).await;
        run
    }

    pub async fn until(&self, run: &str, status: &str) {
        let deadline = Instant::now() + PATIENCE;
        loop {
            let shown = self.admin.get(&format!("/api/v2/runs/{run}")).await;
            let found = &shown["data"]["attributes"]["status"];
            if found == status {
                return;
            }
            let over = ["applied", "errored", "canceled", "discarded", "planned_and_finished"];
            assert!(!over.iter().any(|end| found == end), "the run {run} is {found} instead of {status}");
            assert!(Instant::now() < deadline, "the run {run} is still {found}, not {status}");
            sleep(Duration::from_millis(100)).await;
        }
    }

    /// The state versions of a workspace, newest first.
    pub async fn states(&self, workspace: &str) -> Vec<String> {
        let listed = self.admin.get(&format!("/api/v2/workspaces/{workspace}/state-versions")).await;
        let listed = listed["data"].as_array().expect("a list").clone();
        listed.iter().map(|version| version["id"].as_str().expect("an id").to_owned()).collect()
    }
}

/// An archive as clients upload it.
pub fn packed(files: &[(&str, &str)]) -> Vec<u8> {
    let mut archive = tar::Builder::new(GzEncoder::new(Vec::new(), Compression::fast()));
    for (name, text) in files {
        let mut header = tar::Header::new_gnu();
        header.set_size(text.len() as u64);
        header.set_mode(0o644);
        archive.append_data(&mut header, name, text.as_bytes()).expect("in memory");
    }
    archive.into_inner().and_then(GzEncoder::finish).expect("in memory")
}

pub const NETWORK_README: &str = "# Network\n\nThe network of *production*: subnets, routes and names.\n\n\
    1. Change `subnets`.\n2. Look at the plan.\n3. Confirm it.\n";

/// Adds, changes, replaces and destroys when its variables change.
pub const NETWORK: &str = r#"
variable "region" { default = "eu-central" }
variable "subnets" {
  type    = map(string)
  default = { public = "10.0.0.0/24", private = "10.0.1.0/24", backup = "10.0.2.0/24" }
}
variable "password" {
  default   = "a secret"
  sensitive = true
}
resource "terraform_data" "subnet" {
  for_each = var.subnets
  input    = { cidr = each.value, region = var.region, tags = { owner = "platform", cost = "42" } }
}
resource "terraform_data" "gateway" {
  input            = { password = var.password, size = "large" }
  triggers_replace = [var.region]
}
module "dns" {
  source = "./modules/dns"
  region = var.region
}
output "region" { value = var.region }
output "subnets" { value = { for name, subnet in terraform_data.subnet : name => subnet.output.cidr } }
output "password" {
  value     = var.password
  sensitive = true
}
"#;

pub const DNS: &str = r#"
variable "region" {}
resource "terraform_data" "zone" { input = "${var.region}.example.test" }
resource "terraform_data" "record" {
  count = 3
  input = "host-${count.index}.${var.region}.example.test"
}
"#;

/// Fails when it is planned.
pub const BROKEN: &str = r#"
resource "terraform_data" "cache" {
  input = "small"
  lifecycle {
    precondition {
      condition     = 1 > 2
      error_message = "The cache needs at least two nodes."
    }
  }
}
check "budget" {
  assert {
    condition     = 42 < 40
    error_message = "The budget of 40 is exceeded."
  }
}
"#;

/// Applies until someone has enough of it.
pub const SLOW: &str = r#"
resource "terraform_data" "image" { input = "v2" }
resource "terraform_data" "rollout" {
  input = terraform_data.image.output
  provisioner "local-exec" { command = "echo rolling out; sleep 3600" }
}
resource "terraform_data" "smoke_test" { input = terraform_data.rollout.id }
"#;

pub const SMALL: &str = r#"
resource "terraform_data" "service" {
  count = 4
  input = "instance ${count.index}"
}
output "count" { value = 4 }
"#;
