//! `/app/{organization}/settings/audit` and `/app/admin/audit`: who did what, the newest first, and the same as a file.

use std::fmt::Write as _;

use askama::Template;
use axum::body::Body;
use axum::extract::{Path, Query, State};
use axum::http::StatusCode;
use axum::http::header::{CONTENT_DISPOSITION, CONTENT_TYPE};
use axum::response::{IntoResponse, Response};
use futures::{StreamExt as _, stream};
use jiff::civil::Date;
use jiff::tz::TimeZone;
use jiff::{Timestamp, ToSpan as _};
use serde::{Deserialize, Serialize};
use taco_control_plane::{AuditEntry, AuditFilter, AuditPage, Caller, ControlPlane, Error};
use url::form_urlencoded::Serializer;

use crate::audit_words::{self, Kind, ORGANIZATION_KINDS, SITE_KINDS};
use crate::choice::Choice;
use crate::error::PageError;
use crate::form::Complaint;
use crate::navigation::{Section, organization_address, run_address, workspace_address};
use crate::page::Layout;
use crate::rail::Rail;
use crate::text::{self, Moment};
use crate::visitor::Visitor;
use crate::{Web, organization_settings, page};

/// Word for all entries, with what servers do for themselves.
const EVERYTHING: &str = "everything";

const SITE_PATH: &str = "/app/admin/audit";

/// What the address asks for.
#[derive(Clone, Default, Deserialize)]
#[serde(default)]
pub(crate) struct AuditQuery {
    who: String,
    kind: String,
    thing: String,
    /// Days in UTC; both count.
    from: String,
    to: String,
    /// Where the page before it ended.
    before: String,
}

impl AuditQuery {
    fn filter(&self, kinds: &[Kind]) -> Result<AuditFilter, Complaint> {
        let named = |text: &str| Some(text.trim().to_owned()).filter(|text| !text.is_empty());
        let day = |field: &str, text: &str| match text.trim() {
            "" => Ok(None),
            day => day.parse::<Date>().map(Some).map_err(|_| {
                Complaint::about_field(field, format!("Enter a day such as 2026-01-31, and not {}", text::plain(day)))
            }),
        };
        let start = |day: Date| Some(day.to_zoned(TimeZone::UTC).ok()?.timestamp());
        let next = |day: Date| day.checked_add(1.day()).ok().and_then(start);
        Ok(AuditFilter {
            actor: named(&self.who),
            actions: kinds.iter().find(|(word, ..)| *word == self.kind).map(|(_, _, actions)| *actions),
            thing: named(&self.thing),
            from: day("from", &self.from)?.and_then(start),
            until: day("to", &self.to)?.and_then(next),
            with_housekeeping: self.kind == EVERYTHING,
        })
    }

    /// True if nothing is left out but housekeeping.
    fn is_whole(&self) -> bool {
        [&self.who, &self.kind, &self.thing, &self.from, &self.to].iter().all(|text| text.trim().is_empty())
    }

    /// The same search at another address, from a commit on.
    fn address(&self, path: &str, before: Option<u64>) -> String {
        let mut fields = Serializer::new(String::new());
        let named =
            [("who", &self.who), ("kind", &self.kind), ("thing", &self.thing), ("from", &self.from), ("to", &self.to)];
        fields.extend_pairs(named.into_iter().filter(|(_, text)| !text.is_empty()));
        if let Some(before) = before {
            fields.append_pair("before", &before.to_string());
        }
        let query = fields.finish();
        if query.is_empty() { path.to_owned() } else { format!("{path}?{query}") }
    }
}

struct Row {
    at: Moment,
    actor: String,
    /// What kind of actor it is, where it is not a user.
    actor_kind: &'static str,
    deed: String,
    /// The thing in words, and its page.
    thing: Option<(String, Option<String>)>,
    workspace: Option<(String, String)>,
    action: String,
    id: Option<String>,
    request: Option<String>,
}

/// Name of an actor, and what kind it is of.
fn actor(entry: &AuditEntry) -> (String, &'static str) {
    let kind = match entry.event.actor.split('-').next() {
        Some("team") => "team token",
        Some("org") => "organization token",
        Some("apool") => "agent pool",
        Some("run") => "run",
        Some("signed") => return ("Someone with a signed link".to_owned(), ""),
        _ => "",
    };
    (text::plain(&entry.event.actor_name), kind)
}

/// A thing in words: its kind, and its name or id.
fn thing_words(entry: &AuditEntry) -> Option<String> {
    let (kind, id) = entry.event.thing.as_ref().filter(|_| !audit_words::says_all(&entry.event.action))?;
    // A record of access has no name, and its id says nothing.
    if kind == "team-workspace" || kind == "team-project" {
        return Some(if entry.workspace.is_some() { "access".to_owned() } else { id.clone() });
    }
    let name = entry.name.as_deref().unwrap_or(id);
    Some(text::plain(&format!("{} {name}", audit_words::noun(kind))))
}

