//! Organizations: found, list, read, change, delete.
//!
//! To found one is one commit in the site's ledger, where its name is unique; its own ledger begins when it is first
//! opened. Its settings are in its own ledger. A request that changes both settings and name is therefore two changes,
//! settings first; repeating it ends in the same place.

pub(crate) mod audit_log;
pub(crate) mod audit_trail;
pub(crate) mod invitations;
pub(crate) mod secret_reads;
pub(crate) mod token_lifetimes;
pub(crate) mod unreadable;

use futures::future::ready;
use futures::{StreamExt, TryStreamExt, stream};
use serde::{Deserialize, Serialize};
use taco_boxed::boxed;
use taco_domain::Site;
use taco_domain::id::OrganizationId;
use taco_domain::name::Email;
use taco_domain::organization::{Organization, OrganizationEntry, OrganizationPatch};
use taco_domain::permission::{Action, Actor, Resource};
use taco_domain::user::User;
use taco_ledger::Transaction;
use taco_tables::Record as _;

use crate::agent_pools::{PoolUser, check_agent_pool};
use crate::caller::Caller;
use crate::control_plane::{ControlPlane, OrganizationSnapshot};
use crate::error::Error;
use crate::idempotency::{already_applied, idempotent};
use crate::page::{Listed, PageRequest};
use crate::privileged::Privileged;
use crate::unreadable::is_of_one_ledger;

/// An organization as a door shows it.
#[derive(Clone)]
pub struct OrganizationView {
    pub name: String,
    pub organization: Organization,
    /// For [`Caller::may`]: what the caller could do here.
    pub org: OrganizationSnapshot,
}

impl OrganizationView {
    fn of(org: OrganizationSnapshot) -> Result<Self, Error> {
        let organization = org.state.organization().cloned().ok_or(Error::NotFound(Organization::NOUN))?;
        Ok(Self { name: org.entry().name.to_string(), organization, org })
    }
}

/// Features that an organization has here. Taco sells nothing, so all have the same: those that go-tfe's own suite
/// expects of an organization that pays for everything, also where taco does not have them (yet).
#[derive(Clone, Copy, Serialize, Debug)]
#[serde(rename_all = "kebab-case")]
pub struct Entitlements {
    pub agents: bool,
    pub audit_logging: bool,
    pub configuration_designer: bool,
    pub cost_estimation: bool,
    pub global_run_tasks: bool,
    pub infragraph: bool,
    pub infragraph_with_nrtu: bool,
    pub module_tests_generation: bool,
    pub operations: bool,
    pub policy_enforcement: bool,
    pub private_module_registry: bool,
    pub private_policy_agents: bool,
    pub private_run_tasks: bool,
    pub private_vcs: bool,
    pub run_tasks: bool,
    pub self_serve_billing: bool,
    pub sentinel: bool,
    pub sso: bool,
    pub state_storage: bool,
    pub teams: bool,
    pub usage_reporting: bool,
    pub user_limit: Option<u32>,
    pub vcs_integrations: bool,
    pub waypoint_actions: bool,
    pub waypoint_templates_and_addons: bool,
}

impl Entitlements {
    pub const ALL: Self = Self {
        agents: true,
        audit_logging: true,
        configuration_designer: false,
        cost_estimation: true,
        global_run_tasks: true,
        infragraph: true,
        infragraph_with_nrtu: false,
        module_tests_generation: false,
        operations: true,
        policy_enforcement: true,
        private_module_registry: true,
        private_policy_agents: false,
        private_run_tasks: true,
        private_vcs: true,
        run_tasks: true,
        self_serve_billing: false,
        sentinel: true,
        sso: true,
        state_storage: true,
        teams: true,
        usage_reporting: false,
        user_limit: None,
        vcs_integrations: true,
        waypoint_actions: false,
        waypoint_templates_and_addons: true,
    };
}

/// A list opens this many ledgers at a time.
const OPENED_AT_ONCE: usize = 16;

/// One organization whose ledger is damaged must not hide the others; that it is, was noted when it was opened.
fn pass_over_damage(opened: Result<OrganizationSnapshot, Error>) -> Option<Result<OrganizationSnapshot, Error>> {
    Some(opened).filter(|opened| !opened.as_ref().is_err_and(is_of_one_ledger))
}

/// Every organization as it could be opened just now.
pub struct OrganizationSurvey {
    pub readable: Vec<OrganizationSnapshot>,
    /// Those that could not, and why.
    pub failed: Vec<(OrganizationId, Error)>,
}

impl OrganizationSurvey {
    /// A failure that may pass by itself, such as a bucket that did not answer.
    pub fn transient_failure(&self) -> Option<&Error> {
        self.failed.iter().map(|(_, error)| error).find(|error| !is_of_one_ledger(error))
    }
}

/// Outcome of an attempt to create an organization, which may have to be retried.
#[derive(Serialize, Deserialize)]
enum Founding {
    Done(OrganizationId),
    /// Another organization's ids begin like this one's would.
    HomeTaken,
}

