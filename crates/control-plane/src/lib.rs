//! The verbs that callers may use. Each asks three things in this order: may they? is it legal? commit it.
//!
//! Nothing here knows HTTP or HTML, so the API, the pages and the command line share one behaviour. [`ControlPlane`]
//! is the way in; a [`Caller`] says who asks; [`Error`] says what they can do about a refusal.

mod accounts;
mod agents;
mod caller;
mod change;
mod configuration_versions;
mod control_plane;
mod error;
mod find;
mod graph;
mod history;
mod idempotency;
mod notifications;
mod organizations;
mod page;
mod policies;
mod privileged;
mod projects;
mod registry;
mod retention;
mod run_tasks;
mod runs;
mod search;
mod site;
mod ssh_keys;
mod states;
mod storage;
mod teams;
mod variables;
mod vcs;
mod visible;
mod walks;
mod workspaces;

// Modules are called by their own names wherever their files are.
use accounts::{
    first_start, grants, password_queue, passwords, sessions, signed_url_token, token_guesses, token_uses, tokens,
};
use agents::{agent_pools, presence};
use configuration_versions::configuration_archives;
use graph::output_commits;
use notifications::{courier, deliveries, notification_configurations, outbox};
use organizations::{audit_log, audit_trail, invitations, secret_reads, token_lifetimes, unreadable};
use policies::{phase_policies, policy_code, policy_outcomes, policy_sets};
use registry::{
    gpg_keys, module_uses, module_versions, provider_archive, provider_uploads, provider_versions, registry_blobs,
    registry_modules, registry_providers,
};
use run_tasks::{run_task_views, stage_views, task_outcomes, task_requests, task_results, task_tokens};
use runs::{
    dashboard, load_samples, log_id, log_signals, logs, output_contracts, phase_tokens, phase_uploads, phases,
    plan_files, plans, queue_lanes, run_actions, run_events, run_filter, run_flow, run_links, run_trends, run_triggers,
    uploaded_plans, wait_notes,
};
use site::{rewraps, site_status};
use states::{
    new_state, state_blobs, state_cache, state_commits, state_comparisons, state_contents, state_resources,
    state_versions, summary_cache, uploads_under_way,
};
use storage::{blob_error, channel_reader, reader_slots, stored_objects, upload_slots};
use teams::{owners, team_access, team_members};
use variables::{bindings, bound_output_cache, bound_values, variable_imports, variable_sets};
use vcs::{oauth_clients, oauth_tokens};
use workspaces::{
    lock_choices, lock_release, lock_rollback, reserved_tag_keys, tags, workspace_lists, workspace_locks,
    workspace_view,
};

