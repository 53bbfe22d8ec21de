//! Forms of a workspace's settings: what it is called, and how its runs happen.

use axum::extract::{Path, State};
use axum::response::Response;
use serde::Deserialize;
use taco_control_plane::Error;
use taco_domain::execution::SettingOverwrites;
use taco_domain::workspace::{Workspace, WorkspacePatch};

use crate::error::PageError;
use crate::flash::Flash;
use crate::form::{Complaint, Ticked, VisitorForm, typed};
use crate::workspace_settings::{Place, Section, SettingsPage};
use crate::{Web, contract_choice, tag_lines};

/// Form for the name, description, project and tags of a workspace.
#[derive(Clone, Default, Deserialize)]
#[serde(default)]
pub(crate) struct GeneralForm {
    pub(crate) name: String,
    pub(crate) description: String,
    pub(crate) project: String,
    /// One per line: `key` or `key=value`.
    pub(crate) tags: String,
    #[serde(skip)]
    pub(crate) complaint: Complaint,
}

impl GeneralForm {
    pub(crate) fn of(workspace: &Workspace) -> Self {
        Self {
            name: workspace.name.to_string(),
            description: workspace.description.clone(),
            project: workspace.project.to_string(),
            tags: tag_lines::lines(&workspace.tags),
            complaint: Complaint::default(),
        }
    }

    fn patch(&self) -> Result<WorkspacePatch, Complaint> {
        let project = match self.project.as_str() {
            // Visitors who may not move the workspace send none.
            "" => None,
            id => Some(id.parse().map_err(|_| Complaint::about_field("project", "There is no such project"))?),
        };
        let tags = tag_lines::bindings(&self.tags).map_err(|detail| Complaint::about_field("tags", detail))?;
        Ok(WorkspacePatch {
            name: Some(self.name.trim().to_owned()),
            description: Some(Some(typed(self.description.trim()))),
            project,
            tag_bindings: Some(tags),
            ..WorkspacePatch::default()
        })
    }
}

/// Execution settings of runs.
#[derive(Clone, Default, Deserialize)]
#[serde(default)]
pub(crate) struct ExecutionForm {
    /// Empty where the project's setting counts.
    pub(crate) mode: String,
    pub(crate) agent_pool: String,
    pub(crate) engine: String,
    pub(crate) version: String,
    pub(crate) directory: String,
    pub(crate) auto_apply: Ticked,
    pub(crate) auto_apply_run_trigger: Ticked,
    pub(crate) allow_destroy_plan: Ticked,
    pub(crate) structured_run_output: Ticked,
    /// Empty where the project's policy counts; absent where the form does not have it.
    pub(crate) output_contract: Option<String>,
    #[serde(skip)]
    pub(crate) complaint: Complaint,
}

impl ExecutionForm {
    pub(crate) fn of(workspace: &Workspace) -> Self {
        let own = workspace.execution;
        Self {
            mode: own.map(|own| own.mode.to_string()).unwrap_or_default(),
            agent_pool: own.and_then(|own| own.agent_pool).map(|pool| pool.to_string()).unwrap_or_default(),
            engine: workspace.engine.to_string(),
            version: workspace.terraform_version.clone(),
            directory: workspace.working_directory.clone(),
            auto_apply: Ticked(workspace.auto_apply),
            auto_apply_run_trigger: Ticked(workspace.auto_apply_run_trigger),
            allow_destroy_plan: Ticked(workspace.allow_destroy_plan),
            structured_run_output: Ticked(workspace.structured_run_output_enabled),
            output_contract: Some(workspace.output_contract.map(|policy| policy.to_string()).unwrap_or_default()),
            complaint: Complaint::default(),
        }
    }

