//! The plain requests of a phase: what an agent fetches and sends, repeated for as long as the phase is its own.

use std::sync::Arc;
use std::time::Duration;

use axum::body::{Body, to_bytes};
use axum::http::{Request, StatusCode, header};
use bytes::Bytes;
use taco_agent::lease::Deadline;
use taco_agent_protocol::{LogConflict, PhaseAttempt, phase_path};
use taco_domain::id::WorkspaceId;
use tokio::sync::oneshot;
use tokio::time::{Instant, sleep, sleep_until, timeout};
use tower::ServiceExt;

use crate::faults;
use crate::network::Place;
use crate::sabotage::Sabotage;
use crate::signal::Signal;
use crate::stage::Stage;

/// The higher ones win.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(crate) enum Stop {
    Run,
    Cancel,
    Kill,
    /// It is another's: kill it, and write nothing more.
    Lost,
}

/// Control signals to a running phase.
#[derive(Clone)]
pub(crate) struct Control {
    pub(crate) stop: Signal<Stop>,
    pub(crate) lease: Signal<Option<Deadline>>,
}

impl Control {
    pub(crate) fn stop(&self) -> Stop {
        let is_over = self.lease.get().is_some_and(|deadline| Instant::now() >= deadline.kill_at);
        if is_over { Stop::Lost } else { self.stop.get() }
    }

    pub(crate) async fn changed(&mut self) {
        let kill_at = self.lease.get().map(|deadline| deadline.kill_at).filter(|at| Instant::now() < *at);
        let over = async {
            match kill_at {
                Some(at) => sleep_until(at).await,
                None => std::future::pending().await,
            }
        };
        let (stop, lease) = (&mut self.stop, &mut self.lease);
        tokio::select! {
            biased;
            () = stop.changed() => {}
            () = lease.changed() => {}
            () = over => {}
        }
    }

    pub(crate) async fn lost(&mut self) {
        while self.stop() != Stop::Lost {
            self.changed().await;
        }
    }
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum RequestError {
    Lost,
    /// It will never be taken.
    Refused,
}

#[derive(Clone)]
pub(crate) struct PhaseRequests {
    pub(crate) stage: Arc<Stage>,
    pub(crate) agent: usize,
    pub(crate) phase: PhaseAttempt,
    pub(crate) workspace: WorkspaceId,
    pub(crate) token: String,
}

impl PhaseRequests {
    pub(crate) async fn fetch(&self, word: &str, control: &mut Control) -> Result<Option<Bytes>, RequestError> {
        loop {
            match self.once("GET", word, Bytes::new(), control).await? {
                Some((StatusCode::OK, body)) => return Ok(Some(body)),
                Some((StatusCode::NOT_FOUND, _)) => return Ok(None),
                Some((StatusCode::CONFLICT | StatusCode::UNAUTHORIZED, _)) => return Err(RequestError::Lost),
                _ => {}
            }
        }
    }

    pub(crate) async fn send(&self, word: &str, bytes: Bytes, control: &mut Control) -> Result<(), RequestError> {
        match self.put(word, bytes, control).await? {
            None => Ok(()),
            Some(_) => Err(RequestError::Lost),
        }
    }

    /// Sends part of the log, and says up to where the server has it.
    pub(crate) async fn send_log(&self, offset: u64, part: Bytes, control: &mut Control) -> Result<u64, RequestError> {
        let end = offset + part.len() as u64;
        match self.put(&format!("log?offset={offset}"), part, control).await? {
            None => Ok(end),
            Some(conflict) => match serde_json::from_slice::<LogConflict>(&conflict) {
                Ok(LogConflict { next }) => Ok(next),
                Err(_) => Err(RequestError::Lost),
            },
        }
    }

