//! Deliveries: what is to be told, and has not been yet. They are put in the same change as what they tell of, so that
//! none is lost, and deleted when somebody has answered.

use std::time::Duration;

use jiff::{SignedDuration, Timestamp};
use serde::{Deserialize, Serialize};
use taco_tables::{Record, indexes, references};
use taco_words::id_kinds;

use crate::author::Author;
use crate::id::{RunId, WorkspaceId};
use crate::notifications::notification_configuration::{
    NotificationConfiguration, NotificationConfigurationId, Subscriber,
};
use crate::notifications::trigger::{RunEventToTell, Trigger, events_to_tell};
use crate::organization_state::OrganizationState;
use crate::run::Run;
use crate::run_word::RunWord;

/// Attempts to deliver one notification: over about 45 minutes.
pub const MAX_ATTEMPTS: u32 = 10;

/// Deliveries that wait for one destination. When there are more, the oldest is given up.
pub const MAX_WAITING: usize = 500;

const FIRST_RETRY_DELAY: Duration = Duration::from_secs(5);
const LONGEST_RETRY_DELAY: Duration = Duration::from_hours(1);

id_kinds! {
    /// Something that one destination is to be told. It is made from what it tells, so that it is the same with every
    /// attempt.
    NotificationDeliveryId = "nd";
}

/// What a notification says about a run. The run itself may be in history when it is told.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize, Debug)]
pub struct RunNotice {
    pub id: RunId,
    pub workspace: WorkspaceId,
    pub message: String,
    pub created_at: Timestamp,
    pub created_by: Author,
    /// The status that it is told of, as the API spells it.
    pub status: RunWord,
    pub at: Timestamp,
    pub by: Author,
}

/// Something that one destination is to be told.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize, Debug)]
pub struct NotificationDelivery {
    pub id: NotificationDeliveryId,
    pub configuration: NotificationConfigurationId,
    pub trigger: Trigger,
    pub run: RunNotice,
    /// Place of the event in the run's history.
    pub index: u32,
    /// Attempts that failed.
    #[serde(default)]
    pub attempts: u32,
    /// Time before which nobody tries again.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub next_attempt_at: Option<Timestamp>,
}

impl NotificationDelivery {
    fn of(configuration: NotificationConfigurationId, run: &Run, event: &RunEventToTell) -> Self {
        let purpose = format!("{configuration} {} {}", run.id, event.index);
        Self {
            id: NotificationDeliveryId::derived(run.id.organization_prefix(), &purpose),
            configuration,
            trigger: event.trigger,
            run: RunNotice {
                id: run.id,
                workspace: run.workspace,
                message: run.options.message.clone(),
                created_at: run.created_at,
                created_by: run.created_by,
                status: event.status.into(),
                at: event.at,
                by: event.by,
            },
            index: u32::try_from(event.index).unwrap_or(u32::MAX),
            attempts: 0,
            next_attempt_at: None,
        }
    }

    /// The delivery after an attempt that failed; `None` if it was the last.
    pub fn after_failure(&self, now: Timestamp) -> Option<Self> {
        let attempts = self.attempts + 1;
        let delay = retry_delay(attempts);
        (attempts < MAX_ATTEMPTS).then(|| Self {
            attempts,
            next_attempt_at: Some(now.checked_add(delay).unwrap_or(Timestamp::MAX)),
            ..self.clone()
        })
    }
}

/// Delay after so many attempts: it doubles.
fn retry_delay(attempts: u32) -> SignedDuration {
    let doubled = 2_u32.saturating_pow(attempts.saturating_sub(1));
    let delay = FIRST_RETRY_DELAY.saturating_mul(doubled).min(LONGEST_RETRY_DELAY);
    SignedDuration::try_from(delay).unwrap_or(SignedDuration::MAX)
}

impl Record for NotificationDelivery {
    const KIND: &'static str = "notification-delivery";
    const NOUN: &'static str = "notification";
    const PART_OF: &'static [&'static str] = &["configuration"];
    type Id = NotificationDeliveryId;
    type Indexes = NotificationDeliveryIndexes;

    fn id(&self) -> &NotificationDeliveryId {
        &self.id
    }

    references! {
        "configuration": NotificationConfigurationId, cascade(|all, id| all.by().queue.under(id));
        "run": RunId, keep("it tells of the run, which may be in history");
        "run": WorkspaceId, cascade(|all, id| all.by().workspace.get(id));
    }
}

indexes! {
    pub struct NotificationDeliveryIndexes for NotificationDelivery {
        /// The order in which a destination is told: as it happened.
        pub queue: (NotificationConfigurationId, Timestamp, u32)
            => |delivery| [(delivery.configuration, delivery.run.at, delivery.index)];
        pub workspace: WorkspaceId => |delivery| [delivery.run.workspace];
    }
}

impl OrganizationState {
    /// What is to be told of a change of a run, to whom.
    pub fn deliveries_of(&self, before: Option<&Run>, after: &Run) -> Vec<NotificationDelivery> {
        let configurations: Vec<&NotificationConfiguration> = self.configurations_about(after.workspace).collect();
        if configurations.is_empty() {
            return Vec::new();
        }
        let mut deliveries = Vec::new();
        for event in events_to_tell(before, after) {
            let wanted = configurations.iter().filter(|configuration| configuration.wants(event.trigger));
            deliveries.extend(wanted.map(|configuration| NotificationDelivery::of(configuration.id, after, &event)));
        }
        deliveries
    }

    /// The configurations that hear of a workspace: its own, and those of its project.
    fn configurations_about(&self, workspace: WorkspaceId) -> impl Iterator<Item = &NotificationConfiguration> {
        let project = self.workspaces.get(&workspace).map(|workspace| Subscriber::Project(workspace.project));
        let subscribers = [Some(Subscriber::Workspace(workspace)), project].into_iter().flatten();
        subscribers.flat_map(|subscriber| self.notification_configurations.by().subscriber.get(&subscriber))
    }

