//! Requests that make or change a notification configuration.

use std::collections::BTreeSet;

use jiff::Timestamp;
use serde::Deserialize;

use crate::attribute::{InvalidAttribute, nullable, shown};
use crate::id::UserId;
use crate::name::Email;
use crate::notifications::notification_configuration::{
    DestinationType, NotificationConfiguration, NotificationConfigurationId, NotificationName, Subscriber,
    UnknownDestinationType,
};
use crate::notifications::trigger::{Trigger, UnknownTrigger};

/// People and addresses that one e-mail goes to.
const MAX_RECIPIENTS: usize = 50;

const LONGEST_TOKEN: usize = 1024;

/// The attributes of a request that makes or changes a configuration, spelled as on the wire.
#[derive(Clone, Default, Deserialize)]
#[serde(rename_all = "kebab-case", default)]
pub struct NotificationPatch {
    pub destination_type: Option<String>,
    pub enabled: Option<bool>,
    pub name: Option<String>,
    #[serde(deserialize_with = "nullable")]
    pub token: Option<Option<String>>,
    #[serde(deserialize_with = "nullable")]
    pub triggers: Option<Option<Vec<String>>>,
    #[serde(deserialize_with = "nullable")]
    pub url: Option<Option<String>>,
    #[serde(deserialize_with = "nullable")]
    pub email_addresses: Option<Option<Vec<String>>>,
    /// On the wire this is a relationship.
    #[serde(skip)]
    pub users: Option<BTreeSet<UserId>>,
}

/// Texts of a request as they are stored; `None` where the request does not name them.
#[derive(Clone, Default)]
pub struct SealedTexts {
    pub url: Option<Option<String>>,
    pub token: Option<Option<String>>,
}

impl NotificationPatch {
    /// The address in the request; an empty text is none, as the provider `tfe` sends it.
    pub fn new_url(&self) -> Option<Option<&str>> {
        self.url.as_ref().map(|url| url.as_deref().map(str::trim).filter(|url| !url.is_empty()))
    }

    /// The token in the request; an empty text is none.
    pub fn new_token(&self) -> Option<Option<&str>> {
        self.token.as_ref().map(|token| token.as_deref().filter(|token| !token.is_empty()))
    }

    /// A new configuration.
    pub fn create(
        &self,
        id: NotificationConfigurationId,
        subscriber: Subscriber,
        sealed: &SealedTexts,
        now: Timestamp,
    ) -> Result<NotificationConfiguration, InvalidAttribute> {
        let blank = NotificationConfiguration {
            id,
            subscriber,
            name: self.name.as_deref().unwrap_or_default().parse::<NotificationName>()?,
            destination: self.destination()?.ok_or_else(|| invalid_destination("can't be blank".to_owned()))?,
            enabled: false,
            sealed_url: None,
            sealed_token: None,
            triggers: BTreeSet::new(),
            email_addresses: Vec::new(),
            users: BTreeSet::new(),
            created_at: now,
            updated_at: now,
            answers: Vec::new(),
        };
        self.apply(&blank, sealed, now)
    }

    /// The configuration after the request. Whether its address is fine and its users are members, the caller finds out.
    pub fn apply(
        &self,
        before: &NotificationConfiguration,
        sealed: &SealedTexts,
        now: Timestamp,
    ) -> Result<NotificationConfiguration, InvalidAttribute> {
        let mut changed = before.clone();
        if self.destination()?.is_some_and(|destination| destination != before.destination) {
            let detail = format!("can't be changed: it is {}; create another configuration", before.destination);
            return Err(invalid_destination(detail));
        }
        if let Some(name) = &self.name {
            changed.name = name.parse()?;
        }
        changed.enabled = self.enabled.unwrap_or(before.enabled);
        if let Some(url) = &sealed.url {
            changed.sealed_url = url.clone();
        }
        if let Some(token) = &sealed.token {
            changed.sealed_token = token.clone();
        }
        if let Some(triggers) = &self.triggers {
            changed.triggers = parsed(triggers.as_deref().unwrap_or_default(), before.subscriber)?;
        }
        if let Some(addresses) = &self.email_addresses {
            changed.email_addresses = checked(addresses.as_deref().unwrap_or_default())?;
        }
        if let Some(users) = &self.users {
            changed.users = users.clone();
        }
        self.check_whole(&changed)?;
        if changed != *before {
            changed.updated_at = now;
        }
        Ok(changed)
    }

