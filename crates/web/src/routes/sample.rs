//! Sample forms and queries, for tests that send every form. Placeholders in braces are names that the test knows.

type Fields = &'static [(&'static str, &'static str)];

/// Enough for what has a name.
pub(super) const NAMED: Fields = &[("name", "a-new-name")];

pub(super) const LOGIN: Fields = &[("username", "nobody-has-this-name"), ("password", "a wrong password")];
pub(super) const THEME: Fields = &[("theme", "dark")];
pub(super) const NEW_PASSWORD: Fields = &[("password", "battery staple"), ("repeated", "battery staple")];
pub(super) const CONSENT_QUERY: &str = "client_id=terraform-cli&redirect_uri=http%3A%2F%2Flocalhost%3A10000%2Flogin\
    &response_type=code&state=s&code_challenge=E9Melhoa2OwvFrEMTJguCHaoeK1t8URWbuGJSstw-cM&code_challenge_method=S256";
pub(super) const CONSENT: Fields = &[
    ("client_id", "terraform-cli"),
    ("redirect_uri", "http://localhost:10000/login"),
    ("response_type", "code"),
    ("state", "s"),
    ("code_challenge", "E9Melhoa2OwvFrEMTJguCHaoeK1t8URWbuGJSstw-cM"),
    ("code_challenge_method", "S256"),
    ("decision", "approve"),
];

pub(super) const PROFILE: Fields = &[("username", "a-new-name"), ("email", "new@acme.test")];
pub(super) const PASSWORDS: Fields =
    &[("current", "a wrong password"), ("password", "battery staple"), ("repeated", "battery staple")];
pub(super) const NEW_TOKEN: Fields = &[("description", "a new token"), ("days", "30")];
pub(super) const NEW_USER: Fields = &[("username", "a-new-name"), ("email", "new@acme.test")];

pub(super) const NEW_ORGANIZATION: Fields = &[("name", "a-new-name"), ("email", "new@acme.test")];
pub(super) const ORGANIZATION: Fields = &[("name", "a-new-name"), ("email", "new@acme.test"), ("mode", "remote")];
pub(super) const DELETE_ORGANIZATION: Fields = &[("confirmation", "{organization}")];
pub(super) const TAG: Fields = &[("tag", "{tag}")];
pub(super) const NEW_MEMBER: Fields = &[("email", "new@acme.test"), ("team", "{visible team}")];
pub(super) const TEAM_RIGHTS: Fields = &[("right", "manage-workspaces")];
pub(super) const TEAM_MEMBER: Fields = &[("member", "{membership}")];
pub(super) const TEAM_PROJECT: Fields = &[("project", "{project}"), ("access", "read")];
pub(super) const TEAM_WORKSPACE: Fields = &[("workspace", "{workspace_id}"), ("access", "read")];
pub(super) const DEPENDENCY: Fields = &[("producer", "{source}"), ("outputs", "")];
pub(super) const BINDING: Fields =
    &[("key", "bound"), ("category", "terraform"), ("producer", "{source}"), ("output", "plain")];
pub(super) const POLICY: Fields = &[("policy", "ignore")];
pub(super) const RETENTION: Fields = &[("policy", "delete"), ("days", "30")];
pub(super) const NEW_POLICY: Fields = &[
    ("name", "a-new-name"),
    ("query", "data.terraform.deny"),
    ("level", "advisory"),
    ("code", "package terraform\n\ndeny := []\n"),
];
pub(super) const NEW_KEY: Fields = &[("name", "a-new-name"), ("value", "a secret")];
pub(super) const DEPRECATION: Fields = &[("version", "{version}"), ("reason", "old")];
pub(super) const DELETE_POOL: Fields = &[("typed_name", "pool")];

pub(super) const NEW_WORKSPACE: Fields = &[("name", "a-new-name"), ("project", "{project}")];
pub(super) const EXECUTION: Fields = &[("engine", "terraform"), ("version", "1.11.4")];
pub(super) const SOURCE: Fields = &[("workspace", "{source}")];
pub(super) const KEY: Fields = &[("key", "{key}")];
pub(super) const TEAM: Fields = &[("team", "{visible team}"), ("access", "read")];
pub(super) const DELETE_WORKSPACE: Fields = &[("confirmation", "{workspace}")];
pub(super) const NOTIFICATION: Fields =
    &[("name", "a-new-name"), ("destination", "generic"), ("url", "https://hooks.acme.test/")];
pub(super) const NEW_STATE: Fields =
    &[("state", r#"{"version":4,"terraform_version":"1.11.4","serial":9,"lineage":"a","outputs":{},"resources":[]}"#)];
pub(super) const RESOURCE: &str = "address=terraform_data.one";
pub(super) const NEW_RUN: Fields = &[("kind", "plan-only")];
pub(super) const WALK: Fields = &[("kind", "plan"), ("choice", "from"), ("from", "")];
pub(super) const COMMENT: Fields = &[("body", "hello")];

pub(super) const VARIABLE: Fields = &[("key", "new"), ("value", "v"), ("category", "env")];
pub(super) const IMPORT: Fields = &[("format", "env"), ("text", "NEW=v")];
pub(super) const TARGET: Fields = &[("workspace", "{workspace}")];
pub(super) const RUN_TASK: Fields = &[("name", "a-new-name"), ("url", "https://tasks.acme.test/")];
pub(super) const WORKSPACE_TASK: Fields = &[("task", "{task}"), ("level", "advisory"), ("stage", "post_apply")];