    /// The deliveries that wait for a destination, in the order in which it is told.
    pub fn waiting_for(
        &self,
        configuration: NotificationConfigurationId,
    ) -> impl Iterator<Item = &NotificationDelivery> {
        self.notification_deliveries.by().queue.under(&configuration)
    }

    /// What can be delivered now: of each destination the first, because one is told in order. A destination that fails
    /// holds up its own deliveries and no others.
    pub fn due_deliveries(&self, now: Timestamp) -> Vec<&NotificationDelivery> {
        let mut due: Vec<&NotificationDelivery> = Vec::new();
        let mut last = None;
        for delivery in self.notification_deliveries.by().queue.iter() {
            if last == Some(delivery.configuration) {
                continue;
            }
            last = Some(delivery.configuration);
            if delivery.next_attempt_at.is_none_or(|at| at <= now) {
                due.push(delivery);
            }
        }
        due
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;
    use crate::id::{OrganizationId, ProjectId};
    use crate::notifications::notification_configuration::DestinationType;
    use crate::run::tests::given_run;
    use crate::workspace::Workspace;

    const NOW: Timestamp = Timestamp::UNIX_EPOCH;

    fn configuration(
        number: u8,
        subscriber: Subscriber,
        triggers: &[Trigger],
        enabled: bool,
    ) -> NotificationConfiguration {
        NotificationConfiguration {
            id: NotificationConfigurationId::within(prefix(), [number; 16]),
            subscriber,
            name: "a".parse().expect("legal"),
            destination: DestinationType::Generic,
            enabled,
            sealed_url: None,
            sealed_token: None,
            triggers: triggers.iter().copied().collect::<BTreeSet<_>>(),
            email_addresses: Vec::new(),
            users: BTreeSet::new(),
            created_at: NOW,
            updated_at: NOW,
            answers: Vec::new(),
        }
    }

    fn prefix() -> crate::id::OrganizationPrefix {
        OrganizationId::from_random([7; 16]).organization_prefix()
    }

    /// A workspace that four configurations could hear of, and a run in it.
    fn state() -> (OrganizationState, Run) {
        let mut state = OrganizationState::default();
        let run = given_run(1).created(NOW);
        let project = ProjectId::within(prefix(), [2; 16]);
        let workspace = Workspace::new(run.workspace, "web".parse().expect("legal"), project, NOW);
        state.workspaces.put(&workspace).expect("put");
        let (own, other) = (Subscriber::Workspace(run.workspace), WorkspaceId::within(prefix(), [9; 16]));
        for given in [
            configuration(1, own, &[Trigger::RunCreated, Trigger::RunErrored], true),
            configuration(2, Subscriber::Project(project), &[Trigger::RunCreated], true),
            configuration(3, own, &[Trigger::RunCreated], false),
            configuration(4, own, &[Trigger::RunApplying], true),
            configuration(5, Subscriber::Workspace(other), &[Trigger::RunCreated], true),
        ] {
            state.notification_configurations.put(&given).expect("put");
        }
        (state, run)
    }

    #[test]
    fn those_are_told_who_want_to_hear_of_it() {
        let (state, run) = state();
        let deliveries = state.deliveries_of(None, &run);
        let told: Vec<_> = deliveries.iter().map(|delivery| delivery.configuration).collect();
        let expected = [1, 2].map(|number| NotificationConfigurationId::within(prefix(), [number; 16]));
        assert_eq!(told, expected);
        assert_eq!(state.deliveries_of(None, &run), deliveries, "decided again, it is the same");
        assert_ne!(deliveries[0].id, deliveries[1].id);
        assert_eq!(state.deliveries_of(Some(&run), &run), []);
    }

    #[test]
    fn a_destination_is_told_in_order_and_one_that_fails_holds_up_no_other() {
        let (mut state, run) = state();
        let deliveries = state.deliveries_of(None, &run);
        let later = NotificationDelivery {
            id: NotificationDeliveryId::within(prefix(), [1; 16]),
            index: 3,
            ..deliveries[0].clone()
        };
        for delivery in deliveries.iter().chain([&later]) {
            state.notification_deliveries.put(delivery).expect("put");
        }
        let due = |state: &OrganizationState, now| {
            state.due_deliveries(now).iter().map(|delivery| delivery.id).collect::<BTreeSet<_>>()
        };
        assert_eq!(due(&state, NOW), BTreeSet::from([deliveries[0].id, deliveries[1].id]));
        let failed = deliveries[0].after_failure(NOW).expect("another attempt");
        state.notification_deliveries.put(&failed).expect("put");
        assert_eq!(due(&state, NOW), BTreeSet::from([deliveries[1].id]));
        let in_time = failed.next_attempt_at.expect("a time");
        assert_eq!(due(&state, in_time), BTreeSet::from([deliveries[0].id, deliveries[1].id]));
        state.notification_deliveries.remove(&deliveries[0].id);
        assert_eq!(due(&state, NOW), BTreeSet::from([later.id, deliveries[1].id]));
    }

    #[test]
    fn attempts_become_rarer_and_end() {
        let (state, run) = state();
        let mut delivery = state.deliveries_of(None, &run).remove(0);
        let mut delays = Vec::new();
        while let Some(next) = delivery.after_failure(NOW) {
            delays.push(next.next_attempt_at.expect("a time").as_second());
            delivery = next;
        }
        assert_eq!(delays, [5, 10, 20, 40, 80, 160, 320, 640, 1280]);
        assert_eq!(retry_delay(30), SignedDuration::from_hours(1));
    }
}