/// Page of the thing that an entry is about.
fn thing_address(organization: &str, entry: &AuditEntry) -> Option<String> {
    let (kind, id) = entry.event.thing.as_ref().filter(|_| !entry.deleted)?;
    let home = organization_address(organization);
    let workspace = entry.workspace.as_ref().map(|(_, name)| name.as_str());
    match (kind.as_str(), workspace) {
        ("run", Some(workspace)) => Some(run_address(organization, workspace, id)),
        ("state-version", Some(workspace)) => {
            Some(format!("{}/states/{id}", workspace_address(organization, workspace)))
        }
        ("variable", Some(workspace)) => Some(format!("{}/variables", workspace_address(organization, workspace))),
        ("project", _) => Some(format!("{home}/projects/{id}")),
        ("team", _) => Some(format!("{home}/settings/teams/{id}")),
        ("membership", _) => Some(format!("{home}/settings/members")),
        ("agent-pool", _) => Some(format!("{home}/agents/pools/{id}")),
        ("variable-set", _) => Some(format!("{home}/variable-sets/{id}")),
        ("organization", _) => Some(format!("{home}/settings")),
        _ => None,
    }
}

impl Row {
    fn of(organization: Option<&str>, entry: AuditEntry) -> Self {
        let (actor, actor_kind) = actor(&entry);
        let is_workspace = entry.event.thing.as_ref().is_some_and(|(kind, _)| kind == "workspace");
        let in_workspace = |name: &str| organization.map(|organization| workspace_address(organization, name));
        let thing = thing_words(&entry).map(|words| {
            let address = match (organization, &entry.name) {
                (Some(_), Some(name)) if is_workspace && !entry.deleted => in_workspace(name),
                (Some(organization), _) => thing_address(organization, &entry),
                (None, _) => None,
            };
            (words, address)
        });
        let workspace = entry.workspace.as_ref().filter(|_| !is_workspace);
        Self {
            at: Moment(entry.event.at),
            actor,
            actor_kind,
            deed: audit_words::deed(&entry.event.action).to_owned(),
            thing,
            workspace: workspace.and_then(|(_, name)| Some((name.clone(), in_workspace(name)?))),
            action: entry.event.action,
            id: entry.event.thing.map(|(_, id)| id),
            request: entry.event.request,
        }
    }

    /// The entry as one sentence.
    fn sentence(&self) -> String {
        let mut words = format!("{} {}", self.actor, self.deed);
        if let Some((thing, _)) = &self.thing {
            let _ = write!(words, " {thing}");
        }
        if let Some((workspace, _)) = &self.workspace {
            let _ = write!(words, " in workspace {workspace}");
        }
        words
    }
}

#[derive(Template)]
#[template(path = "audit_log.html")]
struct AuditLogPage {
    layout: Layout,
    rail: Rail,
    address: String,
    query: AuditQuery,
    complaint: Complaint,
    kinds: Vec<Choice>,
    everything: Choice,
    rows: Vec<Row>,
    now: Timestamp,
    /// Where the log goes on, if it does.
    older: Option<String>,
    newest: Option<String>,
    searched_to: Option<Moment>,
    csv: String,
    json: String,
    /// True for the log of the site.
    is_site: bool,
}

/// One of the logs.
#[derive(Clone)]
enum Log {
    Organization(String),
    Site,
}

impl Log {
    fn kinds(&self) -> &'static [Kind] {
        match self {
            Self::Organization(_) => ORGANIZATION_KINDS,
            Self::Site => SITE_KINDS,
        }
    }

    fn organization(&self) -> Option<&str> {
        match self {
            Self::Organization(name) => Some(name),
            Self::Site => None,
        }
    }

    fn address(&self) -> String {
        match self {
            Self::Organization(name) => format!("{}/audit", organization_settings::address(name)),
            Self::Site => SITE_PATH.to_owned(),
        }
    }

    async fn page(
        &self,
        control_plane: &ControlPlane,
        caller: &Caller,
        filter: &AuditFilter,
        before: Option<u64>,
    ) -> Result<AuditPage, Error> {
        match self {
            Self::Organization(name) => control_plane.audit_log(caller, name, filter, before).await,
            Self::Site => control_plane.site_audit_log(caller, filter, before).await,
        }
    }
}

