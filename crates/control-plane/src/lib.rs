//! The verbs that callers may use. Each asks three things in this order: may they? is it legal? commit it.
//!
//! Nothing here knows HTTP or HTML, so the API, the pages and the command line share one behaviour. [`ControlPlane`]
//! is the way in; a [`Caller`] says who asks; [`Error`] says what they can do about a refusal.

mod accounts;
mod agent_pools;
mod agents;
mod caller;
mod configuration_versions;
mod control_plane;
mod done_requests;
mod error;
mod first_start;
mod grants;
mod log_signals;
mod logs;
mod organizations;
mod page;
mod passes;
mod passwords;
mod peer_words;
mod phase_losses;
mod phase_tokens;
mod phase_uploads;
mod phases;
mod plans;
mod presence;
mod projects;
mod run_actions;
mod run_events;
mod run_filter;
mod run_flow;
mod run_triggers;
mod runs;
mod sessions;
mod ssh_keys;
mod state_blobs;
mod state_commits;
mod state_contents;
mod state_restores;
mod state_summaries;
mod state_versions;
mod state_writes;
mod tags;
mod teams;
mod tokens;
mod untold_locks;
mod variable_sets;
mod variables;
mod workspace_locks;
mod workspaces;

pub use accounts::AccountPatch;
pub use agent_pools::{AgentPoolPatch, AgentPoolView};
pub use agents::{AgentView, ConnectedAgent};
pub use caller::{Caller, RequestInfo};
pub use configuration_versions::{
    ConfigurationAction, ConfigurationVersionView, LARGEST_CONFIGURATION, NewConfiguration,
};
pub use control_plane::{ControlPlane, OpenOrganization, Settings, Timeouts};
pub use error::Error;
pub use first_start::{FirstStart, PasswordLinkText};
pub use grants::{AuthorizationRequest, CodeExchange};
pub use organizations::{Entitlements, OrganizationView};
pub use page::{Listed, PageRequest};
pub use passes::{Pass, PassPurpose};
pub use phase_tokens::Attempt;
pub use phase_uploads::{LARGEST_PLAN, LogRefusal, PlanForm};
pub use phases::{PhaseCaller, PhaseOutcome, TakenPhase, first_ready};
pub use plans::PlanOutput;
pub use presence::Presence;
pub use projects::{ProjectFilter, ProjectView};
pub use run_events::RunEventView;
pub use run_filter::RunFilter;
pub use run_triggers::{RunTriggerView, TriggerDirection};
pub use runs::{Capacity, RunView};
pub use sessions::OpenedSession;
pub use ssh_keys::SshKeyPatch;
pub use state_blobs::LARGEST_STATE;
pub use state_contents::{OutputView, ResourceView};
pub use state_versions::StateVersionView;
pub use state_writes::NewState;
pub use tags::{TagFilter, TagRef};
pub use teams::{MembershipFilter, MembershipView, TeamPatch, TeamView};
pub use tokens::{IssuedToken, NewToken, OrganizationTokenKind};
pub use variable_sets::{NewVariableSet, VariableSetTargets, VariableSetView};
pub use variables::VariableRef;
pub use workspaces::{Deletion, ListChange, WorkspaceFilter, WorkspaceRef, WorkspaceView};
