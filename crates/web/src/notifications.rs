//! Notifications of a workspace, a project or a team: who is told what, what was answered, and the form for one of them.

pub(crate) mod notification_form;
pub(crate) mod subscriber;

use askama::Template;
use axum::extract::{Path, State};
use axum::http::StatusCode;
use axum::response::Response;
use jiff::Timestamp;
use taco_control_plane::{Error, NotificationView, PageRequest};
use taco_domain::notification_configuration::DeliveryAnswer;

use crate::badge::Badge;
use crate::error::PageError;
use crate::flash::Flash;
use crate::form::{Nothing, VisitorForm};
use crate::notifications::subscriber::{Holder, Place};
use crate::page::Layout;
use crate::rail::Rail;
use crate::text::{Moment, plain};
use crate::visitor::Visitor;
use crate::{Web, page};

/// Characters of an answer that the page shows.
const SHOWN_CHARS: usize = 200;

#[derive(Template)]
#[template(path = "notifications.html")]
struct NotificationsPage {
    layout: Layout,
    rail: Option<Rail>,
    name: String,
    scope: &'static str,
    address: String,
    rows: Vec<Row>,
    now: Timestamp,
}

/// A configuration, as the list shows it.
struct Row {
    name: String,
    address: String,
    destination: &'static str,
    is_enabled: bool,
    triggers: Vec<&'static str>,
    waiting: usize,
    next_retry: Option<Moment>,
    answer: Option<AnswerRow>,
}

/// What was answered, in one line.
pub(crate) struct AnswerRow {
    pub(crate) badge: Badge,
    pub(crate) at: Moment,
    pub(crate) what: String,
    pub(crate) code: String,
    pub(crate) body: String,
}

impl AnswerRow {
    pub(crate) fn of(answer: &DeliveryAnswer) -> Self {
        let badge = match (answer.successful, answer.gave_up) {
            (true, _) => Badge::new("Delivered", "✓", "good"),
            (false, true) => Badge::new("Given up", "✗", "bad"),
            (false, false) => Badge::new("Failed", "!", "asks"),
        };
        let body: String = plain(&answer.body).chars().take(SHOWN_CHARS).collect();
        Self {
            badge,
            at: Moment(answer.sent_at),
            what: answer.trigger.clone(),
            code: answer.code.map(|code| code.to_string()).unwrap_or_default(),
            body,
        }
    }
}

impl Row {
    fn of(holder: &Holder, view: &NotificationView) -> Self {
        let configuration = &view.configuration;
        Self {
            name: configuration.name.to_string(),
            address: format!("{}/{}", holder.address, configuration.id),
            destination: configuration.destination.in_words(),
            is_enabled: configuration.enabled,
            triggers: configuration.triggers.iter().map(|trigger| trigger.as_str()).collect(),
            waiting: view.waiting(),
            next_retry: view.next_retry().and_then(|delivery| delivery.next_attempt_at).map(Moment),
            answer: configuration.answers.first().map(AnswerRow::of),
        }
    }
}

/// `GET …/notifications`
pub(crate) async fn list(
    State(web): State<Web>,
    visitor: Visitor,
    Path(place): Path<Place>,
) -> Result<Response, PageError> {
    let holder = Holder::find(&web, &visitor, &place).await?;
    let all = PageRequest::new(1, PageRequest::LARGEST_SIZE);
    let listed = web.control_plane.notification_configurations(&visitor.caller, holder.subscriber, all).await?;
    let page = NotificationsPage {
        layout: holder.layout(&web, &visitor),
        rail: holder.rail(&visitor),
        name: holder.name.clone(),
        scope: holder.scope(),
        address: holder.address.clone(),
        rows: listed.items.iter().map(|view| Row::of(&holder, view)).collect(),
        now: web.control_plane.now(),
    };
    Ok(page::render(StatusCode::OK, &page))
}

/// `POST …/notifications/{notification}/test`
pub(crate) async fn test(
    State(web): State<Web>,
    Path(place): Path<Place>,
    VisitorForm(visitor, Nothing {}): VisitorForm<Nothing>,
) -> Result<Response, PageError> {
    let holder = Holder::find(&web, &visitor, &place).await?;
    let view = holder.notification(&web, &visitor, &place).await?;
    let id = view.configuration.id;
    let said = match web.control_plane.verify_notification_configuration(&visitor.caller, id).await {
        Ok(_) => Flash::says(format!("Test of {} delivered.", view.configuration.name)),
        Err(Error::Invalid { detail, .. }) => {
            Flash::says(format!("Test of {} failed. {detail}", view.configuration.name))
        }
        Err(error) => return Err(error.into()),
    };
    Ok(said.redirect_to(&format!("{}/{id}", holder.address)))
}

/// `POST …/notifications/{notification}/delete`
pub(crate) async fn delete(
    State(web): State<Web>,
    Path(place): Path<Place>,
    VisitorForm(visitor, Nothing {}): VisitorForm<Nothing>,
) -> Result<Response, PageError> {
    let holder = Holder::find(&web, &visitor, &place).await?;
    let view = holder.notification(&web, &visitor, &place).await?;
    web.control_plane.delete_notification_configuration(&visitor.caller, view.configuration.id).await?;
    Ok(Flash::deleted("Notification", view.configuration.name.as_str()).redirect_to(&holder.address))
}
