//! The server's side of the protocol, without a ledger: what an agent sends can be looked at.

use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard};

use axum::Router;
use axum::body::Bytes;
use axum::extract::ws::{Message, WebSocket, WebSocketUpgrade};
use axum::extract::{DefaultBodyLimit, Path, Query, State};
use axum::http::{HeaderMap, StatusCode, header};
use axum::response::{IntoResponse, Json, Response};
use axum::routing::get;
use serde_json::{Value, json};
use taco_agent_protocol::{
    CONNECT_PATH, FromAgent, FromServer, Job, LogConflict, Outcome, PROTOCOL, PhaseAttempt, PhaseKind, Refusal,
};
use taco_words::id::{AgentId, RunId};
use tokio::net::TcpListener;
use tokio::sync::broadcast;

use crate::agent_process::{POOL_TOKEN, eventually};

#[derive(Default)]
pub(crate) struct Seen {
    pub(crate) hellos: Vec<FromAgent>,
    pub(crate) goodbyes: usize,
    pub(crate) drainings: usize,
    /// Arrivals, in the order in which they were complete.
    pub(crate) arrivals: Vec<(PhaseAttempt, String)>,
    pub(crate) blobs: HashMap<(PhaseAttempt, String), Bytes>,
    pub(crate) logs: HashMap<PhaseAttempt, Vec<u8>>,
    pub(crate) outcomes: HashMap<PhaseAttempt, Outcome>,
    pub(crate) jobs: HashMap<PhaseAttempt, Job>,
    pub(crate) configurations: HashMap<RunId, Bytes>,
    /// State of the only workspace.
    pub(crate) state: Option<Bytes>,
    pub(crate) states: usize,
}

#[derive(Clone)]
pub(crate) struct FakeServer {
    pub(crate) address: String,
    inner: Arc<Inner>,
}

struct Inner {
    seen: Mutex<Seen>,
    messages: broadcast::Sender<FromServer>,
    /// Ends all connections when it is used.
    cut: broadcast::Sender<()>,
    publishes: AtomicBool,
    /// True if plain requests are answered.
    answers: AtomicBool,
    lease_milliseconds: AtomicU64,
    /// The next part of a log that comes is forgotten.
    forgets_log: AtomicBool,
    /// True if an agent that sends its id is told that it belongs to another.
    doubts_ids: AtomicBool,
}

