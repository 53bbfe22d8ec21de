//! Inspection of a configuration's archive by servers, while it is uploaded: agents alone unpack it.

use std::io::Read;
use std::sync::Arc;

use axum::body::Body;
use axum::http::StatusCode;
use bytes::Bytes;
use flate2::Compression;
use flate2::write::GzEncoder;
use futures::stream;
use harness::api_server::{Answer, ApiServer};
use harness::configurations::packed;
use serde_json::json;
use taco_control_plane::{LARGEST_CONFIGURATION, WorkspaceRef};
use taco_domain::configuration_version::ConfigurationVersion;
use taco_ledger::{Bucket, Key, LedgerName, Location, ObjectBucket, layout};
use tar::{Builder, EntryType, Header};

use super::{announce, archive, upload};
use crate::states::path_of;

/// An organization with a workspace, in a bucket that can be looked into.
struct Scene {
    server: ApiServer,
    workspace: String,
    bucket: Arc<dyn Bucket>,
    /// Directory of the bucket, if it would be too large for memory.
    _directory: Option<tempfile::TempDir>,
}

impl Scene {
    async fn start() -> Self {
        Self::start_on(Arc::new(ObjectBucket::in_memory()), None).await
    }

    async fn on_disk() -> Self {
        let directory = tempfile::tempdir().expect("a directory");
        let bucket = Location::directory(directory.path()).open().expect("a bucket");
        Self::start_on(Arc::new(bucket), Some(directory)).await
    }

    async fn start_on(bucket: Arc<dyn Bucket>, directory: Option<tempfile::TempDir>) -> Self {
        let server = ApiServer::start_on(Arc::clone(&bucket)).await;
        server.given_organization("acme").await;
        let workspace = server.given_workspace("acme", "web").await;
        Self { server, workspace, bucket, _directory: directory }
    }

    async fn announced(&self) -> Answer {
        let attributes = json!({ "auto-queue-runs": true });
        announce(&self.server.admin(), &self.workspace, attributes).await.expect(StatusCode::CREATED)
    }

    async fn send(&self, announced: &Answer, body: impl Into<Body>) -> Answer {
        let anyone = self.server.with_authorization(None);
        anyone.send("PUT", &path_of(&announced.attribute("upload-url")), None, body).await
    }

    async fn read(&self, announced: &Answer) -> Answer {
        let path = format!("/api/v2/configuration-versions/{}", announced.id());
        self.server.admin().get(&path).await.expect(StatusCode::OK)
    }

    async fn keys(&self, kind: &str) -> Vec<Key> {
        let caller = self.server.admin_caller().await;
        let view = self.server.control_plane.workspace(&caller, &self.named()).await.expect("a workspace");
        let ledger: LedgerName = view.org.id().to_string().parse().expect("a name");
        let keys = self.bucket.list(&layout::blobs(&ledger), None).await.expect("a bucket");
        keys.into_iter().filter(|key| key.as_str().contains(&format!("/{kind}/"))).collect()
    }

    /// Number of blobs of a kind.
    async fn blobs(&self, kind: &str) -> usize {
        self.keys(kind).await.len()
    }

    async fn runs(&self) -> usize {
        let runs = self.server.admin().get(&format!("/api/v2/workspaces/{}/runs", self.workspace)).await;
        runs.data().as_array().expect("a list").len()
    }

    fn named(&self) -> WorkspaceRef {
        WorkspaceRef::Named { organization: "acme".to_owned(), name: "web".to_owned() }
    }

    async fn readme(&self) -> Option<String> {
        let caller = self.server.admin_caller().await;
        self.server.control_plane.readme(&caller, &self.named()).await.expect("a bucket")
    }

    async fn work_in(&self, directory: &str) {
        let body = json!({ "data": { "type": "workspaces", "attributes": { "working-directory": directory } } });
        let path = format!("/api/v2/workspaces/{}", self.workspace);
        self.server.admin().patch(&path, &body).await.expect(StatusCode::OK);
    }
}

