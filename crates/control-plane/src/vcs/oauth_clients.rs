//! OAuth clients: an organization's connections to forges.

use std::collections::BTreeSet;

use jiff::Timestamp;
use taco_boxed::boxed;
use taco_domain::OrganizationState;
use taco_domain::id::{AgentPoolId, ProjectId};
use taco_domain::oauth_client::{OauthClient, OauthClientId, OauthClientPatch};
use taco_domain::oauth_token::{OauthToken, OauthTokenId};
use taco_domain::permission::Action;
use taco_domain::project::Project;
use taco_tables::Record as _;

use crate::caller::Caller;
use crate::change::Tx;
use crate::control_plane::{ControlPlane, OrganizationSnapshot};
use crate::error::Error;
use crate::page::{Listed, PageRequest};
use crate::projects::ProjectView;
use crate::workspace_view::{ListChange, sees_project};

/// A connection as a door shows it, and its organization at the same moment.
#[derive(Clone)]
pub struct OauthClientView {
    pub client: OauthClient,
    pub org: OrganizationSnapshot,
}

impl OauthClientView {
    /// Its token, if it has one.
    pub fn tokens(&self) -> impl Iterator<Item = &OauthToken> {
        self.org.state.oauth_tokens.by().client.get(&self.client.id)
    }

    /// Its projects, as far as the caller may see them.
    pub fn projects_seen_by(&self, caller: &Caller) -> Vec<ProjectView> {
        let seen = self.client.projects.iter().filter(|id| sees_project(caller, &self.org.state, id));
        let found = seen.filter_map(|id| self.org.state.projects.get(id));
        found.map(|project| ProjectView { project: project.clone(), org: self.org.clone() }).collect()
    }
}

/// Texts of a request, encrypted for the record that they are for.
#[derive(Clone)]
struct SealedTexts {
    secret: Option<String>,
    token: Option<(OauthTokenId, String)>,
}

impl ControlPlane {
    /// `token` is the one that the connection has, whose text is replaced.
    fn seal_texts(
        &self,
        client: OauthClientId,
        token: Option<OauthTokenId>,
        patch: &OauthClientPatch,
    ) -> Result<SealedTexts, Error> {
        let secret = patch.secret()?.map(|secret| self.seal(&OauthClient::secret_name(client), secret));
        let new_token = || OauthTokenId::within(client.organization_prefix(), self.random());
        let token = patch.token()?.map(|text| {
            let id = token.unwrap_or_else(new_token);
            (id, self.seal(&id.to_string(), text))
        });
        Ok(SealedTexts { secret, token })
    }
}

#[boxed]
impl ControlPlane {
    pub async fn create_oauth_client(
        &self,
        caller: &Caller,
        organization: &str,
        patch: OauthClientPatch,
    ) -> Result<OauthClientView, Error> {
        let mut org = self.organization_named(caller, organization).await?;
        let (id, now) = (OauthClientId::within(org.id().organization_prefix(), self.random()), self.now());
        let client = patch.new_client(id, now)?;
        let sealed = self.seal_texts(id, None, &patch)?;
        let change = org.change(caller, "oauth-client.create", now, move |tx| {
            tx.require::<OauthClient>(Action::ManageVcsSettings, tx.organization())?;
            // Clients send projects of other organizations along; those do not count.
            let projects = patch.projects.iter().flatten().filter(|id| tx.state().projects.get(id).is_some());
            let client = OauthClient { projects: projects.copied().collect(), ..client.clone() };
            put(tx, client, &patch, &sealed, now)
        });
        let client = change.await?;
        Ok(OauthClientView { client, org })
    }

    /// An organization's connections, oldest first. Members may know which there are; nobody sees their secrets.
    pub async fn oauth_clients(
        &self,
        caller: &Caller,
        organization: &str,
        page: PageRequest,
    ) -> Result<Listed<OauthClientView>, Error> {
        let org = self.organization_named(caller, organization).await?;
        caller.require(Action::ReadDirectory, org.resource(), "organization")?;
        let listed = Listed::from_all(org.state.oauth_clients.by().age.iter(), page).cloned();
        Ok(listed.map(|client| OauthClientView { client, org: org.clone() }))
    }

