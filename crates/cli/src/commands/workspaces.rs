//! `taco ws`

use clap::{Args, Subcommand, ValueEnum};
use reqwest::Method;
use serde_json::{Map, Value, json};

use super::{contract_policy, done, given, gone, organizations, plain_list, pools, projects, require_change, text};
use crate::EXIT_CODES;
use crate::api::{about, one};
use crate::browser;
use crate::confirmation::Confirmation;
use crate::failure::{Failure, Kind};
use crate::output;
use crate::print::Cell;
use crate::process_env::ProcessEnv;
use crate::resource::{Document, Resource, in_words};
use crate::session::{Flags, Session, WorkspaceName};
use crate::spelling_hints::did_you_mean;

/// Manage workspaces
#[derive(Args, Debug)]
#[command(visible_alias = "workspace", after_help = format!("\
Examples:
  taco ws ls --org acme --tag team=network
  taco ws create acme/network --engine tofu
  taco ws show network --web
  taco ws edit network --project platform
  taco ws rm network --yes

{EXIT_CODES}"))]
pub struct Arguments {
    #[command(flatten)]
    flags: Flags,
    #[command(subcommand)]
    verb: Verb,
}

#[derive(Subcommand, Debug)]
enum Verb {
    /// List workspaces
    Ls {
        /// Only workspaces with this in their name
        #[arg(long, value_name = "TEXT")]
        search: Option<String>,
        /// Only workspaces of this project
        #[arg(long, value_name = "NAME")]
        project: Option<String>,
        /// Only workspaces with this tag; repeat for several
        #[arg(long, value_name = "TAG")]
        tag: Vec<String>,
    },
    /// Show a workspace, its latest run and its lock
    Show {
        /// Workspace, or ORGANIZATION/WORKSPACE [default: as --ws]
        workspace: Option<String>,
        /// Open its page in the browser
        #[arg(long)]
        web: bool,
    },
    /// Create a workspace
    Create {
        /// Workspace, or ORGANIZATION/WORKSPACE
        workspace: String,
        #[command(flatten)]
        settings: Settings,
    },
    /// Edit a workspace
    Edit {
        /// Workspace, or ORGANIZATION/WORKSPACE
        workspace: String,
        /// New name
        #[arg(long, value_name = "NAME")]
        name: Option<String>,
        #[command(flatten)]
        settings: Settings,
    },
    /// Delete a workspace with its states
    Rm {
        /// Workspace, or ORGANIZATION/WORKSPACE
        workspace: String,
        /// Delete even if it still manages resources
        #[arg(long)]
        force: bool,
        #[command(flatten)]
        confirmation: Confirmation,
    },
}

#[derive(Args, Debug)]
struct Settings {
    /// Description
    #[arg(long, value_name = "TEXT")]
    description: Option<String>,
    /// Project, by name or ID
    #[arg(long, value_name = "PROJECT")]
    project: Option<String>,
    /// Execution mode: remote, local or agent
    #[arg(long, value_name = "MODE")]
    execution_mode: Option<String>,
    /// Agent pool, by name or ID; with --execution-mode agent
    #[arg(long, value_name = "POOL")]
    agent_pool: Option<String>,
    /// Engine of its runs
    #[arg(long, value_enum, value_name = "ENGINE")]
    engine: Option<Engine>,
    /// Version of terraform or tofu: latest, 1.11.4, or a constraint such as '~> 1.11'
    #[arg(long, value_name = "VERSION")]
    terraform_version: Option<String>,
    /// Directory of the configuration within the upload
    #[arg(long, value_name = "PATH")]
    working_directory: Option<String>,
    /// Auto-apply: apply plans without approval
    #[arg(long, value_name = "BOOL", num_args = 0..=1, require_equals = true, default_missing_value = "true")]
    auto_apply: Option<bool>,
    /// Plans that break outputs which others use: off, warn or stop; inherit for the project's policy
    #[arg(long, value_name = "POLICY")]
    output_contract: Option<String>,
    /// Tag, as KEY or KEY=VALUE; repeat for several. Replaces all tags
    #[arg(long, value_name = "TAG")]
    tag: Vec<String>,
}

/// Program that executes runs.
#[derive(Clone, Copy, ValueEnum, Debug)]
enum Engine {
    Terraform,
    Tofu,
}

