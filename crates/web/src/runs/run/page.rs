//! `/app/{organization}/workspaces/{workspace}/runs/{run}`: all about one run.

use std::sync::Arc;

use askama::Template;
use axum::extract::{Path, Query, State};
use axum::http::StatusCode;
use axum::response::{IntoResponse, Redirect, Response};
use jiff::Timestamp;
use serde::Deserialize;
use taco_control_plane::{Error, GivenVariable, RunView};
use taco_domain::binding::variable_in_words;
use taco_domain::id::RunId;
use taco_domain::permission::Action;
use taco_domain::phase::{Phase, PhaseKind, PhaseStatus, ResourceCounts};
use taco_domain::run::Run;
use taco_domain::run_status::RunStatus;
use taco_domain::wait_reason::WaitReason;

use crate::badge::Badge;
use crate::error::PageError;
use crate::navigation::{WorkspaceSection, run_address, workspace_address};
use crate::page::Layout;
use crate::plan_view::PlanView;
use crate::run::actions::{CommentBox, Decisions, Retry};
use crate::run::history::{HistoryEntry, history};
use crate::run::log::{LogPart, part, part_with_line};
use crate::run::log_text::line_of;
use crate::run::plan::PlanFile;
use crate::run::progress::Facts;
use crate::run::run_policies::PolicySection;
use crate::run::stages::{Stage, stages};
use crate::run::tasks::{TaskStageSection, task_stages};
use crate::run::waits::Wait;
use crate::state_parts::{OutputRows, ShownValue};
use crate::text::{Moment, plain, size, stopwatch};
use crate::visitor::Visitor;
use crate::words::{body, list_title, source_words};
use crate::workspace::may_reveal;
use crate::{Web, page};

/// A plan that is larger than this is shown as text alone.
const MAX_PLAN_BYTES: u64 = 64 * 1024 * 1024;

/// Reference to a run in an address.
#[derive(Clone, Deserialize, Debug)]
pub(crate) struct RunPath {
    pub(crate) organization: String,
    pub(crate) workspace: String,
    pub(crate) run: String,
}

impl RunPath {
    pub(crate) fn address(&self) -> String {
        run_address(&self.organization, &self.workspace, &self.run)
    }
}

/// The run that an address names, if the visitor may see it.
pub(crate) async fn find(web: &Web, visitor: &Visitor, path: &RunPath) -> Result<RunView, PageError> {
    let id: RunId = path.run.parse().map_err(|_| PageError::not_found("run"))?;
    Ok(web.control_plane.run(&visitor.caller, id).await?)
}

/// Address of a run's page.
pub(crate) fn address_of(view: &RunView) -> String {
    run_address(view.org.entry().name.as_str(), view.workspace.name.as_str(), view.run.id)
}

#[derive(Template)]
#[template(path = "run.html")]
struct RunPage {
    layout: Layout,
    now: Timestamp,
    address: String,
    head: Head,
    stages: Vec<Stage>,
    waits: Vec<Wait>,
    is_stale: bool,
    contract: Option<ContractNotice>,
    policies: Option<PolicySection>,
    task_stages: Vec<TaskStageSection>,
    plan: Section,
    plan_files: Vec<PlanFile>,
    apply: Option<Section>,
    /// The plan is folded: what follows it matters more.
    folds_plan: bool,
    written: Option<Written>,
    /// Outputs of the state that it wrote.
    outputs: Option<OutputRows>,
    /// Address at which outputs are revealed, and the reason if they cannot be.
    overview: String,
    reveal: Result<(), String>,
    earlier: Option<String>,
    later: Option<String>,
    retry: Option<Retry>,
    decisions: Decisions,
    comment_box: CommentBox,
    history: Vec<HistoryEntry>,
    live: Option<Live>,
}

impl RunPage {
    /// The phase that failed: what went wrong comes before everything else.
    fn failed(&self) -> Option<&Section> {
        self.apply.iter().chain([&self.plan]).find(|section| section.failed)
    }
}

/// Outputs that the plan removes or retypes and that others use.
struct ContractNotice {
    sentences: Vec<String>,
    /// Nobody has decided yet.
    waits: bool,
    /// The person who wanted it applied all the same.
    accepted_by: Option<String>,
}