/// All organizations, for work on all of them. An error in one is no reason to skip the others.
#[boxed]
impl ControlPlane {
    /// Opens every organization. An error means that the site cannot be read, or that the bucket does not answer.
    pub(crate) async fn survey_organizations(&self) -> Result<OrganizationSurvey, Error> {
        self.survey(false).await
    }

    async fn survey(&self, as_seen: bool) -> Result<OrganizationSurvey, Error> {
        let site = self.read_site().await?;
        let ids: Vec<OrganizationId> = site.organizations.iter().map(|entry| entry.id).collect();
        let opening = ids.into_iter().map(|id| {
            let (plane, site) = (self.clone(), site.clone());
            async move {
                let seen = as_seen.then(|| plane.organization_last_seen(id.organization_prefix())).flatten();
                match seen.filter(|org| org.id() == id && org.state.organization().is_some()) {
                    Some(org) => (id, Ok(org)),
                    None => (id, plane.open_organization(&site, id).await),
                }
            }
        });
        let mut opening = stream::iter(opening).buffered(OPENED_AT_ONCE);
        let mut survey = OrganizationSurvey { readable: Vec::new(), failed: Vec::new() };
        let mut unanswered = 0;
        while let Some((id, opened)) = opening.next().await {
            match opened {
                Ok(org) => survey.readable.push(org),
                Err(error) => {
                    unanswered += usize::from(!is_of_one_ledger(&error));
                    // It is the bucket: each of the others would be waited for in vain.
                    if unanswered >= OPENED_AT_ONCE {
                        return Err(error);
                    }
                    survey.failed.push((id, error));
                }
            }
        }
        Ok(survey)
    }

    /// The organizations that exist and can be read. Agents within servers work for all of them.
    pub(crate) async fn all_organizations(&self) -> Result<Vec<OrganizationSnapshot>, Error> {
        let survey = self.survey_organizations().await?;
        match survey.transient_failure() {
            Some(error) => Err(error.clone()),
            None => Ok(survey.readable),
        }
    }
}

#[boxed]
impl ControlPlane {
    pub async fn create_organization(
        &self,
        caller: &Caller,
        patch: &OrganizationPatch,
    ) -> Result<OrganizationView, Error> {
        caller.require(Action::CreateOrganization, Resource::Site, "site")?;
        let Actor::User { id: founder, .. } = caller.actor else { return Err(Error::NotFound(User::NOUN)) };
        let founder_email = caller.site.users.get(&founder).map(|user| user.email.clone());
        let founder_email = founder_email.ok_or(Error::NotFound(User::NOUN))?;
        let name = patch.name()?.ok_or_else(|| Error::invalid("name", "Name can't be blank"))?;
        let email: Email = patch.email.as_deref().unwrap_or_default().parse()?;
        let id = loop {
            let id = OrganizationId::from_random(self.random());
            let now = self.now();
            let entry = OrganizationEntry {
                id,
                name: name.clone(),
                created_at: now,
                founder,
                founder_email: founder_email.clone(),
                founding: patch.apply(&Organization::new(id, email.clone(), now))?,
            };
            if let Founding::Done(id) = self.found(caller, entry).await? {
                break id;
            }
        };
        let site = self.read_site().await?;
        OrganizationView::of(self.open_organization(&site, id).await?)
    }

    async fn found(&self, caller: &Caller, entry: OrganizationEntry) -> Result<Founding, Error> {
        let is_site_admin = matches!(caller.actor, Actor::User { site_admin: true, .. });
        let most = self.shared.limits.organizations_per_user.filter(|_| !is_site_admin);
        let decide = move |tx: &mut Transaction<Site>| {
            let founded = tx.state().organizations.by().founder.get(&entry.founder).count();
            if let Some(most) = most.filter(|most| founded >= *most) {
                return Err(Error::Invalid {
                    pointer: "/data".to_owned(),
                    detail: format!(
                        "You have founded {founded} organizations, and this site lets a user found {most}: delete \
                         one, or ask a site admin to found it for you"
                    ),
                });
            }
            if tx.state().has_organization_named(&entry.name) {
                return Err(Error::name_taken("name"));
            }
            if tx.state().organization_at(entry.id.organization_prefix()).is_some() {
                return Ok(Founding::HomeTaken);
            }
            tx.put(&entry);
            Ok(Founding::Done(entry.id))
        };
        self.commit_site(caller.intent("organization.create"), idempotent(caller, self.now(), decide)).await
    }

    pub async fn organization(&self, caller: &Caller, name: &str) -> Result<OrganizationView, Error> {
        OrganizationView::of(self.organization_named(caller, name).await?)
    }

