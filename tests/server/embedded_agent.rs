//! The agent within the server: what its runs may see, and for whom it works.

use std::fs::{self, Permissions};
use std::os::unix::fs::PermissionsExt as _;
use std::os::unix::process::CommandExt as _;
use std::path::Path;
use std::process::Command;

use harness::api_client::ApiClient;
use harness::binary::binary;
use harness::bucket_servers::{BucketServer, variables_of};
use harness::engine::Engine;
use harness::home::{Home, ServerProcess};
use harness::run_site::{SITE_TOKEN, admin_of, configuration_of, text, until};
use harness::stand_in_engine::{StandInEngine, Step};
use serde_json::json;
use taco_ledger::Location;

/// A workspace for the server's own agent, with a configuration.
async fn given_workspace(admin: &ApiClient, organization: &str, main: &str) -> String {
    admin.given_organization(organization).await;
    let attributes = json!({ "name": "web", "execution-mode": "remote" });
    let body = json!({ "data": { "type": "workspaces", "attributes": attributes } });
    let made = admin.post(&format!("/api/v2/organizations/{organization}/workspaces"), body).await;
    let workspace = text(&made["data"]["id"]);
    admin.given_configuration(&workspace, configuration_of(main)).await;
    workspace
}

/// Writes down the environment and the arguments of itself and all ancestors up to this process, and whatever that one
/// has on its standard input.
fn looks_around(server: u32, found: &Path) -> String {
    let found = found.display();
    let script = format!(
        "p=$$; while [ $p -gt 1 ]; do cat /proc/$p/environ /proc/$p/cmdline >> {found}; echo process $p >> {found}; \
         [ $p = {server} ] && break; p=$(awk '/^PPid/ {{ print $2 }}' /proc/$p/status); done; \
         dd if=/proc/{server}/fd/0 iflag=nonblock >> {found}; echo looked >> {found}"
    );
    format!(
        "resource \"terraform_data\" \"look\" {{\n  provisioner \"local-exec\" {{ command = {} }}\n}}\n",
        json!(script)
    )
}

#[tokio::test(flavor = "multi_thread")]
async fn a_run_finds_no_secret_of_the_server() {
    let bucket = BucketServer::gofakes3().await.expect("gofakes3");
    let location = Location { s3_secret_access_key: Some("s3cr3t-of-the-bucket".to_owned()), ..bucket.location() };
    let home = Home::default();
    let mut command = home.taco(&["server"]);
    command.envs(variables_of(&location)).env("TACO_LISTEN", "127.0.0.1:0").env("TACO_SITE_TOKEN", SITE_TOKEN);
    command
        .env("TACO_SECRET_KEY", "s3cr3t-key-of-the-server-of-32-letters")
        .env("AWS_SESSION_TOKEN", "s3cr3t-of-the-host");
    command.env("PATH", Engine::search_path()).env("TACO_ENGINE_MIRROR", "http://127.0.0.1:9");
    let server = ServerProcess::start(&mut command);
    let admin = admin_of(&server.address);
    // Beside the way to the agent's own files: on that, a run makes nothing.
    fs::create_dir(home.path().join("out")).expect("made");
    let found = home.path().join("out/found");
    let workspace = given_workspace(&admin, "acme", &looks_around(server.process.id(), &found)).await;
    let own = json!({ "data": { "type": "vars",
        "attributes": { "key": "OWN", "value": "s3cr3t-of-the-run", "category": "env", "sensitive": true } } });
    admin.post(&format!("/api/v2/workspaces/{workspace}/vars"), own).await;
    let run = admin.start_run(&workspace).await;
    assert_eq!(admin.end_of(&run).await, "applied", "{}", server.process.stderr());
    let found = String::from_utf8_lossy(&fs::read(found).expect("it looked")).into_owned();
    assert!(found.contains(&format!("process {}\n", server.process.id())), "it looked as far as the server: {found}");
    assert!(found.contains("looked\n") && found.contains("s3cr3t-of-the-run"), "its own it may see: {found}");
    for secret in ["s3cr3t-of-the-bucket", "s3cr3t-key-of-the-server-of-32-letters", "s3cr3t-of-the-host", SITE_TOKEN] {
        assert!(!found.contains(secret), "{secret}");
    }
}