impl FakeServer {
    pub(crate) async fn start() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
        let address = format!("http://{}", listener.local_addr().expect("an address"));
        let server = Self::at(address);
        let router = server.router();
        tokio::spawn(async move { axum::serve(listener, router).await });
        server
    }

    /// One that is not served yet.
    pub(crate) fn at(address: String) -> Self {
        let inner = Arc::new(Inner {
            seen: Mutex::default(),
            messages: broadcast::channel(64).0,
            cut: broadcast::channel(4).0,
            publishes: AtomicBool::new(true),
            answers: AtomicBool::new(true),
            lease_milliseconds: AtomicU64::new(60_000),
            forgets_log: AtomicBool::new(false),
            doubts_ids: AtomicBool::new(false),
        });
        Self { address, inner }
    }

    pub(crate) fn router(&self) -> Router {
        Router::new()
            .route(CONNECT_PATH, get(connect))
            .route("/.well-known/terraform.json", get(|| async { Json(json!({ "tfe.v2": "/api/v2/" })) }))
            .route("/api/agent/v1/phases/{run}/{phase}/{epoch}/{word}", get(fetch).put(take))
            .layer(DefaultBodyLimit::disable())
            .with_state(self.inner.clone())
    }

    pub(crate) fn seen(&self) -> MutexGuard<'_, Seen> {
        self.inner.seen.lock().expect("nobody panicked")
    }

    pub(crate) fn lease(&self, milliseconds: u64) {
        self.inner.lease_milliseconds.store(milliseconds, Ordering::Relaxed);
    }

    pub(crate) fn publish(&self, publishes: bool) {
        self.inner.publishes.store(publishes, Ordering::Relaxed);
    }

    pub(crate) fn answer(&self, answers: bool) {
        self.inner.answers.store(answers, Ordering::Relaxed);
    }

    pub(crate) fn forget_log(&self) {
        self.inner.forgets_log.store(true, Ordering::Relaxed);
    }

    pub(crate) fn doubt_ids(&self) {
        self.inner.doubts_ids.store(true, Ordering::Relaxed);
    }

    /// Breaks all WebSockets.
    pub(crate) fn cut(&self) {
        self.inner.cut.send(()).expect("an agent is connected");
    }

    pub(crate) fn say(&self, message: FromServer) {
        self.inner.messages.send(message).expect("an agent is connected");
    }

    pub(crate) async fn agent_is_connected(&self) {
        eventually("an agent connects", || self.inner.messages.receiver_count() > 0).await;
    }

    /// Gives a phase to the agent that is connected.
    pub(crate) async fn hand_out(&self, job: Job) -> PhaseAttempt {
        self.agent_is_connected().await;
        let phase = job.phase;
        self.seen().jobs.insert(phase, job.clone());
        self.say(FromServer::Execute(Box::new(job)));
        phase
    }

    pub(crate) async fn outcome(&self, phase: &PhaseAttempt) -> Outcome {
        eventually("the outcome comes", || self.seen().outcomes.contains_key(phase)).await;
        self.seen().outcomes[phase].clone()
    }

    pub(crate) fn log(&self, phase: &PhaseAttempt) -> String {
        let log = self.seen().logs.get(phase).cloned().unwrap_or_default();
        String::from_utf8(log).expect("a text")
    }

    pub(crate) async fn log_has(&self, phase: &PhaseAttempt, text: &str) {
        eventually(&format!("the log says {text}"), || self.log(phase).contains(text)).await;
    }

    pub(crate) fn blob(&self, phase: &PhaseAttempt, word: &str) -> Bytes {
        self.seen().blobs[&(*phase, word.to_owned())].clone()
    }

    pub(crate) fn json(&self, phase: &PhaseAttempt, word: &str) -> Value {
        serde_json::from_slice(&self.blob(phase, word)).expect("JSON")
    }

    pub(crate) fn state(&self) -> Value {
        serde_json::from_slice(self.seen().state.as_ref().expect("a state")).expect("JSON")
    }
}

async fn connect(State(inner): State<Arc<Inner>>, headers: HeaderMap, upgrade: WebSocketUpgrade) -> Response {
    match headers.get(header::AUTHORIZATION).is_some_and(|value| value == &format!("Bearer {POOL_TOKEN}")) {
        true => upgrade.on_upgrade(|socket| serve(inner, socket)),
        false => StatusCode::UNAUTHORIZED.into_response(),
    }
}

async fn serve(inner: Arc<Inner>, mut socket: WebSocket) {
    let mut cut = inner.cut.subscribe();
    let mut messages = None;
    loop {
        let message = tokio::select! {
            message = socket.recv() => message,
            _ = cut.recv() => return,
            message = next(&mut messages) => {
                send(&mut socket, &message).await;
                continue;
            }
        };
        let text = match message {
            Some(Ok(Message::Text(text))) => text,
            Some(Ok(_)) => continue,
            Some(Err(_)) | None => return,
        };
        let said: FromAgent = serde_json::from_str(&text).expect("what the protocol says");
        match &said {
            FromAgent::Hello { protocol, agent, .. } => {
                assert_eq!(*protocol, PROTOCOL);
                inner.seen.lock().expect("nobody panicked").hellos.push(said.clone());
                if agent.is_some() && inner.doubts_ids.load(Ordering::Relaxed) {
                    let detail = "that is another process".to_owned();
                    send(&mut socket, &FromServer::Refused { reason: Refusal::AlreadyConnected, detail }).await;
                    return;
                }
                let lease_milliseconds = inner.lease_milliseconds.load(Ordering::Relaxed);
                // As often as a server wants it: an agent that asks more often also gives a slow one up sooner.
                let heartbeat_milliseconds = lease_milliseconds / 8;
                let agent = AgentId::from_random([1; 16]);
                let welcome = FromServer::Welcome { agent, lease_milliseconds, heartbeat_milliseconds, lost: vec![] };
                send(&mut socket, &welcome).await;
                messages = Some(inner.messages.subscribe());
            }
            FromAgent::Heartbeat { number, .. } if inner.publishes.load(Ordering::Relaxed) => {
                send(&mut socket, &FromServer::Published { number: *number }).await;
            }
            FromAgent::Heartbeat { .. } => {}
            FromAgent::Draining => inner.seen.lock().expect("nobody panicked").drainings += 1,
            FromAgent::Goodbye => inner.seen.lock().expect("nobody panicked").goodbyes += 1,
        }
    }
}

