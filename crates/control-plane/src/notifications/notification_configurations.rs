//! Notification configurations: list, make, read, change, delete, try. Whatever is enabled has answered once.

use std::collections::BTreeSet;

use taco_boxed::boxed;
use taco_domain::OrganizationState;
use taco_domain::delivery::NotificationDelivery;
use taco_domain::id::{OrganizationPrefix, UserId};
use taco_domain::notification_configuration::{
    DeliveryAnswer, DestinationType, MAX_NOTIFICATION_CONFIGURATIONS, NotificationConfiguration,
    NotificationConfigurationId, Subscriber,
};
use taco_domain::notification_patch::{NotificationPatch, SealedTexts};
use taco_domain::permission::{Action, Resource};
use taco_domain::project::Project;
use taco_domain::team::Team;
use taco_domain::user::User;
use taco_domain::workspace::Workspace;
use taco_tables::Record;

use crate::caller::Caller;
use crate::change::Tx;
use crate::control_plane::{ControlPlane, OrganizationSnapshot};
use crate::error::Error;
use crate::find::find;
use crate::page::{Listed, PageRequest};

/// A configuration as a door shows it.
#[derive(Clone)]
pub struct NotificationView {
    pub configuration: NotificationConfiguration,
    /// Where it goes, in clear. Only those who may change it get to see it.
    pub url: Option<String>,
    pub org: OrganizationSnapshot,
}

impl NotificationView {
    /// Number of notifications that wait for the destination.
    pub fn waiting(&self) -> usize {
        self.org.state.waiting_for(self.configuration.id).count()
    }

    /// The next notification that is tried again.
    pub fn next_retry(&self) -> Option<NotificationDelivery> {
        self.org.state.waiting_for(self.configuration.id).find(|delivery| delivery.attempts > 0).cloned()
    }

    /// Users who get its e-mail, if they still exist.
    pub fn users(&self) -> impl Iterator<Item = &User> {
        self.configuration.users.iter().filter_map(|id| self.org.site().users.get(id))
    }
}

/// May the caller manage the notifications of this? To one who may not know of it, an `R` is not found.
fn require<R: Record>(caller: &Caller, state: &OrganizationState, subscriber: Subscriber) -> Result<(), Error> {
    match subscriber {
        Subscriber::Workspace(id) => {
            let workspace: &Workspace = find(state, &id, R::NOUN)?;
            caller.require(Action::ManageNotifications, Resource::Workspace(state, workspace), R::NOUN)
        }
        Subscriber::Project(id) => {
            let project: &Project = find(state, &id, R::NOUN)?;
            caller.require(Action::ManageNotifications, Resource::Project(state, project), R::NOUN)
        }
        Subscriber::Team(id) => {
            find::<Team, _>(state, &id, R::NOUN)?;
            caller.require(Action::ManageTeams, Resource::Organization(state), R::NOUN)
        }
    }
}

/// The same, and the error calls the thing itself.
fn require_subscriber(caller: &Caller, state: &OrganizationState, subscriber: Subscriber) -> Result<(), Error> {
    match subscriber {
        Subscriber::Workspace(_) => require::<Workspace>(caller, state, subscriber),
        Subscriber::Project(_) => require::<Project>(caller, state, subscriber),
        Subscriber::Team(_) => require::<Team>(caller, state, subscriber),
    }
}

fn place_of(subscriber: Subscriber) -> (OrganizationPrefix, &'static str) {
    match subscriber {
        Subscriber::Workspace(id) => (id.organization_prefix(), Workspace::NOUN),
        Subscriber::Project(id) => (id.organization_prefix(), Project::NOUN),
        Subscriber::Team(id) => (id.organization_prefix(), Team::NOUN),
    }
}

#[boxed]
impl ControlPlane {
    /// The configurations of a workspace, a project or a team, by name.
    pub async fn notification_configurations(
        &self,
        caller: &Caller,
        subscriber: Subscriber,
        page: PageRequest,
    ) -> Result<Listed<NotificationView>, Error> {
        let (prefix, noun) = place_of(subscriber);
        let org = self.authorized_organization(caller, prefix, noun).await?;
        require_subscriber(caller, &org.state, subscriber)?;
        let all = org.state.notification_configurations.by().subscriber.get(&subscriber);
        let mut all: Vec<NotificationConfiguration> = all.cloned().collect();
        all.sort_by_key(|configuration| (configuration.name.key(), configuration.id));
        let listed = Listed::from_all(all, page);
        let items = listed.items.into_iter().map(|configuration| self.notification_view(&org, configuration));
        Ok(Listed { items: items.collect::<Result<_, _>>()?, page: listed.page, total: listed.total })
    }

