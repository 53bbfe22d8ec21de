//! The form of notifications for Microsoft Teams: an adaptive card, as workflows with a webhook take it.

use serde_json::{Value, json};

use crate::notifications::message::{Message, Subject, shortened, verification};

const LONGEST_TEXT: usize = 1500;
const LONGEST_FACT: usize = 300;

/// The body of a message to Microsoft Teams.
pub fn microsoft_teams(message: &Message) -> Value {
    let (body, actions) = match &message.subject {
        Subject::Verification { name } => (json!([title(&verification(name))]), json!([])),
        Subject::Run(run) => {
            let fact =
                |name: &str, value: &str| json!({ "title": name, "value": escaped(&shortened(value, LONGEST_FACT)) });
            let body = json!([
                title(run.headline()),
                // Runs of text are shown as they are, without markup.
                { "type": "RichTextBlock", "inlines": [
                    { "type": "TextRun", "text": shortened(&run.run_message, LONGEST_TEXT) },
                ] },
                { "type": "FactSet", "facts": [
                    fact("Workspace", &run.place()),
                    fact("Status", &run.run_status),
                    fact("Started by", run.started_by()),
                    fact("Run", &run.run_id),
                ] },
            ]);
            (body, json!([{ "type": "Action.OpenUrl", "title": "View run", "url": run.run_url }]))
        }
    };
    json!({
        "type": "message",
        "attachments": [{
            "contentType": "application/vnd.microsoft.card.adaptive",
            "contentUrl": null,
            "content": {
                "$schema": "http://adaptivecards.io/schemas/adaptive-card.json",
                "type": "AdaptiveCard",
                "version": "1.4",
                "body": body,
                "actions": actions,
            },
        }],
    })
}

fn title(text: &str) -> Value {
    let text = escaped(&shortened(text, LONGEST_FACT));
    json!({ "type": "TextBlock", "text": text, "weight": "Bolder", "size": "Medium", "wrap": true })
}

/// Text without markup: cards know a part of Markdown.
fn escaped(text: &str) -> String {
    let mut escaped = String::new();
    for character in text.chars() {
        if r"\`*_[]()<>#~|!".contains(character) {
            escaped.push('\\');
        }
        escaped.push(character);
    }
    escaped
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::notifications::message::tests::{given_message, given_verification};

    #[test]
    fn a_run_is_told_on_a_card() {
        insta::assert_snapshot!(serde_json::to_string_pretty(&microsoft_teams(&given_message())).expect("JSON"));
    }

    #[test]
    fn a_verification_is_a_card_with_a_title() {
        insta::assert_snapshot!(serde_json::to_string_pretty(&microsoft_teams(&given_verification())).expect("JSON"));
    }
}
