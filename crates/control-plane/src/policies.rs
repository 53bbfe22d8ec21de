//! Policies: create, list, read, change, delete, and their code. Sets of them are in `policy_sets`.

pub(crate) mod phase_policies;
pub(crate) mod policy_code;
pub(crate) mod policy_outcomes;
pub(crate) mod policy_parameters;
pub(crate) mod policy_set_versions;
pub(crate) mod policy_sets;

use bytes::Bytes;
use taco_boxed::boxed;
use taco_domain::permission::{Action, Decision};
use taco_domain::policy::{Policy, PolicyId, PolicyPatch};
use taco_domain::policy_words::PolicyKind;
use taco_tables::Record as _;

use crate::caller::Caller;
use crate::control_plane::{ControlPlane, OrganizationSnapshot};
use crate::error::Error;
use crate::page::{Listed, PageRequest};
use crate::policy_code::{MAX_POLICY_BYTES, policy_key};

/// A policy as a door shows it.
#[derive(Clone)]
pub struct PolicyView {
    pub policy: Policy,
    pub org: OrganizationSnapshot,
}

impl PolicyView {
    /// Number of sets that have it.
    pub fn set_count(&self) -> usize {
        self.org.state.policy_sets.by().policy.get(&self.policy.id).count()
    }

    /// May the caller change it?
    pub fn may_manage(&self, caller: &Caller) -> Decision {
        caller.may(Action::ManagePolicies, self.org.resource())
    }
}

/// Policies, or policy sets, of a list.
#[derive(Clone, Default, Debug)]
pub struct PolicyFilter {
    /// Part of the name.
    pub search: Option<String>,
    pub kind: Option<PolicyKind>,
}

impl PolicyFilter {
    pub(crate) fn is_empty(&self) -> bool {
        self.kind.is_none() && self.search.as_deref().is_none_or(|text| text.trim().is_empty())
    }

    pub(crate) fn takes(&self, name: &str, kind: PolicyKind) -> bool {
        let search = self.search.as_deref().unwrap_or_default().trim().to_lowercase();
        self.kind.is_none_or(|wanted| wanted == kind) && name.to_lowercase().contains(&search)
    }
}

#[boxed]
impl ControlPlane {
    /// An organization's policies by name.
    pub async fn policies(
        &self,
        caller: &Caller,
        organization: &str,
        filter: &PolicyFilter,
        page: PageRequest,
    ) -> Result<Listed<PolicyView>, Error> {
        let org = self.organization_named(caller, organization).await?;
        caller.require(Action::ReadDirectory, org.resource(), "organization")?;
        let all = &org.state.policies.by().name;
        let listed = match filter.is_empty() {
            true => Listed::from_sorted(all.iter(), all.len(), page),
            false => Listed::from_all(all.iter().filter(|it| filter.takes(it.name.as_str(), it.kind)), page),
        };
        Ok(listed.cloned().map(|policy| PolicyView { policy, org: org.clone() }))
    }

    pub async fn policy(&self, caller: &Caller, id: PolicyId) -> Result<PolicyView, Error> {
        let org = self.authorized_organization(caller, id.organization_prefix(), Policy::NOUN).await?;
        caller.require(Action::ReadDirectory, org.resource(), Policy::NOUN)?;
        let policy = org.get::<Policy>(&id)?.clone();
        Ok(PolicyView { policy, org })
    }

    pub async fn create_policy(
        &self,
        caller: &Caller,
        organization: &str,
        patch: PolicyPatch,
    ) -> Result<PolicyView, Error> {
        let mut org = self.organization_named(caller, organization).await?;
        caller.require(Action::ManagePolicies, org.resource(), "organization")?;
        let now = self.now();
        let id = PolicyId::within(org.id().organization_prefix(), self.random());
        let policy = patch.create(id, caller.author(), now)?;
        let policy = org.change(caller, "policy.create", now, move |tx| {
            tx.require::<Policy>(Action::ManagePolicies, tx.organization())?;
            tx.put_unique(policy.clone())
        });
        let policy = policy.await?;
        Ok(PolicyView { policy, org })
    }

    pub async fn update_policy(&self, caller: &Caller, id: PolicyId, patch: PolicyPatch) -> Result<PolicyView, Error> {
        let mut org = self.authorized_organization(caller, id.organization_prefix(), Policy::NOUN).await?;
        let now = self.now();
        let policy = org.change(caller, "policy.update", now, move |tx| {
            tx.require::<Policy>(Action::ManagePolicies, tx.organization())?;
            let changed = patch.apply(&tx.get(&id)?, now)?;
            tx.put_unique(changed)
        });
        let policy = policy.await?;
        Ok(PolicyView { policy, org })
    }

    /// Deletes a policy; sets that have it go on without it.
    pub async fn delete_policy(&self, caller: &Caller, id: PolicyId) -> Result<(), Error> {
        let mut org = self.authorized_organization(caller, id.organization_prefix(), Policy::NOUN).await?;
        let code = org.change(caller, "policy.delete", self.now(), move |tx| {
            tx.require::<Policy>(Action::ManagePolicies, tx.organization())?;
            let policy: Policy = tx.get(&id)?;
            tx.delete::<Policy>(&id)?;
            Ok(policy.code)
        });
        if let Some(file) = code.await? {
            self.remove_blob(&policy_key(org.ledger.name(), &file.blob)).await;
        }
        Ok(())
    }

    /// Takes the code of a policy. Rego has to compile.
    pub async fn upload_policy(&self, caller: &Caller, id: PolicyId, code: Bytes) -> Result<PolicyView, Error> {
        let mut org = self.authorized_organization(caller, id.organization_prefix(), Policy::NOUN).await?;
        caller.require(Action::ManagePolicies, org.resource(), Policy::NOUN)?;
        let before = org.get::<Policy>(&id)?.clone();
        if code.len() > MAX_POLICY_BYTES {
            return Err(Error::TooLarge { limit: MAX_POLICY_BYTES as u64 });
        }
        let syntax = match before.kind {
            PolicyKind::Sentinel => None,
            PolicyKind::Opa => {
                let text = String::from_utf8(code.to_vec()).map_err(|_| Error::Invalid {
                    pointer: String::new(),
                    detail: format!("{}: a policy is text in UTF-8, and this is not", before.file_name()),
                })?;
                self.check_rego([(before.file_name(), text)].into()).await?
            }
        };
        let file = self.store_policy_code(&org, id.characters(), code, syntax).await?;
        let (now, uploaded) = (self.now(), file.clone());
        let committed = org.change(caller, "policy.upload", now, move |tx| {
            tx.require::<Policy>(Action::ManagePolicies, tx.organization())?;
            let before: Policy = tx.get(&id)?;
            let old = before.code.clone();
            let policy = Policy { code: Some(uploaded.clone()), updated_at: now, ..before };
            tx.put(&policy);
            Ok((policy, old))
        });
        let (policy, old) = committed.await?;
        if let Some(old) = old.filter(|old| old.blob != file.blob) {
            self.remove_unused_code(&org, &old.blob).await;
        }
        Ok(PolicyView { policy, org })
    }

    /// The code of a policy.
    pub async fn policy_code(&self, caller: &Caller, id: PolicyId) -> Result<Bytes, Error> {
        let view = self.policy(caller, id).await?;
        let file = view.policy.code.as_ref().ok_or(Error::NotFound("policy code"))?;
        self.read_policy_code(&view.org, file).await
    }
}
