//! Cost of connections for a server: silent ones, those that send half of a request, and too many of them.

use std::io::{ErrorKind, Read, Write};
use std::net::{IpAddr, Ipv4Addr, SocketAddr, TcpStream};
use std::process::Command;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use harness::home::{Home, ServerProcess};
use harness::run_site::{RunSite, admin_of, until};
use harness::stand_in_engine::Step;
use nix::sys::resource::{Resource, getrlimit, setrlimit};
use reqwest::{Client, StatusCode};
use tokio::io::AsyncReadExt as _;
use tokio::net::TcpSocket;
use tokio::task::JoinSet;
use tokio::time::sleep;

/// Silence that no client should have to wait out. Before there were timeouts, it went on for ever.
const CLIENT_TIMEOUT: Duration = Duration::from_secs(60);

fn connect(server: &ServerProcess) -> TcpStream {
    let stream = TcpStream::connect(&server.address).expect("it listens");
    stream.set_read_timeout(Some(CLIENT_TIMEOUT)).expect("a time");
    stream
}

/// All that comes until the server closes the connection; it must do so.
fn rest_of(mut stream: TcpStream, what: &str) -> Vec<u8> {
    let mut answer = Vec::new();
    match stream.read_to_end(&mut answer) {
        Err(error) if error.kind() != ErrorKind::ConnectionReset => panic!("{what} is still open: {error}"),
        _ => answer,
    }
}

/// One answer on a connection that stays open: its head and its body.
fn answer_on(stream: &mut TcpStream) -> (String, Vec<u8>) {
    let mut head = Vec::new();
    while !head.ends_with(b"\r\n\r\n") {
        let mut byte = [0];
        assert_eq!(stream.read(&mut byte).expect("an answer"), 1, "{}", String::from_utf8_lossy(&head));
        head.push(byte[0]);
    }
    let head = String::from_utf8(head).expect("text").to_lowercase();
    let length = head.lines().find_map(|line| line.strip_prefix("content-length: "));
    let mut body = vec![0; length.map_or(0, |length| length.parse().expect("a number"))];
    stream.read_exact(&mut body).expect("a body");
    (head, body)
}

/// Each in a thread of its own, since each takes as long as the timeouts.
fn all_are_closed(server: &ServerProcess, beginnings: &[(&'static str, &'static [u8])]) {
    let threads: Vec<_> = (beginnings.iter())
        .map(|&(what, bytes)| {
            let mut stream = connect(server);
            stream.write_all(bytes).expect("it takes them");
            std::thread::spawn(move || rest_of(stream, what))
        })
        .collect();
    for thread in threads {
        thread.join().expect("it is closed");
    }
}

const HTTP_2_PREFACE: &[u8] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\0\0\0\x04\0\0\0\0\0";

#[test]
fn whoever_says_nothing_or_half_of_something_is_closed() {
    let home = Home::default();
    let server = home.server();
    let mut second_head = connect(&server);
    second_head.write_all(b"GET /healthz HTTP/1.1\r\nhost: taco\r\n\r\n").expect("it takes it");
    assert!(answer_on(&mut second_head).0.starts_with("http/1.1 200"));
    second_head.write_all(b"GET /healthz HTTP/1.1\r\nho").expect("it takes it");
    let second_head = std::thread::spawn(move || rest_of(second_head, "half of the second head"));
    all_are_closed(
        &server,
        &[
            ("nothing", b""),
            ("one byte", b"P"),
            ("half of the preface of HTTP/2", b"PRI * HTTP/2.0\r\n"),
            ("an idle connection of HTTP/2", HTTP_2_PREFACE),
            ("half a head", b"GET /healthz HTTP/1.1\r\nhost: taco\r\n"),
        ],
    );
    second_head.join().expect("it is closed");
}

#[test]
fn whoever_does_not_finish_the_handshake_of_tls_is_closed() {
    let home = Home::default();
    let mut command = home.taco(&["server", "--tls-dev"]);
    let server = ServerProcess::start(command.env("TACO_LISTEN", "127.0.0.1:0"));
    // The first bytes of a ClientHello that announces 512 bytes.
    all_are_closed(&server, &[("nothing", b""), ("half a handshake", b"\x16\x03\x01\x02\0\x01")]);
}

#[tokio::test]
async fn http_2_is_not_spoken() {
    let home = Home::default();
    let server = home.server();
    let stream = {
        let mut stream = connect(&server);
        stream.write_all(HTTP_2_PREFACE).expect("it takes it");
        stream
    };
    let answer = tokio::task::spawn_blocking(move || rest_of(stream, "HTTP/2")).await.expect("no panic");
    assert!(answer.is_empty() || answer.starts_with(b"HTTP/1.1 400"), "{}", String::from_utf8_lossy(&answer));
}

