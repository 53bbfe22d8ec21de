//! Notification configurations: where somebody wants to hear of what.

use std::collections::BTreeSet;
use std::fmt;
use std::str::FromStr;

use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use taco_tables::{KeyBytes, Record, SortKey, indexes, references};
use taco_words::id_kinds;

use crate::attribute::as_plain_text;
use crate::id::{ProjectId, TeamId, UserId, WorkspaceId};
use crate::name::{check_label, name_kinds};
use crate::notifications::trigger::Trigger;

/// Maximum number of configurations of one workspace, project or team.
pub const MAX_NOTIFICATION_CONFIGURATIONS: usize = 20;

/// Answers that are remembered.
const MAX_ANSWERS: usize = 5;
/// Characters of an answer's body that are remembered.
const LONGEST_BODY: usize = 1024;
/// Headers of an answer that are remembered, and characters of each.
const MAX_HEADERS: usize = 20;
const LONGEST_HEADER: usize = 200;

id_kinds! {
    /// Where somebody wants to hear of what.
    NotificationConfigurationId = "nc";
}

name_kinds! {
    NotificationName: |name| check_label("Name", "name", name, 255);
}

/// Whose events a configuration tells.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, Debug)]
#[serde(rename_all = "kebab-case")]
pub enum Subscriber {
    Workspace(WorkspaceId),
    /// All workspaces of a project.
    Project(ProjectId),
    Team(TeamId),
}

impl SortKey for Subscriber {
    fn encode(&self, key: &mut KeyBytes) {
        match self {
            Self::Workspace(id) => (0_u8, *id).encode(key),
            Self::Project(id) => (1_u8, *id).encode(key),
            Self::Team(id) => (2_u8, *id).encode(key),
        }
    }
}

/// The form in which it is told, and how it gets there.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, Debug)]
#[serde(rename_all = "kebab-case")]
pub enum DestinationType {
    /// A webhook with Terraform Cloud's payload, signed.
    Generic,
    Slack,
    MicrosoftTeams,
    Email,
}

impl DestinationType {
    pub const ALL: [Self; 4] = [Self::Generic, Self::Slack, Self::MicrosoftTeams, Self::Email];

    /// Its name in the API.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Generic => "generic",
            Self::Slack => "slack",
            Self::MicrosoftTeams => "microsoft-teams",
            Self::Email => "email",
        }
    }

    /// What it is, for people.
    pub fn in_words(self) -> &'static str {
        match self {
            Self::Generic => "Webhook",
            Self::Slack => "Slack",
            Self::MicrosoftTeams => "Microsoft Teams",
            Self::Email => "Email",
        }
    }
}

impl fmt::Display for DestinationType {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(self.as_str())
    }
}

/// A text that is no type of destination.
#[derive(Clone, PartialEq, Eq, thiserror::Error, Debug)]
#[error("must be one of generic, email, slack, microsoft-teams")]
pub struct UnknownDestinationType;

impl FromStr for DestinationType {
    type Err = UnknownDestinationType;

    fn from_str(text: &str) -> Result<Self, UnknownDestinationType> {
        Self::ALL.into_iter().find(|destination| destination.as_str() == text).ok_or(UnknownDestinationType)
    }
}

/// What came back when something was sent.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize, Debug)]
pub struct DeliveryAnswer {
    pub sent_at: Timestamp,
    pub successful: bool,
    /// Status of the response; `None` if there was none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub code: Option<u16>,
    /// The beginning of the response's body, or why there was no response.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub body: String,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub headers: Vec<AnswerHeader>,
    /// What was sent: a trigger, or `verification`.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub trigger: String,
    /// It was the last attempt, and it failed.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub gave_up: bool,
}

/// A header of a response.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize, Debug)]
pub struct AnswerHeader {
    pub name: String,
    pub value: String,
}

impl DeliveryAnswer {
    /// The answer as it is remembered: short, and without anything invisible.
    pub fn shortened(self) -> Self {
        let shorten = |header: AnswerHeader| AnswerHeader {
            name: as_plain_text(&header.name, LONGEST_HEADER),
            value: as_plain_text(&header.value, LONGEST_HEADER),
        };
        Self {
            body: as_plain_text(&self.body, LONGEST_BODY),
            headers: self.headers.into_iter().take(MAX_HEADERS).map(shorten).collect(),
            ..self
        }
    }
}

