use std::io::{Read, Write};
use std::net::TcpStream;
use std::thread;
use std::time::{Duration, Instant};

use harness::home::{Home, ServerProcess};
use nix::sys::signal::Signal;

/// A request whose head has not arrived completely yet.
struct HalfRequest(TcpStream);

impl HalfRequest {
    fn send(server: &ServerProcess, path: &str) -> Self {
        let mut stream = TcpStream::connect(&server.address).expect("it listens");
        write!(stream, "GET {path} HTTP/1.1\r\nhost: taco\r\n").expect("it is sent");
        // Nothing tells us when the server has read it; on a loopback device that is soon.
        thread::sleep(Duration::from_millis(300));
        Self(stream)
    }

    fn finish(mut self) -> String {
        write!(self.0, "\r\n").expect("it is sent");
        let mut answer = String::new();
        self.0.read_to_string(&mut answer).expect("the server answers and hangs up");
        answer
    }
}

fn wait_until(condition: impl Fn() -> bool) {
    let begun = Instant::now();
    while !condition() {
        assert!(begun.elapsed() < Duration::from_secs(20), "it does not happen");
        thread::sleep(Duration::from_millis(10));
    }
}

#[test]
fn sigterm_lets_requests_under_way_finish() {
    let home = Home::default();
    let mut server = home.server();
    let (health, readiness) = (HalfRequest::send(&server, "/healthz"), HalfRequest::send(&server, "/readyz"));
    server.process.signal(Signal::SIGTERM);
    server.process.line_of_stderr(|line| line.contains("shutting down"));
    wait_until(|| TcpStream::connect(&server.address).is_err());
    let answer = readiness.finish();
    assert!(answer.starts_with("HTTP/1.1 503 ") && answer.ends_with("not ready: shutting down\n"), "{answer}");
    let answer = health.finish();
    assert!(answer.starts_with("HTTP/1.1 200 ") && answer.ends_with("ok\n"), "{answer}");
    assert_eq!(server.process.wait().code(), Some(0), "{server:?}");
}

#[tokio::test]
async fn sigint_ends_an_idle_server_at_once() {
    let home = Home::default();
    let mut server = home.server();
    let client = reqwest::Client::new();
    client.get(format!("http://{}/healthz", server.address)).send().await.expect("it answers");
    server.process.signal(Signal::SIGINT);
    assert_eq!(server.process.wait().code(), Some(0), "a connection that is only kept open does not count");
}

#[test]
fn a_server_that_stops_takes_its_sign_of_life_down() {
    let home = Home::default();
    let mut server = home.server();
    let beacons = || {
        let files = std::fs::read_dir(home.bucket().join("beacons")).into_iter().flatten();
        files.filter(|file| file.as_ref().is_ok_and(|file| file.path().extension().is_some_and(|kind| kind == "json")))
    };
    wait_until(|| beacons().count() > 0);
    server.process.signal(Signal::SIGTERM);
    assert_eq!(server.process.wait().code(), Some(0));
    assert_eq!(beacons().count(), 0);
}

#[test]
fn a_second_signal_does_not_wait() {
    let home = Home::default();
    let mut server = home.server();
    let _under_way = HalfRequest::send(&server, "/healthz");
    server.process.signal(Signal::SIGTERM);
    server.process.line_of_stderr(|line| line.contains("shutting down"));
    server.process.signal(Signal::SIGTERM);
    assert_eq!(server.process.wait().code(), Some(143));
}
