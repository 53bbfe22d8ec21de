//! Which runs of a list are wanted, in the words of Terraform Cloud.

use jiff::civil::Date;
use jiff::tz::TimeZone;
use taco_domain::run::Run;
use taco_domain::run_status::RunStatus;
use taco_domain::wait_reason::pool_for;
use taco_domain::workspace::Workspace;
use taco_domain::{Author, OrganizationState, Site};

/// Everything that is not empty has to fit. A word that nobody knows fits nothing.
#[derive(Clone, Default, Debug)]
pub struct RunFilter {
    pub statuses: Vec<String>,
    /// `final`, `non_final`, `discardable`.
    pub status_groups: Vec<String>,
    /// For instance `tfe-api`.
    pub sources: Vec<String>,
    /// For instance `plan_only`.
    pub operations: Vec<String>,
    pub workspaces: Vec<String>,
    pub agent_pools: Vec<String>,
    /// A year, or `year` for the one before today.
    pub timeframe: Option<String>,
    /// A part of the id or of the message.
    pub text: Option<String>,
    /// A part of the name of whoever made it.
    pub user: Option<String>,
    /// Of a repository; no run here comes from one yet.
    pub commit: Option<String>,
}

impl RunFilter {
    pub(crate) fn takes(&self, state: &OrganizationState, site: &Site, workspace: &Workspace, run: &Run) -> bool {
        let listed = |list: &[String], word: &str| list.is_empty() || list.iter().any(|one| one == word);
        let any = |list: &[String], fits: &dyn Fn(&str) -> bool| list.is_empty() || list.iter().any(|one| fits(one));
        self.commit.is_none()
            && listed(&self.statuses, &run.status_on_the_wire())
            && listed(&self.sources, &run.source.to_string())
            && listed(&self.workspaces, workspace.name.as_str())
            && any(&self.status_groups, &|group| is_in_group(run.status, group))
            && any(&self.operations, &|operation| is_operation(run, operation))
            && any(&self.agent_pools, &|name| uses_pool(state, workspace, name))
            && self.timeframe.as_ref().is_none_or(|frame| is_within(run, frame))
            && self.text.as_ref().is_none_or(|text| contains(run, text))
            && self.user.as_ref().is_none_or(|name| is_made_by(site, run, name))
    }
}

fn is_in_group(status: RunStatus, group: &str) -> bool {
    match group {
        "final" => status.is_final(),
        "non_final" => !status.is_final(),
        "discardable" => status.is_discardable(),
        _ => false,
    }
}

fn is_operation(run: &Run, operation: &str) -> bool {
    let options = &run.options;
    match operation {
        "plan_only" => options.plan_only,
        "save_plan" => options.save_plan,
        "refresh_only" => options.refresh_only,
        "destroy" => options.is_destroy,
        "empty_apply" => options.allow_empty_apply,
        "plan_and_apply" => !options.plan_only && !options.save_plan && !options.refresh_only && !options.is_destroy,
        _ => false,
    }
}

fn uses_pool(state: &OrganizationState, workspace: &Workspace, name: &str) -> bool {
    let pool = pool_for(state, workspace).and_then(|pool| state.agent_pools.get(&pool));
    pool.is_some_and(|pool| pool.name.as_str() == name)
}

fn is_within(run: &Run, frame: &str) -> bool {
    let made: Date = TimeZone::UTC.to_datetime(run.created_at).date();
    frame.parse::<i16>().map_or(true, |year| made.year() == year)
}

fn contains(run: &Run, text: &str) -> bool {
    let text = text.to_lowercase();
    run.id.to_string().to_lowercase().contains(&text) || run.options.message.to_lowercase().contains(&text)
}

fn is_made_by(site: &Site, run: &Run, name: &str) -> bool {
    let Author::User(user) = run.created_by else { return false };
    let user = site.users.get(&user);
    user.is_some_and(|user| user.username.as_str().to_lowercase().contains(&name.to_lowercase()))
}
