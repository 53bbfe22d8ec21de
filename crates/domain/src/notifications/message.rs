//! What a notification says, before it has a form.

use jiff::Timestamp;

use crate::notifications::delivery::NotificationDeliveryId;
use crate::notifications::notification_configuration::NotificationConfigurationId;
use crate::notifications::trigger::Trigger;

/// A notification that is to be sent.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Message {
    /// The same with every attempt.
    pub id: NotificationDeliveryId,
    pub configuration: NotificationConfigurationId,
    pub subject: Subject,
}

/// What it tells of.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Subject {
    /// That it arrives.
    Verification {
        name: String,
    },
    Run(Box<RunMessage>),
}

/// Something that happened to a run.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct RunMessage {
    pub trigger: Trigger,
    pub run_url: String,
    pub run_id: String,
    pub run_message: String,
    pub run_created_at: Timestamp,
    /// Display name; `None` for what taco did by itself.
    pub run_created_by: Option<String>,
    pub workspace_id: String,
    pub workspace_name: String,
    pub organization_name: String,
    /// As the API spells it.
    pub run_status: String,
    pub run_updated_at: Timestamp,
    pub run_updated_by: Option<String>,
}

impl RunMessage {
    /// What happened, as a headline.
    pub fn headline(&self) -> &'static str {
        match self.trigger {
            Trigger::RunCreated => "Run Created",
            Trigger::RunPlanning => "Run Planning",
            Trigger::RunNeedsAttention => "Run Needs Attention",
            Trigger::RunApplying => "Run Applying",
            Trigger::RunCompleted => "Run Completed",
            Trigger::RunErrored if self.run_status == "canceled" => "Run Canceled",
            Trigger::RunErrored => "Run Errored",
            // Nothing of the kind happens to a run.
            Trigger::AssessmentDrifted
            | Trigger::AssessmentCheckFailure
            | Trigger::AssessmentFailed
            | Trigger::AutoDestroyReminder
            | Trigger::AutoDestroyRunResults
            | Trigger::ChangeRequestCreated => "Notification",
        }
    }

    /// Its place: organization and workspace.
    pub fn place(&self) -> String {
        format!("{}/{}", self.organization_name, self.workspace_name)
    }

    /// One line that says all that matters.
    pub fn summary(&self) -> String {
        format!("{} in {}: {}", self.headline(), self.place(), self.run_message)
    }

    /// Who started the run, for people.
    pub fn started_by(&self) -> &str {
        self.run_created_by.as_deref().unwrap_or("taco")
    }
}

/// What a verification says.
pub(crate) fn verification(name: &str) -> String {
    format!("Verification of {name}")
}

/// A time as payloads spell it.
pub(crate) fn spelled(time: Timestamp) -> String {
    time.strftime("%Y-%m-%dT%H:%M:%S.%3fZ").to_string()
}

/// The beginning of a text: chat programs refuse whole messages because of one long text.
pub(crate) fn shortened(text: &str, longest: usize) -> String {
    match text.char_indices().nth(longest) {
        Some(_) => text.chars().take(longest - 1).chain(['…']).collect(),
        None => text.to_owned(),
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;

    /// A run that needs approval, with texts that try to be more than text.
    pub(crate) fn given_message() -> Message {
        let time = |text: &str| text.parse().expect("a time");
        Message {
            id: "nd-4Tk9mXbq7cWvZpHn".parse().expect("an id"),
            configuration: "nc-4Tk9mXbq7cWvZpHn".parse().expect("an id"),
            subject: Subject::Run(Box::new(RunMessage {
                trigger: Trigger::RunNeedsAttention,
                run_url: "https://taco.example.com/app/acme/workspaces/web/runs/run-4Tk9mXbq7cWvZpHn".into(),
                run_id: "run-4Tk9mXbq7cWvZpHn".into(),
                run_message: "Add <b>two</b> & *more* [subnets](https://evil.test) <!channel>".into(),
                run_created_at: time("2026-11-19T09:00:00Z"),
                run_created_by: Some("ann".into()),
                workspace_id: "ws-4Tk9mXbq7cWvZpHn".into(),
                workspace_name: "web".into(),
                organization_name: "acme".into(),
                run_status: "planned".into(),
                run_updated_at: time("2026-11-19T09:01:02.345678Z"),
                run_updated_by: None,
            })),
        }
    }

    pub(crate) fn given_verification() -> Message {
        Message { subject: Subject::Verification { name: "Ops & <friends>".into() }, ..given_message() }
    }

    #[test]
    fn long_texts_are_cut_where_a_character_ends() {
        assert_eq!(shortened("äöü", 3), "äöü");
        assert_eq!(shortened("äöüß", 3), "äö…");
        assert_eq!(spelled(Timestamp::UNIX_EPOCH), "1970-01-01T00:00:00.000Z");
    }
}
