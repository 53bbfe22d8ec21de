//! Where engines come from that are not installed.

use std::io::Write;

use axum::Router;
use axum::routing::get;
use sha2::{Digest, Sha256};
use taco_agent_protocol::{Engine, PhaseKind};
use tokio::net::TcpListener;
use tokio::runtime::Builder;

use crate::agent_process::{AgentProcess, directory, tool};
use crate::plans::ONE;
use crate::stand_in::StandIn;
use crate::story::{Run, Story};

/// A mirror with one version of tofu, which is the installed one under another number.
fn mirror(tampered: bool) -> String {
    let program = std::fs::read(tool("TACO_TEST_TOFU")).expect("tofu");
    let mut writer = zip::ZipWriter::new(std::io::Cursor::new(Vec::new()));
    let stored = zip::write::SimpleFileOptions::default().compression_method(zip::CompressionMethod::Stored);
    writer.start_file("tofu", stored).expect("an entry");
    writer.write_all(&program).expect("a program");
    let archive = writer.finish().expect("an archive").into_inner();
    let digest = if tampered { "00".repeat(32) } else { hex::encode(Sha256::digest(&archive)) };
    let architecture = if cfg!(target_arch = "aarch64") { "arm64" } else { "amd64" };
    let name = format!("tofu_1.99.0_linux_{architecture}.zip");
    let sums = format!("{digest}  {name}\n");
    let index = r#"{"name":"tofu","versions":{"1.99.0":{},"1.98.0":{},"2.0.0-alpha1":{}}}"#;
    let router = Router::new()
        .route("/tofu/index.json", get(move || async move { index }))
        .route("/tofu/1.99.0/tofu_1.99.0_SHA256SUMS", get(move || async move { sums }))
        .route(&format!("/tofu/1.99.0/{name}"), get(move || async move { archive }));
    let listener = std::net::TcpListener::bind("127.0.0.1:0").expect("a port");
    listener.set_nonblocking(true).expect("a socket");
    let address = format!("http://{}", listener.local_addr().expect("an address"));
    // With a thread of its own: agents do not wait long for an answer, and the test's one thread has more to do.
    std::thread::spawn(move || {
        let runtime = Builder::new_current_thread().enable_all().build().expect("a runtime");
        runtime.block_on(async move {
            let listener = TcpListener::from_std(listener).expect("a socket");
            axum::serve(listener, router).await
        })
    });
    address
}

async fn with_mirror(address: &str) -> Story {
    let server = StandIn::start().await;
    let work_dir = directory();
    let agent = AgentProcess::start(&server.address, work_dir.path(), |command| {
        command.args(["--engine-mirror", address]);
    });
    Story { server, agent, work_dir }
}

#[tokio::test]
async fn a_version_that_is_not_here_is_downloaded_once_and_checked() {
    let story = with_mirror(&mirror(false)).await;
    for version in ["latest", "~> 1.98", "1.99.0"] {
        let run = Run::of(Engine::Tofu, &[("main.tf", ONE)]).with(|run| run.version = version.to_owned());
        assert_eq!(story.plan(&run).await.1.engine.version, "1.99.0", "{version}");
    }
    assert!(story.work_dir.path().join("engines/tofu/1.99.0/tofu").is_file());
    let run = Run::of(Engine::Tofu, &[("main.tf", ONE)]).with(|run| run.version = "~> 3.0".to_owned());
    let message = story.failure(&run, PhaseKind::Plan).await;
    assert!(message.contains("no tofu fits ~> 3.0"), "{message}");
}

#[tokio::test]
async fn bytes_with_another_checksum_are_not_executed() {
    let story = with_mirror(&mirror(true)).await;
    let run = Run::of(Engine::Tofu, &[("main.tf", ONE)]).with(|run| run.version = "1.99.0".to_owned());
    let message = story.failure(&run, PhaseKind::Plan).await;
    assert!(message.contains("has the checksum") && message.contains("published is 0000"), "{message}");
    assert!(!story.work_dir.path().join("engines/tofu/1.99.0").exists());
}