impl From<Engine> for Value {
    fn from(engine: Engine) -> Self {
        match engine {
            Engine::Terraform => "terraform",
            Engine::Tofu => "tofu",
        }
        .into()
    }
}

impl Settings {
    fn attributes(&self, name: Option<&String>) -> Map<String, Value> {
        given([
            ("name", name.cloned().map(Value::from)),
            ("description", text(&self.description)),
            ("execution-mode", text(&self.execution_mode)),
            ("taco-engine", self.engine.map(Value::from)),
            ("terraform-version", text(&self.terraform_version)),
            ("working-directory", text(&self.working_directory)),
            ("auto-apply", self.auto_apply.map(Value::from)),
            ("taco-output-contract", contract_policy(self.output_contract.as_deref())),
        ])
    }

    async fn relationships(&self, session: &Session, organization: &str) -> Result<Map<String, Value>, Failure> {
        let mut relationships = Map::new();
        if let Some(project) = &self.project {
            let project = projects::find(session, organization, project).await?;
            relationships.insert("project".into(), json!({ "data": { "type": "projects", "id": project.id() } }));
        }
        if let Some(pool) = &self.agent_pool {
            let pool = pools::find_in(session, organization, pool).await?;
            relationships.insert("agent-pool".into(), json!({ "data": { "type": "agent-pools", "id": pool.id() } }));
        }
        if !self.tag.is_empty() {
            let bindings: Value = self.tag.iter().map(|tag| tag_binding(tag)).collect();
            relationships.insert("tag-bindings".into(), json!({ "data": bindings }));
        }
        Ok(relationships)
    }
}

fn tag_binding(tag: &str) -> Value {
    let (key, value) = tag.split_once('=').unwrap_or((tag, ""));
    json!({ "type": "tag-bindings", "attributes": { "key": key, "value": value } })
}

/// Query parameters that select the workspaces with a tag.
fn tag_filter(index: usize, tag: &str) -> Vec<(String, String)> {
    let (key, value) = tag.split_once('=').unwrap_or((tag, ""));
    let fields = [("key", key), ("value", value)].into_iter().filter(|(_, value)| !value.is_empty());
    fields.map(|(field, value)| (format!("filter[tagged][{index}][{field}]"), value.to_owned())).collect()
}

pub(crate) async fn run(arguments: &Arguments, process_env: &ProcessEnv) -> Result<(), Failure> {
    let session = Session::open(&arguments.flags, process_env).await?;
    let named = |workspace: &String| session.target.workspace(Some(workspace));
    match &arguments.verb {
        Verb::Ls { search, project, tag } => list(&session, search.as_deref(), project.as_deref(), tag).await,
        Verb::Show { workspace, web } => show(&session, &session.target.workspace(workspace.as_deref())?, *web).await,
        Verb::Create { workspace, settings } => create(&session, &named(workspace)?, settings).await,
        Verb::Edit { workspace, name, settings } => edit(&session, &named(workspace)?, name.as_ref(), settings).await,
        Verb::Rm { workspace, force, confirmation } => remove(&session, &named(workspace)?, *force, confirmation).await,
    }
}

fn path(workspace: &WorkspaceName) -> [&str; 4] {
    ["organizations", &workspace.organization, "workspaces", &workspace.name]
}

/// A workspace, with its project and the holder of its lock included.
pub(super) async fn find(session: &Session, workspace: &WorkspaceName) -> Result<(Resource, Document), Failure> {
    let include = [("include", "project,locked_by,current_run")];
    let subject = format!("workspace {workspace}");
    let found = match session.api.get(&subject, &path(workspace), &include).await {
        Ok(found) => found,
        Err(failure) => return Err(with_suggestion(session, workspace, failure).await),
    };
    let resource = found.data.first().cloned();
    let resource = resource.ok_or_else(|| Failure::error(format!("{subject}: the server's answer is empty")))?;
    Ok((resource, found))
}

