//! Dependencies: which unit uses which outputs of which other, how that is known, and what people say of it.

use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use taco_control_plane::{DependencyDirection, DependencyPatch, DependencyView, Edge, NewDependency};
use taco_domain::attribute::shown;
use taco_domain::graph::output_commit::UsedOutputs;
use taco_domain::graph::words::{ConsumedBy, Grade};
use taco_domain::id::{RunId, StateVersionId};

use crate::document::{Identifier, ResourceObject};
use crate::error::ApiError;
use crate::request::{Answer, ApiRequest, no_content};
use crate::resource::Resource;
use crate::workspaces;

const KIND: &str = "dependencies";

#[derive(Serialize)]
#[serde(rename_all = "kebab-case")]
struct Attributes<'a> {
    #[serde(flatten)]
    edge: &'a Edge,
    evidence: Vec<Evidence<'a>>,
    consumed: Option<ConsumedOutputs<'a>>,
    declared_by: Option<String>,
    declared_at: Option<&'a str>,
    mute_reason: Option<&'a str>,
}

/// What was seen of one kind.
#[derive(Serialize)]
#[serde(rename_all = "kebab-case")]
struct Evidence<'a> {
    grade: Grade,
    first: Timestamp,
    last: Timestamp,
    /// `None` stands for all.
    outputs: Option<Vec<&'a str>>,
    data: &'a [String],
    users: &'a [String],
    user_count: u64,
    run_id: Option<RunId>,
    state_version_id: Option<StateVersionId>,
}

/// What the consumer last applied against.
#[derive(Serialize)]
#[serde(rename_all = "kebab-case")]
struct ConsumedOutputs<'a> {
    how: ConsumedBy,
    assumed: bool,
    commit: Option<u32>,
    at: Timestamp,
    by: String,
    run_id: Option<RunId>,
    reason: Option<&'a str>,
}

impl Resource for DependencyView {
    const KIND: &'static str = KIND;

    fn object(&self, _: &ApiRequest) -> Result<ResourceObject, ApiError> {
        let dependency = &self.dependency;
        let evidence = dependency.observed.iter().map(|(grade, seen)| Evidence {
            grade: *grade,
            first: seen.first,
            last: seen.last,
            outputs: match &seen.used {
                UsedOutputs::All => None,
                UsedOutputs::Names(names) => Some(names.iter().map(String::as_str).collect()),
            },
            data: &seen.data,
            users: &seen.users,
            user_count: seen.user_count,
            run_id: seen.run,
            state_version_id: seen.state_version,
        });
        let consumed = dependency.consumed.as_ref().map(|consumed| ConsumedOutputs {
            how: consumed.how,
            assumed: consumed.assumed,
            commit: consumed.commit,
            at: consumed.at,
            by: self.org.name_of(&consumed.by),
            run_id: consumed.run,
            reason: consumed.reason.as_deref(),
        });
        let declared = dependency.declared.as_ref();
        // Of a consumer that the caller may not see, only that there is one.
        let sees_consumer = self.sees_consumer;
        let attributes = Attributes {
            edge: &self.edge,
            evidence: if sees_consumer { evidence.collect() } else { Vec::new() },
            consumed: consumed.filter(|_| sees_consumer),
            declared_by: declared.filter(|_| sees_consumer).map(|said| self.org.name_of(&said.by)),
            declared_at: declared.and_then(|said| said.place.as_deref()).filter(|_| sees_consumer),
            mute_reason: dependency.muted.as_ref().and_then(|muted| muted.reason.as_deref()).filter(|_| sees_consumer),
        };
        let unit = |id| Identifier::new(workspaces::KIND, id);
        Ok(ResourceObject::new(KIND, dependency.id, &attributes)
            .has_optional("consumer", sees_consumer.then(|| unit(dependency.consumer)))
            .has_optional("producer", dependency.producer.filter(|_| self.sees_producer).map(unit))
            .link("self", format!("/api/v2/dependencies/{}", dependency.id)))
    }
}

/// `GET /api/v2/workspaces/{workspace}/dependencies`
pub(crate) async fn list(request: ApiRequest) -> Answer {
    let name = "filter[direction]";
    let direction = match request.query.get(name) {
        None | Some("upstream") => DependencyDirection::Upstream,
        Some("downstream") => DependencyDirection::Downstream,
        Some(other) => {
            let detail = format!("{name} must be upstream or downstream; it is {}", shown(other));
            return Err(ApiError::parameter(name, detail));
        }
    };
    let (workspace, page) = (request.workspace()?, request.query.page()?);
    request.page(request.control_plane.dependencies(&request.caller, &workspace, direction, page).await?).await
}

/// `POST /api/v2/workspaces/{workspace}/dependencies`
pub(crate) async fn create(request: ApiRequest) -> Answer {
    let workspace = request.workspace()?;
    let new: NewDependency = request.attributes(KIND).await?;
    request.created(&request.control_plane.declare_dependency(&request.caller, &workspace, new).await?)
}

/// `GET /api/v2/dependencies/{dependency}`
pub(crate) async fn read(request: ApiRequest) -> Answer {
    request.one(&request.control_plane.dependency(&request.caller, request.id("dependency")?).await?).await
}

/// `PATCH /api/v2/dependencies/{dependency}`
pub(crate) async fn update(request: ApiRequest) -> Answer {
    let id = request.id("dependency")?;
    let patch: DependencyPatch = request.attributes(KIND).await?;
    request.changed(&request.control_plane.update_dependency(&request.caller, id, patch).await?)
}

/// `DELETE /api/v2/dependencies/{dependency}`
pub(crate) async fn delete(request: ApiRequest) -> Answer {
    request.control_plane.delete_dependency(&request.caller, request.id("dependency")?).await?;
    no_content()
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct Acknowledgement {
    reason: Option<String>,
}

/// `POST /api/v2/dependencies/{dependency}/actions/acknowledge`
pub(crate) async fn acknowledge(request: ApiRequest) -> Answer {
    let id = request.id("dependency")?;
    let sent: Acknowledgement = request.attributes(KIND).await?;
    request.changed(&request.control_plane.acknowledge_dependency(&request.caller, id, sent.reason).await?)
}
