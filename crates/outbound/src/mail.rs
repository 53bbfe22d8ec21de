//! E-mail through the server that the operator names.

use std::time::Duration;

use lettre::message::header::ContentType;
use lettre::message::{Mailbox, MultiPart, SinglePart};
use lettre::transport::smtp::AsyncSmtpTransport;
use lettre::{Address, AsyncTransport as _, Message, Tokio1Executor};
use tokio::time::timeout;

const MAIL_TIMEOUT: Duration = Duration::from_secs(20);

/// One message, as text and as HTML.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Mail {
    /// The same for each repetition, so that a mail program shows it once.
    pub id: String,
    pub to: Vec<String>,
    pub subject: String,
    pub text: String,
    pub html: String,
}

/// Reason why a message was not taken, for those who configured it.
#[derive(Clone, PartialEq, Eq, thiserror::Error, Debug)]
#[error("{0}")]
pub struct MailError(pub String);

/// Sends messages. Cheap to clone.
#[derive(Clone)]
pub struct Mailer {
    transport: AsyncSmtpTransport<Tokio1Executor>,
    from: Mailbox,
}

impl Mailer {
    /// `url` is `smtps://user:password@host`, `smtp://host:587?tls=required` or, for a server on a network of one's own,
    /// `smtp://host`. The error is for the operator and has no part of the address in it: there may be a password.
    pub fn new(url: &str, from: &str) -> Result<Self, String> {
        let from: Mailbox = from.parse().map_err(|_| format!("mail_from: {from:?} is no e-mail address"))?;
        let transport = AsyncSmtpTransport::<Tokio1Executor>::from_url(url)
            .map_err(|_| "smtp_url is no address such as smtps://user:password@mail.example.com".to_owned())?
            .timeout(Some(MAIL_TIMEOUT))
            .build();
        Ok(Self { transport, from })
    }

    /// Hands a message to the server, and returns what that said.
    pub async fn send(&self, mail: &Mail) -> Result<String, MailError> {
        let message = self.message(mail)?;
        let sent = timeout(MAIL_TIMEOUT, self.transport.send(message)).await;
        match sent {
            Ok(Ok(response)) => Ok(response.message().collect::<Vec<_>>().join(" ")),
            Ok(Err(error)) => Err(MailError(in_full(&error))),
            Err(_) => Err(MailError(format!("there was no answer within {} seconds", MAIL_TIMEOUT.as_secs()))),
        }
    }

    fn message(&self, mail: &Mail) -> Result<Message, MailError> {
        let domain = self.from.email.domain();
        let mut message = Message::builder()
            .from(self.from.clone())
            .subject(&mail.subject)
            .message_id(Some(format!("<{}@{domain}>", mail.id)))
            .date_now();
        for address in &mail.to {
            let parsed: Address =
                address.parse().map_err(|_| MailError(format!("{address:?} is no e-mail address")))?;
            message = message.to(Mailbox::new(None, parsed));
        }
        let part = |kind, text: &str| SinglePart::builder().header(kind).body(text.to_owned());
        let parts = MultiPart::alternative()
            .singlepart(part(ContentType::TEXT_PLAIN, &mail.text))
            .singlepart(part(ContentType::TEXT_HTML, &mail.html));
        message.multipart(parts).map_err(|error| MailError(error.to_string()))
    }
}

fn in_full(error: &lettre::transport::smtp::Error) -> String {
    let mut text = error.to_string();
    let mut cause = std::error::Error::source(error);
    while let Some(one) = cause {
        text = format!("{text}: {one}");
        cause = one.source();
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_bad_setting_is_refused_without_showing_what_may_be_a_password() {
        assert!(Mailer::new("smtp://mail.example.com:2525", "Taco <taco@example.com>").is_ok());
        let error = |url: &str, from: &str| Mailer::new(url, from).err().expect("refused");
        assert_eq!(error("smtp://h", "nobody"), r#"mail_from: "nobody" is no e-mail address"#);
        let refused = error("ftp://ann:hunter2@mail.example.com", "taco@example.com");
        assert!(refused.contains("smtp_url") && !refused.contains("hunter2"), "{refused}");
    }

    #[test]
    fn a_repeated_message_has_the_same_id() {
        let mailer = Mailer::new("smtp://mail.example.com", "Taco <taco@example.com>").expect("a mailer");
        let mail = Mail {
            id: "nd-1".into(),
            to: vec!["ann@acme.test".into()],
            subject: "a\r\nBcc: eve@evil.test".into(),
            text: "hello".into(),
            html: "<p>hello</p>".into(),
        };
        let text = String::from_utf8(mailer.message(&mail).expect("a message").formatted()).expect("text");
        assert!(text.contains("Message-ID: <nd-1@example.com>\r\n"), "{text}");
        assert!(!text.contains("\r\nBcc:"), "a subject is no header: {text}");
    }
}
