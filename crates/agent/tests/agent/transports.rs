//! The ways in which an agent reaches its server, besides plain http.

use std::io;
use std::net::SocketAddr;
use std::process::Stdio;
use std::sync::Arc;

use hyper_util::rt::{TokioExecutor, TokioIo};
use hyper_util::server::conn::auto;
use hyper_util::service::TowerToHyperService;
use taco_agent::{Dial, EngineMirror, EngineTrust, Options, RunEnvironment, Shutdown};
use taco_agent_protocol::{Engine, Outcome, PhaseKind};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;
use tokio_rustls::TlsAcceptor;
use tokio_rustls::rustls::ServerConfig;
use tokio_rustls::server::TlsStream;

use crate::agent_process::{AgentProcess, POOL_TOKEN, directory, eventually, tool};
use crate::fake_server::FakeServer;
use crate::plans::ONE;
use crate::scenario::{Run, Scenario};

#[tokio::test]
async fn an_agent_within_a_server_needs_no_network() {
    let server = FakeServer::at("http://localhost:1".to_owned());
    let router = server.router();
    let dial = Dial::embedded(move || {
        let (near, far) = tokio::io::duplex(64 * 1024);
        let service = TowerToHyperService::new(router.clone());
        tokio::spawn(async move {
            auto::Builder::new(TokioExecutor::new()).serve_connection_with_upgrades(TokioIo::new(far), service).await
        });
        near
    });
    let work_dir = directory();
    let store = work_dir.path().join("engines/tofu/1.77.0");
    std::fs::create_dir_all(&store).expect("a directory");
    std::os::unix::fs::symlink(tool("TACO_TEST_TOFU"), store.join("tofu")).expect("a link");
    let options = Options {
        engine_store: None,
        provider_cache: None,
        environment: RunEnvironment::Clean,
        keeps_id: false,
        portable: false,
        name: "within".to_owned(),
        token: POOL_TOKEN.to_owned(),
        concurrency: 4,
        once: false,
        work_dir: work_dir.path().into(),
        provider_mirror: None,
        engine_mirror: EngineMirror::Nowhere,
        engine_trust: EngineTrust::default(),
        ca_file: None,
        run_as: None,
        confine: true,
        forbidden: Vec::new(),
        supervisor: vec![env!("CARGO_BIN_EXE_taco-agent").into(), "supervise".into()],
        journal_secret: "the server's own".to_owned(),
    };
    let (shutdown, receiver) = watch::channel(Shutdown::Stay);
    let agent = tokio::spawn(taco_agent::run(options, dial, receiver));
    server.agent_is_connected().await;
    let run = Run::of(Engine::Tofu, &[("main.tf", ONE)]).with(|run| run.version = "~> 1.77.0".to_owned());
    server.seen().configurations.insert(run.id, run.archive.clone().into());
    let phase = server.hand_out(run.job(PhaseKind::Plan, false, &server.address)).await;
    let Outcome::Planned(summary) = server.outcome(&phase).await else { panic!("{}", server.log(&phase)) };
    assert_eq!(summary.engine.version, "1.77.0", "the agent's own store comes first");
    shutdown.send_replace(Shutdown::Drain);
    agent.await.expect("no panic").expect("it leaves in peace");
    eventually("it says goodbye", || server.seen().goodbyes == 1).await;
}

#[tokio::test]
async fn tls_needs_an_authority_that_is_trusted_and_runs_trust_it_too() {
    let certificate = rcgen::generate_simple_self_signed(["localhost".to_owned()]).expect("a certificate");
    let directory = directory();
    let authority = directory.path().join("authority.pem");
    std::fs::write(&authority, certificate.cert.pem()).expect("a file");
    let server = serve_tls(&certificate).await;
    let agent = AgentProcess::start(&server.address, &directory.path().join("trusting"), |command| {
        command.arg("--ca-file").arg(&authority);
    });
    let scenario = Scenario { server: server.clone(), agent, work_dir: crate::agent_process::directory() };
    let show = "resource \"terraform_data\" \"show\" {\n  provisioner \"local-exec\" { command = \"cat $SSL_CERT_FILE\" }\n}\n";
    let (phase, _) = scenario.apply(&Run::of(Engine::Terraform, &[("main.tf", show)])).await;
    let own = certificate.cert.pem();
    let line = own.lines().nth(1).expect("a line of base64");
    assert!(server.log(&phase).contains(line), "the run trusts the server's authority");
}

#[tokio::test]
async fn an_agent_that_does_not_trust_its_server_says_so_and_gives_it_no_token() {
    let certificate = rcgen::generate_simple_self_signed(["localhost".to_owned()]).expect("a certificate");
    let server = serve_tls(&certificate).await;
    let work_dir = directory();
    let mut agent = AgentProcess::start(&server.address, work_dir.path(), |command| {
        command.stderr(Stdio::piped());
    });
    let said = agent.says("invalid peer certificate").await;
    assert!(said.contains("UnknownIssuer"), "{said}");
    assert!(server.seen().hellos.is_empty());
}

async fn serve_tls(certificate: &rcgen::CertifiedKey<rcgen::KeyPair>) -> FakeServer {
    let key = certificate.signing_key.serialize_der().try_into().expect("a key");
    let provider = Arc::new(tokio_rustls::rustls::crypto::aws_lc_rs::default_provider());
    let configuration = ServerConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .expect("versions")
        .with_no_client_auth()
        .with_single_cert(vec![certificate.cert.der().clone()], key)
        .expect("a configuration");
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
    let port = listener.local_addr().expect("an address").port();
    let server = FakeServer::at(format!("https://localhost:{port}"));
    let listener = TlsListener { listener, acceptor: TlsAcceptor::from(Arc::new(configuration)) };
    let router = server.router();
    tokio::spawn(async move { axum::serve(listener, router).await });
    server
}

struct TlsListener {
    listener: TcpListener,
    acceptor: TlsAcceptor,
}

impl axum::serve::Listener for TlsListener {
    type Io = TlsStream<TcpStream>;
    type Addr = SocketAddr;

    async fn accept(&mut self) -> (Self::Io, SocketAddr) {
        loop {
            let Ok((stream, address)) = self.listener.accept().await else { continue };
            if let Ok(stream) = self.acceptor.accept(stream).await {
                return (stream, address);
            }
        }
    }

    fn local_addr(&self) -> io::Result<SocketAddr> {
        self.listener.local_addr()
    }
}
