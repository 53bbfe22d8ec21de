//! `/app/{organization}/workspaces/{workspace}/configurations`: all that was uploaded for runs, newest first.

pub(crate) mod configuration;

use askama::Template;
use axum::extract::{Path, Query, State};
use axum::http::StatusCode;
use axum::response::Response;
use jiff::Timestamp;
use serde::Deserialize;
use serde::de::IntoDeserializer;
use serde::de::value::{Error as NoSource, StrDeserializer};
use taco_control_plane::{ConfigurationAction, ConfigurationVersionView, WorkspaceView};
use taco_domain::configuration_version::ConfigurationStatus;
use taco_domain::id::ConfigurationVersionId;
use taco_domain::permission::Action;
use taco_domain::run::RunSource;
use taco_domain::state_version::BackingDataAction;

use crate::badge::Badge;
use crate::error::PageError;
use crate::flash::Flash;
use crate::form::{Nothing, VisitorForm};
use crate::navigation::WorkspaceSection;
use crate::page::Layout;
use crate::pagination::{self, PageQuery, Pagination};
use crate::text::{self, Moment};
use crate::visitor::Visitor;
use crate::words::source_words;
use crate::workspace::{address_of, named};
use crate::{Web, page};

#[derive(Template)]
#[template(path = "configurations.html")]
struct ConfigurationsPage {
    layout: Layout,
    address: String,
    rows: Vec<Row>,
    pages: Pagination,
    now: Timestamp,
}

struct Row {
    id: ConfigurationVersionId,
    number: u64,
    /// `configuration 3`.
    name: String,
    badge: Badge,
    /// The one that the next run uses.
    current: bool,
    speculative: bool,
    provisional: bool,
    source: String,
    by: String,
    created: Moment,
    size: String,
    error: Option<String>,
    can_be_downloaded: bool,
    steps: Vec<Step>,
    /// Reason why some action is unavailable.
    refusal: Option<String>,
}

/// Action on an archive.
struct Step {
    path: &'static str,
    word: &'static str,
    /// Warning before an action that cannot be undone.
    consequence: Option<&'static str>,
    allowed: bool,
}

/// The name of each step in addresses, what it does, and what the page says afterwards.
const STEPS: [(&str, ConfigurationAction, &str); 4] = [
    ("archive", ConfigurationAction::Archive, "Configuration archived. Its files are gone."),
    ("delete", ConfigurationAction::BackingData(BackingDataAction::SoftDelete), "Configuration deleted."),
    ("bring-back", ConfigurationAction::BackingData(BackingDataAction::Restore), "Configuration restored."),
    (
        "delete-for-good",
        ConfigurationAction::BackingData(BackingDataAction::PermanentlyDelete),
        "Files of the configuration deleted for good.",
    ),
];

fn words_of(action: ConfigurationAction) -> (&'static str, Option<&'static str>) {
    match action {
        ConfigurationAction::Archive => (
            "Archive",
            Some("Its files are deleted permanently. Runs that used it are kept, but it can't be run again."),
        ),
        ConfigurationAction::BackingData(BackingDataAction::SoftDelete) => ("Delete", None),
        ConfigurationAction::BackingData(BackingDataAction::Restore) => ("Restore", None),
        ConfigurationAction::BackingData(BackingDataAction::PermanentlyDelete) => {
            ("Delete permanently", Some("This can't be undone."))
        }
    }
}

impl Row {
    fn of(visitor: &Visitor, workspace: &WorkspaceView, view: &ConfigurationVersionView) -> Self {
        let version = &view.version;
        let mut refusal = None;
        let mut steps = Vec::new();
        for (path, action, _) in STEPS.iter().filter(|(_, action, _)| view.is_possible(*action)) {
            let choice = view.choice(&visitor.caller, *action);
            let (word, consequence) = words_of(*action);
            steps.push(Step { path, word, consequence, allowed: choice.is_ok() });
            refusal = refusal.or(choice.err());
        }
        Self {
            id: version.id,
            number: version.number,
            name: format!("configuration {}", version.number),
            badge: Badge::of_configuration(version.status),
            current: view.is_current(),
            speculative: version.speculative,
            provisional: version.provisional,
            source: source_in_words(&version.source),
            by: view.org.name_of(&version.created_by),
            created: Moment(version.created_at),
            size: if version.size == 0 { String::new() } else { text::size(version.size) },
            error: version.error_message.as_deref().map(text::plain),
            can_be_downloaded: version.status == ConfigurationStatus::Uploaded
                && visitor.caller.may(Action::QueuePlan, workspace.resource()).allowed,
            steps,
            refusal,
        }
    }
}

fn source_in_words(source: &str) -> String {
    let reader: StrDeserializer<'_, NoSource> = source.into_deserializer();
    RunSource::deserialize(reader).map_or_else(|_| text::plain(source), |known| source_words(known).to_owned())
}

/// `GET /app/{organization}/workspaces/{workspace}/configurations`
pub(crate) async fn list(
    State(web): State<Web>,
    visitor: Visitor,
    Path(path): Path<(String, String)>,
    Query(wanted): Query<PageQuery>,
) -> Result<Response, PageError> {
    let workspace = named(path);
    let view = web.control_plane.workspace(&visitor.caller, &workspace).await?;
    let number = pagination::asked_for(&wanted.page);
    let listed = web.control_plane.configuration_versions(&visitor.caller, &workspace, number).await?;
    let address = format!("{}/configurations", address_of(&view));
    let organization = view.org.entry().name.as_str();
    let page = ConfigurationsPage {
        layout: Layout::for_visitor(&web, &visitor).in_workspace(organization, &view.workspace, WorkspaceSection::Runs),
        pages: Pagination::of(&listed, |number| format!("{address}?page={number}")),
        rows: listed.items.iter().map(|version| Row::of(&visitor, &view, version)).collect(),
        address,
        now: web.control_plane.now(),
    };
    Ok(page::render(StatusCode::OK, &page))
}

/// Checks that a configuration belongs to this workspace.
pub(crate) async fn require_within(
    web: &Web,
    visitor: &Visitor,
    workspace: &WorkspaceView,
    id: ConfigurationVersionId,
) -> Result<(), PageError> {
    let view = web.control_plane.configuration_version(&visitor.caller, id).await?;
    let is_within = view.version.workspace == workspace.workspace.id;
    if is_within { Ok(()) } else { Err(PageError::not_found("configuration")) }
}

/// `POST /app/{organization}/workspaces/{workspace}/configurations/{configuration}/{step}`
pub(crate) async fn change(
    State(web): State<Web>,
    Path((organization, name, id, step)): Path<(String, String, String, String)>,
    VisitorForm(visitor, Nothing {}): VisitorForm<Nothing>,
) -> Result<Response, PageError> {
    let known = STEPS.into_iter().find(|(path, ..)| *path == step);
    let (_, action, done) = known.ok_or_else(|| PageError::not_found("page"))?;
    let id: ConfigurationVersionId = id.parse().map_err(|_| PageError::not_found("configuration"))?;
    let workspace = web.control_plane.workspace(&visitor.caller, &named((organization, name))).await?;
    require_within(&web, &visitor, &workspace, id).await?;
    web.control_plane.change_configuration(&visitor.caller, id, action).await?;
    let address = format!("{}/configurations", address_of(&workspace));
    Ok(Flash::says(done).redirect_to(&address))
}
