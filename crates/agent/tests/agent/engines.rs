//! Downloads of engines that are not installed, and the signatures they must have.

use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};

use axum::Router;
use axum::routing::get;
use sha2::{Digest, Sha256};
use taco_agent_protocol::{Engine, PhaseKind};
use tempfile::TempDir;
use tokio::net::TcpListener;
use tokio::runtime::Builder;

use crate::agent_process::{AgentProcess, directory, tool};
use crate::fake_server::FakeServer;
use crate::plans::ONE;
use crate::scenario::{Run, Scenario};
use crate::signer::Signer;

/// Contents of a mirror: one version of tofu, which is the installed one under another number.
struct Release {
    archive: Vec<u8>,
    name: String,
    sums: String,
    signature: Vec<u8>,
}

const INDEX: &str = r#"{"name":"tofu","versions":{"1.99.0":{},"1.98.0":{},"2.0.0-alpha1":{}}}"#;

impl Release {
    fn signed_by(signer: &Signer) -> Self {
        let program = fs::read(tool("TACO_TEST_TOFU")).expect("tofu");
        let mut writer = zip::ZipWriter::new(std::io::Cursor::new(Vec::new()));
        let stored = zip::write::SimpleFileOptions::default().compression_method(zip::CompressionMethod::Stored);
        writer.start_file("tofu", stored).expect("an entry");
        writer.write_all(&program).expect("a program");
        let archive = writer.finish().expect("an archive").into_inner();
        let architecture = if cfg!(target_arch = "aarch64") { "arm64" } else { "amd64" };
        let name = format!("tofu_1.99.0_linux_{architecture}.zip");
        let sums = format!("{}  {name}\n", hex::encode(Sha256::digest(&archive)));
        let signature = signer.sign(sums.as_bytes());
        Self { archive, name, sums, signature }
    }

    /// In a directory.
    fn in_directory(&self) -> (TempDir, String) {
        let place = directory();
        let release = place.path().join("tofu/1.99.0");
        fs::create_dir_all(&release).expect("a directory");
        fs::write(place.path().join("tofu/index.json"), INDEX).expect("a file");
        fs::write(release.join(&self.name), &self.archive).expect("a file");
        fs::write(release.join("tofu_1.99.0_SHA256SUMS"), &self.sums).expect("a file");
        fs::write(release.join("tofu_1.99.0_SHA256SUMS.gpgsig"), &self.signature).expect("a file");
        let address = format!("file://{}", place.path().display());
        (place, address)
    }

