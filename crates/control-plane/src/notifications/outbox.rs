//! The outbox: whatever changes a run also puts what is to be told of it, in the same transaction. So nothing that
//! happened is forgotten, and nothing is told that did not happen.
//! See `docs/decisions/0043-notifications-are-records.md`.

use taco_domain::OrganizationState;
use taco_domain::delivery::{MAX_WAITING, NotificationDelivery};
use taco_domain::notification_configuration::{DeliveryAnswer, NotificationConfigurationId};
use taco_domain::run::Run;
use taco_ledger::Transaction;
use taco_tables::Table;

use crate::error::Error;

/// Lets `decide` decide, and then puts what is to be told. Where nobody wants to hear of anything, it costs a look at
/// an empty table.
pub(crate) fn with_deliveries<T>(
    mut decide: impl FnMut(&mut Transaction<OrganizationState>) -> Result<T, Error> + Send + 'static,
) -> impl FnMut(&mut Transaction<OrganizationState>) -> Result<T, Error> + Send + 'static {
    move |tx| {
        if tx.state().notification_configurations.is_empty() {
            return decide(tx);
        }
        let before = tx.state().runs.clone();
        let decided = decide(tx)?;
        put_deliveries(tx, &before);
        Ok(decided)
    }
}

fn put_deliveries(tx: &mut Transaction<OrganizationState>, before: &Table<Run>) {
    let state = tx.state();
    let changed = state.runs.changed_since(before);
    let deliveries: Vec<_> = changed.flat_map(|(before, after)| state.deliveries_of(before, after)).collect();
    for delivery in deliveries {
        make_room(tx, delivery.configuration, &delivery);
        tx.put(&delivery);
    }
}

/// Gives up the oldest delivery of a destination for which too many wait, and says so on its page.
fn make_room(tx: &mut Transaction<OrganizationState>, id: NotificationConfigurationId, new: &NotificationDelivery) {
    let state = tx.state();
    if state.notification_deliveries.contains(&new.id) || state.waiting_for(id).count() < MAX_WAITING {
        return;
    }
    let oldest = state.waiting_for(id).next().cloned();
    let (Some(oldest), Some(mut configuration)) = (oldest, state.notification_configurations.get(&id).cloned()) else {
        return;
    };
    configuration.note_answer(DeliveryAnswer {
        sent_at: new.run.at,
        successful: false,
        code: None,
        body: format!("{MAX_WAITING} notifications wait for this destination: the oldest was given up"),
        headers: Vec::new(),
        trigger: oldest.trigger.to_string(),
        gave_up: true,
    });
    tx.put(&configuration);
    tx.delete::<NotificationDelivery>(&oldest.id);
}