pub use accounts::AccountPatch;
pub use agent_pools::{AgentPoolFilter, AgentPoolOrder, AgentPoolPatch, AgentPoolView};
pub use agents::{AgentCaller, AgentView, ConnectedAgent};
pub use audit_log::{AuditEntry, AuditFilter, AuditPage};
pub use audit_trail::{AuditEvent, AuditTrail};
pub use bindings::{BindingView, GivenVariable, NewBinding};
pub use caller::{Caller, RequestInfo, RequestTarget};
pub use configuration_archives::LARGEST_CONFIGURATION;
pub use configuration_versions::{ConfigurationAction, ConfigurationVersionView, NewConfiguration};
pub use control_plane::{ControlPlane, HistorySettings, Limits, Moment, OrganizationSnapshot, Settings, Timeouts};
pub use courier::{Courier, Letter, NotificationSettings, Reply, Webhook};
pub use dashboard::Dashboard;
pub use deliveries::{AttemptOutcome, DueDelivery};
pub use error::Error;
pub use first_start::{FirstStart, PasswordLinkText};
pub use gpg_keys::{GpgKeyView, NewGpgKey};
pub use grants::{AuthorizationRequest, CodeExchange};
pub use graph::dependencies::{DependencyDirection, DependencyPatch, DependencyView, NewDependency};
pub use graph::graph_view::HIDDEN_UNIT;
pub use graph::output_history::{
    ComparedOutput, Maker, OutputAtCommit, OutputCommitView, OutputComparison, OutputsAtCommit,
};
pub use graph::why::{ChangedOutput, Reason, Why};
pub use history::{Archived, HistoryInBucket, read_history};
pub use invitations::{InvitationRef, InvitationView, MadeInvitation};
pub use load_samples::LoadSample;
pub use lock_choices::LockChoices;
pub use module_uses::ModuleUse;
pub use module_versions::{DeprecationPatch, ModuleVersionPatch, ModuleVersionView, NewModuleVersion};
pub use new_state::NewState;
pub use notification_configurations::NotificationView;
pub use oauth_clients::OauthClientView;
pub use oauth_tokens::OauthTokenPatch;
pub use organizations::{Entitlements, OrganizationSurvey, OrganizationView};
pub use output_contracts::{AffectedConsumerView, BrokenOutputView, OutputContractView};
pub use page::{Listed, PageRequest};
pub use phase_policies::{PhasePolicies, PhasePolicyGroup, PhasePolicyParameter, PhasePolicySet};
pub use phase_uploads::{LARGEST_PLAN, LogRefusal};
pub use phases::{PhaseCaller, PhaseRequest, TakenPhase};
pub use plans::PlanOutput;
pub use policies::{PolicyFilter, PolicyView};
pub use policy_outcomes::PolicySetOutcomeView;
pub use policy_sets::{PolicySetVersionView, PolicySetView};
pub use presence::{EnginesAtAgents, Presence};
pub use privileged::Privileged;
pub use projects::{ProjectFilter, ProjectView};
pub use provider_uploads::LARGEST_PROVIDER;
pub use provider_versions::{NewProviderPlatform, NewProviderVersion, ProviderPlatformView, ProviderVersionView};
pub use queue_lanes::QueueLane;
pub use registry_modules::{ModuleFilter, ModulePatch, ModuleRef, ModuleSelection, ModuleView, NewModule};
pub use registry_providers::{NewProvider, ProviderFilter, ProviderRef, ProviderView};
pub use retention::ExpiredData;
pub use rewraps::Rewrapped;
pub use run_actions::RunDecision;
pub use run_events::RunEventView;
pub use run_filter::RunFilter;
pub use run_links::RunNeighbours;
pub use run_task_views::{RunTaskView, WorkspaceRunTaskView};
pub use run_trends::{RecentRun, ResourcesAt};
pub use run_triggers::{RunTriggerView, TriggerDirection};
pub use runs::{Capacity, RunView};
pub use search::Found;
pub use sessions::OpenedSession;
pub use signed_url_token::{SignedUrlPurpose, SignedUrlToken};
pub use site_status::{BucketStatus, BucketTimes, ServerStatus, SiteStatus};
pub use ssh_keys::SshKeyPatch;
pub use stage_views::{TaskResultView, TaskStageView};
pub use state_blobs::LARGEST_STATE;
pub use state_comparisons::{Compared, Incomparable, StateComparison};
pub use state_contents::{OutputView, ResourceView};
pub use state_resources::StateResource;
pub use state_versions::{StateFilter, StateVersionView};
pub use stored_objects::{DamagedObject, Depth, ExaminedObjects, examine_objects};
pub use taco_domain::phase_outcome::PhaseOutcome;
pub use taco_graph_picture::{Edge, Graph, Unit};
pub use taco_ledger::{Changes, IntervalTimes, LedgerName, View};
pub use taco_module_docs::{
    Input, ModuleCall, ModuleDocs, ModulePart, Output, RequiredProvider, Resource, UnreadableFile,
};
pub use taco_opa::find_on_path as opa_on_path;
pub use tags::{TagFilter, TagRef};
pub use task_outcomes::{LARGEST_OUTCOMES, OutcomeTag, TaskOutcome};
pub use task_requests::{AttendedTask, DueTask};
pub use task_results::SentAnswer;
pub use team_access::{AccessOfTeam, Granted};
pub use team_members::MemberRef;
pub use teams::{MembershipFilter, MembershipView, TeamFilter, TeamPatch, TeamRights, TeamView};
pub use token_lifetimes::TokenLifetimeView;
pub use tokens::{IssuedToken, NewToken, OrganizationTokenKind, TeamTokenOrder};
pub use unreadable::UnreadableLedger;
pub use uploaded_plans::PlanForm;
pub use variable_imports::{ImportPreview, PreviewedVariable, VariableImport};
pub use variable_sets::{NewVariableSet, VariableSetTargets, VariableSetView};
pub use variables::VariableRef;
pub use visible::Visible;
pub use wait_notes::{DueWait, Wait};
pub use walks::{NewWalk, WalkNodeView, WalkView};
pub use workspace_lists::{WorkspaceFilter, WorkspaceOrder};
pub use workspace_view::{ListChange, WorkspaceContents, WorkspaceRef, WorkspaceView};
pub use workspaces::Deletion;