/// Reads all that it can of another run, of the server and of its bucket.
fn reads_everything(victim: &str, place: &Path, agent: &Path, found: &Path) -> String {
    let run = agent.join("runs").join(victim);
    let (run, agent, place, found) = (run.display(), agent.display(), place.display(), found.display());
    let script = format!(
        "{{ for p in /proc/[0-9]*; do cat $p/environ; cat $p/cwd/*; done; cat {run}/engine/cli.tfrc {run}/log; \
         cat {run}/configuration/~taco.auto.tfvars; cat {place}/bucket.key; ls -R {place}; ls -R {place}/bucket; \
         find {place} {place}/bucket {agent} {run} -type f -exec cat {{}} +; }} > {found} 2> /dev/null; \
         touch {place}/bucket/touched || echo kept out >> {found}"
    );
    format!(
        "variable \"marker\" {{}}\nresource \"terraform_data\" \"look\" {{\n  provisioner \"local-exec\" {{ command = {} }}\n}}\n",
        json!(script)
    )
}

/// Root can look into every process, so that root's tests are someone else's.
fn taco_of_an_ordinary_user(home: &Home) -> Command {
    let (programs, out) = (home.path().join("programs"), home.path().join("out"));
    for directory in [&programs, &out] {
        fs::create_dir(directory).expect("made");
    }
    // Wherever they are built or installed, another user may not come there.
    for (name, program) in [("taco", binary("taco")), ("terraform", Engine::Terraform.program().into())] {
        let own = programs.join(name);
        fs::hard_link(&program, &own).or_else(|_| fs::copy(&program, &own).map(|_| ())).expect("a program");
    }
    let mut command = Command::new(programs.join("taco"));
    command.current_dir(home.path()).env_clear().env("HOME", home.path());
    command.env("PATH", format!("{}:/usr/bin:/bin", programs.display()));
    if nix::unistd::geteuid().is_root() {
        let nobody = nix::unistd::User::from_name("nobody").expect("a list of users").expect("such a user");
        let (user, group) = (nobody.uid.as_raw(), nobody.gid.as_raw());
        for directory in [home.path(), &out] {
            std::os::unix::fs::chown(directory, Some(user), Some(group)).expect("it is given");
        }
        command.uid(user).gid(group);
    }
    command
}

