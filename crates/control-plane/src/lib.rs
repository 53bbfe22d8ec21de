//! The verbs that callers may use. Each asks three things in this order: may they? is it legal? commit it.
//!
//! Nothing here knows HTTP or HTML, so the API, the pages and the command line share one behaviour. [`ControlPlane`]
//! is the way in; a [`Caller`] says who asks; [`Error`] says what they can do about a refusal.

mod accounts;
mod agents;
mod caller;
mod configuration_versions;
mod control_plane;
mod done_requests;
mod error;
mod find;
mod history;
mod organizations;
mod page;
mod projects;
mod runs;
mod secret_reads;
mod site;
mod ssh_keys;
mod states;
mod storage;
mod teams;
mod variables;
mod workspaces;

// Modules are called by their own names wherever their files are.
use accounts::{first_start, grants, passes, password_queue, passwords, sessions, tokens, wrong_tokens};
use agents::{agent_pools, presence};
use configuration_versions::configuration_archives;
use organizations::{audit_trail, invitations, token_lifetimes, unreadable};
use runs::{
    log_signals, logs, phase_tokens, phase_uploads, phases, plan_files, plans, run_actions, run_events, run_filter,
    run_flow, run_triggers, wait_notes, work,
};
use site::{rewraps, site_status};
use states::{
    kept_states, state_blobs, state_commits, state_comparisons, state_contents, state_summaries, state_uploads,
    state_versions, state_writes,
};
use storage::{channel_reader, stored_objects, upload_slots};
use teams::team_members;
use variables::{variable_imports, variable_sets};
use workspaces::{lock_choices, tags, untold_locks, workspace_lists, workspace_locks};

pub use accounts::AccountPatch;
pub use agent_pools::{AgentPoolFilter, AgentPoolOrder, AgentPoolPatch, AgentPoolView};
pub use agents::{AgentCaller, AgentView, ConnectedAgent};
pub use audit_trail::{AuditEvent, AuditTrail};
pub use caller::{About, Caller, RequestInfo};
pub use configuration_archives::LARGEST_CONFIGURATION;
pub use configuration_versions::{ConfigurationAction, ConfigurationVersionView, NewConfiguration};
pub use control_plane::{ControlPlane, HistorySettings, Limits, Moment, OpenOrganization, Settings, Timeouts};
pub use error::Error;
pub use first_start::{FirstStart, PasswordLinkText};
pub use grants::{AuthorizationRequest, CodeExchange};
pub use history::{Archived, HistoryInBucket, read_history};
pub use invitations::{InvitationRef, InvitationView, MadeInvitation};
pub use lock_choices::LockChoices;
pub use organizations::{Entitlements, OrganizationSurvey, OrganizationView};
pub use page::{Listed, PageRequest};
pub use passes::{Pass, PassPurpose};
pub use phase_tokens::Attempt;
pub use phase_uploads::{LARGEST_PLAN, LogRefusal, PlanForm};
pub use phases::{PhaseCaller, PhaseOutcome, TakenPhase, Taker};
pub use plans::PlanOutput;
pub use presence::{EnginesAtAgents, Presence};
pub use projects::{ProjectFilter, ProjectView};
pub use rewraps::Rewrapped;
pub use run_actions::RunDecision;
pub use run_events::RunEventView;
pub use run_filter::RunFilter;
pub use run_triggers::{RunTriggerView, TriggerDirection};
pub use runs::{Capacity, RunView};
pub use sessions::OpenedSession;
pub use site_status::{BucketStatus, ServerStatus, SiteStatus};
pub use ssh_keys::SshKeyPatch;
pub use state_blobs::LARGEST_STATE;
pub use state_comparisons::{Compared, Incomparable, StateComparison};
pub use state_contents::{OutputView, ResourceView};
pub use state_versions::{StateFilter, StateVersionView};
pub use state_writes::NewState;
pub use stored_objects::{DamagedObject, Depth, ExaminedObjects, examine_objects};
pub use taco_ledger::{Changes, LedgerName, View};
pub use tags::{TagFilter, TagRef};
pub use team_members::MemberRef;
pub use teams::{MembershipFilter, MembershipView, TeamFilter, TeamPatch, TeamRights, TeamView};
pub use token_lifetimes::TokenLifetimeView;
pub use tokens::{IssuedToken, NewToken, OrganizationTokenKind, TeamTokenOrder};
pub use unreadable::UnreadableLedger;
pub use variable_imports::{ImportPreview, PreviewedVariable, VariableImport};
pub use variable_sets::{NewVariableSet, VariableSetTargets, VariableSetView};
pub use variables::VariableRef;
pub use wait_notes::{DueWait, Wait};
pub use work::Work;
pub use workspace_lists::{WorkspaceFilter, WorkspaceOrder};
pub use workspaces::{Deletion, ListChange, WorkspaceRef, WorkspaceView};
