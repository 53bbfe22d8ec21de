//! The form for one notification configuration: where to, when, and what was answered so far.

use askama::Template;
use axum::extract::{Path, State};
use axum::http::StatusCode;
use axum::response::Response;
use jiff::Timestamp;
use serde::Deserialize;
use taco_control_plane::NotificationView;
use taco_domain::notification_configuration::{DestinationType, NotificationConfiguration, Subscriber};
use taco_domain::notification_patch::NotificationPatch;
use taco_domain::trigger::Trigger;

use crate::choice::Choice;
use crate::error::PageError;
use crate::flash::Flash;
use crate::form::{Complaint, Ticked, VisitorForm, typed};
use crate::notifications::AnswerRow;
use crate::notifications::subscriber::{Holder, Place};
use crate::page::Layout;
use crate::rail::Rail;
use crate::visitor::Visitor;
use crate::{Web, page};

const FIELDS: &[&str] = &["name", "destination-type", "url", "token", "email-addresses", "triggers", "enabled"];

/// Content of the form.
#[derive(Clone, Default, Deserialize)]
#[serde(default)]
pub(crate) struct NotificationForm {
    name: String,
    destination: String,
    url: String,
    /// Nothing keeps the one that is there.
    token: String,
    /// One address per line.
    emails: String,
    trigger: Vec<String>,
    enabled: Ticked,
    #[serde(skip)]
    complaint: Complaint,
}

impl NotificationForm {
    fn blank() -> Self {
        let chosen = [Trigger::RunNeedsAttention, Trigger::RunCompleted, Trigger::RunErrored];
        Self {
            destination: DestinationType::Generic.to_string(),
            trigger: chosen.iter().map(ToString::to_string).collect(),
            enabled: Ticked(true),
            ..Self::default()
        }
    }

    fn of(view: &NotificationView) -> Self {
        let configuration = &view.configuration;
        Self {
            name: configuration.name.to_string(),
            destination: configuration.destination.to_string(),
            url: view.url.clone().unwrap_or_default(),
            token: String::new(),
            emails: configuration.email_addresses.join("\n"),
            trigger: configuration.triggers.iter().map(ToString::to_string).collect(),
            enabled: Ticked(configuration.enabled),
            complaint: Complaint::default(),
        }
    }

    /// The request. What the form does not show stays: triggers that nothing fires yet, and users who get email.
    fn patch(&self, subscriber: Subscriber, before: Option<&NotificationConfiguration>) -> NotificationPatch {
        let offered = offered(subscriber);
        let kept = before.into_iter().flat_map(|before| before.triggers.iter()).filter(|it| !offered.contains(it));
        let triggers: Vec<String> = self.trigger.iter().cloned().chain(kept.map(ToString::to_string)).collect();
        let is_email = self.destination == DestinationType::Email.as_str();
        let emails = typed(&self.emails).lines().map(str::to_owned).collect();
        NotificationPatch {
            destination_type: Some(self.destination.clone()),
            enabled: Some(self.enabled.0),
            name: Some(self.name.trim().to_owned()),
            token: (!self.token.is_empty()).then(|| Some(self.token.clone())),
            triggers: Some(Some(triggers)),
            url: (!is_email).then(|| Some(self.url.trim().to_owned())),
            email_addresses: is_email.then_some(Some(emails)),
            users: None,
        }
    }
}

/// Triggers that the form offers: those that something fires.
fn offered(subscriber: Subscriber) -> Vec<Trigger> {
    let fires = |trigger: &Trigger| trigger.is_of_runs() || *trigger == Trigger::ChangeRequestCreated;
    Trigger::ALL.into_iter().filter(|trigger| trigger.fits(subscriber) && fires(trigger)).collect()
}

/// A trigger to choose.
struct Offer {
    value: &'static str,
    words: &'static str,
    chosen: bool,
}

#[derive(Template)]
#[template(path = "notification.html")]
struct NotificationPage {
    layout: Layout,
    rail: Option<Rail>,
    holder: String,
    /// Address to which the form is submitted.
    action: String,
    form: NotificationForm,
    destinations: Vec<Choice>,
    offers: Vec<Offer>,
    /// It is there already.
    exists: bool,
    is_email: bool,
    has_token: bool,
    /// Users who get its email.
    users: Vec<String>,
    answers: Vec<AnswerRow>,
    waiting: usize,
    now: Timestamp,
}