    fn destination(&self) -> Result<Option<DestinationType>, InvalidAttribute> {
        let sent = self.destination_type.as_deref().filter(|sent| !sent.is_empty());
        let parse = |sent: &str| {
            sent.parse().map_err(|unknown: UnknownDestinationType| {
                invalid_destination(format!("{unknown}; it is {}", shown(sent)))
            })
        };
        sent.map(parse).transpose()
    }

    fn check_whole(&self, changed: &NotificationConfiguration) -> Result<(), InvalidAttribute> {
        let is_email = changed.destination == DestinationType::Email;
        let refuse = |attribute, detail: String| Err(InvalidAttribute::new(attribute, detail));
        if changed.sealed_url.is_none() && !is_email {
            return refuse("url", "Url can't be blank".to_owned());
        }
        if changed.sealed_url.is_some() && is_email {
            return refuse("url", "Url must be blank: an email configuration has addresses and users".to_owned());
        }
        if changed.sealed_token.is_some() && changed.destination != DestinationType::Generic {
            return refuse(
                "token",
                format!("Token must be blank: only generic webhooks are signed, and this is {}", changed.destination),
            );
        }
        if self.new_token().flatten().is_some_and(|token| token.len() > LONGEST_TOKEN) {
            return refuse("token", format!("Token is too long (maximum is {LONGEST_TOKEN} bytes)"));
        }
        let recipients = changed.email_addresses.len() + changed.users.len();
        if recipients > 0 && !is_email {
            return refuse(
                "email-addresses",
                format!("Email addresses must be blank: this is {}", changed.destination),
            );
        }
        if recipients > MAX_RECIPIENTS {
            return refuse(
                "email-addresses",
                format!("{recipients} recipients are too many (maximum is {MAX_RECIPIENTS})"),
            );
        }
        Ok(())
    }
}

fn invalid_destination(detail: String) -> InvalidAttribute {
    InvalidAttribute::new("destination-type", format!("Destination type {detail}"))
}

fn parsed(triggers: &[String], subscriber: Subscriber) -> Result<BTreeSet<Trigger>, InvalidAttribute> {
    let parse = |sent: &String| {
        let invalid = |detail| InvalidAttribute::new("triggers", detail);
        let trigger: Trigger =
            sent.parse().map_err(|unknown: UnknownTrigger| invalid(format!("Trigger {} {unknown}", shown(sent))))?;
        match trigger.fits(subscriber) {
            true => Ok(trigger),
            false if matches!(subscriber, Subscriber::Team(_)) => {
                Err(invalid(format!("Trigger {trigger} is not for teams: they know change_request:created")))
            }
            false => Err(invalid(format!("Trigger {trigger} is for teams"))),
        }
    };
    triggers.iter().filter(|sent| !sent.is_empty()).map(parse).collect()
}

