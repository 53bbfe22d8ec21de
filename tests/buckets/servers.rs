//! The servers that the other tests rest on: those that should be durable are, and none outlives its test.

use std::io::{BufRead, BufReader};
use std::net::TcpStream;
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use harness::bucket_servers::BucketServer;
use taco_ledger::bucket::Created;
use taco_ledger::layout;

use crate::places::{self, Place};

#[tokio::test]
async fn a_durable_server_keeps_its_objects_through_a_kill() {
    let mut server = BucketServer::versitygw().await.unwrap_or_else(|error| panic!("{error:#}"));
    let bucket = places::open(&server.location());
    let key = layout::beacon("a");
    assert_eq!(bucket.create(&key, Bytes::from_static(b"first")).await.expect("created"), Created::Now);
    server.restart().await.expect("it starts again");
    let object = bucket.get(&key).await.expect("the same address answers").expect("it is there");
    assert_eq!(object.bytes, "first");
    assert_eq!(bucket.create(&key, Bytes::from_static(b"second")).await.expect("refused"), Created::AlreadyThere);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn two_gateways_to_one_directory_are_one_bucket() {
    let directory = tempfile::tempdir().expect("a directory");
    let (first, second) =
        tokio::join!(BucketServer::versitygw_on(directory.path()), BucketServer::versitygw_on(directory.path()));
    let [first, second] = [first, second].map(|server| server.unwrap_or_else(|error| panic!("{error:#}")));
    let places = [first, second].map(|server| (Place::at(server.location(), None), server));
    let key = layout::beacon("a");
    for (round, (place, _)) in places.iter().enumerate() {
        let created = place.bucket.create(&key, Bytes::from_static(b"x")).await.expect("the bucket answers");
        assert_eq!(created == Created::Now, round == 0);
    }
    let buckets = places.each_ref().map(|(place, _)| Arc::clone(&place.bucket));
    crate::ledger::servers_lose_nothing(buckets, &places[1].0).await;
}

#[test]
fn a_server_ends_with_the_process_that_started_it_even_by_force() {
    let mut child = Command::new(env!("CARGO_BIN_EXE_bucket-child"))
        .arg("server")
        .stdout(Stdio::piped())
        .spawn()
        .expect("it starts");
    let output = BufReader::new(child.stdout.take().expect("its output"));
    let address = output.lines().map_while(Result::ok).find_map(|line| Some(line.strip_prefix("address ")?.to_owned()));
    let address = address.expect("it starts a server and tells its address");
    TcpStream::connect(&address).expect("the server listens");
    child.kill().expect("the process that started it is killed");
    child.wait().expect("the process that started it is gone");
    let begun = std::time::Instant::now();
    while TcpStream::connect(&address).is_ok() {
        assert!(begun.elapsed() < Duration::from_secs(20), "the server still listens on {address}");
        std::thread::sleep(Duration::from_millis(10));
    }
}