    pub async fn notification_configuration(
        &self,
        caller: &Caller,
        id: NotificationConfigurationId,
    ) -> Result<NotificationView, Error> {
        let org = self.known_notifications(caller, id).await?;
        let configuration = org.get::<NotificationConfiguration>(&id)?.clone();
        self.notification_view(&org, configuration)
    }

    pub async fn create_notification_configuration(
        &self,
        caller: &Caller,
        subscriber: Subscriber,
        patch: NotificationPatch,
    ) -> Result<NotificationView, Error> {
        let (prefix, noun) = place_of(subscriber);
        let mut org = self.authorized_organization(caller, prefix, noun).await?;
        require_subscriber(caller, &org.state, subscriber)?;
        let id = NotificationConfigurationId::within(prefix, self.random());
        let sealed = self.checked_texts(id, &patch)?;
        let mut new = patch.create(id, subscriber, &sealed, self.now())?;
        check_users(&org.state, &BTreeSet::new(), &new.users)?;
        if new.enabled {
            new.answers.extend(self.verify_to_enable(&org, &new).await?.map(DeliveryAnswer::shortened));
        }
        let created = org.change(caller, "notification-configuration.create", self.now(), move |tx| {
            require_subscriber(tx.caller(), tx.state(), subscriber)?;
            check_users(tx.state(), &BTreeSet::new(), &new.users)?;
            let present = tx.state().notification_configurations.by().subscriber.get(&subscriber).count();
            if present >= MAX_NOTIFICATION_CONFIGURATIONS {
                let detail =
                    format!("There are {present} notification configurations here, which is the most: delete one");
                return Err(Error::Conflict(detail));
            }
            tx.put(&new);
            Ok(new.clone())
        });
        let created = created.await?;
        self.notification_view(&org, created)
    }

    /// Changes a configuration. One that is enabled by that, or goes elsewhere, has to answer first; one that is disabled
    /// forgets what waits for it.
    pub async fn update_notification_configuration(
        &self,
        caller: &Caller,
        id: NotificationConfigurationId,
        patch: NotificationPatch,
    ) -> Result<NotificationView, Error> {
        let mut org = self.known_notifications(caller, id).await?;
        let sealed = self.checked_texts(id, &patch)?;
        let before = org.get::<NotificationConfiguration>(&id)?.clone();
        let now = self.now();
        let after = patch.apply(&before, &sealed, now)?;
        check_users(&org.state, &before.users, &after.users)?;
        let goes_elsewhere =
            patch.new_url().is_some() && patch.new_url().flatten() != self.notification_url(&before)?.as_deref();
        let answer = match after.enabled && (!before.enabled || goes_elsewhere) {
            true => self.verify_to_enable(&org, &after).await?,
            false => None,
        };
        let changed = org.change(caller, "notification-configuration.update", now, move |tx| {
            let before = get_own(tx, id)?;
            let mut after = patch.apply(&before, &sealed, now)?;
            check_users(tx.state(), &before.users, &after.users)?;
            if let Some(answer) = &answer {
                after.note_answer(answer.clone());
            }
            if !after.enabled {
                forget_waiting(tx, id);
            }
            tx.put(&after);
            Ok(after)
        });
        let changed = changed.await?;
        self.notification_view(&org, changed)
    }

    pub async fn delete_notification_configuration(
        &self,
        caller: &Caller,
        id: NotificationConfigurationId,
    ) -> Result<(), Error> {
        let mut org = self.known_notifications(caller, id).await?;
        org.change(caller, "notification-configuration.delete", self.now(), move |tx| {
            get_own(tx, id)?;
            tx.delete::<NotificationConfiguration>(&id)
        })
        .await
    }

