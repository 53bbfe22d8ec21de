//! The payload of generic webhooks: Terraform Cloud's, key by key, because receivers were written for that.

use hmac::{Hmac, KeyInit, Mac};
use serde::Serialize;
use sha2::Sha512;

use crate::notifications::message::{Message, Subject, spelled, verification};

/// Name of the header with the signature.
pub const SIGNATURE_HEADER: &str = "x-tfe-notification-signature";

/// Name of the header with the delivery's id: the same with every attempt, so that receivers know a repetition.
pub const DELIVERY_HEADER: &str = "x-taco-delivery";

/// Keys are in this order on the wire.
#[derive(Default, Serialize)]
struct Payload {
    payload_version: u8,
    notification_configuration_id: String,
    run_url: Option<String>,
    run_id: Option<String>,
    run_message: Option<String>,
    run_created_at: Option<String>,
    run_created_by: Option<String>,
    workspace_id: Option<String>,
    workspace_name: Option<String>,
    organization_name: Option<String>,
    notifications: [Notification; 1],
}

#[derive(Default, Serialize)]
struct Notification {
    message: String,
    trigger: &'static str,
    run_status: Option<String>,
    run_updated_at: Option<String>,
    run_updated_by: Option<String>,
}

/// The body of a generic webhook.
pub fn payload(message: &Message) -> Vec<u8> {
    let payload = match &message.subject {
        Subject::Verification { name } => Payload {
            notifications: [Notification {
                message: verification(name),
                trigger: "verification",
                ..Notification::default()
            }],
            ..Payload::default()
        },
        Subject::Run(run) => Payload {
            run_url: Some(run.run_url.clone()),
            run_id: Some(run.run_id.clone()),
            run_message: Some(run.run_message.clone()),
            run_created_at: Some(spelled(run.run_created_at)),
            run_created_by: run.run_created_by.clone(),
            workspace_id: Some(run.workspace_id.clone()),
            workspace_name: Some(run.workspace_name.clone()),
            organization_name: Some(run.organization_name.clone()),
            notifications: [Notification {
                message: run.headline().to_owned(),
                trigger: run.trigger.as_str(),
                run_status: Some(run.run_status.clone()),
                run_updated_at: Some(spelled(run.run_updated_at)),
                run_updated_by: run.run_updated_by.clone(),
            }],
            ..Payload::default()
        },
    };
    let payload =
        Payload { payload_version: 1, notification_configuration_id: message.configuration.to_string(), ..payload };
    serde_json::to_vec(&payload).expect("texts and numbers are plain data")
}

/// The signature of a body: HMAC-SHA512 with the configuration's token, in hexadecimal digits.
pub fn signature(token: &str, body: &[u8]) -> String {
    let mut mac = Hmac::<Sha512>::new_from_slice(token.as_bytes()).expect("HMAC takes a key of any length");
    mac.update(body);
    hex::encode(mac.finalize().into_bytes())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::notifications::message::tests::{given_message, given_verification};

    #[test]
    fn keys_are_those_of_terraform_cloud_in_its_order() {
        let text = |message: Message| String::from_utf8(payload(&message)).expect("text");
        assert_eq!(
            text(given_message()),
            concat!(
                r#"{"payload_version":1,"notification_configuration_id":"nc-4Tk9mXbq7cWvZpHn","#,
                r#""run_url":"https://taco.example.com/app/acme/workspaces/web/runs/run-4Tk9mXbq7cWvZpHn","#,
                r#""run_id":"run-4Tk9mXbq7cWvZpHn","#,
                r#""run_message":"Add <b>two</b> & *more* [subnets](https://evil.test) <!channel>","#,
                r#""run_created_at":"2026-11-19T09:00:00.000Z","run_created_by":"ann","#,
                r#""workspace_id":"ws-4Tk9mXbq7cWvZpHn","workspace_name":"web","organization_name":"acme","#,
                r#""notifications":[{"message":"Run Needs Attention","trigger":"run:needs_attention","#,
                r#""run_status":"planned","run_updated_at":"2026-11-19T09:01:02.345Z","run_updated_by":null}]}"#,
            )
        );
        assert_eq!(
            text(given_verification()),
            concat!(
                r#"{"payload_version":1,"notification_configuration_id":"nc-4Tk9mXbq7cWvZpHn","#,
                r#""run_url":null,"run_id":null,"run_message":null,"run_created_at":null,"run_created_by":null,"#,
                r#""workspace_id":null,"workspace_name":null,"organization_name":null,"#,
                r#""notifications":[{"message":"Verification of Ops & <friends>","trigger":"verification","#,
                r#""run_status":null,"run_updated_at":null,"run_updated_by":null}]}"#,
            )
        );
    }

    #[test]
    fn a_signature_is_hmac_with_sha_512() {
        // RFC 4231, test case 2.
        assert_eq!(
            signature("Jefe", b"what do ya want for nothing?"),
            "164b7a7bfcf819e2e395fbe73b56e0a387bd64222e831fd610270cd7ea2505549758bf75c05a994a6d034f65f8f0e6fdcaeab1a34d4a6b4b\
             636e070a38bce737"
        );
    }
}
