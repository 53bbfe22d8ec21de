//! Requests that make or change run tasks, of organizations and of workspaces.

use jiff::Timestamp;
use serde::Deserialize;

use crate::attribute::{InvalidAttribute, is_plain_text, nullable, shown};
use crate::id::WorkspaceId;
use crate::run_tasks::run_task::{GlobalConfiguration, RunTask, RunTaskId, TaskEnforcement, UnknownEnforcement};
use crate::run_tasks::task_stage::{StageKind, UnknownStage};
use crate::run_tasks::workspace_run_task::{WorkspaceRunTask, WorkspaceRunTaskId};

const LONGEST_DESCRIPTION: usize = 1000;
const LONGEST_KEY: usize = 1024;

/// The attributes of a request that makes or changes a run task, spelled as on the wire.
#[derive(Clone, Default, Deserialize)]
#[serde(rename_all = "kebab-case", default)]
pub struct RunTaskPatch {
    pub name: Option<String>,
    pub url: Option<String>,
    #[serde(deserialize_with = "nullable")]
    pub description: Option<Option<String>>,
    pub category: Option<String>,
    #[serde(deserialize_with = "nullable")]
    pub hmac_key: Option<Option<String>>,
    pub enabled: Option<bool>,
    #[serde(deserialize_with = "nullable")]
    pub global_configuration: Option<Option<GlobalPatch>>,
}

/// The attributes of a task's use in all workspaces.
#[derive(Clone, Default, Deserialize)]
#[serde(rename_all = "kebab-case", default)]
pub struct GlobalPatch {
    pub enabled: Option<bool>,
    pub stages: Option<Vec<String>>,
    pub enforcement_level: Option<String>,
}

impl RunTaskPatch {
    /// The key in the request; an empty text is none, as the provider `tfe` sends it.
    pub fn new_key(&self) -> Option<Option<&str>> {
        self.hmac_key.as_ref().map(|key| key.as_deref().filter(|key| !key.is_empty()))
    }

    /// A new task. `sealed_key` is the key as it is stored.
    pub fn create(
        &self,
        id: RunTaskId,
        sealed_key: Option<Option<String>>,
        now: Timestamp,
    ) -> Result<RunTask, InvalidAttribute> {
        if self.url.as_deref().unwrap_or_default().is_empty() {
            return Err(InvalidAttribute::new("url", "Url can't be blank"));
        }
        let blank = RunTask {
            id,
            name: self.name.as_deref().unwrap_or_default().parse()?,
            url: String::new(),
            description: String::new(),
            sealed_hmac_key: None,
            enabled: true,
            global: None,
            created_at: now,
            updated_at: now,
        };
        if self.category.as_deref().unwrap_or_default().is_empty() {
            return Err(InvalidAttribute::new("category", "Category can't be blank: it is always \"task\""));
        }
        self.apply(&blank, sealed_key, now)
    }

    /// The task after the request. Whether its address may be asked and answers, the caller finds out.
    pub fn apply(
        &self,
        before: &RunTask,
        sealed_key: Option<Option<String>>,
        now: Timestamp,
    ) -> Result<RunTask, InvalidAttribute> {
        let mut changed = before.clone();
        if let Some(category) = self.category.as_deref().filter(|category| !category.is_empty() && *category != "task")
        {
            let detail = format!("Category must be \"task\"; it is {}", shown(category));
            return Err(InvalidAttribute::new("category", detail));
        }
        if let Some(name) = &self.name {
            changed.name = name.parse()?;
        }
        if let Some(url) = self.url.as_deref() {
            if url.trim().is_empty() {
                return Err(InvalidAttribute::new("url", "Url can't be blank"));
            }
            changed.url = url.trim().to_owned();
        }
        if let Some(description) = &self.description {
            changed.description = checked_description(description.as_deref().unwrap_or_default())?;
        }
        if self.new_key().flatten().is_some_and(|key| key.len() > LONGEST_KEY) {
            let detail = format!("Hmac key is too long (maximum is {LONGEST_KEY} bytes)");
            return Err(InvalidAttribute::new("hmac-key", detail));
        }
        if let Some(key) = sealed_key {
            changed.sealed_hmac_key = key;
        }
        changed.enabled = self.enabled.unwrap_or(before.enabled);
        match &self.global_configuration {
            None => {}
            Some(None) => changed.global = None,
            Some(Some(patch)) => changed.global = Some(patch.apply(before.global.as_ref())?),
        }
        if changed != *before {
            changed.updated_at = now;
        }
        Ok(changed)
    }
}

