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
pub(super) const MODULE: &str = r#"{"data":{"attributes":{"name":"a-new-name","provider":"aws"}}}"#;
pub(super) const VERSION: &str = r#"{"data":{"attributes":{"version":"9.9.9"}}}"#;
pub(super) const DEPRECATION: &str = r#"{"data":{"attributes":{"deprecation":{"reason":"old"}}}}"#;
pub(super) const PROVIDER: &str = r#"{"data":{"attributes":{"name":"a-new-name","registry-name":"private"}}}"#;
pub(super) const PROVIDER_VERSION: &str =
    r#"{"data":{"attributes":{"version":"9.9.9","key-id":"24EB73B98BC983AC","protocols":["5.0"]}}}"#;
pub(super) const PROVIDER_PLATFORM: &str = r#"{"data":{"attributes":{"os":"plan9","arch":"arm64","filename":"a.zip",
    "shasum":"e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"}}}"#;
pub(super) const GPG_KEY: &str = r#"{"data":{"attributes":{"namespace":"{organization}","ascii-armor":"no key"}}}"#;
pub(super) const MOVED_KEY: &str = r#"{"data":{"attributes":{"namespace":"{namespace}"}}}"#;
pub(super) const RETENTION: &str =
    r#"{"data":{"type":"data-retention-policy-delete-olders","attributes":{"delete-older-than-n-days":30}}}"#;
pub(super) const LOCK_INFO: &str = r#"{"ID":"x"}"#;
pub(super) const TAG_LIST: &str = r#"{"data":[{"type":"tags","id":"{tag}"}]}"#;
pub(super) const TAG_BINDINGS: &str = r#"{"data":[{"type":"tag-bindings","attributes":{"key":"a"}}]}"#;
pub(super) const USER_LIST: &str = r#"{"data":[{"type":"users","id":"{username}"}]}"#;
pub(super) const MEMBERSHIP_LIST: &str = r#"{"data":[{"type":"organization-memberships","id":"{membership}"}]}"#;
pub(super) const WORKSPACE_LIST: &str = r#"{"data":[{"type":"workspaces","id":"{workspace}"}]}"#;
pub(super) const PROJECT_LIST: &str = r#"{"data":[{"type":"projects","id":"{project}"}]}"#;
pub(super) const OAUTH_CLIENT: &str = r#"{"data":{"attributes":{"service-provider":"github","oauth-token-string":"a token",
    "api-url":"https://api.github.com","http-url":"https://github.com"}}}"#;
pub(super) const RESERVED_TAG_KEY: &str = r#"{"data":{"attributes":{"key":"a-new-key","disable-overrides":true}}}"#;
pub(super) const EMPTY_LIST: &str = r#"{"data":[]}"#;
pub(super) const VARIABLE: &str = r#"{"data":{"attributes":{"key":"new","category":"env"},
    "relationships":{"workspace":{"data":{"type":"workspaces","id":"{workspace}"}}}}}"#;
pub(super) const NEW_RUN: &str =
    r#"{"data":{"relationships":{"workspace":{"data":{"type":"workspaces","id":"{workspace}"}}}}}"#;
pub(super) const RUN_TRIGGER: &str =
    r#"{"data":{"relationships":{"sourceable":{"data":{"type":"workspaces","id":"{source}"}}}}}"#;
pub(super) const NOTIFICATION: &str = r#"{"data":{"attributes":{"destination-type":"generic","enabled":false,"name":"a-new-name","url":"https://hooks.acme.test/"}}}"#;
pub(super) const RENAMED: &str = r#"{"data":{"attributes":{"name":"a-new-name"}}}"#;
pub(super) const DEPENDENCY: &str = r#"{"data":{"attributes":{"producer":"{source}","outputs":["vpc_id"]}}}"#;
pub(super) const BINDING: &str = r#"{"data":{"attributes":{"key":"bound","producer":"{source}","output":"plain"}}}"#;
pub(super) const ACKNOWLEDGED: &str = r#"{"data":{"attributes":{"reason":"hello"}}}"#;
pub(super) const MUTED: &str = r#"{"data":{"attributes":{"muted":true}}}"#;
pub(super) const WALK: &str = r#"{"data":{"attributes":{"kind":"plan","from":["{workspace_name}"]}}}"#;
pub(super) const COMMENT: &str = r#"{"data":{"attributes":{"body":"hello"}}}"#;
pub(super) const NEW_STATE: &str = r#"{"data":{"attributes":{"serial":9,"md5":"x"}}}"#;
pub(super) const ROLLBACK: &str = r#"{"data":{"relationships":{
    "rollback-state-version":{"data":{"type":"state-versions","id":"{state_version}"}}}}}"#;
pub(super) const POLICY: &str =
    r#"{"data":{"attributes":{"name":"a-new-name","kind":"opa","query":"data.terraform.deny"}}}"#;
pub(super) const POLICY_SET: &str = r#"{"data":{"attributes":{"name":"a-new-name","kind":"opa"}}}"#;
pub(super) const DESCRIBED: &str = r#"{"data":{"attributes":{"description":"hello"}}}"#;
pub(super) const POLICY_LIST: &str = r#"{"data":[{"type":"policies","id":"{policy}"}]}"#;
pub(super) const POLICY_PARAMETER: &str =
    r#"{"data":{"attributes":{"key":"new","value":"v","category":"policy-set"}}}"#;
pub(super) const REGO: &str = "package terraform\n\ndeny := []\n";
pub(super) const RUN_TASK: &str = r#"{"data":{"attributes":{"name":"a-new-name","url":"https://tasks.acme.test/","category":"task","enabled":false}}}"#;
pub(super) const WORKSPACE_TASK: &str = r#"{"data":{"attributes":{"enforcement-level":"advisory"},
    "relationships":{"task":{"data":{"type":"tasks","id":"{task}"}}}}}"#;
pub(super) const ENFORCED: &str = r#"{"data":{"attributes":{"enforcement-level":"mandatory"}}}"#;
pub(super) const TASK_ANSWER: &str = r#"{"data":{"attributes":{"status":"passed"}}}"#;
