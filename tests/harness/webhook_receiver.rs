//! A program that gets webhooks: real requests on a real socket. It checks signatures with other code than the server's.

use std::collections::VecDeque;
use std::future::pending;
use std::net::SocketAddr;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use aws_lc_rs::hmac;
use axum::Router;
use axum::body::Bytes;
use axum::extract::State;
use axum::http::{HeaderMap, StatusCode};
use axum::routing::post;
use serde_json::Value;
use tokio::net::TcpListener;
use tokio::sync::watch;
use tokio::time::timeout;

/// Long enough for a machine that is busy with other tests.
const RECEIVE_TIMEOUT: Duration = Duration::from_secs(90);

/// One request as it came.
#[derive(Clone, Debug)]
pub struct Received {
    pub headers: HeaderMap,
    pub body: Bytes,
}

impl Received {
    pub fn json(&self) -> Value {
        serde_json::from_slice(&self.body).expect("JSON")
    }

    pub fn header(&self, name: &str) -> Option<&str> {
        self.headers.get(name).map(|value| value.to_str().expect("text"))
    }

    /// The id that is the same with every attempt.
    pub fn delivery(&self) -> String {
        self.header("x-taco-delivery").expect("each has one").to_owned()
    }

    /// What it tells of, for instance `run:created`.
    pub fn trigger(&self) -> String {
        self.json()["notifications"][0]["trigger"].as_str().expect("a trigger").to_owned()
    }

    /// True if its signature was made with this token.
    pub fn is_signed_with(&self, token: &str) -> bool {
        let key = hmac::Key::new(hmac::HMAC_SHA512, token.as_bytes());
        let expected = hex::encode(hmac::sign(&key, &self.body));
        self.header("x-tfe-notification-signature") == Some(expected.as_str())
    }

    /// The same for a request to a run task.
    pub fn is_task_signed_with(&self, key: &str) -> bool {
        let key = hmac::Key::new(hmac::HMAC_SHA512, key.as_bytes());
        let expected = hex::encode(hmac::sign(&key, &self.body));
        self.header("x-tfc-task-signature") == Some(expected.as_str())
    }
}

struct Shared {
    received: watch::Sender<Vec<Received>>,
    /// Statuses of the next answers; then it is 200.
    statuses: Mutex<VecDeque<StatusCode>>,
    /// What comes for the first time is never answered.
    ignores_first_attempts: AtomicBool,
}

pub struct WebhookReceiver {
    address: SocketAddr,
    shared: Arc<Shared>,
}

impl WebhookReceiver {
    pub async fn start() -> Self {
        let shared = Arc::new(Shared {
            received: watch::channel(Vec::new()).0,
            statuses: Mutex::default(),
            ignores_first_attempts: AtomicBool::new(false),
        });
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
        let address = listener.local_addr().expect("an address");
        let routes = Router::new().route("/hook", post(receive)).with_state(Arc::clone(&shared));
        tokio::spawn(async move { axum::serve(listener, routes).await });
        Self { address, shared }
    }

    pub fn url(&self) -> String {
        format!("http://{}/hook", self.address)
    }

    /// The next requests are answered so, one after the other.
    pub fn answers_with(&self, statuses: impl IntoIterator<Item = u16>) {
        let statuses = statuses.into_iter().map(|status| StatusCode::from_u16(status).expect("a status"));
        self.shared.statuses.lock().expect("no panic").extend(statuses);
    }

    /// From now on, what comes for the first time is never answered, and what comes again is.
    pub fn leaves_first_attempts_unanswered(&self) {
        self.shared.ignores_first_attempts.store(true, Ordering::SeqCst);
    }

    pub fn received(&self) -> Vec<Received> {
        self.shared.received.borrow().clone()
    }

    /// Waits until what has come pleases.
    pub async fn until(&self, what: &str, pleases: impl Fn(&[Received]) -> bool) -> Vec<Received> {
        let mut received = self.shared.received.subscribe();
        let come = timeout(RECEIVE_TIMEOUT, received.wait_for(|received| pleases(received))).await;
        match come {
            Ok(received) => received.expect("the receiver lives").clone(),
            Err(_) => panic!("{what}: this is all that came: {:#?}", self.received()),
        }
    }
}

async fn receive(State(shared): State<Arc<Shared>>, headers: HeaderMap, body: Bytes) -> (StatusCode, &'static str) {
    let new = Received { headers, body };
    let is_known = shared.received.borrow().iter().any(|one| one.delivery() == new.delivery());
    shared.received.send_modify(|received| received.push(new));
    if !is_known && shared.ignores_first_attempts.load(Ordering::SeqCst) {
        return pending().await;
    }
    let status = shared.statuses.lock().expect("no panic").pop_front().unwrap_or(StatusCode::OK);
    (status, "thank you")
}