/// A failure to find a workspace, with the one that may be meant.
async fn with_suggestion(session: &Session, workspace: &WorkspaceName, failure: Failure) -> Failure {
    if failure.kind != Kind::NotFound || failure.is_about_login() {
        return failure;
    }
    let WorkspaceName { organization, name } = workspace;
    // The first pages do: who has thousands of workspaces gets no suggestion for some of them.
    let path = ["organizations", organization.as_str(), "workspaces"];
    let query = [("page[size]", "100"), ("sort", "name")];
    let Ok(found) = session.api.get("workspaces", &path, &query).await else {
        return organizations::with_suggestion(session, organization, failure).await;
    };
    let mut names: Vec<String> = found.data.iter().map(|one| one.text("name")).collect();
    if found.next_page.is_some() {
        // More than a page: those that share a beginning or an end with the name.
        for part in [
            name.chars().take(3).collect::<String>(),
            name.chars().rev().take(3).collect::<Vec<_>>().iter().rev().collect(),
        ] {
            let query = [("search[name]", part.as_str()), ("page[size]", "100")];
            let more = session.api.get("workspaces", &path, &query).await.unwrap_or_default();
            names.extend(more.data.iter().map(|one| one.text("name")));
        }
    }
    let list = || format!("`taco ws ls --org {organization}` lists workspaces; `taco whoami` shows your account");
    failure.hint(did_you_mean(name, names.iter().map(String::as_str), list))
}

/// Holder of a workspace's lock, since when, from where and why; empty if unlocked.
pub(super) fn lock_holder(workspace: &Resource, document: &Document) -> String {
    if workspace.get("locked") != &Value::Bool(true) {
        return String::new();
    }
    let lock = workspace.get("taco-lock");
    if lock.is_object() {
        let parts = [("", "holder", ""), (" since ", "since", ""), (" from ", "from", ""), (" (", "reason", ")")];
        let parts = parts.map(|(before, name, after)| match in_words(&lock[name]) {
            text if text.is_empty() => text,
            text => format!("{before}{text}{after}"),
        });
        return parts.concat();
    }
    // Servers other than taco tell less.
    let name = document.related(workspace, "locked-by").map(|holder| holder.text("username"));
    let id = || workspace.related_id("locked-by").map(str::to_owned);
    let holder = name.filter(|name| !name.is_empty()).or_else(id).unwrap_or_else(|| "someone".to_owned());
    match workspace.text("locked-reason") {
        reason if reason.is_empty() => holder,
        reason => format!("{holder} ({reason})"),
    }
}

async fn list(session: &Session, search: Option<&str>, project: Option<&str>, tags: &[String]) -> Result<(), Failure> {
    let organization = session.target.organization(None)?;
    let project = match project {
        Some(project) => Some(projects::find(session, &organization, project).await?),
        None => None,
    };
    let mut query =
        vec![("include".to_owned(), "project,current_run".to_owned()), ("sort".to_owned(), "name".to_owned())];
    query.extend(search.map(|search| ("search[name]".to_owned(), search.to_owned())));
    query.extend(project.as_ref().map(|project| ("filter[project][id]".to_owned(), project.id().to_owned())));
    query.extend(tags.iter().enumerate().flat_map(|(index, tag)| tag_filter(index, tag)));
    let query: Vec<(&str, &str)> = query.iter().map(|(name, value)| (name.as_str(), value.as_str())).collect();
    let subject = format!("workspaces of organization {organization}");
    let found = session.api.list(&subject, &["organizations", &organization, "workspaces"], &query).await?;
    if session.json {
        return output::json(&plain_list(&found.data));
    }
    let row = |workspace: &Resource| {
        let [name, execution, resources, locked] =
            ["name", "execution-mode", "resource-count", "locked"].map(|name| output::text(workspace, name));
        let project = found.related(workspace, "project").map(|project| project.text("name")).unwrap_or_default();
        let run = found.related(workspace, "current-run").map(|run| run.text("status")).unwrap_or_default();
        let locked =
            if workspace.get("locked") == &Value::Bool(true) { Cell::Marked("yes".to_owned()) } else { locked };
        [name, project.into(), execution, Cell::Status(run), resources, locked, output::time(workspace, "updated-at")]
    };
    let headings = ["NAME", "PROJECT", "EXECUTION", "LATEST RUN", "RESOURCES", "LOCKED", "UPDATED"];
    let filtered = search.is_some() || project.is_some() || !tags.is_empty();
    let if_empty = match filtered {
        true => "No workspaces match.".to_owned(),
        false => format!("No workspaces. `taco ws create {organization}/NAME` creates one."),
    };
    session.table(headings, found.data.iter().map(row), if_empty)
}