    /// The organizations that the caller may see, by name. `query` is a part of the name or of the address.
    pub async fn organizations(
        &self,
        caller: &Caller,
        query: Option<&str>,
        page: PageRequest,
    ) -> Result<Listed<OrganizationView>, Error> {
        let by_name = || caller.site.organizations.by().name.iter().map(|record| record.id);
        let query = query.unwrap_or_default().to_lowercase();
        // Whether someone sees an organization, only its own ledger knows. Who sees all of them needs but the page.
        if query.is_empty() && matches!(caller.actor, Actor::User { site_admin: true, .. }) {
            let opened = self.open_organizations(caller, by_name().skip(page.skip()).take(page.size())).await?;
            let items = opened.into_iter().filter_map(|org| OrganizationView::of(org).ok()).collect();
            return Ok(Listed { items, page, total: caller.site.organizations.len() });
        }
        let opened = self.open_organizations(caller, by_name()).await?;
        let fits = |view: &OrganizationView| {
            view.name.to_lowercase().contains(&query)
                || view.organization.email.as_str().to_lowercase().contains(&query)
        };
        let seen = opened
            .into_iter()
            .filter(|org| caller.may(Action::ReadOrganization, org.resource()).allowed)
            .filter_map(|org| OrganizationView::of(org).ok())
            .filter(fits);
        Ok(Listed::from_all(seen, page))
    }

    /// Those of them that can be read.
    pub(crate) async fn open_organizations(
        &self,
        caller: &Caller,
        ids: impl Iterator<Item = OrganizationId>,
    ) -> Result<Vec<OrganizationSnapshot>, Error> {
        let opening = ids.map(|id| self.open_organization(&caller.site, id)).collect::<Vec<_>>();
        let opening = stream::iter(opening).buffered(OPENED_AT_ONCE);
        opening.filter_map(|opened| ready(pass_over_damage(opened))).try_collect().await
    }

    pub async fn update_organization(
        &self,
        caller: &Caller,
        name: &str,
        patch: &OrganizationPatch,
    ) -> Result<OrganizationView, Error> {
        let mut org = self.organization_named(caller, name).await?;
        caller.require(Action::UpdateOrganization, org.resource(), "organization")?;
        let new_name = patch.name()?.filter(|new| *new != org.entry().name);
        if let Some(new) = &new_name
            && new.key() != org.entry().name.key()
            && caller.site.has_organization_named(new)
        {
            return Err(Error::name_taken("name"));
        }
        self.update_settings(caller, &mut org, patch.clone()).await?;
        if let Some(new) = new_name {
            let id = org.id();
            let rename = move |tx: &mut Transaction<Site>| {
                let entry = tx.state().organizations.get(&id).cloned().ok_or(Error::NotFound(Organization::NOUN))?;
                let taken_by = tx.state().organizations.by().name.first(&new.key());
                if taken_by.is_some_and(|other| other.id != id) {
                    return Err(Error::name_taken("name"));
                }
                tx.put(&OrganizationEntry { name: new.clone(), ..entry });
                Ok(())
            };
            self.commit_site(caller.intent("organization.rename"), rename).await?;
        }
        let site = self.read_site().await?;
        OrganizationView::of(self.open_organization(&site, org.id()).await?)
    }

    async fn update_settings(
        &self,
        caller: &Caller,
        org: &mut OrganizationSnapshot,
        patch: OrganizationPatch,
    ) -> Result<(), Error> {
        org.change(caller, "organization.update", self.now(), move |tx| {
            tx.require::<Organization>(Action::UpdateOrganization, tx.organization())?;
            let before = tx.state().organization().ok_or(Error::NotFound(Organization::NOUN))?;
            let after = patch.apply(before)?;
            let (now, was) = (after.default_execution, Some(before.default_execution));
            check_agent_pool(tx.state(), now, was, PoolUser::Organization, "default-agent-pool-id")?;
            tx.put(&after);
            Ok(())
        })
        .await
    }

    /// Deletes an organization with everything in it. Its log stays in the bucket, where it cannot be found by name.
    pub async fn delete_organization(&self, caller: &Caller, name: &str) -> Result<(), Error> {
        let now = self.now();
        if already_applied(&*caller.site, caller, now)? {
            return Ok(());
        }
        let org = self.organization_named(caller, name).await?;
        caller.require(Action::DeleteOrganization, org.resource(), "organization")?;
        let id = org.id();
        let decide = move |tx: &mut Transaction<Site>| {
            tx.delete::<OrganizationEntry>(&id);
            Ok(())
        };
        self.commit_site(caller.intent("organization.delete"), idempotent(caller, now, decide)).await?;
        self.forget_organization(id);
        Ok(())
    }

    pub async fn entitlements(&self, caller: &Caller, name: &str) -> Result<(OrganizationView, Entitlements), Error> {
        Ok((self.organization(caller, name).await?, Entitlements::ALL))
    }
}

/// Verbs without permission checks, for the server itself.
#[boxed]
impl Privileged {
    /// Opens every organization. An error means that the site cannot be read, or that the bucket does not answer.
    pub async fn survey_organizations(&self) -> Result<OrganizationSurvey, Error> {
        ControlPlane::survey_organizations(self).await
    }

    /// The organizations that exist and can be read. Agents within servers work for all of them.
    pub async fn all_organizations(&self) -> Result<Vec<OrganizationSnapshot>, Error> {
        ControlPlane::all_organizations(self).await
    }

    /// The same, with those that this server has opened before as it last saw them, at no cost however many they are.
    /// For callers that follow their changes and want to know which have come and gone.
    pub async fn survey_organizations_as_seen(&self) -> Result<OrganizationSurvey, Error> {
        self.survey(true).await
    }
}