/// An archive of raw entries, along with a valid file.
fn archive_of(entries: &[(EntryType, &str, &str)]) -> Vec<u8> {
    let mut builder = Builder::new(GzEncoder::new(Vec::new(), Compression::fast()));
    for (kind, name, target) in [&[(EntryType::Regular, "main.tf", "")], entries].concat() {
        let mut header = Header::new_gnu();
        header.set_entry_type(kind);
        header.set_size(0);
        if name.len() < 100 {
            header.as_old_mut().name[..name.len()].copy_from_slice(name.as_bytes());
            header.as_old_mut().linkname[..target.len()].copy_from_slice(target.as_bytes());
            header.set_cksum();
            builder.append(&header, &[][..]).expect("in memory");
        } else {
            builder.append_data(&mut header, name, &[][..]).expect("in memory");
        }
    }
    builder.into_inner().and_then(GzEncoder::finish).expect("in memory")
}

#[tokio::test]
async fn an_archive_that_no_agent_would_unpack_is_refused_with_a_reason() {
    use EntryType as E;
    let scene = Scene::start().await;
    let announced = scene.announced().await;
    let many: Vec<_> = (0..50_000).map(|number| format!("{number}.tf")).collect();
    let many: Vec<_> = many.iter().map(|name| (E::Regular, name.as_str(), "")).collect();
    let gzip_of_text = {
        let mut encoder = GzEncoder::new(Vec::new(), Compression::fast());
        std::io::Write::write_all(&mut encoder, &b"resource {}".repeat(100)).expect("in memory");
        encoder.finish().expect("in memory")
    };
    let cut = { archive("").split_last_chunk::<9>().expect("it is longer").0.to_vec() };
    let one = |kind, name, target| archive_of(&[(kind, name, target)]);
    for (bytes, expected) in [
        (b"PK\x03\x04".to_vec(), "no tar.gz archive (tar, compressed with gzip)"),
        (gzip_of_text, "no tar.gz archive"),
        (cut, "no tar.gz archive"),
        (Vec::new(), "no tar.gz archive"),
        (packed(&[]), "archive is empty"),
        (packed(&[("README.md", "# web")]), "no file that ends in .tf, .tf.json, .tofu, .tofu.json"),
        (one(E::Regular, "../main.tf", ""), "entry ../main.tf: the name has .. in it"),
        (one(E::Regular, "/etc/main.tf", ""), "entry /etc/main.tf: the name is absolute"),
        (one(E::Symlink, "link.tf", "../main.tf"), "entry link.tf: the link leads out of the configuration"),
        (one(E::Symlink, "link.tf", "/etc/passwd"), "entry link.tf: the link leads out of the configuration"),
        (one(E::Link, "link.tf", "../main.tf"), "entry link.tf: the link leads out of the configuration"),
        (one(E::Char, "device", ""), "entry device: only files, directories and links may be in it"),
        (one(E::Fifo, "pipe", ""), "entry pipe: only files, directories and links may be in it"),
        (one(E::Regular, "./main.tf", ""), "entry ./main.tf: the name occurs twice"),
        (one(E::Regular, &"a".repeat(4097), ""), "aaa: the name is too long"),
        (archive_of(&many), "more than 50000 entries"),
    ] {
        let refused = scene.send(&announced, bytes).await.expect(StatusCode::UNPROCESSABLE_ENTITY);
        assert!(refused.error().0.contains(expected), "{refused:?} instead of {expected}");
        let read = scene.read(&announced).await;
        assert_eq!((read.attribute("status"), read.attribute("error")), (json!("errored"), json!("invalid-archive")));
        assert_eq!(read.attribute("error-message"), refused.error().0);
    }
    assert_eq!((scene.blobs("configurations").await, scene.runs().await), (0, 0), "nothing of it is kept");
    scene.send(&announced, archive("better")).await.expect(StatusCode::OK);
    let read = scene.read(&announced).await;
    assert_eq!((read.attribute("status"), read.attribute("error-message")), (json!("uploaded"), json!(null)));
    assert_eq!((scene.blobs("configurations").await, scene.runs().await), (1, 1));
}

