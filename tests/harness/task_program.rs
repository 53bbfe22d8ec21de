//! A run task as others write them: it checks signatures with code of its own, answers at once, looks at the plan with the
//! token that it was given, and calls back.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use aws_lc_rs::hmac;
use axum::Router;
use axum::body::Bytes;
use axum::extract::State;
use axum::http::{HeaderMap, StatusCode};
use axum::routing::post;
use reqwest::Client;
use serde_json::{Value, json};
use tokio::net::TcpListener;
use tokio::sync::watch;
use tokio::time::timeout;

/// Long enough for a machine that is busy with other tests.
const ASKED_TIMEOUT: Duration = Duration::from_secs(90);

/// What the task says to a request.
pub type Verdict = Box<dyn Fn(&Value, Option<&Value>) -> TaskSays + Send + Sync>;

/// An answer of the task; `None` is silence.
pub struct TaskSays {
    pub status: Option<&'static str>,
    pub message: String,
}

impl TaskSays {
    pub fn passed(message: &str) -> Self {
        Self { status: Some("passed"), message: message.to_owned() }
    }

    pub fn failed(message: &str) -> Self {
        Self { status: Some("failed"), message: message.to_owned() }
    }
}

struct Shared {
    key: String,
    client: Client,
    verdict: Verdict,
    asked: watch::Sender<Vec<Value>>,
}

pub struct TaskProgram {
    address: SocketAddr,
    shared: Arc<Shared>,
}

impl TaskProgram {
    /// A task that signs with `key`, reaches the server with `client`, and answers what `verdict` says about a request
    /// and its plan.
    pub async fn start(key: &str, client: Client, verdict: Verdict) -> Self {
        let asked = watch::channel(Vec::new()).0;
        let shared = Arc::new(Shared { key: key.to_owned(), client, verdict, asked });
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
        let address = listener.local_addr().expect("an address");
        let routes = Router::new().route("/task", post(asked_to)).with_state(Arc::clone(&shared));
        tokio::spawn(async move { axum::serve(listener, routes).await });
        Self { address, shared }
    }

    pub fn url(&self) -> String {
        format!("http://{}/task", self.address)
    }

    /// The requests that came so far, without tests.
    pub fn asked(&self) -> Vec<Value> {
        self.shared.asked.borrow().clone()
    }

    /// Waits until so many requests have come.
    pub async fn until_asked(&self, times: usize) -> Vec<Value> {
        let mut asked = self.shared.asked.subscribe();
        let come = timeout(ASKED_TIMEOUT, asked.wait_for(|asked| asked.len() >= times)).await;
        come.unwrap_or_else(|_| panic!("only this came: {:#?}", self.asked())).expect("the task lives").clone()
    }
}

async fn asked_to(State(shared): State<Arc<Shared>>, headers: HeaderMap, body: Bytes) -> StatusCode {
    let key = hmac::Key::new(hmac::HMAC_SHA512, shared.key.as_bytes());
    let signature = headers.get("x-tfc-task-signature").and_then(|value| hex::decode(value.as_bytes()).ok());
    if hmac::verify(&key, &body, &signature.unwrap_or_default()).is_err() {
        return StatusCode::UNAUTHORIZED;
    }
    let request: Value = serde_json::from_slice(&body).expect("JSON");
    if request["access_token"] != "test-token" {
        shared.asked.send_modify(|asked| asked.push(request.clone()));
        tokio::spawn(answer(Arc::clone(&shared), request));
    }
    StatusCode::OK
}

async fn answer(shared: Arc<Shared>, request: Value) {
    let token = request["access_token"].as_str().expect("a token");
    let plan = match request["plan_json_api_url"].as_str() {
        Some(url) => {
            let read = shared.client.get(url).bearer_auth(token).send().await.expect("the server answers");
            assert!(read.status().is_success(), "the plan: {}", read.status());
            Some(serde_json::from_slice(&read.bytes().await.expect("a plan")).expect("JSON"))
        }
        None => None,
    };
    let said = (shared.verdict)(&request, plan.as_ref());
    let Some(status) = said.status else { return };
    let callback = request["task_result_callback_url"].as_str().expect("an address");
    for attributes in [json!({ "status": "running" }), json!({ "status": status, "message": said.message })] {
        let body = json!({ "data": { "type": "task-results", "attributes": attributes } });
        let sent = shared.client.patch(callback).bearer_auth(token).header("content-type", "application/vnd.api+json");
        let answered = sent.body(body.to_string()).send().await;
        // A server may die while it is told; then the request is repeated, and so is the answer.
        let Ok(answered) = answered else { return };
        assert!(answered.status().is_success() || answered.status() == StatusCode::CONFLICT, "{}", answered.status());
    }
}
