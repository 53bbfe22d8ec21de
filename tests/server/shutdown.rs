use std::fs;
use std::io::{self, Read, Write};
use std::net::{SocketAddr, TcpStream};
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
        let port = |address: io::Result<SocketAddr>| address.expect("it is connected").port();
        let (ours, theirs) = (port(stream.local_addr()), port(stream.peer_addr()));
        // First all of it is there, then the server has read it.
        wait_until(|| queues(ours, theirs).is_some_and(|(unacknowledged, _)| unacknowledged == 0));
        wait_until(|| queues(theirs, ours).is_some_and(|(_, unread)| unread == 0));
        Self(stream)
    }

    fn finish(mut self) -> String {
        write!(self.0, "\r\n").expect("it is sent");
        let mut answer = String::new();
        self.0.read_to_string(&mut answer).expect("the server answers and hangs up");
        answer
    }
}

/// Lengths of a connection's send queue (sent and not acknowledged) and receive queue (arrived and not read), in bytes,
/// from the kernel. An end is identified by its own port and the other's.
fn queues(own: u16, other: u16) -> Option<(u64, u64)> {
    let table = fs::read_to_string("/proc/net/tcp").expect("the kernel tells");
    let (own, other) = (format!(":{own:04X}"), format!(":{other:04X}"));
    table.lines().find_map(|line| {
        let mut words = line.split_whitespace().skip(1);
        if !(words.next()?.ends_with(&own) && words.next()?.ends_with(&other)) {
            return None;
        }
        let (sent, received) = words.nth(1)?.split_once(':')?;
        Some((u64::from_str_radix(sent, 16).ok()?, u64::from_str_radix(received, 16).ok()?))
    })
}

fn wait_until(condition: impl Fn() -> bool) {
    let begun = Instant::now();
    while !condition() {
        assert!(begun.elapsed() < Duration::from_secs(90), "it does not happen");
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
    // It does not wait long for a slow bucket, and says so. Then there is nothing to see, and another one is tried.
    for _ in 0..3 {
        let home = Home::default();
        let mut server = home.server();
        let beacons = || {
            let files = fs::read_dir(home.bucket().join("beacons")).into_iter().flatten().flatten();
            files.filter(|file| file.path().extension().is_some_and(|kind| kind == "json")).count()
        };
        wait_until(|| beacons() > 0);
        server.process.signal(Signal::SIGTERM);
        assert_eq!(server.process.wait().code(), Some(0));
        if !server.process.stderr().contains("no time to take the beacon down") {
            assert_eq!(beacons(), 0);
            return;
        }
    }
    panic!("no server has time to take its sign of life down");
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