impl GlobalPatch {
    fn apply(&self, before: Option<&GlobalConfiguration>) -> Result<GlobalConfiguration, InvalidAttribute> {
        const ATTRIBUTE: &str = "global-configuration";
        let mut changed = before.cloned().unwrap_or_default();
        changed.enabled = self.enabled.unwrap_or(changed.enabled);
        if let Some(stages) = &self.stages {
            changed.stages = parsed_stages(ATTRIBUTE, stages)?;
        }
        if let Some(level) = self.enforcement_level.as_deref().filter(|level| !level.is_empty()) {
            changed.enforcement = parsed_level(ATTRIBUTE, level)?;
        }
        Ok(changed)
    }
}

/// The attributes of a request that makes or changes a workspace's task, spelled as on the wire.
#[derive(Clone, Default, Deserialize)]
#[serde(rename_all = "kebab-case", default)]
pub struct WorkspaceRunTaskPatch {
    pub enforcement_level: Option<String>,
    /// The older spelling, for one stage.
    pub stage: Option<String>,
    pub stages: Option<Vec<String>>,
    /// On the wire this is a relationship.
    #[serde(skip)]
    pub task: Option<RunTaskId>,
}

impl WorkspaceRunTaskPatch {
    pub fn create(
        &self,
        id: WorkspaceRunTaskId,
        workspace: WorkspaceId,
        task: RunTaskId,
        now: Timestamp,
    ) -> Result<WorkspaceRunTask, InvalidAttribute> {
        if self.enforcement_level.as_deref().unwrap_or_default().is_empty() {
            let detail = "Enforcement level can't be blank: it is one of advisory, mandatory";
            return Err(InvalidAttribute::new("enforcement-level", detail));
        }
        let (enforcement, stages) = (TaskEnforcement::Advisory, vec![StageKind::PostPlan]);
        self.apply(&WorkspaceRunTask { id, workspace, task, enforcement, stages, created_at: now })
    }

    pub fn apply(&self, before: &WorkspaceRunTask) -> Result<WorkspaceRunTask, InvalidAttribute> {
        let mut changed = before.clone();
        if let Some(level) = self.enforcement_level.as_deref().filter(|level| !level.is_empty()) {
            changed.enforcement = parsed_level("enforcement-level", level)?;
        }
        match (&self.stages, self.stage.as_deref().filter(|stage| !stage.is_empty())) {
            (Some(stages), _) => changed.stages = parsed_stages("stages", stages)?,
            (None, Some(stage)) => changed.stages = parsed_stages("stage", &[stage.to_owned()])?,
            (None, None) => {}
        }
        Ok(changed)
    }
}

fn parsed_level(attribute: &'static str, level: &str) -> Result<TaskEnforcement, InvalidAttribute> {
    level.parse().map_err(|unknown: UnknownEnforcement| {
        InvalidAttribute::new(attribute, format!("Enforcement level {unknown}; it is {}", shown(level)))
    })
}

fn parsed_stages(attribute: &'static str, sent: &[String]) -> Result<Vec<StageKind>, InvalidAttribute> {
    let mut stages = Vec::new();
    for text in sent {
        let stage = text.parse().map_err(|unknown: UnknownStage| {
            InvalidAttribute::new(attribute, format!("Stage {unknown}; it is {}", shown(text)))
        })?;
        if !stages.contains(&stage) {
            stages.push(stage);
        }
    }
    match stages.is_empty() {
        true => Err(InvalidAttribute::new(attribute, "Stages can't be blank: name at least one, such as post_plan")),
        false => Ok(stages),
    }
}

