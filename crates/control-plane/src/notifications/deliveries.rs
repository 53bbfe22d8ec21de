//! Deliveries: any server may make one, and the servers agree on who does without asking each other. Two that make the
//! same one for a moment send the same id, and the ledger remembers one outcome.

use jiff::Timestamp;
use sha2::{Digest, Sha256};
use taco_boxed::boxed;
use taco_domain::OrganizationState;
use taco_domain::delivery::{NotificationDelivery, NotificationDeliveryId};
use taco_domain::notification_configuration::{DeliveryAnswer, NotificationConfiguration, NotificationConfigurationId};
use taco_ledger::Transaction;
use taco_ledger::beacon::NOTIFICATIONS;

use crate::control_plane::{ControlPlane, OrganizationSnapshot};
use crate::error::Error;
use crate::privileged::Privileged;

/// A delivery that can be made now.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct DueDelivery {
    pub id: NotificationDeliveryId,
    pub configuration: NotificationConfigurationId,
    /// Attempts that failed.
    pub attempts: u32,
    /// Number of living servers whose turn comes before this one's.
    pub rank: usize,
}

/// The outcome of an attempt.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum AttemptOutcome {
    Delivered,
    /// It failed and will be tried again.
    Failed,
    /// It failed, and that was the last attempt.
    GivenUp,
    /// Somebody else has made it, or what it was about is gone.
    Superseded,
}

impl AttemptOutcome {
    fn as_str(self) -> &'static str {
        match self {
            Self::Delivered => "delivered",
            Self::Failed => "failed",
            Self::GivenUp => "given_up",
            Self::Superseded => "superseded",
        }
    }
}

/// Verbs without permission checks, for the server itself.
#[boxed]
impl Privileged {
    /// The deliveries of an organization that can be made now, as this server last saw the organization.
    pub fn due_deliveries(&self, org: &OrganizationSnapshot) -> Vec<DueDelivery> {
        let state = org.last_seen();
        if state.notification_deliveries.is_empty() {
            return Vec::new();
        }
        let due = |delivery: &NotificationDelivery| DueDelivery {
            id: delivery.id,
            configuration: delivery.configuration,
            attempts: delivery.attempts,
            rank: self.rank_for(delivery),
        };
        state.due_deliveries(self.now()).into_iter().map(due).collect()
    }

    /// Number of the living servers that come before this one. The order is another with each attempt: a server that
    /// cannot reach a destination leaves the next attempt to whoever comes first then.
    fn rank_for(&self, delivery: &NotificationDelivery) -> usize {
        let environment = &self.shared.environment;
        let weight = |server: &str| -> [u8; 32] {
            let place = format!("{server} {} {}", delivery.configuration, delivery.attempts);
            Sha256::digest(place).into()
        };
        let own = weight(&environment.server);
        let can = |features: &[String]| features.iter().any(|feature| feature == NOTIFICATIONS);
        let peers = environment.peers.list();
        peers.iter().filter(|peer| can(&peer.features) && weight(&peer.server) > own).count()
    }

    /// Makes one attempt, and commits what came of it.
    pub async fn deliver(&self, org: &OrganizationSnapshot, due: DueDelivery) -> Result<AttemptOutcome, Error> {
        let mut org = org.clone();
        org.state = org.last_seen();
        let (state, now) = (&org.state, self.now());
        let delivery = state.notification_deliveries.get(&due.id).cloned();
        let configuration = state.notification_configurations.get(&due.configuration).cloned();
        let (Some(delivery), Some(configuration)) = (delivery, configuration) else {
            return Ok(AttemptOutcome::Superseded);
        };
        let answer = self.send_delivery(&org, &configuration, &delivery).await?;
        let failed_attempts = delivery.attempts;
        let decide =
            move |tx: &mut Transaction<OrganizationState>| Ok(note_attempt(tx, due, failed_attempts, &answer, now));
        let outcome = org.commit(ControlPlane::own_intent("notification.deliver"), decide).await?;
        metrics::counter!("taco_notifications_total", "outcome" => outcome.as_str()).increment(1);
        if outcome == AttemptOutcome::GivenUp {
            tracing::warn!(
                event = "notification_given_up", configuration = %due.configuration, delivery = %due.id,
                "a notification could not be delivered and is given up; its page says what was answered"
            );
        }
        Ok(outcome)
    }
}

/// Notes what came of an attempt, unless another attempt was noted meanwhile.
fn note_attempt(
    tx: &mut Transaction<OrganizationState>,
    due: DueDelivery,
    failed_attempts: u32,
    answer: &DeliveryAnswer,
    now: Timestamp,
) -> AttemptOutcome {
    let state = tx.state();
    let delivery = state.notification_deliveries.get(&due.id).filter(|it| it.attempts == failed_attempts).cloned();
    let configuration: Option<NotificationConfiguration> =
        state.notification_configurations.get(&due.configuration).cloned();
    let (Some(delivery), Some(mut configuration)) = (delivery, configuration) else {
        return AttemptOutcome::Superseded;
    };
    let next = if answer.successful { None } else { delivery.after_failure(now) };
    let outcome = match (&next, answer.successful) {
        (_, true) => AttemptOutcome::Delivered,
        (Some(_), false) => AttemptOutcome::Failed,
        (None, false) => AttemptOutcome::GivenUp,
    };
    configuration.note_answer(DeliveryAnswer { gave_up: outcome == AttemptOutcome::GivenUp, ..answer.clone() });
    tx.put(&configuration);
    match next {
        Some(next) => tx.put(&next),
        None => tx.delete::<NotificationDelivery>(&delivery.id),
    }
    outcome
}