#[tokio::test]
async fn what_expands_beyond_the_limits_is_refused() {
    let scene = Scene::start().await;
    let announced = scene.announced().await;
    let mut builder = Builder::new(GzEncoder::new(Vec::new(), Compression::fast()));
    let mut header = Header::new_gnu();
    header.set_size(64 * 1024 * 1024);
    builder.append_data(&mut header, "main.tf", std::io::repeat(b' ').take(64 * 1024 * 1024)).expect("in memory");
    let bomb = builder.into_inner().and_then(GzEncoder::finish).expect("in memory");
    let refused = scene.send(&announced, bomb).await.expect(StatusCode::UNPROCESSABLE_ENTITY);
    assert!(refused.error().0.contains("expands beyond the limit of 200 times its packed size"), "{refused:?}");
    assert_eq!(scene.read(&announced).await.attribute("status"), "errored");
    assert_eq!(scene.blobs("configurations").await, 0);
}

/// A stream of this many bytes that begins as an archive does, and says nothing of its size.
fn endless(beginning: Vec<u8>, size: u64) -> Body {
    const PIECE: usize = 1024 * 1024;
    let rest = Bytes::from(vec![b'x'; PIECE]);
    let pieces = size.saturating_sub(beginning.len() as u64).div_ceil(PIECE as u64);
    let pieces = (0..pieces).map(move |_| rest.clone());
    Body::from_stream(stream::iter([Bytes::from(beginning)].into_iter().chain(pieces).map(Ok::<_, std::io::Error>)))
}

#[tokio::test]
async fn a_packed_configuration_may_have_100_mebibytes() {
    let scene = Scene::on_disk().await;
    let announced = scene.announced().await;
    // Stored, not packed, so that it is as large inside as outside.
    let mut builder = Builder::new(GzEncoder::new(Vec::new(), Compression::none()));
    let mut header = Header::new_gnu();
    header.set_size(LARGEST_CONFIGURATION);
    builder.append_data(&mut header, "main.tf", std::io::repeat(b' ').take(LARGEST_CONFIGURATION)).expect("in memory");
    let large = builder.into_inner().and_then(GzEncoder::finish).expect("in memory");
    let refused = scene.send(&announced, large).await.expect(StatusCode::PAYLOAD_TOO_LARGE);
    assert!(refused.error().0.contains("at most 104857600 bytes"), "{refused:?}");
    assert_eq!(scene.read(&announced).await.attribute("status"), "pending", "it can be sent again");
    // What is no archive is heard to its end, but not for ever.
    let nonsense = endless(b"nonsense".to_vec(), 2 * LARGEST_CONFIGURATION);
    let refused = scene.send(&announced, nonsense).await.expect(StatusCode::UNPROCESSABLE_ENTITY);
    assert!(refused.error().0.contains("gzip"), "{refused:?}");
    assert_eq!(scene.blobs("configurations").await, 0);
}

#[tokio::test]
async fn an_upload_that_breaks_off_leaves_everything_as_it_was() {
    let scene = Scene::start().await;
    let announced = scene.announced().await;
    let whole = archive(&"# a line\n".repeat(1_000));
    for sent in [0, 1, 20, whole.len() / 2, whole.len()] {
        let beginning = Bytes::from(whole[..sent].to_vec());
        let broken = stream::iter([Ok(beginning), Err(std::io::Error::other("the cable was pulled"))]);
        let answer = scene.send(&announced, Body::from_stream(broken)).await.expect(StatusCode::UNPROCESSABLE_ENTITY);
        assert!(answer.error().0.contains("did not arrive completely"), "{answer:?}");
        assert_eq!(scene.read(&announced).await.attribute("status"), "pending");
    }
    assert_eq!((scene.blobs("configurations").await, scene.runs().await), (0, 0));
    scene.send(&announced, whole).await.expect(StatusCode::OK);
    assert_eq!((scene.blobs("configurations").await, scene.runs().await), (1, 1));
}