fn checked_description(text: &str) -> Result<String, InvalidAttribute> {
    let invalid = |detail: String| Err(InvalidAttribute::new("description", detail));
    if text.chars().count() > LONGEST_DESCRIPTION {
        return invalid(format!("Description is too long (maximum is {LONGEST_DESCRIPTION} characters)"));
    }
    if !is_plain_text(text) {
        return invalid("Description must not have control characters".to_owned());
    }
    Ok(text.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOW: Timestamp = Timestamp::UNIX_EPOCH;

    fn create(json: &str) -> Result<RunTask, String> {
        let patch: RunTaskPatch = serde_json::from_str(json).expect("JSON");
        let sealed = patch.new_key().map(|key| key.map(str::to_owned));
        patch
            .create(RunTaskId::from_random([1; 16]), sealed, NOW)
            .map_err(|error| format!("{}: {}", error.attribute, error.detail))
    }

    fn changed(before: &RunTask, json: &str) -> RunTask {
        let patch: RunTaskPatch = serde_json::from_str(json).expect("JSON");
        let sealed = patch.new_key().map(|key| key.map(str::to_owned));
        patch.apply(before, sealed, Timestamp::MAX).expect("legal")
    }

    const WHOLE: &str = r#"{"name":"scan","url":"https://a.test","category":"task","hmac-key":"k",
        "global-configuration":{"enabled":true,"stages":["post_plan","pre_plan","post_plan"],"enforcement-level":"mandatory"}}"#;

    #[test]
    fn what_cannot_be_is_refused_with_what_can() {
        for (json, attribute, words) in [
            ("{}", "url", "can't be blank"),
            (r#"{"url":"https://a.test","category":"task"}"#, "name", "can't be blank"),
            (r#"{"url":"https://a.test","name":"a"}"#, "category", "always \"task\""),
            (r#"{"url":"https://a.test","name":"a","category":"policy"}"#, "category", "it is \"policy\""),
            (
                r#"{"url":"https://a.test","name":"a","category":"task","global-configuration":{"stages":[]}}"#,
                "global-configuration",
                "at least one",
            ),
            (
                r#"{"url":"https://a.test","name":"a","category":"task","global-configuration":{"stages":["before"]}}"#,
                "global-configuration",
                "one of pre_plan, post_plan, pre_apply, post_apply; it is \"before\"",
            ),
            (
                r#"{"url":"https://a.test","name":"a","category":"task","description":"a\u0007"}"#,
                "description",
                "control characters",
            ),
        ] {
            let refusal = create(json).expect_err("refused");
            assert!(refusal.starts_with(attribute) && refusal.contains(words), "{json}: {refusal}");
        }
    }

    #[test]
    fn what_a_request_does_not_name_stays() {
        let before = create(WHOLE).expect("legal");
        let global = before.global.clone().expect("one");
        assert_eq!(global.stages, [StageKind::PostPlan, StageKind::PrePlan], "as they were sent, each once");
        assert_eq!(changed(&before, "{}"), before);
        assert_eq!(changed(&before, r#"{"category":"task","name":"scan"}"#), before);
        let advisory = changed(&before, r#"{"global-configuration":{"enforcement-level":"advisory"}}"#);
        let expected = GlobalConfiguration { enforcement: TaskEnforcement::Advisory, ..global };
        assert_eq!((advisory.global, advisory.updated_at), (Some(expected), Timestamp::MAX));
        assert_eq!(changed(&before, r#"{"global-configuration":null}"#).global, None);
        assert_eq!(changed(&before, r#"{"hmac-key":""}"#).sealed_hmac_key, None);
        assert_eq!(changed(&before, r#"{"description":null}"#).description, "");
    }

    #[test]
    fn a_workspace_names_stages_in_the_old_way_or_the_new() {
        let create = |json: &str| {
            let patch: WorkspaceRunTaskPatch = serde_json::from_str(json).expect("JSON");
            let (id, workspace) = (WorkspaceRunTaskId::from_random([1; 16]), WorkspaceId::from_random([1; 16]));
            patch.create(id, workspace, RunTaskId::from_random([1; 16]), NOW).map_err(|error| error.detail)
        };
        let stages = |json| create(json).expect("legal").stages;
        assert_eq!(stages(r#"{"enforcement-level":"advisory"}"#), [StageKind::PostPlan]);
        assert_eq!(stages(r#"{"enforcement-level":"advisory","stage":"pre_plan"}"#), [StageKind::PrePlan]);
        let both = r#"{"enforcement-level":"mandatory","stage":"pre_plan","stages":["pre_apply","post_apply"]}"#;
        assert_eq!(stages(both), [StageKind::PreApply, StageKind::PostApply]);
        assert!(create("{}").expect_err("refused").contains("one of advisory, mandatory"));
        assert!(create(r#"{"enforcement-level":"hard"}"#).expect_err("refused").contains("it is \"hard\""));
    }
}
