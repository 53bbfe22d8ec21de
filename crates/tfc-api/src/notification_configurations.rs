//! Notification configurations of workspaces, projects and teams. Tokens go in and never come out.

use std::collections::{BTreeMap, BTreeSet};

use jiff::Timestamp;
use serde::Serialize;
use taco_control_plane::{NotificationView, PageRequest};
use taco_domain::id::UserId;
use taco_domain::notification_configuration::{DeliveryAnswer, DestinationType, Subscriber};
use taco_domain::notification_patch::NotificationPatch;

use crate::body::RequestResource;
use crate::document::{Document, Identifier, ResourceObject};
use crate::error::ApiError;
use crate::request::{Answer, ApiRequest, no_content};
use crate::resource::Resource;
use crate::{teams, users, workspaces};

const KIND: &str = "notification-configurations";

#[derive(Serialize)]
#[serde(rename_all = "kebab-case")]
struct Attributes<'a> {
    name: &'a str,
    enabled: bool,
    destination_type: &'static str,
    url: Option<&'a str>,
    token: Option<&'a str>,
    triggers: Vec<&'static str>,
    email_addresses: &'a [String],
    delivery_responses: Vec<Response<'a>>,
    created_at: Timestamp,
    updated_at: Timestamp,
}

/// What was answered last, with code and success as texts: so clients know it.
#[derive(Serialize)]
#[serde(rename_all = "kebab-case")]
struct Response<'a> {
    url: &'a str,
    body: &'a str,
    code: String,
    headers: BTreeMap<&'a str, Vec<&'a str>>,
    sent_at: Timestamp,
    successful: &'static str,
}

impl<'a> Response<'a> {
    fn of(url: &'a str, answer: &'a DeliveryAnswer) -> Self {
        let mut headers: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
        for header in &answer.headers {
            headers.entry(&header.name).or_default().push(&header.value);
        }
        Self {
            url,
            body: &answer.body,
            code: answer.code.map(|code| code.to_string()).unwrap_or_default(),
            headers,
            sent_at: answer.sent_at,
            successful: if answer.successful { "true" } else { "false" },
        }
    }
}

fn subscribable(subscriber: Subscriber) -> Identifier {
    match subscriber {
        Subscriber::Workspace(id) => Identifier::new(workspaces::KIND, id),
        Subscriber::Project(id) => Identifier::new("projects", id),
        Subscriber::Team(id) => Identifier::new(teams::KIND, id),
    }
}

impl Resource for NotificationView {
    const KIND: &'static str = KIND;
    const INCLUDES: &'static [&'static str] = &["users"];

    fn object(&self, _: &ApiRequest) -> Result<ResourceObject, ApiError> {
        let configuration = &self.configuration;
        let url = self.url.as_deref();
        let attributes = Attributes {
            name: configuration.name.as_str(),
            enabled: configuration.enabled,
            destination_type: configuration.destination.as_str(),
            url,
            token: None,
            triggers: configuration.triggers.iter().map(|trigger| trigger.as_str()).collect(),
            email_addresses: &configuration.email_addresses,
            delivery_responses: configuration
                .answers
                .first()
                .map(|answer| Response::of(url.unwrap_or_default(), answer))
                .into_iter()
                .collect(),
            created_at: configuration.created_at,
            updated_at: configuration.updated_at,
        };
        Ok(ResourceObject::new(KIND, configuration.id, &attributes)
            .has_one("subscribable", subscribable(configuration.subscriber))
            .has_many("users", configuration.users.iter().map(|user| Identifier::new(users::KIND, user)))
            .link("self", format!("/api/v2/notification-configurations/{}", configuration.id)))
    }

    async fn include(&self, _: &str, request: &ApiRequest, document: &mut Document) -> Result<(), ApiError> {
        self.users().try_for_each(|user| document.include_some(Some(user), request))
    }
}