#[tokio::test]
async fn the_configuration_lies_in_the_working_directory() {
    let scene = Scene::start().await;
    scene.work_in("live/web").await;
    let announced = scene.announced().await;
    let refused = scene.send(&announced, archive("")).await.expect(StatusCode::UNPROCESSABLE_ENTITY);
    assert!(refused.error().0.contains("in the working directory live/web"), "{refused:?}");
    scene.send(&announced, packed(&[("live/web/main.tofu", "")])).await.expect(StatusCode::OK);
}

#[tokio::test]
async fn the_readme_of_the_current_configuration_can_be_read() {
    let scene = Scene::start().await;
    let admin = scene.server.admin();
    assert_eq!(scene.readme().await, None);
    let give = async |attributes, files: &[(&str, &str)]| {
        let announced = announce(&admin, &scene.workspace, attributes).await.expect(StatusCode::CREATED);
        upload(&scene.server, &announced, packed(files)).await.expect(StatusCode::OK);
        announced.id()
    };
    let quiet = || json!({ "auto-queue-runs": false });
    let both = [("main.tf", ""), ("README.md", "# The root"), ("live/main.tf", ""), ("live/readme.MD", "# Live")];
    let first = give(quiet(), &both).await;
    assert_eq!(scene.readme().await.as_deref(), Some("# The root"));
    scene.work_in("live").await;
    give(quiet(), &both).await;
    assert_eq!(scene.readme().await.as_deref(), Some("# Live"));
    let speculative = json!({ "auto-queue-runs": false, "speculative": true });
    give(speculative, &[("live/main.tf", ""), ("README.md", "# A proposal")]).await;
    assert_eq!(scene.readme().await.as_deref(), Some("# Live"), "proposals say nothing of what is");
    scene.announced().await;
    assert_eq!(scene.readme().await.as_deref(), Some("# Live"), "what has not arrived says nothing");
    give(quiet(), &[("live/main.tf", "")]).await;
    assert_eq!(scene.readme().await, None, "the newest has none");
    let long = "ä".repeat(64 * 1024);
    give(quiet(), &[("live/main.tf", ""), ("live/README.md", &long)]).await;
    assert_eq!(scene.readme().await, Some("ä".repeat(32 * 1024)));

    assert_eq!(scene.blobs("readmes").await, 4);
    let archive = format!("/api/v2/configuration-versions/{first}/actions/archive");
    admin.act(&archive).await.expect(StatusCode::ACCEPTED);
    assert_eq!(scene.blobs("readmes").await, 3, "it goes with its configuration");
    for key in &scene.keys("readmes").await {
        let object = scene.bucket.get(key).await.expect("a bucket").expect("it is there");
        assert!(object.bytes.starts_with(b"\x93taco"), "{key} is sealed");
    }

    let (_, token) = scene.server.given_user("outsider").await;
    let outsider = scene.server.caller(&token).await;
    let refused = scene.server.control_plane.readme(&outsider, &scene.named()).await.expect_err("not for them");
    assert!(refused.to_string().contains("not found"), "{refused}");
}

/// Records from before servers looked for READMEs can still be read.
#[test]
fn a_record_without_a_word_about_a_readme_has_none() {
    let record = json!({
        "id": "cv-11111111111111aa", "workspace": "ws-11111111111111aa", "number": 1, "status": "uploaded",
        "speculative": false, "provisional": false, "auto_queue_runs": true, "source": "tfe-api",
        "created_at": "2026-01-01T00:00:00Z", "created_by": "taco", "blob": "blob", "size": 1,
    });
    let version: Result<ConfigurationVersion, _> = serde_json::from_value(record);
    assert!(!version.expect("a record").has_readme);
}
