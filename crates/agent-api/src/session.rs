//! One agent's connection, from its first message to its last.

use std::time::Duration;

use axum::extract::ws::{Message, WebSocket};
use taco_agent_protocol::{FromAgent, FromServer, MAX_AGENT_ENGINES, PROTOCOL, PhaseAttempt, Refusal};
use taco_control_plane::{ConnectedAgent, Error, OrganizationSnapshot};
use taco_domain::agent::{Introduction, MAX_AGENT_CONCURRENCY};
use taco_domain::global_queue::AgentScope;
use taco_domain::id::AgentId;
use taco_scheduler::{AgentLink, NewAgent, ToAgent};
use tokio::time::{Instant, timeout, timeout_at};

use crate::AgentApi;
use crate::connection::Visitor;
use crate::translation::job;

/// Timeout for an agent's hello.
const HELLO_TIMEOUT: Duration = Duration::from_secs(10);

/// Oldest protocol that is understood.
const MIN_PROTOCOL: u32 = 1;

/// First message of an agent.
struct Hello {
    version: String,
    name: String,
    agent: Option<AgentId>,
    instance: Option<String>,
    concurrency: u32,
    engines: Vec<String>,
    running: Vec<PhaseAttempt>,
    once: bool,
}

/// A connection to an agent: in a server a WebSocket, in a simulation a network that fails.
pub trait AgentSocket: Send {
    /// The next message; `None` when the connection is over. Giving up on it loses nothing.
    fn hear(&mut self) -> impl Future<Output = Option<Result<FromAgent, serde_json::Error>>> + Send;

    /// False when the connection is over.
    fn say(&mut self, message: &FromServer) -> impl Future<Output = bool> + Send;
}

/// Talks with an agent until either leaves.
pub(crate) async fn serve(api: AgentApi, visitor: Visitor, mut socket: impl AgentSocket) {
    let hello = match timeout(HELLO_TIMEOUT, hear_hello(&mut socket)).await {
        Ok(Ok(hello)) => hello,
        Ok(Err(refusal)) => {
            socket.say(&refusal).await;
            return;
        }
        Err(_) => return,
    };
    let Welcomed { link, organization, name, welcome } = match welcome(&api, visitor, hello).await {
        Ok(welcomed) => welcomed,
        Err(error) => {
            socket.say(&refusal(&error)).await;
            return;
        }
    };
    let FromServer::Welcome { agent, .. } = welcome else { return };
    if !socket.say(&welcome).await {
        return;
    }
    tracing::info!(%agent, "an agent connected");
    let left = talk(&api, link, &mut socket).await;
    tracing::info!(%agent, left, "an agent's connection ended");
    // The connection is still open: an agent that says goodbye stays until its server has done this.
    if left && let Err(error) = take_leave(&api, agent, &name, organization).await {
        tracing::info!(%agent, %error, "could not note that an agent left");
    }
}

/// An agent has left for good. Plans that it did not finish are others' at once.
async fn take_leave(
    api: &AgentApi,
    agent: AgentId,
    name: &str,
    organization: Option<OrganizationSnapshot>,
) -> Result<(), Error> {
    let why = format!("agent {name} ({agent}) left before it was done");
    api.control_plane.return_plans_of(agent, organization.as_ref(), &why).await?;
    match organization {
        Some(organization) => api.control_plane.agent_left(&organization, agent).await,
        None => Ok(()),
    }
}

async fn hear_hello(socket: &mut impl AgentSocket) -> Result<Hello, FromServer> {
    let refused = |reason, detail: &str| FromServer::Refused { reason, detail: detail.to_owned() };
    let unclear =
        || refused(Refusal::ProtocolTooOld, "an agent says hello first; install an agent of this server's version");
    match socket.hear().await {
        Some(Ok(FromAgent::Hello {
            protocol,
            version,
            name,
            agent,
            instance,
            concurrency,
            engines,
            running,
            once,
        })) => {
            if protocol < MIN_PROTOCOL {
                let detail = format!(
                    "the agent speaks protocol {protocol}, and this server {MIN_PROTOCOL} to {PROTOCOL}: upgrade the agent"
                );
                return Err(refused(Refusal::ProtocolTooOld, &detail));
            }
            let engine_versions = engines.iter().map(|engine| engine.version.as_str()).collect();
            let introduction = Introduction { name: &name, version: &version, engine_versions, running: running.len() };
            introduction.check().map_err(|detail| refused(Refusal::ProtocolTooOld, &detail))?;
            let engines = engines.into_iter().take(MAX_AGENT_ENGINES);
            let engines = engines.map(|engine| format!("{} {}", engine.engine, engine.version)).collect();
            let concurrency = concurrency.clamp(1, MAX_AGENT_CONCURRENCY);
            Ok(Hello { version, name, agent, instance, concurrency, engines, running, once })
        }
        _ => Err(unclear()),
    }
}

