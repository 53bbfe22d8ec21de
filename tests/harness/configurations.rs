//! Configurations that need no provider, and of which there is much to see.

use flate2::Compression;
use flate2::write::GzEncoder;

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
variable "nodes" { default = 1 }
resource "terraform_data" "cache" {
  input = "small"
  lifecycle {
    precondition {
      condition     = var.nodes > 1
      error_message = "The cache needs at least two nodes."
    }
  }
}
check "budget" {
  assert {
    condition     = var.nodes * 42 < 40
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
