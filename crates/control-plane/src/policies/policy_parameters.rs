//! Parameters of policy sets.

use taco_boxed::boxed;
use taco_domain::permission::Action;
use taco_domain::policy_parameter::{MAX_POLICY_PARAMETERS, PolicyParameter, PolicyParameterId, PolicyParameterPatch};
use taco_domain::policy_set::{PolicySet, PolicySetId};
use taco_domain::variable::{StoredValue, Vault};
use taco_tables::Record as _;

use crate::caller::Caller;
use crate::control_plane::ControlPlane;
use crate::error::Error;
use crate::policy_sets::manage;

const WHAT: &str = PolicyParameter::NOUN;

/// Has sealed one value beforehand: sealing takes chance, which a decision must not take.
struct SealedBefore {
    plain: String,
    sealed: String,
}

impl Vault for SealedBefore {
    type Error = Error;

    fn seal(&self, plain: &str) -> Result<String, Error> {
        if plain == self.plain {
            return Ok(self.sealed.clone());
        }
        Err(Error::Conflict("The parameter changed while this request was on its way: try again".to_owned()))
    }

    fn open(&self, _: &str) -> Result<String, Error> {
        Err(Error::NotFound(WHAT))
    }
}

#[boxed]
impl ControlPlane {
    fn sealed_parameter(
        &self,
        id: PolicyParameterId,
        patch: &PolicyParameterPatch,
        before: Option<&PolicyParameter>,
    ) -> SealedBefore {
        let sent = patch.value.as_ref().map(|value| value.clone().unwrap_or_default());
        let known = || before.and_then(PolicyParameter::shown_value).unwrap_or_default().to_owned();
        let plain = sent.unwrap_or_else(known);
        SealedBefore { sealed: self.seal(&id.to_string(), &plain), plain }
    }

    /// A set's parameters by key.
    pub async fn policy_parameters(&self, caller: &Caller, set: PolicySetId) -> Result<Vec<PolicyParameter>, Error> {
        Ok(self.policy_set(caller, set).await?.parameters())
    }

    pub async fn policy_parameter(
        &self,
        caller: &Caller,
        set: PolicySetId,
        id: PolicyParameterId,
    ) -> Result<PolicyParameter, Error> {
        let parameters = self.policy_parameters(caller, set).await?;
        parameters.into_iter().find(|parameter| parameter.id == id).ok_or(Error::NotFound(WHAT))
    }

    pub async fn create_policy_parameter(
        &self,
        caller: &Caller,
        set: PolicySetId,
        patch: PolicyParameterPatch,
    ) -> Result<PolicyParameter, Error> {
        let mut org = self.authorized_organization(caller, set.organization_prefix(), PolicySet::NOUN).await?;
        caller.require(Action::ManagePolicies, org.resource(), PolicySet::NOUN)?;
        let now = self.now();
        let id = PolicyParameterId::within(org.id().organization_prefix(), self.random());
        let value = StoredValue::Plain(String::new());
        let blank = PolicyParameter { id, set, key: String::new(), value, created_at: now };
        let patch = PolicyParameterPatch { key: Some(patch.key.unwrap_or_default()), ..patch };
        let parameter = patch.apply(&blank, &self.sealed_parameter(id, &patch, None))?;
        let parameter = org.change(caller, "policy-parameter.create", now, move |tx| {
            manage(tx, set)?;
            if tx.state().policy_parameters.by().set.under(&set).count() >= MAX_POLICY_PARAMETERS {
                let detail = format!("A policy set has at most {MAX_POLICY_PARAMETERS} parameters");
                return Err(Error::invalid("key", detail));
            }
            tx.put_unique(parameter.clone())
        });
        parameter.await
    }

    pub async fn update_policy_parameter(
        &self,
        caller: &Caller,
        set: PolicySetId,
        id: PolicyParameterId,
        patch: PolicyParameterPatch,
    ) -> Result<PolicyParameter, Error> {
        let before = self.policy_parameter(caller, set, id).await?;
        let mut org = self.authorized_organization(caller, set.organization_prefix(), PolicySet::NOUN).await?;
        let SealedBefore { plain, sealed } = self.sealed_parameter(id, &patch, Some(&before));
        let parameter = org.change(caller, "policy-parameter.update", self.now(), move |tx| {
            manage(tx, set)?;
            let before: PolicyParameter = tx.get(&id)?;
            let vault = SealedBefore { plain: plain.clone(), sealed: sealed.clone() };
            tx.put_unique(patch.apply(&before, &vault)?)
        });
        parameter.await
    }

    pub async fn delete_policy_parameter(
        &self,
        caller: &Caller,
        set: PolicySetId,
        id: PolicyParameterId,
    ) -> Result<(), Error> {
        let mut org = self.authorized_organization(caller, set.organization_prefix(), PolicySet::NOUN).await?;
        org.change(caller, "policy-parameter.delete", self.now(), move |tx| {
            manage(tx, set)?;
            let parameter: PolicyParameter = tx.get(&id)?;
            if parameter.set != set {
                return Err(Error::NotFound(WHAT));
            }
            tx.delete::<PolicyParameter>(&id)
        })
        .await
    }
}