fn refusal(error: &Error) -> FromServer {
    let reason = match error {
        Error::Unauthorized(_) => Refusal::Unauthorized,
        Error::Conflict(_) => Refusal::AlreadyConnected,
        _ => Refusal::Stopping,
    };
    FromServer::Refused { reason, detail: error.to_string() }
}

/// An agent that was taken in.
struct Welcomed {
    link: AgentLink,
    /// The only one that it works for, if there is only one.
    organization: Option<OrganizationSnapshot>,
    name: String,
    welcome: FromServer,
}

/// Takes the agent in, and finds out which of the phases that it executes are still its own.
async fn welcome(api: &AgentApi, visitor: Visitor, hello: Hello) -> Result<Welcomed, Error> {
    let plane = &api.control_plane;
    let (id, reach, organization, token, name) = match visitor {
        Visitor::Within(scope) => {
            let id = hello.agent.unwrap_or_else(|| plane.id_for_agent_within());
            (id, scope, None, None, hello.name.clone())
        }
        Visitor::Pool(caller) => {
            let ConnectedAgent { agent, token, org } = plane
                .connect_agent(&caller, hello.agent, hello.instance.as_deref(), &hello.name, &hello.version)
                .await?;
            (agent.id, AgentScope::Pool(agent.pool), Some(org), Some(token), agent.name)
        }
    };
    let _greeting = match hello.agent {
        // What it is given over its old connection from now on would be lost.
        Some(_) => Some(api.scheduler.begin_reconnect(id).await),
        None => None,
    };
    let mut lost = Vec::new();
    let mut running = Vec::new();
    for phase in hello.running {
        match plane.is_executing(id, phase).await {
            // There is no evidence against it until its organization can be read again, and it may not keep the agent
            // from the work of others.
            Ok(true) | Err(Error::Corrupt(_)) => running.push(phase),
            Ok(false) => lost.push(phase),
            Err(error) => return Err(error),
        }
    }
    if hello.agent.is_some() {
        let why = format!("agent {name} ({id}) no longer executes it");
        plane.lose_phases_not_among(id, &running, organization.as_ref(), &why).await?;
    }
    let leases = api.scheduler.leases();
    let link = api.scheduler.connect(NewAgent {
        id,
        name: name.clone(),
        version: hello.version,
        reach,
        organization: organization.clone(),
        token,
        concurrency: hello.concurrency,
        engines: hello.engines,
        once: hello.once,
        running,
    });
    let welcome = FromServer::Welcome {
        agent: id,
        lease_milliseconds: milliseconds(leases.lease),
        heartbeat_milliseconds: milliseconds(leases.heartbeat()),
        lost,
    };
    Ok(Welcomed { link, organization, name, welcome })
}

fn milliseconds(duration: Duration) -> u64 {
    u64::try_from(duration.as_millis()).unwrap_or(u64::MAX)
}

/// True when the agent said goodbye.
async fn talk(api: &AgentApi, mut link: AgentLink, socket: &mut impl AgentSocket) -> bool {
    let silence = api.scheduler.leases().silence();
    let mut silent_at = Instant::now() + silence;
    loop {
        tokio::select! {
            biased;
            message = link.receiver.recv() => {
                let Some(message) = message else { return false };
                let message = match message {
                    ToAgent::Execute(taken) => FromServer::Execute(Box::new(job(*taken, &api.url))),
                    ToAgent::Cancel { attempt, force } => FromServer::Cancel { phase: attempt, force },
                    ToAgent::Lost { attempt } => FromServer::Lost { phase: attempt },
                    ToAgent::Published { number } => FromServer::Published { number },
                    ToAgent::Refused { error } => {
                        tracing::info!(%error, "an agent may not stay");
                        let _ = timeout(silence, socket.say(&refusal(&error))).await;
                        return false;
                    }
                    ToAgent::Dismissed => {
                        let detail = "the server is stopping".to_owned();
                        let dismissal = FromServer::Refused { reason: Refusal::Stopping, detail };
                        let _ = timeout_at(silent_at, socket.say(&dismissal)).await;
                        return false;
                    }
                };
                // An agent that takes no messages any more counts as silent, like one that sends none.
                if !timeout_at(silent_at, socket.say(&message)).await.unwrap_or(false) {
                    return false;
                }
            }
            heard = timeout_at(silent_at, socket.hear()) => {
                silent_at = Instant::now() + silence;
                match heard {
                    Ok(Some(Ok(FromAgent::Heartbeat { number, running, draining }))) => {
                        let running = running.into_iter();
                        link.heard(number, running, draining, api.control_plane.now());
                    }
                    Ok(Some(Ok(FromAgent::Draining))) => link.drains(),
                    Ok(Some(Ok(FromAgent::Goodbye))) => return true,
                    Ok(Some(Ok(FromAgent::Hello { .. }))) => {}
                    // Fields and messages of a newer agent.
                    Ok(Some(Err(error))) => tracing::debug!(%error, "an agent said something unknown"),
                    Ok(None) | Err(_) => return false,
                }
            }
        }
    }
}