fn checked(addresses: &[String]) -> Result<Vec<String>, InvalidAttribute> {
    let mut checked: Vec<String> = Vec::new();
    for address in addresses.iter().map(|address| address.trim()).filter(|address| !address.is_empty()) {
        let parsed = address.parse::<Email>();
        let parsed = parsed.map_err(|invalid| InvalidAttribute::new("email-addresses", invalid.detail))?;
        if !checked.iter().any(|known| known == parsed.as_str()) {
            checked.push(parsed.to_string());
        }
    }
    Ok(checked)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::id::{TeamId, WorkspaceId};

    fn patch(json: &str) -> NotificationPatch {
        serde_json::from_str(json).expect("JSON")
    }

    fn sealed(patch: &NotificationPatch) -> SealedTexts {
        let owned = |text: Option<Option<&str>>| text.map(|text| text.map(str::to_owned));
        SealedTexts { url: owned(patch.new_url()), token: owned(patch.new_token()) }
    }

    fn create(json: &str) -> Result<NotificationConfiguration, String> {
        create_for(Subscriber::Workspace(WorkspaceId::from_random([1; 16])), json)
    }

    fn create_for(subscriber: Subscriber, json: &str) -> Result<NotificationConfiguration, String> {
        let patch = patch(json);
        let id = NotificationConfigurationId::from_random([1; 16]);
        let made = patch.create(id, subscriber, &sealed(&patch), Timestamp::UNIX_EPOCH);
        made.map_err(|invalid| format!("{}: {}", invalid.attribute, invalid.detail))
    }

    fn refusal(json: &str) -> String {
        create(json).expect_err(json)
    }

    #[test]
    fn what_cannot_be_is_refused_with_what_is_allowed() {
        for (json, attribute, words) in [
            (r#"{"destination-type":"generic","url":"https://a.test"}"#, "name", "can't be blank"),
            (r#"{"name":"a","url":"https://a.test"}"#, "destination-type", "can't be blank"),
            (r#"{"name":"a","destination-type":"pigeon"}"#, "destination-type", "one of generic, email"),
            (r#"{"name":"a","destination-type":"generic"}"#, "url", "can't be blank"),
            (r#"{"name":"a","destination-type":"slack","url":""}"#, "url", "can't be blank"),
            (r#"{"name":"a","destination-type":"email","url":"https://a.test"}"#, "url", "must be blank"),
            (r#"{"name":"a","destination-type":"slack","url":"https://a.test","token":"x"}"#, "token", "must be blank"),
            (r#"{"name":"a","destination-type":"email","email-addresses":["nobody"]}"#, "email-addresses", "invalid"),
            (
                r#"{"name":"a","destination-type":"generic","url":"https://a.test","email-addresses":["a@b.test"]}"#,
                "email-addresses",
                "must be blank",
            ),
            (
                r#"{"name":"a","destination-type":"generic","url":"https://a.test","triggers":["run:flew"]}"#,
                "triggers",
                "is not one of run:created",
            ),
            (
                r#"{"name":"a","destination-type":"generic","url":"https://a.test","triggers":["change_request:created"]}"#,
                "triggers",
                "is for teams",
            ),
        ] {
            let refusal = refusal(json);
            assert!(refusal.starts_with(attribute) && refusal.contains(words), "{json}: {refusal}");
        }
        let many: Vec<String> = (0..51).map(|number| format!("u{number}@acme.test")).collect();
        let json = serde_json::json!({"name": "a", "destination-type": "email", "email-addresses": many}).to_string();
        assert!(refusal(&json).contains("51 recipients are too many (maximum is 50)"));
    }

    #[test]
    fn a_team_hears_of_change_requests() {
        let team = Subscriber::Team(TeamId::from_random([1; 16]));
        let json = |trigger| {
            format!(r#"{{"name":"a","destination-type":"generic","url":"https://a.test","triggers":["{trigger}"]}}"#)
        };
        assert!(create_for(team, &json("change_request:created")).is_ok());
        assert!(create_for(team, &json("run:created")).expect_err("refused").contains("is not for teams"));
    }

    #[test]
    fn what_a_request_does_not_name_stays() {
        let before = create(
            r#"{"name":"a","destination-type":"generic","url":"https://a.test","token":"x","triggers":["run:created"]}"#,
        )
        .expect("legal");
        let after = |json: &str| {
            let patch = patch(json);
            patch.apply(&before, &sealed(&patch), Timestamp::MAX).expect("legal")
        };
        assert_eq!(after("{}"), before);
        assert_eq!(after(r#"{"destination-type":"generic","name":"a"}"#), before);
        assert_eq!(after(r#"{"name":"b"}"#).name.as_str(), "b");
        assert_eq!(after(r#"{"name":"b"}"#).updated_at, Timestamp::MAX);
        assert_eq!(after(r#"{"token":""}"#).sealed_token, None);
        assert_eq!(after(r#"{"token":null}"#).sealed_token, None);
        assert_eq!(after(r#"{"triggers":[]}"#).triggers, BTreeSet::new());
        assert_eq!(
            after(r#"{"triggers":["run:errored","run:errored"]}"#).triggers,
            BTreeSet::from([Trigger::RunErrored])
        );
        let other = patch(r#"{"destination-type":"slack"}"#);
        let refusal = other.apply(&before, &SealedTexts::default(), Timestamp::MAX).expect_err("refused").detail;
        assert!(refusal.contains("can't be changed: it is generic"), "{refusal}");
    }
}
