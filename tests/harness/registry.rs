//! Modules and providers for tests of the registry.

use axum::http::StatusCode;
use serde_json::{Value, json};

use crate::api_server::{ApiServer, Client};
use crate::configurations::packed;
use crate::permission_site::attributes;

/// Made by GnuPG 2.4 with a key that was thrown away: a release of a provider that does nothing.
pub const PUBLIC_KEY: &str = include_str!("registry/public-key.asc");
pub const KEY_ID: &str = "24EB73B98BC983AC";
pub const CHECKSUMS: &str = include_str!("registry/SHA256SUMS");
pub const SIGNATURE: &[u8] = include_bytes!("registry/SHA256SUMS.sig");
pub const ARCHIVE: &[u8] = include_bytes!("registry/terraform-provider-null_1.0.0_linux_amd64.zip");
pub const FILENAME: &str = "terraform-provider-null_1.0.0_linux_amd64.zip";

/// Files of a module with all that its page shows.
pub const MODULE: [(&str, &str); 6] = [
    (
        "main.tf",
        "terraform {\n  required_version = \">= 1.5\"\n  required_providers {\n    null = { source = \"hashicorp/null\", version = \"~> 3.0\" }\n  }\n}\n\
         resource \"terraform_data\" \"this\" {\n  input = var.greeting\n}\n",
    ),
    (
        "variables.tf",
        "variable \"greeting\" {\n  type        = string\n  description = \"Said to everyone\"\n}\n\
         variable \"sizes\" {\n  type = map(object({\n    cidr = string\n  }))\n  default  = {}\n  nullable = false\n}\n",
    ),
    (
        "outputs.tf",
        "output \"said\" {\n  description = \"What was said\"\n  value       = terraform_data.this.output\n}\n",
    ),
    ("README.md", "# Greeter\n\nGreets **everyone**.\n"),
    ("modules/quiet/main.tf", "variable \"volume\" {\n  type = number\n}\n"),
    ("examples/simple/main.tf", "module \"greeter\" {\n  source   = \"../..\"\n  greeting = \"hello\"\n}\n"),
];

/// Path of a module within the API.
pub fn module_path(organization: &str, name: &str, provider: &str) -> String {
    format!("/api/v2/organizations/{organization}/registry-modules/private/{organization}/{name}/{provider}")
}

/// Path of a provider within the API.
pub fn provider_path(organization: &str, name: &str) -> String {
    format!("/api/v2/organizations/{organization}/registry-providers/private/{organization}/{name}")
}

/// The path of an address that the API gave.
pub fn path_of(address: &Value) -> String {
    let address = address.as_str().expect("an address");
    address.strip_prefix("http://taco.test").expect("ours").to_owned()
}

impl ApiServer {
    /// A module of the private registry: its id.
    pub async fn given_module(&self, organization: &str, name: &str, provider: &str) -> String {
        let path = format!("/api/v2/organizations/{organization}/registry-modules");
        let body = attributes("registry-modules", json!({ "name": name, "provider": provider }));
        self.admin().post(&path, &body).await.expect(StatusCode::CREATED).id()
    }

    /// Announces a version of a module: its id, and the path to which its archive is sent.
    pub async fn given_module_version(&self, path: &str, version: &str) -> (String, String) {
        let body = attributes("registry-module-versions", json!({ "version": version }));
        let announced = self.admin().post(&format!("{path}/versions"), &body).await.expect(StatusCode::CREATED);
        (announced.id(), path_of(&announced.data()["links"]["upload"]))
    }

    /// A version of a module that can be used: its id.
    pub async fn given_published_module(&self, path: &str, version: &str, files: &[(&str, &str)]) -> String {
        let (id, upload) = self.given_module_version(path, version).await;
        self.anyone().send("PUT", &upload, None, packed(files)).await.expect(StatusCode::OK);
        id
    }

    /// Someone without a token.
    pub fn anyone(&self) -> Client {
        self.with_authorization(None)
    }

    /// A provider whose version 1.0.0 can be installed: the ids of provider, version and platform.
    pub async fn given_published_provider(&self, organization: &str) -> (String, String, String) {
        let admin = self.admin();
        let key = attributes("gpg-keys", json!({ "namespace": organization, "ascii-armor": PUBLIC_KEY }));
        admin.post("/api/registry/private/v2/gpg-keys", &key).await.expect(StatusCode::CREATED);
        let named = json!({ "name": "null", "namespace": organization, "registry-name": "private" });
        let path = format!("/api/v2/organizations/{organization}/registry-providers");
        let provider =
            admin.post(&path, &attributes("registry-providers", named)).await.expect(StatusCode::CREATED).id();
        let versions = format!("{}/versions", provider_path(organization, "null"));
        let version = json!({ "version": "1.0.0", "key-id": KEY_ID, "protocols": ["5.0"] });
        let version = attributes("registry-provider-versions", version);
        let version = admin.post(&versions, &version).await.expect(StatusCode::CREATED);
        let links = version.data()["links"].clone();
        let anyone = self.anyone();
        anyone.send("PUT", &path_of(&links["shasums-upload"]), None, CHECKSUMS).await.expect(StatusCode::OK);
        anyone.send("PUT", &path_of(&links["shasums-sig-upload"]), None, SIGNATURE).await.expect(StatusCode::OK);
        let platform = admin.post(&format!("{versions}/1.0.0/platforms"), &platform()).await;
        let platform = platform.expect(StatusCode::CREATED);
        let upload = path_of(&platform.data()["links"]["provider-binary-upload"]);
        anyone.send("PUT", &upload, None, ARCHIVE).await.expect(StatusCode::OK);
        (provider, version.id(), platform.id())
    }
}

/// The platform of the release.
pub fn platform() -> Value {
    let shasum = CHECKSUMS.split_whitespace().next();
    let platform = json!({ "os": "linux", "arch": "amd64", "filename": FILENAME, "shasum": shasum });
    attributes("registry-provider-platforms", platform)
}