#[test]
fn what_follows_a_refusal_on_the_same_connection_is_answered_or_known_not_to_be() {
    let home = Home::default();
    let server = home.server();
    let post = |length: usize, expects: bool| {
        let expects = if expects { "expect: 100-continue\r\n" } else { "" };
        format!(
            "POST /api/v2/organizations HTTP/1.1\r\nhost: taco\r\nauthorization: Bearer no\r\n{expects}content-length: {length}\r\n\r\n"
        )
    };
    // A small body is read, though it is not needed.
    let mut stream = connect(&server);
    for _ in 0..3 {
        stream.write_all(post(100_000, false).as_bytes()).expect("it takes the head");
        stream.write_all(&[b'x'; 100_000]).expect("it takes the body");
        let (head, _) = answer_on(&mut stream);
        assert!(head.starts_with("http/1.1 401") && !head.contains("connection: close"), "{head}");
    }
    stream.write_all(b"GET /healthz HTTP/1.1\r\nhost: taco\r\n\r\n").expect("it takes it");
    assert!(answer_on(&mut stream).0.starts_with("http/1.1 200"));
    // A large one is not, and the answer arrives all the same while the client goes on sending.
    let mut stream = connect(&server);
    stream.write_all(post(20_000_000, false).as_bytes()).expect("it takes the head");
    for _ in 0..200 {
        stream.write_all(&[b'x'; 100_000]).expect("it takes the body");
    }
    let (head, body) = answer_on(&mut stream);
    assert!(head.starts_with("http/1.1 401") && head.contains("connection: close"), "{head}");
    assert!(String::from_utf8_lossy(&body).contains("token"), "{head}");
    assert!(rest_of(stream, "it said that it closes").is_empty());
    // A client that asks before sending is not asked to send what is not needed.
    let mut stream = connect(&server);
    stream.write_all(post(1000, true).as_bytes()).expect("it takes the head");
    let (head, _) = answer_on(&mut stream);
    assert!(head.starts_with("http/1.1 401") && head.contains("connection: close"), "{head}");
}

#[test]
fn a_body_of_two_lengths_is_refused() {
    let home = Home::default();
    let server = home.server();
    for lengths in
        ["content-length: 5\r\ntransfer-encoding: chunked\r\n", "Transfer-Encoding: chunked\r\nContent-Length: 5\r\n"]
    {
        let mut stream = connect(&server);
        let smuggled = "0\r\n\r\nGET /healthz HTTP/1.1\r\nhost: taco\r\n\r\n";
        write!(stream, "POST /login HTTP/1.1\r\nhost: taco\r\n{lengths}\r\n{smuggled}").expect("it takes it");
        let answer = rest_of(stream, "two lengths");
        let answer = String::from_utf8_lossy(&answer).to_lowercase();
        assert!(answer.starts_with("http/1.1 400") && answer.contains("connection: close"), "{answer}");
        assert_eq!(answer.matches("http/1.1 ").count(), 1, "what follows is no request: {answer}");
    }
}

/// Connections that say nothing, from as many addresses, and come back when they are closed.
struct Silence {
    open: Arc<AtomicUsize>,
    _tasks: JoinSet<()>,
}

impl Silence {
    fn begin(server: &ServerProcess, count: u32) -> Self {
        let server: SocketAddr = server.address.parse().expect("an address");
        let open = Arc::new(AtomicUsize::new(0));
        let mut tasks = JoinSet::new();
        for number in 0..count {
            let open = Arc::clone(&open);
            let from = IpAddr::from(Ipv4Addr::from(u32::from(Ipv4Addr::new(127, 1, 0, 1)) + number));
            tasks.spawn(async move {
                loop {
                    let socket = TcpSocket::new_v4().expect("there is room for it");
                    socket.bind(SocketAddr::new(from, 0)).expect("all of 127.0.0.0/8 is ours");
                    if let Ok(mut stream) = socket.connect(server).await {
                        open.fetch_add(1, Ordering::Relaxed);
                        _ = stream.read(&mut [0]).await;
                        open.fetch_sub(1, Ordering::Relaxed);
                    }
                    sleep(Duration::from_secs(1)).await;
                }
            });
        }
        Self { open, _tasks: tasks }
    }

    /// Waits until at least so many are open at once.
    async fn reaches(&self, count: usize) {
        until("the silent connections are there", async || self.open.load(Ordering::Relaxed) >= count).await;
    }
}

/// Another process than this one has the other ends.
fn make_room_for_files() {
    let (_, hard) = getrlimit(Resource::RLIMIT_NOFILE).expect("a limit");
    setrlimit(Resource::RLIMIT_NOFILE, hard, hard).expect("it is ours to raise");
    assert!(hard > 8_000, "this test has 5,000 connections; raise the limit of open files, which is {hard}");
}