async fn next(messages: &mut Option<broadcast::Receiver<FromServer>>) -> FromServer {
    match messages {
        Some(messages) => messages.recv().await.expect("the test does not say too much at once"),
        None => std::future::pending().await,
    }
}

async fn send(socket: &mut WebSocket, message: &FromServer) {
    let text = serde_json::to_string(message).expect("JSON");
    let _ = socket.send(Message::text(text)).await;
}

type Parts = Path<(RunId, PhaseKind, u64, String)>;

fn admitted(inner: &Inner, path: &Parts, headers: &HeaderMap) -> Result<(PhaseAttempt, String), StatusCode> {
    let Path((run, phase, epoch, word)) = path;
    let phase = PhaseAttempt { run: *run, phase: *phase, epoch: *epoch };
    if !inner.answers.load(Ordering::Relaxed) {
        return Err(StatusCode::SERVICE_UNAVAILABLE);
    }
    let seen = inner.seen.lock().expect("nobody panicked");
    let job = seen.jobs.get(&phase).ok_or(StatusCode::NOT_FOUND)?;
    let bearer = format!("Bearer {}", job.token);
    match headers.get(header::AUTHORIZATION).is_some_and(|value| value == &bearer) {
        true => Ok((phase, word.clone())),
        false => Err(StatusCode::UNAUTHORIZED),
    }
}

async fn fetch(State(inner): State<Arc<Inner>>, path: Parts, headers: HeaderMap) -> Result<Bytes, StatusCode> {
    let (phase, word) = admitted(&inner, &path, &headers)?;
    let seen = inner.seen.lock().expect("nobody panicked");
    let found = match word.as_str() {
        "configuration" => seen.configurations.get(&phase.run),
        "state" => seen.state.as_ref(),
        "plan" => {
            seen.blobs.iter().find(|((made, word), _)| made.run == phase.run && word == "plan").map(|(_, blob)| blob)
        }
        _ => None,
    };
    found.cloned().ok_or(StatusCode::NOT_FOUND)
}

async fn take(
    State(inner): State<Arc<Inner>>,
    path: Parts,
    Query(query): Query<HashMap<String, u64>>,
    headers: HeaderMap,
    body: Bytes,
) -> Result<Response, StatusCode> {
    let (phase, word) = admitted(&inner, &path, &headers)?;
    let mut seen = inner.seen.lock().expect("nobody panicked");
    seen.arrivals.push((phase, word.clone()));
    match word.as_str() {
        "log" => {
            let log = seen.logs.entry(phase).or_default();
            if inner.forgets_log.swap(false, Ordering::Relaxed) {
                log.truncate(1);
            }
            let next = log.len() as u64;
            if query["offset"] != next {
                return Ok((StatusCode::CONFLICT, Json(LogConflict { next })).into_response());
            }
            log.extend_from_slice(&body);
        }
        "state" => {
            seen.state = Some(body);
            seen.states += 1;
        }
        "outcome" => {
            let outcome = serde_json::from_slice(&body).map_err(|_| StatusCode::BAD_REQUEST)?;
            seen.outcomes.insert(phase, outcome);
        }
        _ => {
            seen.blobs.insert((phase, word), body);
        }
    }
    Ok(StatusCode::NO_CONTENT.into_response())
}
