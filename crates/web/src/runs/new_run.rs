//! `/app/{organization}/workspaces/{workspace}/runs/new`: starts a run of the latest configuration.

use std::collections::BTreeSet;

use askama::Template;
use axum::extract::{Path, State};
use axum::http::StatusCode;
use axum::response::Response;
use serde::Deserialize;
use taco_control_plane::{Error, WorkspaceRef, WorkspaceView};
use taco_domain::permission::Action;
use taco_domain::run::RunSource;
use taco_domain::run_request::{RunRequest, SentRunVariable};
use taco_domain::wait_reason::WaitReason;

use crate::error::PageError;
use crate::flash::Flash;
use crate::form::{Complaint, VisitorForm, typed};
use crate::navigation::{WorkspaceSection, workspace_address};
use crate::page::Layout;
use crate::run::page::address_of;
use crate::run::waits::Wait;
use crate::runs::WorkspacePath;
use crate::text::{Moment, plain};
use crate::visitor::Visitor;
use crate::{Web, page};

/// Content of the form, shown again after an error.
#[derive(Clone, Default, Deserialize)]
#[serde(default)]
pub(crate) struct NewRunForm {
    kind: String,
    message: String,
    /// One address on each line.
    targets: String,
    replace: String,
    /// An address chosen from the list, and not added to the others yet.
    one_target: String,
    one_replacement: String,
    /// `name = expression` on each line.
    variables: String,
    /// Of the engine, for a plan-only run.
    version: String,
    no_refresh: String,
    auto_apply: String,
}

/// The kinds of runs, as the form offers them.
const KINDS: [(&str, &str, &str); 6] = [
    ("plan-and-apply", "Plan and apply", "Plans, and applies once someone has confirmed it."),
    (
        "plan-only",
        "Plan only",
        "Shows what would change. It doesn't wait for other runs, and others don't wait for it.",
    ),
    ("save-plan", "Save plan", "Apply it later, as long as the state hasn't changed."),
    ("refresh-only", "Refresh only", "Updates the state to match real infrastructure; changes nothing else."),
    ("destroy", "Destroy", "Plans to destroy everything that this workspace manages."),
    ("empty-apply", "Empty apply", "Applies even if nothing changes, for instance to upgrade the state's format."),
];

/// Fields next to which the form can show an error.
const FIELDS: &[&str] = &["message", "target-addrs", "replace-addrs", "is-destroy", "variables", "terraform-version"];

/// So many addresses are offered to choose from.
const MAX_OFFERED_ADDRESSES: usize = 1000;

/// Addresses that a run could be limited to.
#[derive(Default)]
struct Addresses {
    /// Modules, and what is in them.
    targets: Vec<String>,
    resources: Vec<String>,
}

impl Addresses {
    /// Those of a workspace's state. Where it cannot be read, addresses can be typed all the same.
    async fn of(web: &Web, visitor: &Visitor, view: &WorkspaceView) -> Self {
        let workspace = WorkspaceRef::Id(view.workspace.id);
        match web.control_plane.resource_addresses(&visitor.caller, &workspace, MAX_OFFERED_ADDRESSES).await {
            Ok(resources) => Self::with_modules(resources),
            Err(Error::Denied(_)) => Self::default(),
            Err(error) => {
                tracing::warn!(
                    event = "state_addresses_unreadable", workspace = %view.workspace.id, %error,
                    "a state's addresses cannot be offered"
                );
                Self::default()
            }
        }
    }

    fn with_modules(resources: Vec<String>) -> Self {
        let resources: Vec<String> = resources.iter().map(|address| plain(address)).collect();
        let modules: BTreeSet<String> = resources.iter().filter_map(|address| module_of(address)).collect();
        Self { targets: modules.into_iter().chain(resources.iter().cloned()).collect(), resources }
    }
}