impl ContractNotice {
    fn of(visitor: &Visitor, view: &RunView) -> Option<Self> {
        let shown = view.output_contract(&visitor.caller)?;
        Some(Self {
            sentences: shown.sentences,
            waits: view.run.status.is_confirmable() && shown.contract.waits_for_decision(),
            accepted_by: shown.accepted_by,
        })
    }
}

/// The state that a run wrote.
struct Written {
    serial: u64,
    /// Of its page, for those who may read states.
    address: Option<String>,
}

impl Written {
    fn of(visitor: &Visitor, view: &RunView) -> Option<Self> {
        let version = view.written_state()?;
        let workspace = workspace_address(view.org.entry().name.as_str(), view.workspace.name.as_str());
        let may_read = visitor.caller.may(Action::ReadState, view.resource()).allowed;
        let address = may_read.then(|| format!("{workspace}/states/{}", version.id));
        Some(Self { serial: version.serial, address })
    }
}

/// Data that the page's script follows.
struct Live {
    /// Offset at which the page's log goes on: `plan:1234`.
    from: String,
    /// Fingerprint of what the page shows of the run; when the server's differs, the page is outdated.
    seen: String,
}

/// What the plan was given for a bound variable.
struct GivenRow {
    key: String,
    /// `network → vpc_id`
    from: String,
    /// `at commit 3`, `sensitive`.
    notes: String,
}

impl GivenRow {
    fn of(given: &GivenVariable) -> Self {
        let GivenVariable { bound, producer } = given;
        let when = match (&bound.announced_by, bound.commit) {
            (Some(_), _) => Some("as its plan announces it".to_owned()),
            (None, commit) => commit.map(|commit| format!("at commit {commit}")),
        };
        let notes = [when, bound.sensitive.then(|| "sensitive".to_owned())];
        Self {
            key: variable_in_words(&bound.key, bound.category),
            from: format!("{} → {}", plain(producer), plain(&bound.output)),
            notes: notes.into_iter().flatten().collect::<Vec<_>>().join(", "),
        }
    }
}

/// Header of the page.
struct Head {
    id: RunId,
    number: u64,
    badge: Badge,
    /// The message's first line, and what follows it.
    subject: String,
    body: String,
    by: String,
    created: Moment,
    source: &'static str,
    engine: String,
    configuration: String,
    /// Address of its archive, for those who may download it.
    configuration_address: Option<String>,
    counts: Option<ResourceCounts>,
    /// Tags for its special options, such as `destroy`.
    tags: Vec<&'static str>,
    targets: Vec<String>,
    replacements: Vec<String>,
    bound: Vec<GivenRow>,
    took: String,
    /// Seconds since it was created.
    elapsed: i64,
    workspace: String,
    confirmed_by: Option<String>,
}

/// One of the two phases.
struct Section {
    kind: PhaseKind,
    title: &'static str,
    badge: Badge,
    took: Option<String>,
    /// Seconds since it started, while it runs.
    elapsed: Option<i64>,
    agent: Option<String>,
    error: Option<String>,
    failed: bool,
    has_log: bool,
    log_size: String,
    is_running: bool,
    log: LogPart,
    /// The plan as a tree, and whether it is what the visitor wants to see.
    plan: Option<Arc<PlanView>>,
    console: bool,
}

impl Head {
    fn of(visitor: &Visitor, view: &RunView, now: Timestamp) -> Self {
        let run = &view.run;
        let options = &run.options;
        let end = run.status.is_final().then(|| run.entered_status_at());
        let tags = [
            (options.is_destroy, "destroy"),
            (options.plan_only, "plan only"),
            (options.save_plan, "saved plan"),
            (options.refresh_only, "refresh only"),
            (options.allow_empty_apply, "empty apply allowed"),
            (options.auto_apply, "auto-apply"),
            (!options.refresh, "without refresh"),
        ];
        Self {
            id: run.id,
            number: run.number,
            badge: Badge::of_run(run.status),
            subject: list_title(options),
            body: body(&options.message),
            by: view.org.name_of(&run.created_by),
            created: Moment(run.created_at),
            source: source_words(run.source),
            engine: format!("{} {}", options.engine, options.terraform_version),
            configuration: run.configuration_version.to_string(),
            configuration_address: configuration_address(visitor, view),
            counts: counts(run),
            tags: tags.into_iter().filter(|(is_set, _)| *is_set).map(|(_, word)| word).collect(),
            targets: options.target_addrs.iter().map(|address| plain(address)).collect(),
            replacements: options.replace_addrs.iter().map(|address| plain(address)).collect(),
            bound: view.given_variables(&visitor.caller).iter().map(GivenRow::of).collect(),
            took: stopwatch(end.unwrap_or(now).duration_since(run.created_at)),
            elapsed: now.duration_since(run.created_at).as_secs().max(0),
            workspace: view.workspace.name.to_string(),
            confirmed_by: run.confirmed_by.as_ref().map(|by| view.org.name_of(by)),
        }
    }
}

