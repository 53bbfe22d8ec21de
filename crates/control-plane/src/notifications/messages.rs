//! Messages: what a delivery says, with the names that people know, and the way on which it goes.

use taco_boxed::boxed;
use taco_domain::Author;
use taco_domain::delivery::{NotificationDelivery, NotificationDeliveryId};
use taco_domain::email::email;
use taco_domain::message::{Message, RunMessage, Subject};
use taco_domain::microsoft_teams::microsoft_teams;
use taco_domain::notification_configuration::{
    AnswerHeader, DeliveryAnswer, DestinationType, NotificationConfiguration,
};
use taco_domain::payload::{DELIVERY_HEADER, SIGNATURE_HEADER, payload, signature};
use taco_domain::slack::slack;

use crate::control_plane::{ControlPlane, OrganizationSnapshot};
use crate::courier::{Letter, Reply, Webhook};
use crate::error::Error;

/// What an answer to a verification is called.
const VERIFICATION: &str = "verification";

#[boxed]
impl ControlPlane {
    /// Sends a message that only says that it arrives.
    pub(crate) async fn send_verification(
        &self,
        org: &OrganizationSnapshot,
        configuration: &NotificationConfiguration,
    ) -> Result<DeliveryAnswer, Error> {
        let id = NotificationDeliveryId::within(configuration.id.organization_prefix(), self.random());
        let subject = Subject::Verification { name: configuration.name.to_string() };
        let message = Message { id, configuration: configuration.id, subject };
        self.send(org, configuration, &message, VERIFICATION.to_owned()).await
    }

    /// Sends what a delivery is to tell.
    pub(crate) async fn send_delivery(
        &self,
        org: &OrganizationSnapshot,
        configuration: &NotificationConfiguration,
        delivery: &NotificationDelivery,
    ) -> Result<DeliveryAnswer, Error> {
        let message = self.message_of(org, delivery);
        self.send(org, configuration, &message, delivery.trigger.to_string()).await
    }

    fn message_of(&self, org: &OrganizationSnapshot, delivery: &NotificationDelivery) -> Message {
        let run = &delivery.run;
        let workspace = org.state.workspaces.get(&run.workspace).map(|workspace| workspace.name.to_string());
        let (workspace, organization) = (workspace.unwrap_or_default(), org.entry().name.to_string());
        let site = &self.shared.notifications.site_url;
        let name = |author: &Author| (*author != Author::Taco).then(|| org.name_of(author));
        let message = RunMessage {
            trigger: delivery.trigger,
            run_url: format!("{site}/app/{organization}/workspaces/{workspace}/runs/{}", run.id),
            run_id: run.id.to_string(),
            run_message: run.message.clone(),
            run_created_at: run.created_at,
            run_created_by: name(&run.created_by),
            workspace_id: run.workspace.to_string(),
            workspace_name: workspace,
            organization_name: organization,
            run_status: run.status.to_string(),
            run_updated_at: run.at,
            run_updated_by: name(&run.by),
        };
        let subject = Subject::Run(Box::new(message));
        Message { id: delivery.id, configuration: delivery.configuration, subject }
    }

    async fn send(
        &self,
        org: &OrganizationSnapshot,
        configuration: &NotificationConfiguration,
        message: &Message,
        trigger: String,
    ) -> Result<DeliveryAnswer, Error> {
        let reply = match configuration.destination {
            DestinationType::Email => self.mail(org, configuration, message).await,
            DestinationType::Generic | DestinationType::Slack | DestinationType::MicrosoftTeams => {
                let webhook = self.webhook(configuration, message)?;
                self.shared.notifications.courier.post(webhook).await
            }
        };
        let headers = reply.headers.into_iter().map(|(name, value)| AnswerHeader { name, value });
        Ok(DeliveryAnswer {
            sent_at: self.now(),
            successful: reply.successful,
            code: reply.code,
            body: reply.body,
            headers: headers.collect(),
            trigger,
            gave_up: false,
        })
    }

    fn webhook(&self, configuration: &NotificationConfiguration, message: &Message) -> Result<Webhook, Error> {
        let json = |value: serde_json::Value| value.to_string().into_bytes();
        let body = match configuration.destination {
            DestinationType::Slack => json(slack(message)),
            DestinationType::MicrosoftTeams => json(microsoft_teams(message)),
            DestinationType::Generic | DestinationType::Email => payload(message),
        };
        let mut headers =
            vec![("content-type", "application/json".to_owned()), (DELIVERY_HEADER, message.id.to_string())];
        if let Some(token) = self.notification_token(configuration)? {
            headers.push((SIGNATURE_HEADER, signature(&token, &body)));
        }
        let url = self.notification_url(configuration)?.unwrap_or_default();
        Ok(Webhook { url, headers, body })
    }

    async fn mail(
        &self,
        org: &OrganizationSnapshot,
        configuration: &NotificationConfiguration,
        message: &Message,
    ) -> Reply {
        let to = recipients(org, configuration);
        let none = |why: String| Reply { body: why, ..Reply::default() };
        if to.is_empty() {
            return none("Nobody gets this email: add addresses, or users who are members".to_owned());
        }
        if let Err(why) = self.shared.notifications.courier.check_email() {
            return none(why);
        }
        let email = email(message);
        let (id, subject, text, html) = (message.id.to_string(), email.subject, email.text, email.html);
        self.shared.notifications.courier.mail(Letter { id, to, subject, text, html }).await
    }

    /// The address of a configuration in clear.
    pub(crate) fn notification_url(&self, configuration: &NotificationConfiguration) -> Result<Option<String>, Error> {
        let name = NotificationConfiguration::url_seal(configuration.id);
        configuration.sealed_url.as_deref().map(|sealed| self.unseal(&name, sealed)).transpose()
    }

    fn notification_token(&self, configuration: &NotificationConfiguration) -> Result<Option<String>, Error> {
        let name = NotificationConfiguration::token_seal(configuration.id);
        configuration.sealed_token.as_deref().map(|sealed| self.unseal(&name, sealed)).transpose()
    }
}

/// Those who get the e-mail: addresses, and users while they are members.
fn recipients(org: &OrganizationSnapshot, configuration: &NotificationConfiguration) -> Vec<String> {
    let members = configuration.users.iter().filter(|user| org.state.membership_of(user).is_some());
    let users = members.filter_map(|user| org.site().users.get(user)).map(|user| user.email.to_string());
    let mut recipients = configuration.email_addresses.clone();
    for address in users {
        if !recipients.contains(&address) {
            recipients.push(address);
        }
    }
    recipients
}