/// Where somebody wants to hear of what.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize, Debug)]
pub struct NotificationConfiguration {
    pub id: NotificationConfigurationId,
    pub subscriber: Subscriber,
    pub name: NotificationName,
    pub destination: DestinationType,
    pub enabled: bool,
    /// The address, encrypted by the writer of the record: those of chat programs are secrets. E-mail has none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sealed_url: Option<String>,
    /// The key of signatures, encrypted by the writer of the record.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sealed_token: Option<String>,
    #[serde(default)]
    pub triggers: BTreeSet<Trigger>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub email_addresses: Vec<String>,
    /// Members of the organization who get e-mail.
    #[serde(default, skip_serializing_if = "BTreeSet::is_empty")]
    pub users: BTreeSet<UserId>,
    pub created_at: Timestamp,
    pub updated_at: Timestamp,
    /// The last answers, newest first.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub answers: Vec<DeliveryAnswer>,
}

impl NotificationConfiguration {
    /// The name under which its address is sealed.
    pub fn url_seal(id: NotificationConfigurationId) -> String {
        format!("{id} url")
    }

    /// The name under which its token is sealed.
    pub fn token_seal(id: NotificationConfigurationId) -> String {
        format!("{id} token")
    }

    /// True if it tells of this.
    pub fn wants(&self, trigger: Trigger) -> bool {
        self.enabled && self.triggers.contains(&trigger)
    }

    /// Remembers an answer.
    pub fn note_answer(&mut self, answer: DeliveryAnswer) {
        self.answers.insert(0, answer.shortened());
        self.answers.truncate(MAX_ANSWERS);
    }
}

impl Record for NotificationConfiguration {
    const KIND: &'static str = "notification-configuration";
    const NOUN: &'static str = "notification configuration";
    const PART_OF: &'static [&'static str] = &["subscriber"];
    type Id = NotificationConfigurationId;
    type Indexes = NotificationConfigurationIndexes;

    fn id(&self) -> &NotificationConfigurationId {
        &self.id
    }

    references! {
        "subscriber": WorkspaceId, cascade(|all, id| all.by().subscriber.get(&Subscriber::Workspace(*id)));
        "subscriber": ProjectId, cascade(|all, id| all.by().subscriber.get(&Subscriber::Project(*id)));
        "subscriber": TeamId, cascade(|all, id| all.by().subscriber.get(&Subscriber::Team(*id)));
    }

    fn sealed_mut(&mut self) -> Vec<(String, &mut String)> {
        let url = self.sealed_url.as_mut().map(|sealed| (Self::url_seal(self.id), sealed));
        let token = self.sealed_token.as_mut().map(|sealed| (Self::token_seal(self.id), sealed));
        url.into_iter().chain(token).collect()
    }
}

indexes! {
    pub struct NotificationConfigurationIndexes for NotificationConfiguration {
        pub subscriber: Subscriber => |configuration| [configuration.subscriber];
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn destinations_are_stored_as_they_are_spelled() {
        for destination in DestinationType::ALL {
            assert_eq!(serde_json::to_value(destination).expect("JSON"), destination.as_str());
            assert_eq!(destination.as_str().parse(), Ok(destination));
        }
        assert_eq!("pigeon".parse::<DestinationType>(), Err(UnknownDestinationType));
    }

    #[test]
    fn an_answer_is_remembered_in_short_and_for_a_while() {
        let answer = |number: u16| DeliveryAnswer {
            sent_at: Timestamp::UNIX_EPOCH,
            successful: true,
            code: Some(number),
            body: "\u{202e}x".repeat(5000),
            headers: vec![AnswerHeader { name: "server".into(), value: "y".repeat(5000) }; 99],
            trigger: "run:created".into(),
            gave_up: false,
        };
        let id = NotificationConfigurationId::from_random([1; 16]);
        let mut configuration = NotificationConfiguration {
            id,
            subscriber: Subscriber::Workspace(WorkspaceId::from_random([1; 16])),
            name: "a".parse().expect("legal"),
            destination: DestinationType::Generic,
            enabled: true,
            sealed_url: None,
            sealed_token: None,
            triggers: BTreeSet::new(),
            email_addresses: Vec::new(),
            users: BTreeSet::new(),
            created_at: Timestamp::UNIX_EPOCH,
            updated_at: Timestamp::UNIX_EPOCH,
            answers: Vec::new(),
        };
        (0..9).for_each(|number| configuration.note_answer(answer(number)));
        let codes: Vec<_> = configuration.answers.iter().filter_map(|answer| answer.code).collect();
        assert_eq!(codes, [8, 7, 6, 5, 4]);
        assert_eq!(configuration.answers[0].body, "x".repeat(1024));
        assert_eq!(configuration.answers[0].headers.len(), 20);
        assert_eq!(configuration.answers[0].headers[0].value.len(), 200);
    }
}