async fn given_markers(admin: &ApiClient, workspace: &str, marker: &str) {
    for (key, category) in [("MARKER", "env"), ("marker", "terraform")] {
        let attributes = json!({ "key": key, "value": format!("{marker}-of-{category}"), "category": category });
        let body = json!({ "data": { "type": "vars", "attributes": attributes } });
        admin.post(&format!("/api/v2/workspaces/{workspace}/vars"), body).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn runs_at_the_same_time_read_nothing_of_each_other_or_of_the_bucket() {
    let home = Home::default();
    let (place, agent) = (home.path().join(".local/share/taco"), home.path().join("agent"));
    let mut command = taco_of_an_ordinary_user(&home);
    command.arg("server").env("TACO_LISTEN", "127.0.0.1:0").env("TACO_SITE_TOKEN", SITE_TOKEN);
    command.env("TACO_AGENT_CONCURRENCY", "2").env("TACO_AGENT_WORK_DIR", &agent);
    command.env("TACO_ENGINE_MIRROR", "http://127.0.0.1:9");
    let server = ServerProcess::start(&mut command);
    let admin = admin_of(&server.address);
    let (waits, goes_on) = (home.path().join("out/waits"), home.path().join("out/goes-on"));
    let script = format!("touch {}; while [ ! -e {} ]; do sleep 0.1; done", waits.display(), goes_on.display());
    let main = format!(
        "variable \"marker\" {{}}\nresource \"terraform_data\" \"wait\" {{\n  provisioner \"local-exec\" {{ command = {} }}\n}}\n",
        json!(script)
    );
    let workspace = given_workspace(&admin, "acme", &main).await;
    given_markers(&admin, &workspace, "victim").await;
    let victim = admin.start_run(&workspace).await;
    until("the first run applies", async || waits.exists()).await;
    if server.process.stderr().contains("has no Landlock") {
        println!("this kernel cannot keep runs apart: nothing was tried");
        return;
    }
    let found = home.path().join("out/found");
    let workspace = given_workspace(&admin, "umbrella", &reads_everything(&victim, &place, &agent, &found)).await;
    given_markers(&admin, &workspace, "own").await;
    let looker = admin.start_run(&workspace).await;
    assert_eq!(admin.end_of(&looker).await, "applied", "{}", server.process.stderr());
    fs::write(goes_on, "").expect("written");
    assert_eq!(admin.end_of(&victim).await, "applied", "{}", server.process.stderr());
    let found = String::from_utf8_lossy(&fs::read(found).expect("it looked")).into_owned();
    assert!(found.contains("own-of-env") && found.ends_with("kept out\n"), "its own it may see: {found}");
    let key = fs::read_to_string(place.join("bucket.key")).expect("a key");
    for secret in ["victim-of-env", "victim-of-terraform", key.trim(), "beacons", SITE_TOKEN] {
        assert!(!found.contains(secret), "{secret}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn runs_happen_as_the_user_whom_a_setting_names() {
    if !nix::unistd::geteuid().is_root() {
        println!("only root can start programs as someone else: nothing was tried");
        return;
    }
    let home = Home::default();
    let let_through = |path: &Path| fs::set_permissions(path, Permissions::from_mode(0o755)).expect("a mode");
    let_through(home.path());
    // Wherever the engine is installed, the other user may not come there.
    let programs = home.path().join("programs");
    fs::create_dir(&programs).expect("made");
    fs::copy(Engine::Terraform.program(), programs.join("terraform")).expect("a program");
    let mut command = home.taco(&["server"]);
    command.env("TACO_LISTEN", "127.0.0.1:0").env("TACO_SITE_TOKEN", SITE_TOKEN);
    command.env("TACO_AGENT_RUN_AS", "nobody").env("TACO_AGENT_WORK_DIR", home.path().join("agent"));
    command
        .env("PATH", format!("{}:/usr/bin:/bin", programs.display()))
        .env("TACO_ENGINE_MIRROR", "http://127.0.0.1:9");
    let server = ServerProcess::start(&mut command);
    let admin = admin_of(&server.address);
    let script = format!(
        "echo I am $(id -un); cat /proc/{}/environ || echo refused 1; ls {} || echo refused 2",
        server.process.id(),
        home.path().join("agent").display()
    );
    let main = format!(
        "resource \"terraform_data\" \"look\" {{\n  input = \"mine\"\n  provisioner \"local-exec\" {{ command = {} }}\n}}\n\
         output \"whose\" {{ value = terraform_data.look.output }}\n",
        json!(script)
    );
    let workspace = given_workspace(&admin, "acme", &main).await;
    let run = admin.start_run(&workspace).await;
    assert_eq!(admin.end_of(&run).await, "applied", "{}", server.process.stderr());
    assert_eq!(admin.work_in_state(&workspace).await.as_deref(), Some("mine"));
    let apply = admin.get(&format!("/api/v2/runs/{run}/apply")).await;
    let log = admin.client.get(text(&apply["data"]["attributes"]["log-read-url"])).send().await.expect("an answer");
    let log = log.text().await.expect("text");
    for line in ["I am nobody", "refused 1", "refused 2"] {
        assert!(log.contains(line), "{line} in {log}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn one_agent_works_for_several_organizations_at_once() {
    let (home, engine) = (Home::default(), StandInEngine::install());
    let mut command = home.taco(&["server"]);
    command.env("TACO_LISTEN", "127.0.0.1:0").env("TACO_SITE_TOKEN", SITE_TOKEN).env("TACO_AGENT_CONCURRENCY", "2");
    command.env("PATH", engine.search_path()).env("TACO_ENGINE_MIRROR", "http://127.0.0.1:9");
    let server = ServerProcess::start(&mut command);
    let admin = admin_of(&server.address);
    engine.hold(Step::ApplyIsHalfDone);
    let mut runs = Vec::new();
    for organization in ["acme", "umbrella"] {
        let workspace = given_workspace(&admin, organization, "").await;
        runs.push((admin.start_run(&workspace).await, workspace));
    }
    for (run, _) in &runs {
        assert!(engine.comes_to(Step::ApplyIsHalfDone, run, 1).await.lives());
    }
    let workspace = given_workspace(&admin, "initech", "").await;
    let third = admin.start_run(&workspace).await;
    assert_eq!(admin.run(&third).await["status"], "plan_queued", "there is no room for it");
    runs.push((third, workspace));
    engine.let_go(Step::ApplyIsHalfDone);
    for (run, workspace) in &runs {
        assert_eq!(admin.end_of(run).await, "applied");
        assert_eq!(admin.work_in_state(workspace).await, Some(format!("all of {run}")));
    }
}