/// The same server, with limits on its open files.
fn limited(command: &Command, limit: &str) -> Command {
    let mut shell = Command::new("/bin/sh");
    shell.args(["-c", &format!("{limit} && exec \"$0\" \"$@\"")]).arg(command.get_program()).args(command.get_args());
    shell.env_clear().envs(command.get_envs().filter_map(|(name, value)| Some((name, value?))));
    shell.current_dir(command.get_current_dir().expect("a home"));
    shell
}

/// A new login, on a connection of its own, is answered.
async fn is_answered(server: &ServerProcess) {
    let client = Client::builder().timeout(CLIENT_TIMEOUT).pool_max_idle_per_host(0).build().expect("a client");
    let address = format!("http://{}/login", server.address);
    let form = "username=nobody&password=not+the+right+one";
    let request = client.post(&address).header("content-type", "application/x-www-form-urlencoded").body(form);
    let answer = request.header("origin", format!("http://{}", server.address)).send().await.expect("an answer");
    assert_eq!(answer.status(), StatusCode::UNAUTHORIZED, "{:?}", answer.text().await);
}

/// An apply goes on, and others come in, while 5,000 connections say nothing. `least` of them must be open at once for that
/// to mean something.
async fn goes_on_among_silent_connections(limit: &str, least: usize) {
    make_room_for_files();
    let (site, first) = RunSite::with_lease(20).await;
    drop(first);
    let server = ServerProcess::start(&mut limited(&site.server_command(None), limit));
    let _agent = site.agent("one", &server.address);
    let admin = admin_of(&server.address);
    let workspace = site.given_workspace(&admin, "web").await;
    site.engine.hold(Step::ApplyIsHalfDone);
    let run = admin.start_run(&workspace).await;
    site.engine.comes_to(Step::ApplyIsHalfDone, &run, 1).await;
    let silence = Silence::begin(&server, 5_000);
    silence.reaches(least).await;
    for _ in 0..5 {
        is_answered(&server).await;
        admin.get("/api/v2/organizations/acme").await;
    }
    // An agent that comes only now gets in, too.
    let _second = site.agent("two", &server.address);
    site.engine.let_go(Step::ApplyIsHalfDone);
    assert_eq!(admin.end_of(&run).await, "applied");
    assert_eq!(site.engine.came_to(Step::ApplyBegins, &run).len(), 1);
    assert!(!site.engine.was_interrupted(&run));
    let log = server.process.stderr();
    assert!(!log.contains("cannot accept connections"), "it kept files for itself: {log}");
    assert!(!log.to_lowercase().contains("too many open files"), "{log}");
}

#[tokio::test(flavor = "multi_thread")]
async fn five_thousand_silent_connections_keep_nobody_out_where_the_soft_limit_is_that_of_most_systems() {
    goes_on_among_silent_connections("ulimit -Sn 1024", 3_000).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn five_thousand_silent_connections_keep_nobody_out_where_no_more_than_1024_files_can_be_open() {
    goes_on_among_silent_connections("ulimit -Sn 1024 && ulimit -Hn 1024", 300).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_address_has_its_share_of_connections_and_a_trusted_proxy_has_all() {
    let home = Home::default();
    let start = |proxies: Option<&str>| {
        let mut command = home.taco(&["server"]);
        command.env("TACO_LISTEN", "127.0.0.1:0").env("TACO_MAX_CONNECTIONS_PER_ADDRESS", "20");
        if let Some(proxies) = proxies {
            command.env("TACO_TRUSTED_PROXIES", proxies);
        }
        ServerProcess::start(&mut command)
    };
    // Those that are closed to make room show it at once, long before their time is over.
    let is_closed = |stream: &&TcpStream| {
        stream.set_nonblocking(true).expect("it is ours");
        let mut stream: &TcpStream = stream;
        !matches!(stream.read(&mut [0]), Err(error) if error.kind() == ErrorKind::WouldBlock)
    };
    let server = start(None);
    let silent: Vec<TcpStream> = (0..60).map(|_| connect(&server)).collect();
    until("those over its share are closed", async || silent.iter().filter(is_closed).count() >= 40).await;
    is_answered(&server).await;
    drop(server);

    let server = start(Some("127.0.0.1"));
    let mut streams: Vec<TcpStream> = (0..60).map(|_| connect(&server)).collect();
    for _ in 0..2 {
        for stream in &mut streams {
            stream.write_all(b"GET /healthz HTTP/1.1\r\nhost: taco\r\n\r\n").expect("the limit is not for the proxy");
            assert!(answer_on(stream).0.starts_with("http/1.1 200"));
        }
    }
}
