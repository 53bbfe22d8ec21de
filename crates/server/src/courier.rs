//! What leaves the site, and how: webhooks through the one client for configured addresses, e-mail through the
//! operator's mail server.

use futures::future::{BoxFuture, FutureExt};
use taco_control_plane::{Courier, Letter, Reply, Webhook};
use taco_outbound::{AllowedNetworks, Mail, Mailer, Outbound, OutboundClient};

use crate::config::Settings;

/// The real way out.
pub struct OutboundCourier {
    client: OutboundClient,
    mailer: Option<Mailer>,
}

impl OutboundCourier {
    /// The way out that the settings describe. The error is for the operator, and shows no secret.
    pub(crate) fn of(settings: &Settings) -> Result<Self, String> {
        let mailer = match (&settings.smtp_url, &settings.mail_from) {
            (None, None) => None,
            (Some(url), Some(from)) => Some(Mailer::new(url.expose(), from)?),
            (Some(_), None) => return Err("smtp_url needs mail_from, the sender of email".to_owned()),
            (None, Some(_)) => return Err("mail_from needs smtp_url, the mail server".to_owned()),
        };
        Self::new(settings.outbound_allow.clone().unwrap_or_default(), mailer)
    }

    pub fn new(allowed: AllowedNetworks, mailer: Option<Mailer>) -> Result<Self, String> {
        Ok(Self { client: OutboundClient::new(allowed)?, mailer })
    }
}

impl Courier for OutboundCourier {
    fn check_url(&self, url: &str) -> Result<(), String> {
        self.client.check(url)
    }

    fn check_email(&self) -> Result<(), String> {
        match &self.mailer {
            Some(_) => Ok(()),
            None => Err("This site sends no email: whoever runs it has to set smtp_url and mail_from".to_owned()),
        }
    }

    fn post(&self, webhook: Webhook) -> BoxFuture<'_, Reply> {
        async move {
            let request = Outbound { url: webhook.url, headers: webhook.headers, body: webhook.body.into() };
            match self.client.post(&request).await {
                Ok(answer) => Reply {
                    successful: (200..300).contains(&answer.status),
                    code: Some(answer.status),
                    body: answer.body,
                    headers: answer.headers,
                },
                Err(error) => Reply { body: error.to_string(), ..Reply::default() },
            }
        }
        .boxed()
    }

    fn mail(&self, letter: Letter) -> BoxFuture<'_, Reply> {
        async move {
            let Some(mailer) = &self.mailer else {
                return Reply { body: self.check_email().err().unwrap_or_default(), ..Reply::default() };
            };
            let Letter { id, to, subject, text, html } = letter;
            match mailer.send(&Mail { id, to, subject, text, html }).await {
                Ok(said) => Reply { successful: true, body: said, ..Reply::default() },
                Err(error) => Reply { body: error.to_string(), ..Reply::default() },
            }
        }
        .boxed()
    }
}
