//! The request that asks a run task: Terraform Cloud's, key by key, because tasks were written for that.

use serde::Serialize;

use crate::payload::signature;

/// Name of the header with the signature.
pub const TASK_SIGNATURE_HEADER: &str = "x-tfc-task-signature";

/// The token in the request that only tries whether there is anybody: it opens nothing.
pub const TEST_TOKEN: &str = "test-token";

/// What a task is told. Keys are in this order on the wire.
#[derive(Clone, Default, PartialEq, Eq, Serialize, Debug)]
pub struct TaskRequest {
    pub payload_version: u8,
    pub stage: String,
    pub access_token: String,
    pub capabilities: Capabilities,
    pub configuration_version_download_url: Option<String>,
    pub configuration_version_id: Option<String>,
    pub is_speculative: bool,
    pub organization_name: String,
    /// Not before there is a plan.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub plan_json_api_url: Option<String>,
    pub project_id: String,
    pub project_name: String,
    pub project_app_url: String,
    pub run_app_url: String,
    pub run_created_at: String,
    pub run_created_by: String,
    pub run_id: String,
    pub run_message: String,
    pub task_result_callback_url: String,
    pub task_result_enforcement_level: String,
    pub task_result_id: String,
    pub vcs_branch: Option<String>,
    pub vcs_commit_url: Option<String>,
    pub vcs_pull_request_url: Option<String>,
    pub vcs_repo_url: Option<String>,
    pub workspace_app_url: String,
    pub workspace_id: String,
    pub workspace_name: String,
    pub workspace_working_directory: Option<String>,
}

/// What a task may answer with.
#[derive(Clone, Copy, PartialEq, Eq, Serialize, Debug)]
pub struct Capabilities {
    pub outcomes: bool,
}

impl Default for Capabilities {
    fn default() -> Self {
        Self { outcomes: true }
    }
}

impl TaskRequest {
    /// The request that only tries whether there is anybody, as Terraform Cloud sends it when a task is made.
    pub fn test(organization: &str) -> Self {
        Self {
            payload_version: 1,
            stage: "test".to_owned(),
            access_token: TEST_TOKEN.to_owned(),
            organization_name: organization.to_owned(),
            task_result_enforcement_level: "test".to_owned(),
            ..Self::default()
        }
    }

    pub fn into_body(self) -> Vec<u8> {
        serde_json::to_vec(&self).expect("texts and numbers are plain data")
    }
}

/// The signature of a body; empty without a key, as Terraform Cloud sends it.
pub fn task_signature(key: Option<&str>, body: &[u8]) -> String {
    key.map(|key| signature(key, body)).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_are_those_of_terraform_cloud_in_its_order() {
        let text = String::from_utf8(TaskRequest::test("acme").into_body()).expect("text");
        let expected =
            r#"{"payload_version":1,"stage":"test","access_token":"test-token","capabilities":{"outcomes":true},"#;
        assert!(text.starts_with(expected), "{text}");
        assert!(!text.contains("plan_json_api_url"), "{text}");
        let planned = TaskRequest { plan_json_api_url: Some("https://a".to_owned()), ..TaskRequest::test("acme") };
        let text = String::from_utf8(planned.into_body()).expect("text");
        assert!(text.contains(r#""organization_name":"acme","plan_json_api_url":"https://a","project_id""#), "{text}");
    }

    #[test]
    fn a_task_without_a_key_gets_an_empty_signature() {
        assert_eq!(task_signature(None, b"x"), "");
        assert_eq!(task_signature(Some("key"), b"x"), signature("key", b"x"));
    }
}
