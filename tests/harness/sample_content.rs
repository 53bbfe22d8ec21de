//! Content of the sample site, made through the API as its users would make it, and executed by the server's own agent.

use serde_json::json;

use crate::api_seed::ApiSeed;
use crate::configurations::{BROKEN, DNS, NETWORK, NETWORK_README, SLOW, SMALL, packed};
use crate::graph_states::{reading, reading_elsewhere, state};
use crate::registry::{KEY_ID, MODULE, module_path, provider_path};
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
        let policy = json!({ "name": "tags", "kind": "opa", "query": "data.terraform.tags.deny",
            "description": seed.text("Whatever can be tagged says who owns it") });
        let policy = seed.create("policies", policy, json!({})).await;
        let baseline = json!({ "name": "baseline", "kind": "opa", "overridable": true,
            "description": seed.text("What everybody agrees on") });
        let named = json!({ "policies": { "data": [{ "type": "policies", "id": policy }] } });
        self.set_placeholder("policy-set", seed.create("policy-sets", baseline, named).await);
        self.set_placeholder("policy", policy);
        // It is not enabled: nobody would answer the test.
        let task = json!({ "name": "cost-report", "url": "https://tasks.acme.test/cost", "category": "task",
            "enabled": false, "description": seed.text("Estimates what a plan costs") });
        self.set_placeholder("run-task", seed.create("tasks", task, json!({})).await);
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
        let chosen = json!({ "kind": "plan", "from": ["network"] });
        self.set_placeholder("walk", seed.create("walks", chosen, json!({})).await);
        let states = seed.states(&network).await;
        self.set_placeholder("state", states[0].clone());
        self.set_placeholder("state-first", states[states.len() - 1].clone());
        self.set_placeholder("variable", region);
        let notification = self.given_notification(seed, &format!("workspaces/{network}"), "run:errored").await;
        self.set_placeholder("notification", notification);
        let notification = self.given_notification(seed, &format!("projects/{project}"), "run:completed").await;
        self.set_placeholder("project-notification", notification);
    }

    /// A webhook that nobody has enabled.
    pub(crate) async fn given_notification(&self, seed: &ApiSeed, holder: &str, trigger: &str) -> String {
        let hook = json!({ "name": seed.name("Operations"), "destination-type": "generic", "enabled": false,
            "url": "https://hooks.example.com/taco", "triggers": [trigger] });
        let path = format!("/api/v2/{holder}/notification-configurations");
        seed.create_at(&path, "notification-configurations", hook, json!({})).await
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
        let bound = [("REGION", "env", "region"), ("PASSWORD", "env", "password")];
        self.bind(seed, "website", "network", &bound).await;
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

    /// States that read each other: some are stale, one is broken, two go round in a circle.
    pub(crate) async fn fill_graph(&mut self, seed: &ApiSeed) {
        let (vpc, subnet, zone) = ("vpc-0a1b2c3d4e5f", "subnet-11aa22bb33cc", "zone-5566778899aa");
        let names = [seed.name("vpc_id"), seed.name("subnet_id"), seed.name("zone_id")];
        let [vpc_id, subnet_id, zone_id] = names.each_ref().map(String::as_str);
        let first = [(vpc_id, vpc), (subnet_id, subnet), (zone_id, zone)];
        self.push(seed, "warehouse-prod", state(1, &first)).await;
        let media = reading(state(1, &[("url", "https://media.acme.test/77")]), "warehouse-prod", &first[..2]);
        self.push(seed, "media-prod", media).await;
        self.push(seed, "mail-prod", reading(state(1, &[]), "warehouse-prod", &first[2..])).await;
        let second = [(vpc_id, vpc), (subnet_id, "subnet-99ff88ee77dd")];
        self.push(seed, "warehouse-prod", state(2, &second)).await;
        self.push(seed, "reports-prod", reading(state(1, &[]), "warehouse-prod", &second)).await;
        let url = [("url", "https://media.acme.test/77")];
        let checkout = reading(state(1, &[("address", "10.7.7.77:443")]), "media-prod", &url);
        self.push(seed, "checkout-prod", checkout).await;
        let backup = [("backup", "bucket-of-backups-4711")];
        self.push(seed, "media-staging", reading_elsewhere(state(1, &backup), "acme-old-states", &backup)).await;
        let (one, other) = ([("issuer", "https://one.acme.test/44")], [("client", "client-of-acme-55")]);
        self.push(seed, "identity-dev", reading(state(1, &one), "identity-sandbox", &other)).await;
        self.push(seed, "identity-sandbox", reading(state(1, &other), "identity-dev", &one)).await;
        let bound = [("TF_VAR_subnet", "env", subnet_id), ("vpc", "terraform", vpc_id)];
        self.bind(seed, "network", "warehouse-prod", &bound).await;
        // Nothing was applied there that could have it.
        self.bind(seed, "network", "billing-prod", &[("currency", "terraform", "currency")]).await;
        let search = seed.admin.workspace("acme", "search-prod").await["id"].as_str().expect("an id").to_owned();
        let path = format!("/api/v2/workspaces/{search}/dependencies");
        seed.create_at(&path, "dependencies", json!({ "producer": "warehouse-prod" }), json!({})).await;
    }

    /// Binds variables of a workspace to outputs of another: key, category and output.
    async fn bind(&self, seed: &ApiSeed, consumer: &str, producer: &str, variables: &[(&str, &str, &str)]) {
        let id = async |name: &str| seed.admin.workspace("acme", name).await["id"].as_str().expect("an id").to_owned();
        let (consumer, shared) = (id(consumer).await, id(producer).await);
        let body = json!({ "data": { "type": "workspaces", "attributes": { "global-remote-state": true } } });
        seed.admin.patch(&format!("/api/v2/workspaces/{shared}"), body).await;
        for (key, category, output) in variables {
            let bound = json!({ "key": key, "category": category, "producer": producer, "output": output });
            let path = format!("/api/v2/workspaces/{consumer}/bindings");
            seed.create_at(&path, "bindings", bound, json!({})).await;
        }
    }

    async fn push(&self, seed: &ApiSeed, workspace: &str, state: serde_json::Value) {
        let workspace = seed.admin.workspace("acme", workspace).await;
        seed.state(workspace["id"].as_str().expect("an id"), &state).await;
    }

    /// A module with all that its page shows, which a workspace uses, and a provider.
    pub(crate) async fn fill_registry(&mut self, seed: &ApiSeed) {
        let module =
            seed.create("registry-modules", json!({ "name": "greeter", "provider": "local" }), json!({})).await;
        self.set_placeholder("module", module);
        let versions = format!("{}/versions", module_path("acme", "greeter", "local"));
        let readme = seed.text(NETWORK_README);
        let described = format!("variable \"size\" {{\n  description = {}\n}}\n", json!(seed.text("How large")));
        let mut files = MODULE.to_vec();
        files.retain(|(name, _)| *name != "README.md");
        files.extend([("README.md", readme.as_str()), ("more.tf", described.as_str())]);
        for version in ["1.0.0", "1.1.0"] {
            let body = json!({ "data": { "type": "registry-module-versions", "attributes": { "version": version } } });
            let announced = seed.admin.post(&versions, body).await;
            let address = announced["data"]["links"]["upload"].as_str().expect("an address").to_owned();
            let sent = seed.admin.client.put(address).body(packed(&files)).send().await.expect("an answer");
            assert!(sent.status().is_success(), "the upload is refused: {}", sent.status());
        }
        let path = format!("{}/1.1.0", module_path("acme", "greeter", "local"));
        let deprecation =
            json!({ "deprecation": { "reason": seed.text("Too loud"), "link": "https://acme.test/greeter" } });
        let body = json!({ "data": { "type": "registry-module-versions", "attributes": deprecation } });
        seed.admin.patch(&path, body).await;
        let user = seed.admin.workspace("acme", "mail-staging").await["id"].as_str().expect("an id").to_owned();
        let call =
            "module \"greeter\" {\n  source = \"localterraform.com/acme/greeter/local\"\n  version = \"~> 1.0\"\n}\n";
        seed.configuration(&user, &[("main.tf", call)]).await;
        let named = json!({ "name": "null", "namespace": "acme", "registry-name": "private" });
        let provider = seed.create("registry-providers", named, json!({})).await;
        self.set_placeholder("provider", provider);
        let version = json!({ "version": "1.0.0", "key-id": KEY_ID });
        let path = format!("{}/versions", provider_path("acme", "null"));
        seed.create_at(&path, "registry-provider-versions", version, json!({})).await;
    }

    /// Tokens of the admin, and an invitation that someone has passed on to them.
    pub(crate) async fn fill_account(&mut self, seed: &ApiSeed) {
        let body =
            json!({ "data": { "type": "organization-memberships", "attributes": { "email": "new@acme.test" } } });
        let invited = seed.admin.post("/api/v2/organizations/acme/organization-memberships", body).await;
        self.set_placeholder("member", invited["data"]["id"].as_str().expect("an id").to_owned());
        let access = json!({ "name": "platform", "visibility": "organization", "organization-access": { "manage-projects": true } });
        let team = seed.create("teams", access, json!({})).await;
        let notification = self.given_notification(seed, &format!("teams/{team}"), "change_request:created").await;
        self.set_placeholder("team-notification", notification);
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
