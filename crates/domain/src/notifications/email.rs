//! The form of notifications for e-mail: as text and as HTML.

use crate::notifications::message::{Message, Subject, shortened, verification};

const LONGEST_SUBJECT: usize = 150;

/// An e-mail, without its addresses.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Email {
    pub subject: String,
    pub text: String,
    pub html: String,
}

/// A notification as e-mail.
pub fn email(message: &Message) -> Email {
    match &message.subject {
        Subject::Verification { name } => {
            let text = verification(name);
            Email { subject: one_line(&text), html: format!("<p>{}</p>\n", escaped(&text)), text: format!("{text}\n") }
        }
        Subject::Run(run) => {
            let rows = [
                ("Workspace", run.place()),
                ("Status", run.run_status.clone()),
                ("Started by", run.started_by().to_owned()),
                ("Run", run.run_id.clone()),
            ];
            let lines: String = rows.iter().map(|(name, value)| format!("{name}: {value}\n")).collect();
            let cells: String = rows
                .iter()
                .map(|(name, value)| format!("<tr><th align=\"left\">{name}</th><td>{}</td></tr>\n", escaped(value)))
                .collect();
            let (headline, url) = (run.headline(), &run.run_url);
            Email {
                subject: one_line(&format!("{headline}: {}", run.place())),
                text: format!("{headline}\n\n{}\n\n{lines}\n{url}\n", run.run_message),
                html: format!(
                    "<h2>{headline}</h2>\n<p>{}</p>\n<table>\n{cells}</table>\n<p><a href=\"{}\">View run</a></p>\n",
                    escaped(&run.run_message),
                    escaped(url),
                ),
            }
        }
    }
}

fn one_line(text: &str) -> String {
    let plain: String = text.chars().map(|character| if character.is_control() { ' ' } else { character }).collect();
    shortened(&plain, LONGEST_SUBJECT)
}

fn escaped(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;").replace('"', "&quot;")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::notifications::message::tests::{given_message, given_verification};

    fn shown(email: &Email) -> String {
        format!("{}\n---\n{}---\n{}", email.subject, email.text, email.html)
    }

    #[test]
    fn a_run_is_told_as_text_and_as_html() {
        insta::assert_snapshot!(shown(&email(&given_message())));
    }

    #[test]
    fn a_verification_is_one_sentence() {
        insta::assert_snapshot!(shown(&email(&given_verification())));
    }

    #[test]
    fn a_subject_is_one_line() {
        assert_eq!(one_line("a\r\nb"), "a  b");
    }
}
