//! `taco audit ls`

use clap::Args;
use jiff::Timestamp;
use serde_json::Value;

use crate::EXIT_CODES;
use crate::failure::Failure;
use crate::output;
use crate::print::Cell;
use crate::process_env::ProcessEnv;
use crate::resource::in_words;
use crate::session::{Flags, Session};
use crate::time_text;

/// Largest page of the audit log.
const PAGE_SIZE: &str = "100";

/// List what happened in an organization, newest first
#[derive(Args, Debug)]
#[command(after_help = format!("\
With --json, each event is as the API has it.

Examples:
  taco audit ls --org acme --since 7d
  taco audit ls --by jane --type workspace
  taco audit ls --action lock --limit 1000 --json

{EXIT_CODES}"))]
pub struct Arguments {
    /// Only events since then: 2h, 7d or 2026-11-17T00:00:00Z
    #[arg(long, value_name = "TIME", value_parser = since)]
    since: Option<Timestamp>,
    /// Only events of this user, team or program
    #[arg(long, value_name = "NAME")]
    by: Option<String>,
    /// Only events about things of this type, such as workspace or run
    #[arg(long = "type", value_name = "TYPE")]
    kind: Option<String>,
    /// Only this action, such as create or lock
    #[arg(long, value_name = "ACTION")]
    action: Option<String>,
    /// How many events
    #[arg(long, value_name = "NUMBER", default_value_t = 50)]
    limit: usize,
    #[command(flatten)]
    flags: Flags,
}

fn since(text: &str) -> Result<Timestamp, String> {
    let distance = time_text::distance(text).and_then(|distance| time_text::now().checked_sub(distance).ok());
    distance.or_else(|| text.parse().ok()).ok_or_else(|| "write it as 2h, 7d or 2026-11-17T00:00:00Z".to_owned())
}

/// Text at a path of an event.
fn at(event: &Value, path: &str) -> String {
    event.pointer(path).map(in_words).unwrap_or_default()
}

impl Arguments {
    fn wants(&self, event: &Value) -> bool {
        let same = |wanted: &Option<String>, path: &str| {
            wanted.as_ref().is_none_or(|wanted| {
                let wanted = wanted.replace('-', "_");
                at(event, path).replace('-', "_").eq_ignore_ascii_case(&wanted)
            })
        };
        let by = self.by.as_ref().is_none_or(|name| {
            ["/auth/description", "/auth/accessor_id"].iter().any(|path| at(event, path).eq_ignore_ascii_case(name))
        });
        by && same(&self.kind, "/resource/type") && same(&self.action, "/resource/action")
    }
}

pub(crate) async fn run(arguments: &Arguments, process_env: &ProcessEnv) -> Result<(), Failure> {
    let session = Session::open(&arguments.flags, process_env).await?;
    let organization = session.target.organization(None)?;
    let events = read(&session, &organization, arguments).await?;
    if session.json {
        return output::json(&Value::from(events));
    }
    let row = |event: &Value| {
        let thing = [at(event, "/resource/type"), at(event, "/resource/id")].join(" ");
        let who = at(event, "/auth/description");
        [Cell::Time(at(event, "/timestamp")), who.into(), at(event, "/resource/action").into(), thing.trim_end().into()]
    };
    session.table(["TIME", "BY", "ACTION", "WHAT"], events.iter().map(row), "No events match.")
}

async fn read(session: &Session, organization: &str, arguments: &Arguments) -> Result<Vec<Value>, Failure> {
    let path = ["organizations", organization, "audit-trail"];
    let subject = format!("audit log of organization {organization}");
    let since = arguments.since.map(|time| time.to_string());
    let (mut events, mut page) = (Vec::new(), 1_u64);
    loop {
        let number = page.to_string();
        let mut query = vec![("page[number]", number.as_str()), ("page[size]", PAGE_SIZE)];
        query.extend(since.as_ref().map(|since| ("since", since.as_str())));
        let mut document = session.api.json(&subject, &path, &query).await?;
        let found = document.get_mut("data").and_then(Value::as_array_mut).map(std::mem::take).unwrap_or_default();
        events.extend(found.into_iter().filter(|event| arguments.wants(event)));
        let next = document.pointer("/pagination/next_page").and_then(Value::as_u64);
        match next {
            Some(next) if next > page && events.len() < arguments.limit => page = next,
            _ => break,
        }
    }
    events.truncate(arguments.limit);
    Ok(events)
}