impl NotificationPage {
    fn new(
        web: &Web,
        visitor: &Visitor,
        holder: &Holder,
        form: NotificationForm,
        before: Option<&NotificationView>,
    ) -> Self {
        let address = &holder.address;
        let offer = |trigger: Trigger| Offer {
            value: trigger.as_str(),
            words: trigger.in_words(),
            chosen: form.trigger.iter().any(|chosen| chosen == trigger.as_str()),
        };
        let layout = holder.layout(web, visitor);
        Self {
            layout: match before {
                Some(view) => layout.called(view.configuration.id, view.configuration.name.as_str()),
                None => layout,
            },
            rail: holder.rail(visitor),
            holder: holder.name.clone(),
            action: before.map_or(address.clone(), |view| format!("{address}/{}", view.configuration.id)),
            destinations: DestinationType::ALL
                .iter()
                .map(|destination| Choice::new(destination, destination.in_words(), &form.destination))
                .collect(),
            offers: offered(holder.subscriber).into_iter().map(offer).collect(),
            exists: before.is_some(),
            is_email: form.destination == DestinationType::Email.as_str(),
            has_token: before.is_some_and(|view| view.configuration.sealed_token.is_some()),
            users: before.map(|view| view.users().map(|user| user.username.to_string()).collect()).unwrap_or_default(),
            answers: before
                .map(|view| view.configuration.answers.iter().map(AnswerRow::of).collect())
                .unwrap_or_default(),
            waiting: before.map_or(0, NotificationView::waiting),
            now: web.control_plane.now(),
            form,
        }
    }
}

/// `GET …/notifications/new`
pub(crate) async fn show_new(
    State(web): State<Web>,
    visitor: Visitor,
    Path(place): Path<Place>,
) -> Result<Response, PageError> {
    let holder = Holder::find(&web, &visitor, &place).await?;
    // Whoever may not list them may not make one.
    let first = taco_control_plane::PageRequest::new(1, 1);
    web.control_plane.notification_configurations(&visitor.caller, holder.subscriber, first).await?;
    let page = NotificationPage::new(&web, &visitor, &holder, NotificationForm::blank(), None);
    Ok(page::render(StatusCode::OK, &page))
}

/// `POST …/notifications`
pub(crate) async fn create(
    State(web): State<Web>,
    Path(place): Path<Place>,
    VisitorForm(visitor, form): VisitorForm<NotificationForm>,
) -> Result<Response, PageError> {
    let holder = Holder::find(&web, &visitor, &place).await?;
    let patch = form.patch(holder.subscriber, None);
    match web.control_plane.create_notification_configuration(&visitor.caller, holder.subscriber, patch).await {
        Ok(view) => Ok(Flash::created("Notification", view.configuration.name.as_str()).redirect_to(&holder.address)),
        Err(error) => {
            let form = NotificationForm { complaint: Complaint::of(error, FIELDS)?, token: String::new(), ..form };
            let page = NotificationPage::new(&web, &visitor, &holder, form, None);
            Ok(page::render(StatusCode::UNPROCESSABLE_ENTITY, &page))
        }
    }
}

/// `GET …/notifications/{notification}`
pub(crate) async fn show(
    State(web): State<Web>,
    visitor: Visitor,
    Path(place): Path<Place>,
) -> Result<Response, PageError> {
    let holder = Holder::find(&web, &visitor, &place).await?;
    let view = holder.notification(&web, &visitor, &place).await?;
    let page = NotificationPage::new(&web, &visitor, &holder, NotificationForm::of(&view), Some(&view));
    Ok(page::render(StatusCode::OK, &page))
}

/// `POST …/notifications/{notification}`
pub(crate) async fn update(
    State(web): State<Web>,
    Path(place): Path<Place>,
    VisitorForm(visitor, form): VisitorForm<NotificationForm>,
) -> Result<Response, PageError> {
    let holder = Holder::find(&web, &visitor, &place).await?;
    let before = holder.notification(&web, &visitor, &place).await?;
    // The form shows what it is, and has no field for it.
    let form = NotificationForm { destination: before.configuration.destination.to_string(), ..form };
    let patch = form.patch(holder.subscriber, Some(&before.configuration));
    let id = before.configuration.id;
    match web.control_plane.update_notification_configuration(&visitor.caller, id, patch).await {
        Ok(view) => Ok(Flash::saved("Notification", view.configuration.name.as_str()).redirect_to(&holder.address)),
        Err(error) => {
            let form = NotificationForm { complaint: Complaint::of(error, FIELDS)?, token: String::new(), ..form };
            let page = NotificationPage::new(&web, &visitor, &holder, form, Some(&before));
            Ok(page::render(StatusCode::UNPROCESSABLE_ENTITY, &page))
        }
    }
}
