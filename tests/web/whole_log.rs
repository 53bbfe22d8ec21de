//! The page of a whole log, as a browser asks for it: packed, through all that a server puts around its pages.

use std::io::Read as _;

use flate2::read::GzDecoder;
use harness::home::{Home, ServerProcess};
use harness::run_site::{admin_of, configuration, text};
use harness::stand_in_engine::StandInEngine;
use reqwest::Client;
use serde_json::json;

#[tokio::test(flavor = "multi_thread")]
async fn a_browser_that_can_unpack_gets_the_whole_log() {
    let (home, engine) = (Home::default(), StandInEngine::install());
    let mut command = home.taco(&["server", "--no-auth"]);
    command.env("TACO_LISTEN", "127.0.0.1:0").env("TACO_AGENT_WORK_DIR", home.path().join("agent"));
    command.env("PATH", engine.search_path()).env("TACO_ENGINE_MIRROR", "http://127.0.0.1:9");
    let server = ServerProcess::start(&mut command);
    let admin = admin_of(&server.address);
    admin.given_organization("acme").await;
    let attributes = json!({ "name": "web", "execution-mode": "remote" });
    let body = json!({ "data": { "type": "workspaces", "attributes": attributes } });
    let workspace = text(&admin.post("/api/v2/organizations/acme/workspaces", body).await["data"]["id"]);
    admin.given_configuration(&workspace, configuration()).await;
    let run = admin.start_run(&workspace).await;
    assert_eq!(admin.end_of(&run).await, "applied");
    let client = Client::new();
    for phase in ["plan", "apply"] {
        let address = format!("http://{}/app/acme/workspaces/web/runs/{run}/log/{phase}", server.address);
        let plain = client.get(&address).send().await.expect("an answer").text().await.expect("text");
        assert!(!plain.is_empty());
        let packed =
            client.get(&address).header("accept-encoding", "gzip, deflate, br").send().await.expect("an answer");
        assert_eq!(packed.headers().get("content-encoding").map(|value| value.as_bytes()), Some(&b"gzip"[..]));
        let packed = packed.bytes().await.expect("all of it");
        let mut unpacked = String::new();
        GzDecoder::new(&packed[..]).read_to_string(&mut unpacked).expect("a whole archive");
        assert_eq!(unpacked, plain);
    }
    assert!(!server.process.stderr().contains("panic"), "{}", server.process.stderr());
}
