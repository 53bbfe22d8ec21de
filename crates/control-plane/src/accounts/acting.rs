//! Current identity and rights of the person whom a record or a signed URL names. Rights come and go: what was allowed
//! when a state was announced or an address was signed need not be when it is used.

use taco_domain::Author;
use taco_domain::permission::{Actor, Credential};

use crate::caller::{Caller, PrefetchedOrganization, RequestInfo};
use crate::control_plane::OrganizationSnapshot;

impl OrganizationSnapshot {
    /// The caller that this author would be now; `None` if this author can no longer make requests.
    pub(crate) fn caller_for(&self, author: &Author, request: RequestInfo) -> Option<Caller> {
        let organization = self.id();
        let actor = match *author {
            Author::User(id) => {
                let user = self.site().users.get(&id).filter(|user| !user.suspended)?;
                Actor::User { id, site_admin: user.site_admin, by: Credential::Session }
            }
            Author::Team(team) if self.state.teams.contains(&team) => {
                Actor::Team { organization, team, from_organization: false }
            }
            Author::Organization(id) => Actor::Organization(id),
            Author::Run(id) => {
                let run = self.state.runs.get(&id).filter(|run| run.executing_phase().is_some())?;
                Actor::Run { organization, run: id, workspace: run.workspace }
            }
            Author::Team(_) | Author::AgentPool(_) | Author::Taco => return None,
        };
        Some(Caller {
            actor,
            token: None,
            request,
            site: self.site().clone(),
            prefetched: PrefetchedOrganization::default(),
        })
    }
}
