//! Content of the sample site, made through the API as its users would make it, and executed by the server's own agent.

use serde_json::json;

use crate::api_seed::ApiSeed;
use crate::configurations::{BROKEN, DNS, NETWORK, NETWORK_README, SLOW, SMALL};
use crate::sample_site::SampleSite;

impl SampleSite {
    /// Projects and forty workspaces in which nothing happened yet.
    pub(crate) async fn fill_lists(&mut self, seed: &ApiSeed) -> Vec<String> {
        let mut projects = Vec::new();
        for (name, description) in
            [("platform", "What everything else stands on"), ("product", "What customers see"), ("data", "")]
        {
            projects.push(
                seed.create("projects", json!({ "name": name, "description": seed.text(description) }), json!({}))
                    .await,
            );
        }
        let products = ["billing", "checkout", "identity", "mail", "media", "reports", "search", "warehouse"];
        for (place, product) in products.iter().enumerate() {
            for stage in ["prod", "staging", "dev", "sandbox"] {
                let project = &projects[place % projects.len()];
                let id =
                    seed.workspace(project, &format!("{product}-{stage}"), &format!("{product} for {stage}")).await;
                let tags = json!({ "data": [{ "type": "tags", "attributes": { "name": stage } }] });
                let path = format!("/api/v2/workspaces/{id}/relationships/tags");
                seed.admin.done("POST", &path, Some(tags)).await;
            }
        }
        let locked = seed.admin.workspace("acme", "billing-prod").await["id"].as_str().expect("an id").to_owned();
        let reason = json!({ "reason": seed.text("Invoices are being written") });
        seed.admin.post(&format!("/api/v2/workspaces/{locked}/actions/lock"), reason).await;
        self.set_placeholder("project", projects[0].clone());
        let set = seed
            .create(
                "varsets",
                json!({ "name": seed.name("Cloud credentials"), "description": seed.text("For everything"), "global": true }),
                json!({}),
            )
            .await;
        let path = format!("/api/v2/varsets/{set}/relationships/vars");
        for (key, value, sensitive) in
            [("AWS_REGION", "eu-central-1", false), ("AWS_SECRET_ACCESS_KEY", "secret", true)]
        {
            let attributes =
                json!({ "key": key, "value": seed.text(value), "category": "env", "sensitive": sensitive });
            let variable = seed.create_at(&path, "vars", attributes, json!({})).await;
            self.set_placeholder("set-variable", variable);
        }
        self.set_placeholder("variable-set", set);
        projects
    }

    /// A workspace with a history: states, a plan that waits for a person, and a run that waits for that.
    pub(crate) async fn fill_network(&mut self, seed: &ApiSeed, project: &str) {
        let network = seed.workspace(project, "network", "Subnets, routes and names of production").await;
        let readme = seed.text(NETWORK_README);
        let files = [("main.tf", NETWORK), ("modules/dns/main.tf", DNS), ("README.md", readme.as_str())];
        seed.configuration(&network, &files).await;
        let region = json!({ "key": "region", "value": seed.text("eu-central"), "category": "terraform", "description": seed.text("Where it all lies") });
        let region = seed.variable(&network, region).await;
        let password = json!({ "key": "password", "value": "hunter2", "category": "terraform", "sensitive": true });
        seed.variable(&network, password).await;
        seed.variable(&network, json!({ "key": "TF_LOG", "value": "warn", "category": "env" })).await;
        let first = json!({ "message": seed.text("First network"), "auto-apply": true });
        self.set_placeholder("run-applied", seed.run(&network, first, "applied").await);
        let subnets = r#"{ public = "10.0.0.0/24", private = "10.1.1.0/24", storage = "10.0.3.0/24" }"#;
        let subnets = json!({ "key": "subnets", "value": subnets, "category": "terraform", "hcl": true });
        seed.variable(&network, subnets).await;
        let second = json!({ "message": seed.text("Room for storage"), "auto-apply": true });
        seed.run(&network, second, "applied").await;
        let path = format!("/api/v2/workspaces/{network}/vars/{region}");
        let moved = json!({ "data": { "type": "vars", "attributes": { "value": seed.text("eu-north") } } });
        seed.admin.patch(&path, moved).await;
        let third = json!({ "message": seed.text("Move to the north\n\nThe old region closes in March."), "auto-apply": false });
        let planned = seed.run(&network, third, "planned").await;
        let comment =
            json!({ "data": { "type": "comments", "attributes": { "body": seed.text("Please wait for Monday.") } } });
        seed.admin.post(&format!("/api/v2/runs/{planned}/comments"), comment).await;
        self.set_placeholder(
            "run-pending",
            seed.run(&network, json!({ "message": seed.text("Nightly check") }), "pending").await,
        );
        self.set_placeholder("run-planned", planned);
        let states = seed.states(&network).await;
        self.set_placeholder("state", states[0].clone());
        self.set_placeholder("state-first", states[states.len() - 1].clone());
        self.set_placeholder("variable", region);
    }