fn configuration_address(visitor: &Visitor, view: &RunView) -> Option<String> {
    let id = view.run.configuration_version;
    let is_there = view.configuration_is_usable();
    let workspace = workspace_address(view.org.entry().name.as_str(), view.workspace.name.as_str());
    let wanted = is_there && visitor.caller.may(Action::DownloadConfiguration, view.resource()).allowed;
    wanted.then(|| format!("{workspace}/configurations/{id}"))
}

/// Changes in a run's plan, once they are known.
pub(crate) fn counts(run: &Run) -> Option<ResourceCounts> {
    (run.plan.status == PhaseStatus::Finished).then_some(run.plan.counts)
}

impl Section {
    async fn of(web: &Web, view: &RunView, kind: PhaseKind, query: &ViewQuery) -> Result<Self, Error> {
        let phase = view.run.phase(kind);
        let now = web.control_plane.now();
        let is_plan = kind == PhaseKind::Plan;
        let mut log = match line_of(kind, &query.line) {
            Some(line) => part_with_line(web, view, kind, line).await?,
            None => part(web, view, kind, None).await?,
        };
        if phase.status.is_final() {
            log.facts.leave_out_planned();
        }
        let wants_plan = is_plan && phase.status == PhaseStatus::Finished;
        let plan = if wants_plan { plan_view(web, view).await? } else { None };
        let took = phase.started_at.map(|start| stopwatch(phase.ended_at.unwrap_or(now).duration_since(start)));
        Ok(Self {
            kind,
            title: if is_plan { "Plan" } else { "Apply" },
            badge: Badge::of_phase(phase.status),
            took,
            elapsed: phase
                .started_at
                .filter(|_| phase.ended_at.is_none())
                .map(|start| now.duration_since(start).as_secs().max(0)),
            agent: phase.executor.as_ref().map(|executor| plain(&executor.agent_name)),
            error: error_of(phase, &log.facts),
            failed: phase.status == PhaseStatus::Errored,
            has_log: log.end > 1,
            log_size: size(log.end),
            is_running: phase.status == PhaseStatus::Running,
            log,
            console: !is_plan || query.view == "console" || plan.is_none(),
            plan,
        })
    }
}

/// The error of a phase, unless the engine told the same in a diagnostic, which is shown anyway.
fn error_of(phase: &Phase, facts: &Facts) -> Option<String> {
    let error = phase.error.as_ref()?;
    if let Some(late) = &phase.late_outcome {
        return Some(plain(&format!("{error}. Later {late}")));
    }
    let mut errors = facts.diagnostics.iter().filter(|found| found.is_error() && !found.summary.is_empty());
    (!errors.any(|found| error.contains(&found.summary))).then(|| plain(error))
}

/// The plan as a tree; `None` where there is none, or none that can be shown so.
async fn plan_view(web: &Web, view: &RunView) -> Result<Option<Arc<PlanView>>, Error> {
    let key = (view.run.id, view.run.plan.epoch);
    if let Some(known) = web.plans.get(&key) {
        return Ok(Some(known));
    }
    let Some(json) = web.control_plane.redacted_plan(view, MAX_PLAN_BYTES).await? else { return Ok(None) };
    let parsed = tokio::task::spawn_blocking(move || PlanView::of(&json)).await;
    match parsed {
        Ok(Ok(plan)) => Ok(Some(web.plans.put(key, plan))),
        Ok(Err(error)) => {
            tracing::warn!(event = "plan_unreadable", run = %view.run.id, %error, "a plan cannot be shown as a tree");
            Ok(None)
        }
        Err(_) => Ok(None),
    }
}

#[derive(Default, Deserialize)]
pub(crate) struct ViewQuery {
    #[serde(default)]
    view: String,
    /// The anchor of a line that may be far from the log's end.
    #[serde(default)]
    line: String,
}