    /// At an address of plain http.
    fn over_http(self) -> String {
        let Self { archive, name, sums, signature } = self;
        let router = Router::new()
            .route("/tofu/index.json", get(move || async move { INDEX }))
            .route("/tofu/1.99.0/tofu_1.99.0_SHA256SUMS", get(move || async move { sums }))
            .route("/tofu/1.99.0/tofu_1.99.0_SHA256SUMS.gpgsig", get(move || async move { signature }))
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
}

/// An agent with a mirror, and perhaps files with keys and with checksums.
async fn with_mirror(address: &str, keys: Option<&Path>, checksums: Option<&Path>) -> Scenario {
    let server = FakeServer::start().await;
    let work_dir = directory();
    let agent = AgentProcess::start(&server.address, work_dir.path(), |command| {
        command.args(["--engine-mirror", address]);
        for (flag, file) in [("--engine-keys", keys), ("--engine-checksums", checksums)] {
            command.args(file.into_iter().flat_map(|file| [flag.as_ref(), file.as_os_str()]));
        }
    });
    Scenario { server, agent, work_dir }
}

fn file(place: &TempDir, name: &str, text: &str) -> PathBuf {
    let path = place.path().join(name);
    fs::write(&path, text).expect("a file");
    path
}

fn tofu(version: &str) -> Run {
    Run::of(Engine::Tofu, &[("main.tf", ONE)]).with(|run| run.version = version.to_owned())
}

/// The message with which the agent refuses it; nothing of it is stored.
async fn refusal(scenario: &Scenario) -> String {
    let message = scenario.failure(&tofu("1.99.0"), PhaseKind::Plan).await;
    assert!(!scenario.work_dir.path().join("engines/tofu/1.99.0").exists());
    message
}

#[tokio::test]
async fn a_version_that_is_not_here_is_downloaded_once_and_checked() {
    let (signer, place) = (Signer::new(), directory());
    let keys = file(&place, "keys.asc", &signer.armored_key());
    let (_mirror, address) = Release::signed_by(&signer).in_directory();
    let scenario = with_mirror(&address, Some(&keys), None).await;
    for version in ["latest", "~> 1.98", "1.99.0"] {
        assert_eq!(scenario.plan(&tofu(version)).await.1.engine.version, "1.99.0", "{version}");
    }
    assert!(scenario.work_dir.path().join("engines/tofu/1.99.0/tofu").is_file());
    let message = scenario.failure(&tofu("~> 3.0"), PhaseKind::Plan).await;
    assert!(message.contains("no tofu fits ~> 3.0"), "{message}");
}

#[tokio::test]
async fn an_engine_that_nobody_signed_whom_the_agent_trusts_is_not_executed() {
    let (signer, place) = (Signer::new(), directory());
    let keys = file(&place, "keys.asc", &signer.armored_key());
    let with_key = Some(keys.as_path());
    // Its own list of checksums fits it, as it does for everyone who makes up an engine.
    let by_another = Release::signed_by(&Signer::new());
    let of_another_list = Release { signature: signer.sign(b"another list"), ..Release::signed_by(&signer) };
    for (release, keys, expected) in [
        (Release::signed_by(&signer), None, "does not belong to what it came with"),
        (by_another, with_key, "does not belong to what it came with"),
        (of_another_list, with_key, "does not belong to what it came with"),
        (Release { signature: Vec::new(), ..Release::signed_by(&signer) }, with_key, "is none of a kind"),
    ] {
        let (_mirror, address) = release.in_directory();
        let message = refusal(&with_mirror(&address, keys, None).await).await;
        assert!(message.contains("is not believed: the signature") && message.contains(expected), "{message}");
        assert!(message.contains("--engine-keys"), "it says what can be done: {message}");
    }
    let (mirror, address) = Release::signed_by(&signer).in_directory();
    fs::remove_file(mirror.path().join("tofu/1.99.0/tofu_1.99.0_SHA256SUMS.gpgsig")).expect("it goes");
    let message = refusal(&with_mirror(&address, with_key, None).await).await;
    assert!(message.contains("is not believed without a signature"), "{message}");
}

#[tokio::test]
async fn bytes_with_another_checksum_are_not_executed() {
    let (signer, place) = (Signer::new(), directory());
    let keys = file(&place, "keys.asc", &signer.armored_key());
    let mut tampered = Release::signed_by(&signer);
    let length = tampered.archive.len();
    tampered.archive[length / 2] ^= 1;
    let (_mirror, address) = tampered.in_directory();
    let message = refusal(&with_mirror(&address, Some(&keys), None).await).await;
    assert!(message.contains("has the checksum") && message.contains("published is"), "{message}");
}

#[tokio::test]
async fn plain_http_needs_a_checksum_that_somebody_has_pinned() {
    let (signer, place) = (Signer::new(), directory());
    let keys = file(&place, "keys.asc", &signer.armored_key());
    let release = Release::signed_by(&signer);
    let right = file(&place, "right", &release.sums);
    let wrong = file(&place, "wrong", &format!("{}  {}\n", "00".repeat(32), release.name));
    let address = release.over_http();
    let message = refusal(&with_mirror(&address, Some(&keys), None).await).await;
    assert!(message.contains("is a plain http address") && message.contains("engine_checksums"), "{message}");
    let message = refusal(&with_mirror(&address, Some(&keys), Some(&wrong)).await).await;
    assert!(message.contains("has the checksum") && message.contains("pinned is 0000"), "{message}");
    // A pinned checksum needs no signature.
    let scenario = with_mirror(&address, None, Some(&right)).await;
    assert_eq!(scenario.plan(&tofu("1.99.0")).await.1.engine.version, "1.99.0");
}
