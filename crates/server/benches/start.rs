//! Startup time of a new server, and the resources it needs.

use std::io::{Read as _, Write as _};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use taco_bench::{Sample, Table, resident_memory, time};

const TIMES: usize = 15;

fn main() {
    let mut table = Table::new("Server");
    let (mut empty, mut again) = (Vec::new(), Vec::new());
    for _ in 0..TIMES {
        let home = tempfile::tempdir().expect("a directory");
        for starts in [&mut empty, &mut again] {
            let mut server = Running::start(home.path());
            starts.push(server.until_first_200());
        }
    }
    let empty = Sample::of(empty).median();
    table.row("start to first 200, empty directory", time(empty), "50 ms", empty < Duration::from_millis(50));
    table.note("start to first 200, second start", time(Sample::of(again).median()));

    let home = tempfile::tempdir().expect("a directory");
    let mut server = Running::start(home.path());
    server.until_first_200();
    std::thread::sleep(Duration::from_secs(2));
    let memory = resident_memory(server.process.id()).unwrap_or(u64::MAX) as f64 / 1e6;
    table.row("memory, idle", format!("{memory:.0} MB"), "40 MB", memory < 40.0);
    let size = std::fs::metadata(env!("CARGO_BIN_EXE_taco")).map_or(f64::MAX, |binary| binary.len() as f64 / 1e6);
    table.row("binary", format!("{size:.0} MB"), "35 MB", size < 35.0);
    table.close();
}

/// A server that stops when it is dropped.
struct Running {
    process: Child,
    address: SocketAddr,
    begun: Instant,
}

impl Running {
    fn start(home: &Path) -> Self {
        let free = TcpListener::bind("127.0.0.1:0").and_then(|listener| listener.local_addr()).expect("a free port");
        let begun = Instant::now();
        let process = Command::new(env!("CARGO_BIN_EXE_taco"))
            .arg("server")
            .env_clear()
            .env("HOME", home)
            .env("TACO_LISTEN", free.to_string())
            .current_dir(home)
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .expect("taco starts");
        Self { process, address: free, begun }
    }

    fn until_first_200(&mut self) -> Duration {
        while !self.is_ready() {
            assert!(self.begun.elapsed() < Duration::from_secs(30), "no answer within 30 s");
            std::thread::sleep(Duration::from_micros(500));
        }
        self.begun.elapsed()
    }

    fn is_ready(&self) -> bool {
        let ask = || -> std::io::Result<String> {
            let mut connection = TcpStream::connect(self.address)?;
            connection.write_all(b"GET /readyz HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n\r\n")?;
            let mut answer = String::new();
            connection.read_to_string(&mut answer)?;
            Ok(answer)
        };
        ask().is_ok_and(|answer| answer.starts_with("HTTP/1.1 200"))
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}