/// `GET …/runs/{run}`
pub(crate) async fn show(
    State(web): State<Web>,
    visitor: Visitor,
    Path(path): Path<RunPath>,
    Query(query): Query<ViewQuery>,
) -> Result<Response, PageError> {
    let view = find(&web, &visitor, &path).await?;
    let canonical = address_of(&view);
    if canonical != path.address() {
        return Ok(Redirect::to(&canonical).into_response());
    }
    render(&web, &visitor, &view, StatusCode::OK, &query, CommentBox::default(), None).await
}

/// `GET /app/{organization}/{workspace}/runs/{run}`: what terraform and tofu print.
pub(crate) async fn redirect(Path(path): Path<RunPath>) -> Redirect {
    Redirect::to(&path.address())
}

/// Outputs of the state that an apply wrote, for those who may read them.
async fn outputs(web: &Web, visitor: &Visitor, view: &RunView) -> Result<Option<OutputRows>, Error> {
    let is_applied = view.run.status == RunStatus::Applied;
    let may_read = visitor.caller.may(Action::ReadOutputs, view.resource()).allowed;
    match view.written_state().filter(|_| is_applied && may_read) {
        Some(version) => {
            let outputs = web.control_plane.outputs_without_secrets(&visitor.caller, version.id).await?;
            Ok(Some(OutputRows::of(outputs)))
        }
        None => Ok(None),
    }
}

/// The page, perhaps with what was wrong about a form of it.
pub(crate) async fn render(
    web: &Web,
    visitor: &Visitor,
    view: &RunView,
    status: StatusCode,
    query: &ViewQuery,
    comment_box: CommentBox,
    confirm_error: Option<String>,
) -> Result<Response, PageError> {
    let run = &view.run;
    let now = web.control_plane.now();
    let organization = view.org.entry().name.as_str();
    let plan = Section::of(web, view, PhaseKind::Plan, query).await?;
    let mut apply = match run.apply.status {
        PhaseStatus::Pending | PhaseStatus::Unreachable if run.apply.waits.is_empty() => None,
        _ => Some(Section::of(web, view, PhaseKind::Apply, query).await?),
    };
    let has_stopped = matches!(run.apply.status, PhaseStatus::Errored | PhaseStatus::Canceled);
    if let (Some(section), Some(tree), true) = (&mut apply, &plan.plan, has_stopped) {
        section.log.facts.note_not_started(tree.steps());
    }
    let neighbours = web.control_plane.run_neighbours(view).await?;
    let beside = |id: Option<RunId>| id.map(|id| run_address(organization, view.workspace.name.as_str(), id));
    let reasons = web.control_plane.wait_reasons(view);
    let current = view.current_serial();
    let followed = apply.as_ref().unwrap_or(&plan);
    let is_open = !run.status.is_final() || run.running_stage().is_some();
    let live = is_open.then(|| Live {
        from: format!("{}:{}", followed.kind, followed.log.goes_on_at()),
        seen: crate::run::events::seen(web, view),
    });
    let refresh = is_open.then_some(if run.status.is_executing() { 5 } else { 10 });
    let layout = Layout::for_visitor(web, visitor)
        .in_workspace(organization, &view.workspace, WorkspaceSection::Runs)
        .with_status(Badge::of_run(run.status))
        .refreshed(refresh);
    let page = RunPage {
        layout,
        now,
        address: address_of(view),
        head: Head::of(visitor, view, now),
        stages: stages(run, now),
        // The buttons say already that it awaits approval.
        waits: reasons.iter().filter(|why| **why != WaitReason::Approval).map(|why| Wait::of(view, why)).collect(),
        is_stale: run.is_stale(current),
        contract: ContractNotice::of(visitor, view),
        policies: PolicySection::of(view),
        task_stages: task_stages(web, view).await?,
        folds_plan: apply.is_some() && query.view.is_empty() && query.line.is_empty(),
        plan,
        plan_files: PlanFile::all_for(visitor, view),
        apply,
        written: Written::of(visitor, view),
        outputs: outputs(web, visitor, view).await?,
        overview: workspace_address(organization, view.workspace.name.as_str()),
        reveal: may_reveal(visitor, &view.workspace_view()),
        earlier: beside(neighbours.earlier),
        later: beside(neighbours.later),
        retry: Retry::of(web, visitor, view),
        decisions: Decisions::of(web, visitor, view, confirm_error),
        comment_box: comment_box.for_visitor(visitor, view),
        history: history(view),
        live,
    };
    Ok(page::render(status, &page))
}
