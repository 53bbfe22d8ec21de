//! The form of notifications for Slack's incoming webhooks: blocks, and a text for where those are not shown.

use serde_json::{Value, json};

use crate::notifications::message::{Message, RunMessage, Subject, shortened, verification};

// Limits of Slack for a header, for a text and for one of two columns.
const LONGEST_HEADER: usize = 150;
const LONGEST_TEXT: usize = 1500;
const LONGEST_FIELD: usize = 500;

/// The body of a message to Slack.
pub fn slack(message: &Message) -> Value {
    match &message.subject {
        Subject::Verification { name } => {
            let text = verification(name);
            json!({ "text": escaped(&text, LONGEST_TEXT), "blocks": [header(&text)] })
        }
        Subject::Run(run) => json!({ "text": escaped(&run.summary(), LONGEST_TEXT), "blocks": blocks(run) }),
    }
}

fn blocks(run: &RunMessage) -> Value {
    let field = |name: &str, value: &str| markdown(format!("*{name}*\n{}", escaped(value, LONGEST_FIELD)));
    json!([
        header(run.headline()),
        { "type": "section", "text": markdown(escaped(&run.run_message, LONGEST_TEXT)) },
        { "type": "section", "fields": [
            field("Workspace", &run.place()),
            field("Status", &run.run_status),
            field("Started by", run.started_by()),
            field("Run", &run.run_id),
        ] },
        { "type": "actions", "elements": [
            { "type": "button", "text": plain("View run"), "url": run.run_url },
        ] },
    ])
}

fn header(text: &str) -> Value {
    json!({ "type": "header", "text": plain(&shortened(text, LONGEST_HEADER)) })
}

fn plain(text: &str) -> Value {
    json!({ "type": "plain_text", "text": text, "emoji": false })
}

fn markdown(text: String) -> Value {
    // A block must not be without text.
    let text = if text.trim().is_empty() { "(no message)".to_owned() } else { text };
    json!({ "type": "mrkdwn", "text": text, "verbatim": true })
}

/// Text in which Slack finds no commands, such as a mention of everyone.
fn escaped(text: &str, longest: usize) -> String {
    shortened(text, longest).replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::notifications::message::tests::{given_message, given_verification};

    #[test]
    fn a_run_is_told_in_blocks() {
        insta::assert_snapshot!(serde_json::to_string_pretty(&slack(&given_message())).expect("JSON"));
    }

    #[test]
    fn a_verification_is_short() {
        insta::assert_snapshot!(serde_json::to_string_pretty(&slack(&given_verification())).expect("JSON"));
    }

    #[test]
    fn a_run_without_a_message_is_told_too() {
        let mut message = given_message();
        if let Subject::Run(run) = &mut message.subject {
            run.run_message = String::new();
        }
        assert_eq!(slack(&message)["blocks"][1]["text"]["text"], "(no message)");
    }
}