async fn show(
    web: &Web,
    visitor: &Visitor,
    log: Log,
    layout: Layout,
    rail: Rail,
    query: AuditQuery,
) -> Result<Response, PageError> {
    let before = query.before.parse().ok();
    let (found, complaint) = match query.filter(log.kinds()) {
        Ok(filter) => {
            (Some(log.page(&web.control_plane, &visitor.caller, &filter, before).await?), Complaint::default())
        }
        Err(complaint) => (None, complaint),
    };
    let status = if complaint.is_there() { StatusCode::UNPROCESSABLE_ENTITY } else { StatusCode::OK };
    let address = log.address();
    let page = AuditLogPage {
        layout,
        rail,
        kinds: log.kinds().iter().map(|(word, name, _)| Choice::new(word, name, &query.kind)).collect(),
        everything: Choice::new(EVERYTHING, "Everything, with what servers do for themselves", &query.kind),
        now: web.control_plane.now(),
        older: found.as_ref().and_then(|found| found.before).map(|before| query.address(&address, Some(before))),
        newest: before.map(|_| query.address(&address, None)),
        searched_to: found.as_ref().and_then(|found| found.searched_to).map(Moment),
        rows: found
            .into_iter()
            .flat_map(|found| found.entries)
            .map(|entry| Row::of(log.organization(), entry))
            .collect(),
        csv: query.address(&format!("{address}/export.csv"), None),
        json: query.address(&format!("{address}/export.jsonl"), None),
        is_site: log.organization().is_none(),
        address,
        query,
        complaint,
    };
    Ok(page::render(status, &page))
}

/// `GET /app/{organization}/settings/audit`
pub(crate) async fn of_organization(
    State(web): State<Web>,
    visitor: Visitor,
    Path(organization): Path<String>,
    Query(query): Query<AuditQuery>,
) -> Result<Response, PageError> {
    let org = web.control_plane.organization_named(&visitor.caller, &organization).await?;
    let layout = Layout::for_visitor(&web, &visitor).in_organization(&organization, Section::Settings);
    let rail = Rail::of_organization(&org, &visitor.caller, "/audit");
    show(&web, &visitor, Log::Organization(organization), layout, rail, query).await
}

/// `GET /app/admin/audit`
pub(crate) async fn of_site(
    State(web): State<Web>,
    visitor: Visitor,
    Query(query): Query<AuditQuery>,
) -> Result<Response, PageError> {
    let layout = Layout::for_visitor(&web, &visitor);
    show(&web, &visitor, Log::Site, layout, Rail::of_site("/audit"), query).await
}

/// An entry as a line of JSON, and the columns of a table.
#[derive(Serialize)]
struct Exported {
    time: String,
    actor: String,
    actor_id: String,
    action: String,
    summary: String,
    kind: Option<String>,
    id: Option<String>,
    name: Option<String>,
    workspace: Option<String>,
    request_id: Option<String>,
    commit: u64,
    event_id: String,
}

const COLUMNS: &str = "time,actor,actor_id,action,summary,kind,id,name,workspace,request_id,commit,event_id\r\n";

impl Exported {
    fn of(organization: Option<&str>, entry: AuditEntry) -> Self {
        let row = Row::of(organization, entry.clone());
        let summary = row.sentence();
        let AuditEntry { event, name, workspace, .. } = entry;
        let (kind, id) = event.thing.unzip();
        Self {
            time: event.at.to_string(),
            actor: row.actor,
            actor_id: event.actor,
            action: event.action,
            summary,
            kind,
            id,
            name,
            workspace: workspace.map(|(_, name)| name),
            request_id: event.request,
            commit: event.commit,
            event_id: event.id,
        }
    }

    fn csv(&self) -> String {
        let or_empty = |text: &Option<String>| text.clone().unwrap_or_default();
        let cells = [
            self.time.clone(),
            self.actor.clone(),
            self.actor_id.clone(),
            self.action.clone(),
            self.summary.clone(),
            or_empty(&self.kind),
            or_empty(&self.id),
            or_empty(&self.name),
            or_empty(&self.workspace),
            or_empty(&self.request_id),
            self.commit.to_string(),
            self.event_id.clone(),
        ];
        cells.map(|cell| csv_cell(&cell)).join(",") + "\r\n"
    }
}

/// A cell of a table that no spreadsheet takes for a formula.
fn csv_cell(text: &str) -> String {
    let is_formula = text.starts_with(['=', '+', '-', '@', '\t', '\r']);
    let text = if is_formula { format!("'{text}") } else { text.to_owned() };
    if text.contains([',', '"', '\n', '\r']) { format!("\"{}\"", text.replace('"', "\"\"")) } else { text }
}

#[derive(Clone, Copy)]
enum Format {
    Csv,
    JsonLines,
}

/// A log that is being sent.
struct Export {
    control_plane: ControlPlane,
    caller: Caller,
    log: Log,
    filter: AuditFilter,
    format: Format,
    /// The page to send next, if it was read, and otherwise where it begins.
    next: Option<Result<AuditPage, u64>>,
}

