//! Output commits: the history of a workspace's outputs.

use jiff::Timestamp;
use serde::Serialize;
use taco_control_plane::{ComparedOutput, Maker, OutputAtCommit, OutputCommitView, OutputsAtCommit};
use taco_domain::graph::output_commit::OutputCommit;
use taco_domain::graph::words::OutputChange;
use taco_domain::id::{RunId, StateVersionId};

use crate::document::{Identifier, ResourceObject};
use crate::error::ApiError;
use crate::graph::document;
use crate::request::{Answer, ApiRequest};
use crate::resource::Resource;
use crate::workspaces;

const KIND: &str = "output-commits";

#[derive(Serialize)]
#[serde(rename_all = "kebab-case")]
struct Attributes<'a> {
    number: u32,
    at: Timestamp,
    by: Option<&'a str>,
    run_id: Option<RunId>,
    state_version_id: StateVersionId,
    /// True if the outputs cannot be read one by one.
    opaque: bool,
    changes: Vec<Change<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    outputs: Option<&'a [OutputAtCommit]>,
}

#[derive(Serialize)]
#[serde(rename_all = "kebab-case")]
struct Change<'a> {
    name: &'a str,
    change: OutputChange,
    sensitive: bool,
    before_type: Option<&'a str>,
    after_type: Option<&'a str>,
}

fn object<'a>(
    commit: &'a OutputCommit,
    maker: &'a Maker,
    outputs: Option<&'a [OutputAtCommit]>,
) -> Result<ResourceObject, ApiError> {
    let changes = commit.changes.iter().map(|(name, difference)| {
        let (before, after) = (difference.before.as_ref(), difference.after.as_ref());
        Change {
            name,
            change: difference.change,
            sensitive: before.is_some_and(|output| output.sensitive) || after.is_some_and(|output| output.sensitive),
            before_type: before.map(|output| output.detailed_type.as_str()),
            after_type: after.map(|output| output.detailed_type.as_str()),
        }
    });
    let attributes = Attributes {
        number: commit.number,
        at: commit.at,
        by: maker.name.as_deref(),
        run_id: maker.run,
        state_version_id: commit.state_version,
        opaque: commit.opaque.is_some(),
        changes: changes.collect(),
        outputs,
    };
    Ok(ResourceObject::new(KIND, commit.id, &attributes)
        .has_one("workspace", Identifier::new(workspaces::KIND, commit.workspace))
        .link("self", format!("/api/v2/workspaces/{}/output-commits/{}", commit.workspace, commit.number)))
}

impl Resource for OutputCommitView {
    const KIND: &'static str = KIND;

    fn object(&self, _: &ApiRequest) -> Result<ResourceObject, ApiError> {
        object(&self.commit, &self.maker, None)
    }
}

impl Resource for OutputsAtCommit {
    const KIND: &'static str = KIND;

    fn object(&self, _: &ApiRequest) -> Result<ResourceObject, ApiError> {
        object(&self.commit, &self.maker, Some(&self.outputs))
    }
}

/// `GET /api/v2/workspaces/{workspace}/output-commits`
pub(crate) async fn list(request: ApiRequest) -> Answer {
    let (workspace, page) = (request.workspace()?, request.query.page()?);
    request.page(request.control_plane.output_commits(&request.caller, &workspace, page).await?).await
}

/// `GET /api/v2/workspaces/{workspace}/output-commits/{output_commit}`: by its number, or `newest`.
pub(crate) async fn read(request: ApiRequest) -> Answer {
    let number = match request.name("output_commit")? {
        "newest" => None,
        number => Some(number.parse().map_err(|_| ApiError::not_found())?),
    };
    request.one(&request.control_plane.outputs_at_commit(&request.caller, &request.workspace()?, number).await?).await
}

#[derive(Serialize)]
struct Comparison<'a> {
    from: u32,
    to: u32,
    changed: bool,
    changes: &'a [ComparedOutput],
}

/// `GET /api/v2/workspaces/{workspace}/output-comparison?from=1&to=2&name=vpc_id`
pub(crate) async fn diff(request: ApiRequest) -> Answer {
    let number = |name: &'static str| {
        let text = request.query.required(name)?;
        let whole = || ApiError::parameter(name, format!("{name} must be the number of an output commit, or 0"));
        text.parse::<u32>().map_err(|_| whole())
    };
    let (from, to) = (number("from")?, number("to")?);
    let names = request.query.texts("name");
    let workspace = request.workspace()?;
    let compared = request.control_plane.compare_outputs(&request.caller, &workspace, (from, to), &names).await?;
    let attributes = Comparison { from, to, changed: compared.changed, changes: &compared.changes };
    let id = request.name("workspace")?;
    let path = format!("/api/v2/workspaces/{id}/output-comparison?from={from}&to={to}");
    document("output-comparisons", format!("{id}-{from}-{to}"), &attributes, path)
}
