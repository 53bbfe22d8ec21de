//! What run tasks answer about a run, as `taco run watch` tells it.

use super::Runs;
use crate::failure::Failure;
use crate::output;
use crate::resource::{Document, Resource};
use crate::status;

/// Lines about tasks that were told already.
#[derive(Default)]
pub(super) struct ToldTasks(Vec<String>);

impl ToldTasks {
    /// Tells what is new about the tasks of a run. A run without tasks costs no request.
    pub(super) async fn tell(&mut self, runs: &Runs<'_>, run: &Resource) -> Result<(), Failure> {
        if run.related_ids("task-stages").next().is_none() {
            return Ok(());
        }
        let path = ["runs", run.id(), "task-stages"];
        let include = [("include", "task_results")];
        let found = runs.session.api.get(&format!("run {}", run.id()), &path, &include).await?;
        for line in lines(&found) {
            if !self.0.contains(&line) {
                output::line(&line)?;
                self.0.push(line);
            }
        }
        Ok(())
    }
}

/// One line for each task that has been asked.
fn lines(stages: &Document) -> Vec<String> {
    let mut lines = Vec::new();
    for stage in &stages.data {
        let name = stage.text("stage").replace('_', "-");
        for id in stage.related_ids("task-results") {
            let Some(result) = stages.included.iter().find(|one| one.id() == id) else { continue };
            let state = result.text("status");
            if ["pending", "unreachable"].contains(&state.as_str()) {
                continue;
            }
            let (task, level) = (result.text("task-name"), result.text("workspace-task-enforcement-level"));
            let message = Some(result.text("message")).filter(|message| !message.is_empty());
            let message = message.map(|message| format!(": {}", message.replace(char::is_control, " ")));
            let word = if state == "errored" { "gave no answer".to_owned() } else { status::in_words(&state) };
            lines.push(format!("Task {task} ({name}, {level}) {word}{}", message.unwrap_or_default()));
        }
    }
    lines
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn each_task_that_was_asked_has_a_line() {
        let result = |id: &str, status: &str, message: &str| {
            json!({ "id": id, "type": "task-results", "attributes": { "status": status, "message": message,
                "task-name": "scan", "workspace-task-enforcement-level": "mandatory" } })
        };
        let document = Document::from(json!({
            "data": [{ "id": "ts-1", "attributes": { "stage": "post_plan", "status": "running" }, "relationships": {
                "task-results": { "data": [{ "id": "a" }, { "id": "b" }, { "id": "c" }, { "id": "d" }] } } }],
            "included": [result("a", "pending", ""), result("b", "running", "half\nway"), result("c", "errored", ""),
                result("d", "failed", "2 findings")],
        }));
        assert_eq!(
            lines(&document),
            [
                "Task scan (post-plan, mandatory) running: half way",
                "Task scan (post-plan, mandatory) gave no answer",
                "Task scan (post-plan, mandatory) failed: 2 findings",
            ]
        );
    }
}
