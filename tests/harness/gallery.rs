//! A site with something to see on every page.

use std::collections::BTreeMap;

use serde_json::json;
use taco_domain::grant::challenge_of;

use crate::browser::PASSWORD;
use crate::chromium::Chromium;
use crate::exhibits::{BROKEN, Curator, DNS, NETWORK, NETWORK_README, SLOW, SMALL};
use crate::installation::{Installation, Transport};
use crate::pages::Page;
use crate::process::Process;

pub struct Gallery {
    pub installation: Installation,
    /// What the words in braces stand for in addresses.
    words: BTreeMap<&'static str, String>,
    _agent: Option<Process>,
}

impl Gallery {
    /// A site on which nobody did anything yet.
    pub async fn bare() -> Self {
        let installation = Installation::with_engines(Transport::Http);
        let challenge = challenge_of("0e2ee2c2-43a5-4e6f-9d04-a3eb4c9d1c11.123456789");
        let consent = format!(
            "client_id=terraform-cli&response_type=code&state=x&redirect_uri=http://localhost:10000/login\
             &code_challenge_method=S256&code_challenge={challenge}"
        );
        let words = BTreeMap::from([("setup", installation.setup_link()), ("consent", consent)]);
        Self { installation, words, _agent: None }
    }

    /// A site where people have worked for a while, and some are still at it.
    pub async fn open() -> Self {
        let mut gallery = Self::bare().await;
        for name in ["empty", "labs"] {
            Curator::found(gallery.installation.admin(), name).await;
        }
        let curator = Curator::found(gallery.installation.admin(), "acme").await;
        let projects = gallery.fill_lists(&curator).await;
        gallery.fill_network(&curator, &projects[0]).await;
        gallery.fill_workshop(&curator, &projects[1]).await;
        gallery.start_agent(&curator).await;
        gallery.fill_account(&curator).await;
        gallery
    }

    fn knows(&mut self, word: &'static str, meaning: String) {
        self.words.insert(word, meaning);
    }

    /// Projects and forty workspaces in which nothing happened yet.
    async fn fill_lists(&mut self, curator: &Curator) -> Vec<String> {
        let mut projects = Vec::new();
        for (name, description) in
            [("platform", "What everything else stands on"), ("product", "What customers see"), ("data", "")]
        {
            projects
                .push(curator.makes("projects", json!({ "name": name, "description": description }), json!({})).await);
        }
        let products = ["billing", "checkout", "identity", "mail", "media", "reports", "search", "warehouse"];
        for (place, product) in products.iter().enumerate() {
            for stage in ["prod", "staging", "dev", "sandbox"] {
                let project = &projects[place % projects.len()];
                let id =
                    curator.workspace(project, &format!("{product}-{stage}"), &format!("{product} for {stage}")).await;
                let tags = json!({ "data": [{ "type": "tags", "attributes": { "name": stage } }] });
                let path = format!("/api/v2/workspaces/{id}/relationships/tags");
                curator.admin.done("POST", &path, Some(tags)).await;
            }
        }
        let locked = curator.admin.workspace("acme", "billing-prod").await;
        curator.admin.act(&locked, "lock").await;
        self.knows("project", projects[0].clone());
        let set = curator
            .makes(
                "varsets",
                json!({ "name": "Cloud credentials", "description": "For everything", "global": true }),
                json!({}),
            )
            .await;
        let path = format!("/api/v2/varsets/{set}/relationships/vars");
        for (key, value, sensitive) in
            [("AWS_REGION", "eu-central-1", false), ("AWS_SECRET_ACCESS_KEY", "secret", true)]
        {
            let attributes = json!({ "key": key, "value": value, "category": "env", "sensitive": sensitive });
            let variable = curator.makes_at(&path, "vars", attributes, json!({})).await;
            self.knows("set-variable", variable);
        }
        self.knows("variable-set", set);
        projects
    }