/// `module.network["a"]` of `module.network["a"].aws_subnet.public`; the outermost one.
fn module_of(address: &str) -> Option<String> {
    let name = address.strip_prefix("module.")?;
    let mut quoted = false;
    let end = name.find(|character| {
        quoted ^= character == '"';
        character == '.' && !quoted
    })?;
    Some(format!("module.{}", &name[..end]))
}

impl NewRunForm {
    /// With what was chosen among what was typed.
    fn gathered(mut self) -> Self {
        for (one, all) in [(&mut self.one_target, &mut self.targets), (&mut self.one_replacement, &mut self.replace)] {
            let one = std::mem::take(one);
            *all = typed(&format!("{}\n{}", all.trim_end(), one.trim())).trim().to_owned();
        }
        self.message = typed(self.message.trim());
        self
    }

    fn request(&self) -> Result<RunRequest, Error> {
        let lines = |text: &str| {
            let lines: Vec<String> =
                text.lines().map(|line| line.trim().to_owned()).filter(|line| !line.is_empty()).collect();
            (!lines.is_empty()).then_some(lines)
        };
        let is = |kind: &str| (self.kind == kind).then_some(true);
        let version = self.version.trim();
        Ok(RunRequest {
            message: (!self.message.is_empty()).then(|| self.message.clone()),
            plan_only: is("plan-only"),
            save_plan: is("save-plan"),
            refresh: (!self.no_refresh.is_empty()).then_some(false),
            variables: self.sent_variables()?,
            terraform_version: (!version.is_empty()).then(|| version.to_owned()),
            refresh_only: is("refresh-only"),
            is_destroy: is("destroy"),
            allow_empty_apply: is("empty-apply"),
            auto_apply: (!self.auto_apply.is_empty()).then_some(true),
            target_addrs: lines(&self.targets),
            replace_addrs: lines(&self.replace),
            ..RunRequest::default()
        })
    }

    fn sent_variables(&self) -> Result<Option<Vec<SentRunVariable>>, Error> {
        let lines = self.variables.lines().map(str::trim).filter(|line| !line.is_empty());
        let sent = lines.map(|line| match line.split_once('=') {
            Some((key, value)) => Ok(SentRunVariable { key: key.trim().to_owned(), value: value.trim().to_owned() }),
            None => Err(Error::invalid("variables", "Write one variable on each line, such as region = \"north\"")),
        });
        let sent: Vec<SentRunVariable> = sent.collect::<Result<_, _>>()?;
        Ok((!sent.is_empty()).then_some(sent))
    }
}

struct Kind {
    value: &'static str,
    name: &'static str,
    hint: &'static str,
    chosen: bool,
}

struct Configuration {
    id: String,
    made: Moment,
    by: String,
}

#[derive(Template)]
#[template(path = "new_run.html")]
struct NewRunPage {
    layout: Layout,
    now: jiff::Timestamp,
    address: String,
    kinds: Vec<Kind>,
    configuration: Option<Configuration>,
    /// Reason why no run can be started.
    refusal: Option<String>,
    /// What a run that changes the state would wait for.
    waits: Vec<Wait>,
    /// Reason why it cannot apply automatically.
    no_auto_apply: Option<String>,
    form: NewRunForm,
    addresses: Addresses,
    complaint: Complaint,
}

async fn render(
    web: &Web,
    visitor: &Visitor,
    view: &WorkspaceView,
    form: NewRunForm,
    complaint: Complaint,
    status: StatusCode,
) -> Result<Response, PageError> {
    let (organization, workspace) = (view.org.entry().name.as_str(), view.workspace.name.as_str());
    let chosen = if form.kind.is_empty() { KINDS[0].0 } else { form.kind.as_str() };
    let kind = |(value, name, hint)| Kind { value, name, hint, chosen: value == chosen };
    let configuration = view.usable_configuration().map(|version| Configuration {
        id: version.id.to_string(),
        made: Moment(version.created_at),
        by: view.org.name_of(&version.created_by),
    });
    let apply = visitor.caller.may(Action::ApplyRun, view.resource());
    let wait = |reason: &WaitReason| Wait::within(organization, &view.workspace, reason);
    let page = NewRunPage {
        layout: Layout::for_visitor(web, visitor).in_workspace(organization, &view.workspace, WorkspaceSection::Runs),
        now: web.control_plane.now(),
        address: format!("{}/runs", workspace_address(organization, workspace)),
        kinds: KINDS.map(kind).into(),
        configuration,
        refusal: web.control_plane.new_run_refusal(&visitor.caller, view),
        waits: web.control_plane.new_run_waits(view).iter().map(wait).collect(),
        no_auto_apply: (!apply.allowed).then(|| apply.reason.into_owned()),
        form,
        addresses: Addresses::of(web, visitor, view).await,
        complaint,
    };
    Ok(page::render(status, &page))
}

