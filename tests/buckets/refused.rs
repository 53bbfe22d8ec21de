//! A real server that breaks its promise only when writers race: taco must not run on it.

use std::sync::Arc;

use axum::Router;
use axum::http::StatusCode;
use bytes::Bytes;
use harness::bucket_servers::BucketServer;
use taco_ledger::doctor::{self, Outcome, ProbeError, Thoroughness};
use taco_ledger::{Bucket, BucketError, BucketErrorKind, Location, SharedRng, SystemClock, layout};
use tokio::net::TcpListener;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_store_that_lets_two_creators_win_is_refused() {
    let server = BucketServer::s3s_fs().await.unwrap_or_else(|error| panic!("{error:#}"));
    let bucket: Arc<dyn Bucket> = Arc::new(server.location().open().expect("the location is good"));
    let rng = SharedRng::from_system();

    let error = doctor::probe(&bucket, &rng, Thoroughness::REMOTE).await.expect_err("it lies");
    assert!(matches!(error, ProbeError::IgnoresCreateIfAbsent { .. }), "{error}");

    let findings = doctor::examine(&bucket, &SystemClock, &rng).await;
    let outcome_of = |check| findings.iter().find(|finding| finding.check == check).map(|finding| finding.outcome);
    assert_eq!(outcome_of(doctor::CREATE_IF_ABSENT), Some(Outcome::Passed), "it keeps the promise without a race");
    assert_eq!(outcome_of(doctor::CREATE_RACE), Some(Outcome::Failed), "{findings:#?}");
}

/// Opens the server's bucket with settings that are wrong, and returns what the probe and a read say.
async fn troubles(
    server: anyhow::Result<BucketServer>,
    spoil: impl FnOnce(&mut Location),
) -> (ProbeError, BucketError) {
    let server = server.unwrap_or_else(|error| panic!("{error:#}"));
    let mut location = server.location();
    spoil(&mut location);
    let bucket: Arc<dyn Bucket> = Arc::new(location.open().expect("the location looks good"));
    let probed = doctor::probe(&bucket, &SharedRng::from_system(), Thoroughness::REMOTE).await.expect_err("unusable");
    let read = bucket.get(&layout::format()).await.expect_err("unusable");
    (probed, read)
}

macro_rules! a_bucket_that_is_not_there_is_no_empty_bucket {
    ($($server:ident: $scheme:literal),*) => {
        mod a_bucket_that_is_not_there_is_no_empty_bucket {
            $(
                #[tokio::test]
                async fn $server() {
                    let server = super::BucketServer::$server().await;
                    let (probed, read) =
                        super::troubles(server, |location| location.url = concat!($scheme, "://absent").into()).await;
                    assert!(probed.to_string().contains("Check that the bucket exists"), "{probed}");
                    assert_eq!(read.kind, super::BucketErrorKind::Refused, "{read}");
                }
            )*
        }
    };
}

a_bucket_that_is_not_there_is_no_empty_bucket! { gofakes3: "s3", versitygw: "s3", azurite: "az", fake_gcs: "gs" }

#[tokio::test]
async fn a_wrong_secret_is_told_from_an_absent_bucket() {
    let (probed, read) = troubles(BucketServer::versitygw().await, |location| {
        location.s3_secret_access_key = Some("wrong".to_owned());
    })
    .await;
    assert!(probed.to_string().contains("Give the credentials"), "{probed}");
    assert_eq!(read.kind, BucketErrorKind::Denied, "{read}");
}

#[tokio::test]
async fn a_server_that_is_not_there_is_unreachable() {
    let (probed, read) = troubles(BucketServer::gofakes3().await, |location| {
        location.s3_endpoint = Some("http://127.0.0.1:9".to_owned());
    })
    .await;
    assert!(probed.to_string().contains("Check that its address is right"), "{probed}");
    assert_eq!(read.kind, BucketErrorKind::OutcomeUnknown, "{read}");
}

/// The client tells most statuses only in the text of its errors; this notices when it words them otherwise.
#[tokio::test]
async fn each_status_is_sorted_by_what_can_be_done() {
    let cases = [
        (StatusCode::FORBIDDEN, BucketErrorKind::Denied),
        (StatusCode::UNAUTHORIZED, BucketErrorKind::Denied),
        (StatusCode::METHOD_NOT_ALLOWED, BucketErrorKind::Refused),
        (StatusCode::NOT_IMPLEMENTED, BucketErrorKind::Refused),
        (StatusCode::INSUFFICIENT_STORAGE, BucketErrorKind::Full),
        (StatusCode::TOO_MANY_REQUESTS, BucketErrorKind::OutcomeUnknown),
        (StatusCode::INTERNAL_SERVER_ERROR, BucketErrorKind::OutcomeUnknown),
        (StatusCode::SERVICE_UNAVAILABLE, BucketErrorKind::OutcomeUnknown),
    ];
    for (status, kind) in cases {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a free port");
        let endpoint = format!("http://{}", listener.local_addr().expect("an address"));
        let store =
            tokio::spawn(axum::serve(listener, Router::new().fallback(move || async move { status })).into_future());
        let location = Location {
            url: "s3://bucket".to_owned(),
            s3_endpoint: Some(endpoint),
            s3_access_key_id: Some("id".to_owned()),
            s3_secret_access_key: Some("secret".to_owned()),
            ..Location::default()
        };
        let bucket = location.open().expect("the location looks good");
        let error = bucket.create(&layout::beacon("a"), Bytes::from_static(b"x")).await.expect_err("refused");
        assert_eq!(error.kind, kind, "{status}: {error}");
        let error = bucket.get(&layout::beacon("a")).await.expect_err("refused");
        assert_eq!(error.kind, kind, "{status}: {error}");
        store.abort();
    }
}