impl AgentSocket for WebSocket {
    async fn hear(&mut self) -> Option<Result<FromAgent, serde_json::Error>> {
        loop {
            match self.recv().await?.ok()? {
                Message::Text(text) => return Some(serde_json::from_str(&text)),
                Message::Close(_) => return None,
                Message::Binary(_) | Message::Ping(_) | Message::Pong(_) => {}
            }
        }
    }

    async fn say(&mut self, message: &FromServer) -> bool {
        let text = serde_json::to_string(message).expect("a message is plain data");
        self.send(Message::Text(text.into())).await.is_ok()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Says one thing and hears everything.
    struct Scripted(Option<serde_json::Value>);

    impl AgentSocket for Scripted {
        async fn hear(&mut self) -> Option<Result<FromAgent, serde_json::Error>> {
            self.0.take().map(serde_json::from_value)
        }

        async fn say(&mut self, _message: &FromServer) -> bool {
            true
        }
    }

    async fn heard(first: serde_json::Value) -> Result<Hello, (Refusal, String)> {
        hear_hello(&mut Scripted(Some(first))).await.map_err(|refusal| match refusal {
            FromServer::Refused { reason, detail } => (reason, detail),
            other => panic!("no refusal: {other:?}"),
        })
    }

    fn hello(protocol: u32) -> serde_json::Value {
        serde_json::json!({
            "type": "hello", "protocol": protocol, "version": "0.1.0", "name": "rack", "concurrency": 0,
        })
    }

    #[tokio::test]
    async fn an_agent_that_is_too_old_is_told_to_be_upgraded() {
        let (reason, detail) = heard(hello(MIN_PROTOCOL - 1)).await.err().expect("a refusal");
        assert_eq!(reason, Refusal::ProtocolTooOld);
        assert!(detail.contains("speaks protocol 0") && detail.contains("upgrade the agent"), "{detail}");
        for nonsense in [serde_json::json!({ "type": "draining" }), serde_json::json!({ "type": "x" }), 7.into()] {
            let (reason, detail) = heard(nonsense).await.err().expect("a refusal");
            assert_eq!(reason, Refusal::ProtocolTooOld);
            assert!(detail.contains("says hello first"), "{detail}");
        }
    }

    #[test]
    fn an_agent_that_is_another_process_is_told_so() {
        let taken = Error::Conflict("agent-1 is the id of agent rack".to_owned());
        let FromServer::Refused { reason, detail } = refusal(&taken) else { panic!("no refusal") };
        assert_eq!((reason, detail.as_str()), (Refusal::AlreadyConnected, "agent-1 is the id of agent rack"));
    }

    #[tokio::test]
    async fn an_agent_that_says_too_much_is_told_what() {
        for (field, value, words) in [
            ("version", serde_json::json!("9".repeat(1_000)), "the agent's version has 1000 bytes"),
            ("name", serde_json::json!("n".repeat(1_000)), "the agent's name has 1000 bytes"),
            ("engines", serde_json::json!([{ "engine": "tofu", "version": "newest" }]), "the version \"newest\""),
        ] {
            let mut hello = hello(PROTOCOL);
            hello[field] = value;
            let (_, detail) = heard(hello).await.err().expect("a refusal");
            assert!(detail.contains(words), "{detail}");
        }
        let mut many = hello(PROTOCOL);
        many["engines"] =
            (0..500).map(|n| serde_json::json!({ "engine": "tofu", "version": format!("1.0.{n}") })).collect();
        many["concurrency"] = 4_000_000_000_u32.into();
        let hello = heard(many).await.unwrap_or_else(|refusal| panic!("{refusal:?}"));
        assert_eq!((hello.engines.len(), hello.concurrency), (MAX_AGENT_ENGINES, MAX_AGENT_CONCURRENCY));
    }

    #[tokio::test]
    async fn an_agent_of_this_or_a_later_protocol_is_heard() {
        for protocol in [MIN_PROTOCOL, PROTOCOL, PROTOCOL + 1] {
            let hello = heard(hello(protocol)).await.unwrap_or_else(|refusal| panic!("{refusal:?}"));
            assert_eq!((hello.name.as_str(), hello.concurrency), ("rack", 1), "it does one thing at least");
        }
    }
}