    /// Runs that end in other ways, and one that goes on.
    pub(crate) async fn fill_workshop(&mut self, seed: &ApiSeed, project: &str) {
        let cache = seed.workspace(project, "cache", "").await;
        seed.configuration(&cache, &[("main.tf", BROKEN)]).await;
        self.set_placeholder(
            "run-errored",
            seed.run(&cache, json!({ "message": seed.text("Bigger cache") }), "errored").await,
        );
        let website = seed.workspace(project, "website", "What customers see first").await;
        seed.configuration(&website, &[("main.tf", SMALL)]).await;
        let looked = json!({ "message": seed.text("What would change?"), "plan-only": true });
        self.set_placeholder("run-plan-only", seed.run(&website, looked, "planned_and_finished").await);
        let dropped = seed.run(&website, json!({ "message": seed.text("Too early") }), "planned").await;
        seed.admin
            .post(&format!("/api/v2/runs/{dropped}/actions/discard"), json!({ "comment": seed.text("Not today") }))
            .await;
        self.set_placeholder("run-discarded", dropped);
        let release = seed.workspace(project, "release", "Rolls the newest image out").await;
        seed.configuration(&release, &[("main.tf", SLOW)]).await;
        let rollout = json!({ "message": seed.text("Release v2"), "auto-apply": true });
        self.set_placeholder("run-applying", seed.run(&release, rollout, "applying").await);
    }

    /// Tokens of the admin, and an invitation that someone has passed on to them.
    pub(crate) async fn fill_account(&mut self, seed: &ApiSeed) {
        let body =
            json!({ "data": { "type": "organization-memberships", "attributes": { "email": "new@acme.test" } } });
        let invited = seed.admin.post("/api/v2/organizations/acme/organization-memberships", body).await;
        self.set_placeholder("member", invited["data"]["id"].as_str().expect("an id").to_owned());
        let access = json!({ "name": "platform", "visibility": "organization", "organization-access": { "manage-projects": true } });
        let team = seed.create("teams", access, json!({})).await;
        self.set_placeholder("team", team);
        let link = invited["data"]["attributes"]["invitation-link"].as_str().expect("a link");
        self.set_placeholder("invitation", link[link.find("/app/").expect("a page")..].to_owned());
        let account = seed.admin.get("/api/v2/account/details").await;
        let path = format!("/api/v2/users/{}/authentication-tokens", account["data"]["id"].as_str().expect("an id"));
        for description in ["laptop", "continuous integration", ""] {
            let body = json!({ "data": { "type": "authentication-tokens", "attributes": { "description": seed.text(description) } } });
            seed.admin.post(&path, body).await;
        }
    }

    /// A pool with a token, and an agent that came with it.
    pub(crate) async fn start_agent(&mut self, seed: &ApiSeed) {
        let pool = seed.create("agent-pools", json!({ "name": "rack-1" }), json!({})).await;
        let path = format!("/api/v2/agent-pools/{pool}/authentication-tokens");
        let body = json!({ "data": { "type": "authentication-tokens", "attributes": { "description": seed.text("host 7") } } });
        let issued = seed.admin.post(&path, body).await;
        let token = issued["data"]["attributes"]["token"].as_str().expect("a token").to_owned();
        let agent = self.installation.agent("host-7", &token);
        self.agent = Some(agent);
        self.set_placeholder("pool", pool);
    }
}