    /// Sends a verification. Its answer is remembered, whatever it is; one that is no success is an error here.
    pub async fn verify_notification_configuration(
        &self,
        caller: &Caller,
        id: NotificationConfigurationId,
    ) -> Result<NotificationView, Error> {
        let mut org = self.known_notifications(caller, id).await?;
        let configuration = org.get::<NotificationConfiguration>(&id)?.clone();
        let answer = self.send_verification(&org, &configuration).await?;
        let noted = answer.clone();
        let changed = org.change(caller, "notification-configuration.verify", self.now(), move |tx| {
            let mut configuration = get_own(tx, id)?;
            configuration.note_answer(noted.clone());
            tx.put(&configuration);
            Ok(configuration)
        });
        let changed = changed.await?;
        if !answer.successful {
            return Err(not_verified(&answer));
        }
        self.notification_view(&org, changed)
    }

    /// The organization of a configuration that the caller may manage.
    async fn known_notifications(
        &self,
        caller: &Caller,
        id: NotificationConfigurationId,
    ) -> Result<OrganizationSnapshot, Error> {
        let noun = NotificationConfiguration::NOUN;
        let org = self.authorized_organization(caller, id.organization_prefix(), noun).await?;
        let subscriber = org.get::<NotificationConfiguration>(&id)?.subscriber;
        require::<NotificationConfiguration>(caller, &org.state, subscriber)?;
        Ok(org)
    }

    fn notification_view(
        &self,
        org: &OrganizationSnapshot,
        configuration: NotificationConfiguration,
    ) -> Result<NotificationView, Error> {
        let url = self.notification_url(&configuration)?;
        Ok(NotificationView { configuration, url, org: org.clone() })
    }

    /// Checks the address in a request, and seals what is stored of it.
    fn checked_texts(&self, id: NotificationConfigurationId, patch: &NotificationPatch) -> Result<SealedTexts, Error> {
        if let Some(url) = patch.new_url().flatten() {
            self.shared.notifications.courier.check_url(url).map_err(|why| Error::invalid("url", why))?;
        }
        let seal = |name: String, text: Option<&str>| text.map(|text| self.seal(&name, text));
        Ok(SealedTexts {
            url: patch.new_url().map(|url| seal(NotificationConfiguration::url_seal(id), url)),
            token: patch.new_token().map(|token| seal(NotificationConfiguration::token_seal(id), token)),
        })
    }

    /// Asks the destination whether it is there. E-mail is only checked for a way out: nobody answers it.
    async fn verify_to_enable(
        &self,
        org: &OrganizationSnapshot,
        configuration: &NotificationConfiguration,
    ) -> Result<Option<DeliveryAnswer>, Error> {
        if configuration.destination == DestinationType::Email {
            let courier = &self.shared.notifications.courier;
            return courier.check_email().map(|()| None).map_err(|why| Error::invalid("enabled", why));
        }
        let answer = self.send_verification(org, configuration).await?;
        if answer.successful { Ok(Some(answer)) } else { Err(not_verified(&answer)) }
    }
}

/// The configuration that a request names, if the caller may manage it.
fn get_own(tx: &Tx<'_>, id: NotificationConfigurationId) -> Result<NotificationConfiguration, Error> {
    let configuration: NotificationConfiguration = tx.get(&id)?;
    require::<NotificationConfiguration>(tx.caller(), tx.state(), configuration.subscriber)?;
    Ok(configuration)
}

fn forget_waiting(tx: &mut Tx<'_>, id: NotificationConfigurationId) {
    let waiting: Vec<_> = tx.state().waiting_for(id).map(|delivery| delivery.id).collect();
    waiting.iter().for_each(|id| (**tx).delete::<NotificationDelivery>(id));
}

/// New recipients are members of the organization, or invited to it.
fn check_users(state: &OrganizationState, before: &BTreeSet<UserId>, after: &BTreeSet<UserId>) -> Result<(), Error> {
    let unknown = |user: &&UserId| state.memberships.by().user.first(user).is_none();
    match after.difference(before).find(unknown) {
        None => Ok(()),
        Some(user) => {
            let detail = format!("User {user} is not a member of the organization: only members get its email");
            Err(Error::Invalid { pointer: "/data/relationships/users".to_owned(), detail })
        }
    }
}

fn not_verified(answer: &DeliveryAnswer) -> Error {
    let detail = match answer.code {
        Some(code) => format!("The destination answered the verification with {code}; expected 200 to 299"),
        None => format!("The verification did not get through: {}", answer.body),
    };
    Error::invalid("url", detail)
}
