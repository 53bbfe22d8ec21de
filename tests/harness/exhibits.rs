//! Content of the gallery, made through the API as its users would make it, and executed by the server's own agent.

use serde_json::json;

use crate::configurations::{BROKEN, DNS, NETWORK, NETWORK_README, SLOW, SMALL};
use crate::curator::Curator;
use crate::gallery::Gallery;

impl Gallery {
    /// Projects and forty workspaces in which nothing happened yet.
    pub(crate) async fn fill_lists(&mut self, curator: &Curator) -> Vec<String> {
        let mut projects = Vec::new();
        for (name, description) in
            [("platform", "What everything else stands on"), ("product", "What customers see"), ("data", "")]
        {
            projects.push(
                curator
                    .makes("projects", json!({ "name": name, "description": curator.told(description) }), json!({}))
                    .await,
            );
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
        let locked = curator.admin.workspace("acme", "billing-prod").await["id"].as_str().expect("an id").to_owned();
        let reason = json!({ "reason": curator.told("Invoices are being written") });
        curator.admin.post(&format!("/api/v2/workspaces/{locked}/actions/lock"), reason).await;
        self.knows("project", projects[0].clone());
        let set = curator
            .makes(
                "varsets",
                json!({ "name": curator.called("Cloud credentials"), "description": curator.told("For everything"), "global": true }),
                json!({}),
            )
            .await;
        let path = format!("/api/v2/varsets/{set}/relationships/vars");
        for (key, value, sensitive) in
            [("AWS_REGION", "eu-central-1", false), ("AWS_SECRET_ACCESS_KEY", "secret", true)]
        {
            let attributes =
                json!({ "key": key, "value": curator.told(value), "category": "env", "sensitive": sensitive });
            let variable = curator.makes_at(&path, "vars", attributes, json!({})).await;
            self.knows("set-variable", variable);
        }
        self.knows("variable-set", set);
        projects
    }

    /// A workspace with a history: states, a plan that waits for a person, and a run that waits for that.
    pub(crate) async fn fill_network(&mut self, curator: &Curator, project: &str) {
        let network = curator.workspace(project, "network", "Subnets, routes and names of production").await;
        let readme = curator.told(NETWORK_README);
        let files = [("main.tf", NETWORK), ("modules/dns/main.tf", DNS), ("README.md", readme.as_str())];
        curator.configuration(&network, &files).await;
        let region = json!({ "key": "region", "value": curator.told("eu-central"), "category": "terraform", "description": curator.told("Where it all lies") });
        let region = curator.variable(&network, region).await;
        let password = json!({ "key": "password", "value": "hunter2", "category": "terraform", "sensitive": true });
        curator.variable(&network, password).await;
        curator.variable(&network, json!({ "key": "TF_LOG", "value": "warn", "category": "env" })).await;
        let first = json!({ "message": curator.told("First network"), "auto-apply": true });
        self.knows("run-applied", curator.run(&network, first, "applied").await);
        let subnets = r#"{ public = "10.0.0.0/24", private = "10.1.1.0/24", storage = "10.0.3.0/24" }"#;
        let subnets = json!({ "key": "subnets", "value": subnets, "category": "terraform", "hcl": true });
        curator.variable(&network, subnets).await;
        let second = json!({ "message": curator.told("Room for storage"), "auto-apply": true });
        curator.run(&network, second, "applied").await;
        let path = format!("/api/v2/workspaces/{network}/vars/{region}");
        let moved = json!({ "data": { "type": "vars", "attributes": { "value": curator.told("eu-north") } } });
        curator.admin.patch(&path, moved).await;
        let third = json!({ "message": curator.told("Move to the north\n\nThe old region closes in March."), "auto-apply": false });
        let planned = curator.run(&network, third, "planned").await;
        let comment = json!({ "data": { "type": "comments", "attributes": { "body": curator.told("Please wait for Monday.") } } });
        curator.admin.post(&format!("/api/v2/runs/{planned}/comments"), comment).await;
        self.knows(
            "run-pending",
            curator.run(&network, json!({ "message": curator.told("Nightly check") }), "pending").await,
        );
        self.knows("run-planned", planned);
        let states = curator.states(&network).await;
        self.knows("state", states[0].clone());
        self.knows("state-first", states[states.len() - 1].clone());
        self.knows("variable", region);
    }

    /// Runs that end in other ways, and one that goes on.
    pub(crate) async fn fill_workshop(&mut self, curator: &Curator, project: &str) {
        let cache = curator.workspace(project, "cache", "").await;
        curator.configuration(&cache, &[("main.tf", BROKEN)]).await;
        self.knows(
            "run-errored",
            curator.run(&cache, json!({ "message": curator.told("Bigger cache") }), "errored").await,
        );
        let website = curator.workspace(project, "website", "What customers see first").await;
        curator.configuration(&website, &[("main.tf", SMALL)]).await;
        let looked = json!({ "message": curator.told("What would change?"), "plan-only": true });
        self.knows("run-plan-only", curator.run(&website, looked, "planned_and_finished").await);
        let dropped = curator.run(&website, json!({ "message": curator.told("Too early") }), "planned").await;
        curator
            .admin
            .post(&format!("/api/v2/runs/{dropped}/actions/discard"), json!({ "comment": curator.told("Not today") }))
            .await;
        self.knows("run-discarded", dropped);
        let release = curator.workspace(project, "release", "Rolls the newest image out").await;
        curator.configuration(&release, &[("main.tf", SLOW)]).await;
        let rollout = json!({ "message": curator.told("Release v2"), "auto-apply": true });
        self.knows("run-applying", curator.run(&release, rollout, "applying").await);
    }

    /// Tokens of the admin, and an invitation that someone has passed on to them.
    pub(crate) async fn fill_account(&mut self, curator: &Curator) {
        let body =
            json!({ "data": { "type": "organization-memberships", "attributes": { "email": "new@acme.test" } } });
        let invited = curator.admin.post("/api/v2/organizations/acme/organization-memberships", body).await;
        let link = invited["data"]["attributes"]["invitation-link"].as_str().expect("a link");
        self.knows("invitation", link[link.find("/app/").expect("a page")..].to_owned());
        let account = curator.admin.get("/api/v2/account/details").await;
        let path = format!("/api/v2/users/{}/authentication-tokens", account["data"]["id"].as_str().expect("an id"));
        for description in ["laptop", "continuous integration", ""] {
            let body = json!({ "data": { "type": "authentication-tokens", "attributes": { "description": curator.told(description) } } });
            curator.admin.post(&path, body).await;
        }
    }

    /// A pool with a token, and an agent that came with it.
    pub(crate) async fn start_agent(&mut self, curator: &Curator) {
        let pool = curator.makes("agent-pools", json!({ "name": "rack-1" }), json!({})).await;
        let path = format!("/api/v2/agent-pools/{pool}/authentication-tokens");
        let body = json!({ "data": { "type": "authentication-tokens", "attributes": { "description": curator.told("host 7") } } });
        let issued = curator.admin.post(&path, body).await;
        let token = issued["data"]["attributes"]["token"].as_str().expect("a token").to_owned();
        let agent = self.installation.agent("host-7", &token);
        self.agent = Some(agent);
        self.knows("pool", pool);
    }
}