/// Whoever asks for no page gets all of them, without pages: there are few, and clients know it so.
async fn list(request: ApiRequest, subscriber: Subscriber) -> Answer {
    let asks_for_page = ["page[number]", "page[size]"].iter().any(|name| request.query.get(name).is_some());
    let page = if asks_for_page { request.query.page()? } else { PageRequest::new(1, PageRequest::LARGEST_SIZE) };
    let listed = request.control_plane.notification_configurations(&request.caller, subscriber, page).await?;
    if asks_for_page { request.page(listed).await } else { request.all(&listed.items).await }
}

/// `GET /api/v2/workspaces/{workspace}/notification-configurations`
pub(crate) async fn list_of_workspace(request: ApiRequest) -> Answer {
    let workspace = request.id("workspace")?;
    list(request, Subscriber::Workspace(workspace)).await
}

/// `GET /api/v2/projects/{project}/notification-configurations`
pub(crate) async fn list_of_project(request: ApiRequest) -> Answer {
    let project = request.id("project")?;
    list(request, Subscriber::Project(project)).await
}

/// `GET /api/v2/teams/{team}/notification-configurations`
pub(crate) async fn list_of_team(request: ApiRequest) -> Answer {
    let team = request.id("team")?;
    list(request, Subscriber::Team(team)).await
}

async fn create(request: ApiRequest, subscriber: Subscriber) -> Answer {
    let sent = request.resource::<NotificationPatch>(KIND).await?;
    let users = sent_users(&sent)?;
    let patch = NotificationPatch { users, ..sent.attributes };
    let created = request.control_plane.create_notification_configuration(&request.caller, subscriber, patch).await?;
    request.created(&created)
}

/// `POST /api/v2/workspaces/{workspace}/notification-configurations`
pub(crate) async fn create_in_workspace(request: ApiRequest) -> Answer {
    let workspace = request.id("workspace")?;
    create(request, Subscriber::Workspace(workspace)).await
}

/// `POST /api/v2/projects/{project}/notification-configurations`
pub(crate) async fn create_in_project(request: ApiRequest) -> Answer {
    let project = request.id("project")?;
    create(request, Subscriber::Project(project)).await
}

/// `POST /api/v2/teams/{team}/notification-configurations`
pub(crate) async fn create_in_team(request: ApiRequest) -> Answer {
    let team = request.id("team")?;
    create(request, Subscriber::Team(team)).await
}

fn sent_users(sent: &RequestResource<NotificationPatch>) -> Result<Option<BTreeSet<UserId>>, ApiError> {
    sent.ids("users", users::KIND)
}

/// `GET /api/v2/notification-configurations/{notification}`
pub(crate) async fn read(request: ApiRequest) -> Answer {
    let id = request.id("notification")?;
    request.one(&request.control_plane.notification_configuration(&request.caller, id).await?).await
}

/// `PATCH /api/v2/notification-configurations/{notification}`
pub(crate) async fn update(request: ApiRequest) -> Answer {
    let id = request.id("notification")?;
    let sent = request.resource::<NotificationPatch>(KIND).await?;
    let mut users = sent_users(&sent)?;
    // go-tfe and the provider leave an empty list of users out: of an email configuration, that means nobody.
    if users.is_none() {
        let before = request.control_plane.notification_configuration(&request.caller, id).await?;
        let is_email = before.configuration.destination == DestinationType::Email;
        users = is_email.then(BTreeSet::new);
    }
    let patch = NotificationPatch { users, ..sent.attributes };
    request.changed(&request.control_plane.update_notification_configuration(&request.caller, id, patch).await?)
}

/// `DELETE /api/v2/notification-configurations/{notification}`
pub(crate) async fn delete(request: ApiRequest) -> Answer {
    request.control_plane.delete_notification_configuration(&request.caller, request.id("notification")?).await?;
    no_content()
}

/// `POST /api/v2/notification-configurations/{notification}/actions/verify`
pub(crate) async fn verify(request: ApiRequest) -> Answer {
    let id = request.id("notification")?;
    request.one(&request.control_plane.verify_notification_configuration(&request.caller, id).await?).await
}