    fn patch(&self) -> Result<WorkspacePatch, Complaint> {
        let unknown = || Complaint::about_field("agent-pool-id", "There is no such agent pool");
        let inherits = self.mode.is_empty();
        let pool = match (self.mode.as_str(), self.agent_pool.as_str()) {
            ("agent", id) if !id.is_empty() => Some(id.parse().map_err(|_| unknown())?),
            _ => None,
        };
        Ok(WorkspacePatch {
            execution_mode: (!inherits).then(|| self.mode.clone()),
            agent_pool_id: (!inherits).then_some(pool),
            setting_overwrites: inherits
                .then_some(SettingOverwrites { execution_mode: Some(false), agent_pool: Some(false) }),
            engine: Some(self.engine.clone()),
            terraform_version: Some(self.version.trim().to_owned()),
            working_directory: Some(Some(self.directory.trim().to_owned())),
            auto_apply: Some(self.auto_apply.0),
            auto_apply_run_trigger: Some(self.auto_apply_run_trigger.0),
            allow_destroy_plan: Some(self.allow_destroy_plan.0),
            structured_run_output_enabled: Some(self.structured_run_output.0),
            output_contract: contract_choice::asked(self.output_contract.as_ref()),
            ..WorkspacePatch::default()
        })
    }
}

/// Changes the workspace; `Err` has what to say about the form.
async fn save(
    web: &Web,
    visitor: &crate::visitor::Visitor,
    place: &Place,
    patch: Result<WorkspacePatch, Complaint>,
    fields: &[&str],
) -> Result<Result<Workspace, Complaint>, PageError> {
    let patch = match patch {
        Ok(patch) => patch,
        Err(complaint) => return Ok(Err(complaint)),
    };
    match web.control_plane.update_workspace(&visitor.caller, &place.workspace(), patch).await {
        Ok(view) => Ok(Ok(view.workspace)),
        Err(error @ Error::Invalid { .. }) => Ok(Err(Complaint::of(error, fields)?)),
        Err(error) => Err(error.into()),
    }
}

/// `POST …/settings/general`. The workspace may have another name afterwards.
pub(crate) async fn save_general(
    State(web): State<Web>,
    Path(place): Path<Place>,
    VisitorForm(visitor, form): VisitorForm<GeneralForm>,
) -> Result<Response, PageError> {
    match save(&web, &visitor, &place, form.patch(), &["name", "description", "project"]).await? {
        Ok(workspace) => {
            let flash = Flash::saved("Workspace", workspace.name.as_str());
            Ok(Place { workspace: workspace.name.to_string(), ..place }.done(Section::General, flash))
        }
        Err(complaint) => {
            let page = SettingsPage::of(&web, &visitor, &place, Section::General).await?;
            Ok(page.again(|page| page.general = GeneralForm { complaint, ..form }))
        }
    }
}

/// `POST …/settings/execution`
pub(crate) async fn save_execution(
    State(web): State<Web>,
    Path(place): Path<Place>,
    VisitorForm(visitor, form): VisitorForm<ExecutionForm>,
) -> Result<Response, PageError> {
    let fields = [
        "execution-mode",
        "agent-pool-id",
        "taco-engine",
        "terraform-version",
        "working-directory",
        "taco-output-contract",
    ];
    match save(&web, &visitor, &place, form.patch(), &fields).await? {
        Ok(_) => Ok(place.done(Section::Execution, Flash::says("Execution settings saved."))),
        Err(complaint) => {
            let page = SettingsPage::of(&web, &visitor, &place, Section::Execution).await?;
            Ok(page.again(|page| page.execution = ExecutionForm { complaint, ..form }))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_workspace_that_inherits_says_nothing_of_a_mode() {
        let form = ExecutionForm { agent_pool: "apool-x".to_owned(), ..ExecutionForm::default() };
        let patch = form.patch().expect("legal");
        assert_eq!((patch.execution_mode, patch.agent_pool_id), (None, None));
        assert_eq!(patch.setting_overwrites.and_then(|own| own.execution_mode), Some(false));
        let form = ExecutionForm { mode: "agent".to_owned(), ..form };
        assert_eq!(form.patch().expect_err("no such pool").about("agent-pool-id"), Some("There is no such agent pool"));
    }
}