    /// A workspace with a history: states, a plan that waits for a person, and a run that waits for that.
    async fn fill_network(&mut self, curator: &Curator, project: &str) {
        let network = curator.workspace(project, "network", "Subnets, routes and names of production").await;
        let files = [("main.tf", NETWORK), ("modules/dns/main.tf", DNS), ("README.md", NETWORK_README)];
        curator.configuration(&network, &files).await;
        let region = json!({ "key": "region", "value": "eu-central", "category": "terraform", "description": "Where it all lies" });
        let region = curator.variable(&network, region).await;
        let password = json!({ "key": "password", "value": "hunter2", "category": "terraform", "sensitive": true });
        curator.variable(&network, password).await;
        curator.variable(&network, json!({ "key": "TF_LOG", "value": "warn", "category": "env" })).await;
        let first = json!({ "message": "First network", "auto-apply": true });
        self.knows("run-applied", curator.run(&network, first, "applied").await);
        let subnets = r#"{ public = "10.0.0.0/24", private = "10.1.1.0/24", storage = "10.0.3.0/24" }"#;
        let subnets = json!({ "key": "subnets", "value": subnets, "category": "terraform", "hcl": true });
        curator.variable(&network, subnets).await;
        let second = json!({ "message": "Room for storage", "auto-apply": true });
        curator.run(&network, second, "applied").await;
        let path = format!("/api/v2/workspaces/{network}/vars/{region}");
        let moved = json!({ "data": { "type": "vars", "attributes": { "value": "eu-north" } } });
        curator.admin.patch(&path, moved).await;
        let third = json!({ "message": "Move to the north\n\nThe old region closes in March.", "auto-apply": false });
        let planned = curator.run(&network, third, "planned").await;
        let comment = json!({ "data": { "type": "comments", "attributes": { "body": "Please wait for Monday." } } });
        curator.admin.post(&format!("/api/v2/runs/{planned}/comments"), comment).await;
        self.knows("run-pending", curator.run(&network, json!({ "message": "Nightly check" }), "pending").await);
        self.knows("run-planned", planned);
        let states = curator.states(&network).await;
        self.knows("state", states[0].clone());
        self.knows("state-first", states[states.len() - 1].clone());
        self.knows("variable", region);
    }

    /// Runs that end in other ways, and one that goes on.
    async fn fill_workshop(&mut self, curator: &Curator, project: &str) {
        let cache = curator.workspace(project, "cache", "").await;
        curator.configuration(&cache, &[("main.tf", BROKEN)]).await;
        self.knows("run-errored", curator.run(&cache, json!({ "message": "Bigger cache" }), "errored").await);
        let website = curator.workspace(project, "website", "What customers see first").await;
        curator.configuration(&website, &[("main.tf", SMALL)]).await;
        let looked = json!({ "message": "What would change?", "plan-only": true });
        self.knows("run-plan-only", curator.run(&website, looked, "planned_and_finished").await);
        let dropped = curator.run(&website, json!({ "message": "Too early" }), "planned").await;
        curator.admin.post(&format!("/api/v2/runs/{dropped}/actions/discard"), json!({ "comment": "Not today" })).await;
        self.knows("run-discarded", dropped);
        let release = curator.workspace(project, "release", "Rolls the newest image out").await;
        curator.configuration(&release, &[("main.tf", SLOW)]).await;
        let rollout = json!({ "message": "Release v2", "auto-apply": true });
        self.knows("run-applying", curator.run(&release, rollout, "applying").await);
    }

    /// Tokens of the admin.
    async fn fill_account(&mut self, curator: &Curator) {
        let account = curator.admin.get("/api/v2/account/details").await;
        let path = format!("/api/v2/users/{}/authentication-tokens", account["data"]["id"].as_str().expect("an id"));
        for description in ["laptop", "continuous integration", ""] {
            let body =
                json!({ "data": { "type": "authentication-tokens", "attributes": { "description": description } } });
            curator.admin.post(&path, body).await;
        }
    }

    /// A pool with a token, and an agent that came with it.
    async fn start_agent(&mut self, curator: &Curator) {
        let pool = curator.makes("agent-pools", json!({ "name": "rack-1" }), json!({})).await;
        let path = format!("/api/v2/agent-pools/{pool}/authentication-tokens");
        let body = json!({ "data": { "type": "authentication-tokens", "attributes": { "description": "host 7" } } });
        let issued = curator.admin.post(&path, body).await;
        let token = issued["data"]["attributes"]["token"].as_str().expect("a token").to_owned();
        let agent = self.installation.agent("host-7", &token);
        self._agent = Some(agent);
        self.knows("pool", pool);
    }

    /// What a word stands for.
    pub fn word(&self, word: &str) -> String {
        self.words.get(word).cloned().unwrap_or_else(|| panic!("the gallery has no {word}"))
    }

    /// Where a page is.
    pub fn address(&self, page: &Page) -> String {
        let mut address = page.address.to_owned();
        for (word, meaning) in &self.words {
            address = address.replace(&format!("{{{word}}}"), meaning);
        }
        assert!(!address.contains('{'), "the gallery has nothing for {address}");
        address
    }

    pub async fn browser(&self) -> Chromium {
        Chromium::at(&self.installation.origin).await
    }

    /// The first admin sets a password, which logs them in.
    pub async fn let_in(&self, chromium: &Chromium) {
        chromium.goes_to(&self.installation.setup_link()).await;
        chromium.types("[name=password]", PASSWORD).await;
        chromium.types("[name=repeated]", PASSWORD).await;
        chromium.clicks("main button").await;
        chromium.arrives_at("/app").await;
    }
}
