//! The whole way: an organization, a workspace, a run that the CLI starts and a page confirms, its state, and back.

use harness::chromium::Scripts;
use harness::engine::{Directory, Engine, User};
use tokio::io::{AsyncBufReadExt as _, AsyncReadExt as _, BufReader};
use tokio::process::{Child, ChildStdout};

use super::{Journey, told_with_and_without_scripts};

told_with_and_without_scripts!(a_run_is_seen_live_confirmed_and_taken_back);

const RESOURCES: &str = r#"
    variable "greeting" { default = "hello" }
    resource "terraform_data" "web" {
      input = var.greeting
      provisioner "local-exec" { command = "echo someone is at work; sleep 2" }
    }
    output "greeting" { value = terraform_data.web.output }
"#;

/// The title and the icon of the tab have the status of the run.
async fn tab_tells(journey: &Journey, word: &str, tone: &str) {
    let title = journey.admin.title().await;
    assert!(title.starts_with(&format!("web · {word} · run-")), "{title}");
    if journey.scripts == Scripts::Run {
        let icon = journey.admin.evaluates("return document.querySelector('link[rel=icon]').href").await;
        assert!(icon.as_str().is_some_and(|icon| icon.contains(&format!("/static/icon-{tone}-"))), "{icon}");
    }
}

async fn a_run_is_seen_live_confirmed_and_taken_back(journey: Journey) {
    journey.makes_workspace("web").await;
    let admin = &journey.admin;
    admin.goes_to("/app/settings/tokens").await;
    admin.presses("New token").await;
    admin.types("[name=description]", "laptop").await;
    admin.presses("Create token").await;
    let token = admin.text_of(".secret code").await;
    let installation = &journey.sample_site.installation;
    let user = User::new(Engine::Terraform, installation).holds(installation.host(), &token);
    let block = format!(
        "terraform {{\n cloud {{\n hostname = \"{}\"\n organization = \"acme\"\n workspaces {{\n name = \"web\"\n }}\n }}\n}}\n",
        installation.host()
    );
    let here = user.directory("web", &format!("{block}{RESOURCES}"));
    here.runs("init").await;

    let mut applying = Applying::begin(&here).await;
    admin.goes_to(&applying.address).await;
    admin.arrives_at("/app/acme/workspaces/web/runs/run-").await;
    if journey.scripts == Scripts::Run {
        admin.evaluates("window.stayed = true").await;
    }
    admin.reads("Needs approval").await;
    tab_tells(&journey, "Needs approval", "asks").await;
    assert!(admin.text().await.contains("terraform_data.web"), "the plan tells what it would do");
    applying.asks().await;
    admin.presses("Confirm & apply").await;
    admin.reads("someone is at work").await;
    if journey.scripts == Scripts::Run {
        admin.evaluates("window.stayed = true").await;
    }
    admin.find(".run-head .badge.good").await;
    if journey.scripts == Scripts::Run {
        assert_eq!(admin.evaluates("return window.stayed").await, true, "it changed without being loaded again");
    }
    tab_tells(&journey, "Applied", "good").await;
    let said = applying.ends().await;
    assert!(said.contains("Apply complete! Resources: 1 added"), "the CLI goes on as well: {said}");

    here.runs("apply -auto-approve -var=greeting=goodbye").await;
    admin.goes_to("/app/acme/workspaces/web/states").await;
    admin.follows("Compare with previous").await;
    admin.reads("terraform_data.web").await;
    let difference = admin.text().await;
    assert!(difference.contains("hello") && difference.contains("goodbye"), "{difference}");
    admin.goes_to("/app/acme/workspaces/web/states").await;
    // The oldest that is shown is where the first apply ended: what a slow one sends on its way is folded.
    admin.clicks("tbody tr:last-child th a").await;
    admin.clicks("a[href$='/restore']").await;
    admin.reads("Roll back to serial").await;
    assert!(admin.text().await.contains("goodbye"), "what the rollback changes is told before");
    admin.clicks("form[action$='/restore'] button.danger").await;
    admin.find(".flash").await;
    assert_eq!(here.runs("output -raw greeting").await, "hello");
    journey.ends().await;
}

/// `terraform apply`, which waits for someone to type `yes` or to confirm on the page.
struct Applying {
    child: Child,
    stdout: BufReader<ChildStdout>,
    said: String,
    /// The path of the run's page, as the CLI prints it.
    address: String,
}

impl Applying {
    async fn begin(here: &Directory<'_>) -> Self {
        let mut child = here.command("apply").spawn().expect("it starts");
        let mut stdout = BufReader::new(child.stdout.take().expect("it is piped"));
        let mut said = String::new();
        loop {
            let mut line = String::new();
            let read = stdout.read_line(&mut line).await.expect("text");
            said.push_str(&line);
            assert!(read > 0, "it tells no address: {said}");
            if let Some((_, path)) = line.trim().split_once("/app/") {
                let address = format!("/app/{path}");
                return Self { child, stdout, said, address };
            }
        }
    }

    /// Waits until it asks. A plan that was confirmed before is none of its business: then it goes away.
    async fn asks(&mut self) {
        let mut said = Vec::new();
        while !String::from_utf8_lossy(&said).contains("Enter a value:") {
            assert!(self.stdout.read_buf(&mut said).await.expect("it is piped") > 0, "it does not ask: {}", self.said);
        }
        self.said.push_str(&String::from_utf8_lossy(&said));
    }

    /// All that it printed.
    async fn ends(mut self) -> String {
        self.stdout.read_to_string(&mut self.said).await.expect("text");
        let done = self.child.wait().await.expect("it ends");
        assert!(done.success(), "{}", self.said);
        self.said
    }
}