/// `GET …/runs/new`
pub(crate) async fn show(
    State(web): State<Web>,
    visitor: Visitor,
    Path(path): Path<WorkspacePath>,
) -> Result<Response, PageError> {
    let view = web.control_plane.workspace(&visitor.caller, &path.reference()).await?;
    render(&web, &visitor, &view, NewRunForm::default(), Complaint::default(), StatusCode::OK).await
}

/// `POST …/runs/new`
pub(crate) async fn start(
    State(web): State<Web>,
    Path(path): Path<WorkspacePath>,
    VisitorForm(visitor, form): VisitorForm<NewRunForm>,
) -> Result<Response, PageError> {
    let view = web.control_plane.workspace(&visitor.caller, &path.reference()).await?;
    if !KINDS.iter().any(|(value, ..)| *value == form.kind) {
        return Err(PageError::bad_request("Choose one of the kinds of runs that the form offers."));
    }
    let form = form.gathered();
    let made = match form.request() {
        Ok(request) => {
            let request = RunRequest { workspace: Some(view.workspace.id), ..request };
            web.control_plane.create_run(&visitor.caller, request, RunSource::Page).await
        }
        Err(error) => Err(error),
    };
    match made {
        Ok(made) => Ok(Flash::says("Run started.").redirect_to(&address_of(&made))),
        Err(error) => {
            let complaint = Complaint::of(error, FIELDS)?;
            render(&web, &visitor, &view, form, complaint, StatusCode::UNPROCESSABLE_ENTITY).await
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn modules_are_offered_before_what_is_in_them() {
        let resources = ["a.b", "module.net.a.b[0]", "module.net.a.b[1]", r#"module.app["x.y"].module.in.a.b"#];
        let addresses = Addresses::with_modules(resources.map(str::to_owned).into());
        assert_eq!(addresses.resources, resources);
        assert_eq!(addresses.targets[..2], [r#"module.app["x.y"]"#, "module.net"]);
        assert_eq!(addresses.targets[2..], resources);
    }

    #[test]
    fn what_was_chosen_joins_what_was_typed() {
        let form = NewRunForm {
            targets: "a.b\r\n\r\n".to_owned(),
            one_target: " a.c ".to_owned(),
            message: " One\r\nTwo ".to_owned(),
            ..NewRunForm::default()
        };
        let request = form.gathered().request().expect("it is fine");
        assert_eq!(request.target_addrs, Some(vec!["a.b".to_owned(), "a.c".to_owned()]));
        assert_eq!((request.replace_addrs, request.message.as_deref()), (None, Some("One\nTwo")));
    }

    #[test]
    fn variables_are_read_line_by_line() {
        let of = |text: &str| NewRunForm { variables: text.to_owned(), ..NewRunForm::default() }.sent_variables();
        assert_eq!(of(" \r\n").expect("nothing is fine"), None);
        let sent = of("a = \"x=y\"\r\n\r\nb=[1, 2]").expect("two").expect("two");
        let sent: Vec<_> = sent.iter().map(|one| (one.key.as_str(), one.value.as_str())).collect();
        assert_eq!(sent, [("a", "\"x=y\""), ("b", "[1, 2]")]);
        assert!(of("a").is_err());
    }
}