async fn show(session: &Session, name: &WorkspaceName, web: bool) -> Result<(), Failure> {
    let (workspace, document) = find(session, name).await?;
    let page = browser::workspace_page(&session.target.host, name, &[]);
    if web {
        return browser::show(&page);
    }
    if session.json {
        return output::json(&workspace.plain());
    }
    let project = document.related(&workspace, "project").map(|project| project.text("name"));
    let run = document.related(&workspace, "current-run");
    let text = |attribute: &str| output::text(&workspace, attribute);
    session.fields([
        ("name", text("name")),
        ("id", workspace.id().into()),
        ("organization", name.organization.as_str().into()),
        ("project", project.unwrap_or_default().into()),
        ("description", text("description")),
        ("execution", text("execution-mode")),
        ("engine", text("taco-engine")),
        ("version", text("terraform-version")),
        ("working directory", text("working-directory")),
        ("auto-apply", text("auto-apply")),
        ("output contract", text("taco-effective-output-contract")),
        ("tags", text("tag-names")),
        ("resources", text("resource-count")),
        ("latest run", run.map(Resource::id).unwrap_or_default().into()),
        ("run status", Cell::Status(run.map(|run| run.text("status")).unwrap_or_default())),
        ("locked by", Cell::Marked(lock_holder(&workspace, &document))),
        ("state", workspace.related_id("current-state-version").unwrap_or_default().into()),
        ("created", output::time(&workspace, "created-at")),
        ("updated", output::time(&workspace, "updated-at")),
        ("url", page.as_str().into()),
    ])
}

/// Creates a workspace with default settings, but for its execution mode if one is given.
pub(super) async fn create_with_defaults(
    session: &Session,
    workspace: &WorkspaceName,
    execution_mode: Option<&str>,
) -> Result<Resource, Failure> {
    let name = Some(workspace.name.as_str().into());
    let attributes = given([("name", name), ("execution-mode", execution_mode.map(Value::from))]);
    post(session, workspace, attributes, Map::new()).await
}

async fn post(
    session: &Session,
    workspace: &WorkspaceName,
    attributes: Map<String, Value>,
    relationships: Map<String, Value>,
) -> Result<Resource, Failure> {
    let body = about("workspaces", attributes.into(), relationships.into());
    let path = ["organizations", &workspace.organization, "workspaces"];
    one(session.api.send(&format!("workspace {workspace}"), Method::POST, &path, &body).await?)
}

async fn create(session: &Session, workspace: &WorkspaceName, settings: &Settings) -> Result<(), Failure> {
    let relationships = settings.relationships(session, &workspace.organization).await?;
    let sent = post(session, workspace, settings.attributes(Some(&workspace.name)), relationships).await;
    let created = sent.map_err(|failure| {
        failure.hint_if(Kind::Conflict, || format!("`taco ws show {workspace}` shows it, `taco ws edit` changes it"))
    })?;
    done(session, &created, &format!("Created workspace {workspace} ({}).", created.id()))
}

async fn edit(
    session: &Session,
    workspace: &WorkspaceName,
    name: Option<&String>,
    settings: &Settings,
) -> Result<(), Failure> {
    let attributes = settings.attributes(name);
    let relationships = settings.relationships(session, &workspace.organization).await?;
    require_change(&attributes, &relationships)?;
    let body = about("workspaces", attributes.into(), relationships.into());
    let changed =
        one(session.api.send(&format!("workspace {workspace}"), Method::PATCH, &path(workspace), &body).await?)?;
    done(session, &changed, &format!("Updated workspace {}/{}.", workspace.organization, changed.text("name")))
}

async fn remove(
    session: &Session,
    workspace: &WorkspaceName,
    force: bool,
    confirmation: &Confirmation,
) -> Result<(), Failure> {
    let (found, _) = find(session, workspace).await?;
    confirmation.ask(session, &format!("delete workspace {workspace} with its states"))?;
    let subject = format!("workspace {workspace}");
    if force {
        session.api.delete(&subject, &["workspaces", found.id()]).await?;
    } else {
        let path = ["workspaces", found.id(), "actions", "safe-delete"];
        session.api.send(&subject, Method::POST, &path, &json!({})).await.map_err(|failure| {
            failure.hint_if(Kind::Conflict, || "destroy what it manages first, or delete it with --force".to_owned())
        })?;
    }
    gone(session, found.id(), &format!("Deleted workspace {workspace}."))
}