    pub async fn oauth_client(&self, caller: &Caller, id: OauthClientId) -> Result<OauthClientView, Error> {
        let org = self.authorized_organization(caller, id.organization_prefix(), OauthClient::NOUN).await?;
        caller.require(Action::ReadDirectory, org.resource(), OauthClient::NOUN)?;
        let client = org.get::<OauthClient>(&id)?.clone();
        Ok(OauthClientView { client, org })
    }

    pub async fn update_oauth_client(
        &self,
        caller: &Caller,
        id: OauthClientId,
        patch: OauthClientPatch,
    ) -> Result<OauthClientView, Error> {
        let mut org = self.authorized_organization(caller, id.organization_prefix(), OauthClient::NOUN).await?;
        let token = org.state.oauth_tokens.by().client.first(&id).map(|token| token.id);
        let (sealed, now) = (self.seal_texts(id, token, &patch)?, self.now());
        let change = org.change(caller, "oauth-client.update", now, move |tx| {
            tx.require::<OauthClient>(Action::ManageVcsSettings, tx.organization())?;
            let client = patch.apply(&tx.get::<OauthClient>(&id)?)?;
            put(tx, client, &patch, &sealed, now)
        });
        let client = change.await?;
        Ok(OauthClientView { client, org })
    }

    /// Lets the workspaces of more or fewer projects use a connection.
    pub async fn change_oauth_client_projects(
        &self,
        caller: &Caller,
        id: OauthClientId,
        projects: BTreeSet<ProjectId>,
        change: ListChange,
    ) -> Result<(), Error> {
        let mut org = self.authorized_organization(caller, id.organization_prefix(), OauthClient::NOUN).await?;
        org.change(caller, "oauth-client.apply", self.now(), move |tx| {
            tx.require::<OauthClient>(Action::ManageVcsSettings, tx.organization())?;
            let mut client: OauthClient = tx.get(&id)?;
            for project in &projects {
                if !sees_project(tx.caller(), tx.state(), project) {
                    return Err(Error::NotFound(Project::NOUN));
                }
                match change {
                    ListChange::Remove => _ = client.projects.remove(project),
                    ListChange::Add | ListChange::Replace => _ = client.projects.insert(*project),
                }
            }
            tx.put(&client);
            Ok(())
        })
        .await
    }

    /// Deletes a connection with its token.
    pub async fn delete_oauth_client(&self, caller: &Caller, id: OauthClientId) -> Result<(), Error> {
        let mut org = self.authorized_organization(caller, id.organization_prefix(), OauthClient::NOUN).await?;
        org.change(caller, "oauth-client.delete", self.now(), move |tx| {
            tx.require::<OauthClient>(Action::ManageVcsSettings, tx.organization())?;
            tx.delete::<OauthClient>(&id)
        })
        .await
    }
}

/// Puts a connection as it is after a request, and its token.
fn put(
    tx: &mut Tx<'_>,
    mut client: OauthClient,
    patch: &OauthClientPatch,
    sealed: &SealedTexts,
    now: Timestamp,
) -> Result<OauthClient, Error> {
    if let Some(pool) = patch.agent_pool {
        check_pool(tx.state(), pool)?;
        client.agent_pool = pool;
    }
    if let Some(secret) = &sealed.secret {
        client.sealed_secret = Some(secret.clone());
    }
    if let Some((id, text)) = &sealed.token {
        let known = tx.state().oauth_tokens.get(id).cloned();
        let token = known.unwrap_or_else(|| OauthToken {
            id: *id,
            client: client.id,
            sealed_text: String::new(),
            sealed_ssh_key: None,
            created_at: now,
        });
        tx.put(&OauthToken { sealed_text: text.clone(), ..token });
    }
    tx.put(&client);
    Ok(client)
}

fn check_pool(state: &OrganizationState, pool: Option<AgentPoolId>) -> Result<(), Error> {
    if pool.is_none_or(|pool| state.agent_pools.get(&pool).is_some()) {
        return Ok(());
    }
    let detail = "the provided agent pool does not exist or you are not authorized to use it";
    Err(Error::invalid("agent-pool", detail))
}