    /// The body of a `409`, if that is the answer.
    async fn put(&self, word: &str, bytes: Bytes, control: &mut Control) -> Result<Option<Bytes>, RequestError> {
        loop {
            if word == "outcome" {
                self.stage.notes.outcome_sent(self.phase);
                if self.stage.chance(0.1) {
                    // The worst moment to be cut off: what was sent arrives much later.
                    tokio::spawn(faults::hold_back(Arc::clone(&self.stage), self.agent));
                }
            }
            match self.once("PUT", word, bytes.clone(), control).await? {
                Some((status, _)) if status.is_success() => {
                    self.stage.notes.acknowledged(self.phase, self.workspace, word, &bytes);
                    return Ok(None);
                }
                Some((StatusCode::CONFLICT, body)) => return Ok(Some(body)),
                Some((StatusCode::UNAUTHORIZED | StatusCode::FORBIDDEN | StatusCode::NOT_FOUND, _)) => {
                    return Err(RequestError::Lost);
                }
                Some((status, _)) if status.is_client_error() => return Err(RequestError::Refused),
                _ => {}
            }
        }
    }

    /// One try; `None` after a pause where nothing can be said about it.
    async fn once(
        &self,
        method: &str,
        word: &str,
        bytes: Bytes,
        control: &mut Control,
    ) -> Result<Option<(StatusCode, Bytes)>, RequestError> {
        self.stage.awake(self.agent).await;
        if control.stop() == Stop::Lost {
            return Err(RequestError::Lost);
        }
        let answer = tokio::select! {
            biased;
            () = control.lost() => return Err(RequestError::Lost),
            answer = exchange(self, method, word, bytes) => answer,
        };
        self.stage.awake(self.agent).await;
        if answer.as_ref().is_some_and(|(status, _)| !status.is_server_error()) {
            return Ok(answer);
        }
        let pause = Duration::from_secs_f64(0.3 + 3.0 * self.stage.rng.fraction());
        tokio::select! {
            biased;
            () = control.lost() => Err(RequestError::Lost),
            () = sleep(pause) => Ok(answer.filter(|_| false)),
        }
    }
}

/// Sends a request to some server. It may arrive long after the agent has lost patience.
async fn exchange(requests: &PhaseRequests, method: &str, word: &str, bytes: Bytes) -> Option<(StatusCode, Bytes)> {
    let stage = Arc::clone(&requests.stage);
    let (phase, token) = (requests.phase, requests.token.clone());
    let request = Request::builder().method(method);
    let word = word.to_owned();
    let (reply, answer) = oneshot::channel();
    let (from, number) = (Place::Agent(requests.agent), stage.below(2));
    tokio::spawn(async move {
        let to = Place::Server(number);
        let Some(server) = stage.server(number) else { return };
        stage.network.travel(from, to).await;
        if reply.is_closed() && stage.rng.fraction() < 0.1 {
            return;
        }
        let (phase, token) = stage.as_the_server_reads_it(phase, &token);
        let request = request
            .uri(format!("{}/{word}", phase_path(&phase)))
            .header(header::AUTHORIZATION, format!("Bearer {token}"))
            .body(Body::from(bytes))
            .expect("a request");
        let handled = server.spawn(async move {
            let response = server_router(&stage, number)?.oneshot(request).await.ok()?;
            let status = response.status();
            let body = to_bytes(response.into_body(), usize::MAX).await.ok()?;
            Some((stage, status, body))
        });
        let Some((stage, status, body)) = handled.await else { return };
        if !stage.network.is_blocked(to, from) && !stage.chance(0.03) {
            stage.network.travel(to, from).await;
            let _ = reply.send((status, body));
        }
    });
    timeout(Duration::from_secs(30), answer).await.ok()?.ok()
}

fn server_router(stage: &Stage, number: usize) -> Option<axum::Router> {
    Some(stage.server(number)?.router.clone())
}

impl Stage {
    /// The planted bug in fences: an earlier holder of the phase may write for it as if they had it now.
    fn as_the_server_reads_it(&self, phase: PhaseAttempt, token: &str) -> (PhaseAttempt, String) {
        let tokens = self.tokens.lock().expect("no panic");
        match tokens.get(&(phase.run, phase.phase)) {
            Some((epoch, newest)) if self.sabotage == Sabotage::NoFence => {
                (PhaseAttempt { epoch: *epoch, ..phase }, newest.clone())
            }
            _ => (phase, token.to_owned()),
        }
    }
}