impl Export {
    /// The next lines. Nobody waits for a page that is read before the one before it was sent.
    async fn lines(mut self) -> Result<Option<(String, Self)>, Error> {
        let page = match self.next.take() {
            None => return Ok(None),
            Some(Ok(page)) => page,
            Some(Err(before)) => self.log.page(&self.control_plane, &self.caller, &self.filter, Some(before)).await?,
        };
        self.next = page.before.map(Err);
        let line = |entry| {
            let exported = Exported::of(self.log.organization(), entry);
            match self.format {
                Format::Csv => exported.csv(),
                Format::JsonLines => serde_json::to_string(&exported).expect("plain data") + "\n",
            }
        };
        Ok(Some((page.entries.into_iter().map(line).collect(), self)))
    }
}

/// All entries that match, read page by page while they are sent.
async fn export(
    web: &Web,
    visitor: Visitor,
    log: Log,
    query: &AuditQuery,
    format: Format,
) -> Result<Response, PageError> {
    let filter = query.filter(log.kinds()).map_err(|complaint| PageError::bad_request(complaint.text()))?;
    // Before the response begins, so that a refusal is one.
    let first = log.page(&web.control_plane, &visitor.caller, &filter, None).await?;
    let (head, extension, media_type) = match format {
        Format::Csv => (COLUMNS, "csv", "text/csv; charset=utf-8"),
        Format::JsonLines => ("", "jsonl", "application/jsonl; charset=utf-8"),
    };
    // Names of organizations need no quoting: see `taco_domain::name`.
    let file = format!("{}-audit-log.{extension}", log.organization().unwrap_or("site"));
    let (control_plane, caller) = (web.control_plane.clone(), visitor.caller);
    let export = Export { control_plane, caller, log, filter, format, next: Some(Ok(first)) };
    let lines = stream::try_unfold(export, Export::lines);
    let body = Body::from_stream(stream::once(async move { Ok(head.to_owned()) }).chain(lines));
    let headers =
        [(CONTENT_TYPE, media_type.to_owned()), (CONTENT_DISPOSITION, format!("attachment; filename=\"{file}\""))];
    Ok((headers, body).into_response())
}

/// `GET /app/{organization}/settings/audit/export.csv`
pub(crate) async fn organization_csv(
    State(web): State<Web>,
    visitor: Visitor,
    Path(organization): Path<String>,
    Query(query): Query<AuditQuery>,
) -> Result<Response, PageError> {
    export(&web, visitor, Log::Organization(organization), &query, Format::Csv).await
}

/// `GET /app/{organization}/settings/audit/export.jsonl`
pub(crate) async fn organization_json(
    State(web): State<Web>,
    visitor: Visitor,
    Path(organization): Path<String>,
    Query(query): Query<AuditQuery>,
) -> Result<Response, PageError> {
    export(&web, visitor, Log::Organization(organization), &query, Format::JsonLines).await
}

/// `GET /app/admin/audit/export.csv`
pub(crate) async fn site_csv(
    State(web): State<Web>,
    visitor: Visitor,
    Query(query): Query<AuditQuery>,
) -> Result<Response, PageError> {
    export(&web, visitor, Log::Site, &query, Format::Csv).await
}

/// `GET /app/admin/audit/export.jsonl`
pub(crate) async fn site_json(
    State(web): State<Web>,
    visitor: Visitor,
    Query(query): Query<AuditQuery>,
) -> Result<Response, PageError> {
    export(&web, visitor, Log::Site, &query, Format::JsonLines).await
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cells_are_quoted_and_never_formulas() {
        for (text, expected) in [
            ("plain", "plain"),
            ("a,b", "\"a,b\""),
            ("say \"hi\"", "\"say \"\"hi\"\"\""),
            ("=1+1", "'=1+1"),
            ("@now", "'@now"),
            ("-a,b", "\"'-a,b\""),
        ] {
            assert_eq!(csv_cell(text), expected);
        }
    }

    #[test]
    fn days_are_whole_and_in_utc() {
        let query = AuditQuery { from: "2026-01-30".to_owned(), to: "2026-01-31".to_owned(), ..AuditQuery::default() };
        let filter = query.filter(ORGANIZATION_KINDS).expect("days");
        let moments = [filter.from, filter.until].map(|moment| moment.map(|moment| moment.to_string()));
        assert_eq!(moments, [Some("2026-01-30T00:00:00Z".to_owned()), Some("2026-02-01T00:00:00Z".to_owned())]);
        let wrong = AuditQuery { to: "yesterday".to_owned(), ..AuditQuery::default() };
        assert!(wrong.filter(SITE_KINDS).expect_err("no day").about("to").is_some());
        let last = AuditQuery { to: "9999-12-31".to_owned(), ..AuditQuery::default() };
        assert_eq!(last.filter(SITE_KINDS).expect("a day").until, None);
    }
}
