//! Real requests to a real listener on the loopback: what gets there, and what must not.

use std::io;
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use async_trait::async_trait;
use bytes::Bytes;
use taco_outbound::{AllowedNetworks, Lookup, Outbound, OutboundClient, OutboundError};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpListener;

/// Answers every connection with the same bytes, and counts them.
struct Listener {
    address: SocketAddr,
    connections: Arc<AtomicUsize>,
}

impl Listener {
    async fn answering(answer: impl Into<Vec<u8>>) -> Self {
        let (answer, connections): (Vec<u8>, _) = (answer.into(), Arc::new(AtomicUsize::new(0)));
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
        let address = listener.local_addr().expect("an address");
        let counted = Arc::clone(&connections);
        tokio::spawn(async move {
            while let Ok((mut stream, _)) = listener.accept().await {
                counted.fetch_add(1, Ordering::SeqCst);
                let answer = answer.clone();
                tokio::spawn(async move {
                    let mut request = [0; 4096];
                    let _ = stream.read(&mut request).await;
                    let _ = stream.write_all(&answer).await;
                    let _ = stream.shutdown().await;
                });
            }
        });
        Self { address, connections }
    }

    fn came(&self) -> usize {
        self.connections.load(Ordering::SeqCst)
    }
}

/// Names that lead where a test wants: each question may have another answer.
struct Names(Vec<Vec<&'static str>>, AtomicUsize);

#[async_trait]
impl Lookup for Names {
    async fn addresses(&self, _: &str) -> io::Result<Vec<IpAddr>> {
        let question = self.1.fetch_add(1, Ordering::SeqCst).min(self.0.len() - 1);
        Ok(self.0[question].iter().map(|address| address.parse().expect("an address")).collect())
    }
}

fn client(allowed: &str, answers: &[&[&'static str]]) -> OutboundClient {
    let allowed =
        if allowed.is_empty() { AllowedNetworks::default() } else { AllowedNetworks::parse(allowed).expect("a list") };
    let names = Names(answers.iter().map(|answer| answer.to_vec()).collect(), AtomicUsize::new(0));
    OutboundClient::with_lookup(allowed, Arc::new(names)).expect("a client")
}

fn to(url: String) -> Outbound {
    Outbound { url, headers: vec![("x-test", "yes".to_owned())], body: Bytes::from_static(b"{}") }
}

const FINE: &str = "HTTP/1.1 200 OK\r\nX-Name: value\r\nContent-Length: 5\r\n\r\nhello";

#[tokio::test]
async fn an_allowed_network_is_reached_by_name_and_by_number() {
    let listener = Listener::answering(FINE).await;
    let client = client("127.0.0.0/8", &[&["127.0.0.1"]]);
    for host in ["hooks.test", "127.0.0.1"] {
        let answer = client.post(&to(format!("http://{host}:{}/", listener.address.port()))).await.expect("an answer");
        assert_eq!((answer.status, answer.body.as_str()), (200, "hello"));
        assert!(answer.headers.contains(&("x-name".to_owned(), "value".to_owned())));
    }
    assert_eq!(listener.came(), 2);
}

#[tokio::test]
async fn a_name_that_leads_into_the_site_is_refused_before_anyone_connects() {
    let listener = Listener::answering(FINE).await;
    let port = listener.address.port();
    for addresses in [
        &["127.0.0.1"][..],
        &["169.254.169.254"],
        &["10.0.0.1"],
        &["::1"],
        &["::ffff:127.0.0.1"],
        &["fd00:ec2::254"],
        &["0.0.0.0"],
        &["100.64.0.1"],
        &["192.168.0.1"],
        &["172.16.0.1"],
        &["224.0.0.1"],
        &["fe80::1"],
        // One of several is enough.
        &["1.1.1.1", "127.0.0.1"],
    ] {
        for scheme in ["http", "https"] {
            let url = format!("{scheme}://hooks.test:{port}/secret-path");
            let error = client("", &[addresses]).post(&to(url)).await.expect_err("refused");
            let OutboundError::Refused(why) = &error else { panic!("{addresses:?}: {error}") };
            assert!(why.starts_with("address not allowed") && !why.contains("secret-path"), "{why}");
        }
    }
    assert_eq!(listener.came(), 0);
}

#[tokio::test]
async fn a_name_that_was_fine_a_moment_ago_is_looked_at_again() {
    let listener = Listener::answering(FINE).await;
    let rebinding = client("127.0.0.2", &[&["127.0.0.2"], &["127.0.0.1"]]);
    let url = format!("http://hooks.test:{}/", listener.address.port());
    assert!(rebinding.check(&url).is_ok());
    // The first look is fine, and nobody listens there; the second leads to the listener.
    let first = rebinding.post(&to(url.clone())).await.expect_err("nobody is there");
    assert!(matches!(first, OutboundError::Failed(_)), "{first}");
    let second = rebinding.post(&to(url)).await.expect_err("refused");
    assert!(matches!(second, OutboundError::Refused(_)), "{second}");
    assert_eq!(listener.came(), 0);
}

#[tokio::test]
async fn a_redirect_is_an_answer_and_is_not_followed() {
    let target = Listener::answering(FINE).await;
    let redirect = format!("HTTP/1.1 307 Go\r\nLocation: http://{}/\r\nContent-Length: 0\r\n\r\n", target.address);
    let listener = Listener::answering(redirect).await;
    let client = client("127.0.0.0/8", &[&["127.0.0.1"]]);
    let answer = client.post(&to(format!("http://{}/", listener.address))).await.expect("an answer");
    assert_eq!((answer.status, target.came()), (307, 0));
}

#[tokio::test]
async fn an_endless_answer_is_read_to_its_limit() {
    let mut endless = b"HTTP/1.1 200 OK\r\nContent-Length: 1000000000\r\n\r\n".to_vec();
    endless.extend(std::iter::repeat_n(b'x', 4 * 1024 * 1024));
    let listener = Listener::answering(endless).await;
    let client = client("127.0.0.0/8", &[&["127.0.0.1"]]);
    let answer = client.post(&to(format!("http://{}/", listener.address))).await.expect("an answer");
    assert_eq!((answer.status, answer.body.len()), (200, 64 * 1024));
}

#[tokio::test]
async fn who_never_answers_is_waited_for_no_longer_than_the_timeout() {
    let silent = TcpListener::bind("127.0.0.1:0").await.expect("a port");
    let address = silent.local_addr().expect("an address");
    let client = client("127.0.0.0/8", &[&["127.0.0.1"]]);
    let error = client.post(&to(format!("http://{address}/secret-path"))).await.expect_err("no answer");
    assert_eq!(error.to_string(), "there was no answer within 10 seconds");
}

#[tokio::test]
async fn what_is_not_encrypted_goes_to_allowed_networks_alone() {
    let client = client("10.0.0.0/8", &[&["1.1.1.1"]]);
    for url in ["http://1.1.1.1/", "http://hooks.test/"] {
        let error = client.post(&to(url.to_owned())).await.expect_err("refused");
        assert!(error.to_string().contains("must be encrypted"), "{url}: {error}");
    }
}
