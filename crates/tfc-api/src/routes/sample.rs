//! Sample bodies and queries, for tests that call every route. Placeholders in braces are names that the test knows.

/// Enough for what has a name.
pub(super) const NAMED: &str = r#"{"data":{"attributes":{"name":"a-new-name","email":"new@acme.test","value":"v"}}}"#;
pub(super) const BY_NAME: &str = "filter[organization][name]={organization}&filter[workspace][name]={workspace_name}";
pub(super) const NEW_WORKSPACE: &str = r#"{"data":{"attributes":{"name":"a-new-name"},
    "relationships":{"project":{"data":{"type":"projects","id":"{project}"}}}}}"#;
pub(super) const TEAM_WORKSPACE: &str = r#"{"data":{"attributes":{"access":"read"},"relationships":{
    "team":{"data":{"type":"teams","id":"{team}"}},"workspace":{"data":{"type":"workspaces","id":"{workspace}"}}}}}"#;
pub(super) const TEAM_PROJECT: &str = r#"{"data":{"attributes":{"access":"read"},"relationships":{
    "team":{"data":{"type":"teams","id":"{team}"}},"project":{"data":{"type":"projects","id":"{project}"}}}}}"#;
pub(super) const LOCK_INFO: &str = r#"{"ID":"x"}"#;
pub(super) const TAG_LIST: &str = r#"{"data":[{"type":"tags","id":"{tag}"}]}"#;
pub(super) const TAG_BINDINGS: &str = r#"{"data":[{"type":"tag-bindings","attributes":{"key":"a"}}]}"#;
pub(super) const USER_LIST: &str = r#"{"data":[{"type":"users","id":"{username}"}]}"#;
pub(super) const MEMBERSHIP_LIST: &str = r#"{"data":[{"type":"organization-memberships","id":"{membership}"}]}"#;
pub(super) const WORKSPACE_LIST: &str = r#"{"data":[{"type":"workspaces","id":"{workspace}"}]}"#;
pub(super) const PROJECT_LIST: &str = r#"{"data":[{"type":"projects","id":"{project}"}]}"#;
pub(super) const EMPTY_LIST: &str = r#"{"data":[]}"#;
pub(super) const VARIABLE: &str = r#"{"data":{"attributes":{"key":"new","category":"env"},
    "relationships":{"workspace":{"data":{"type":"workspaces","id":"{workspace}"}}}}}"#;
pub(super) const NEW_RUN: &str =
    r#"{"data":{"relationships":{"workspace":{"data":{"type":"workspaces","id":"{workspace}"}}}}}"#;
pub(super) const RUN_TRIGGER: &str =
    r#"{"data":{"relationships":{"sourceable":{"data":{"type":"workspaces","id":"{source}"}}}}}"#;
pub(super) const COMMENT: &str = r#"{"data":{"attributes":{"body":"hello"}}}"#;
pub(super) const NEW_STATE: &str = r#"{"data":{"attributes":{"serial":9,"md5":"x"}}}"#;
pub(super) const ROLLBACK: &str = r#"{"data":{"relationships":{
    "rollback-state-version":{"data":{"type":"state-versions","id":"{state_version}"}}}}}"#;
