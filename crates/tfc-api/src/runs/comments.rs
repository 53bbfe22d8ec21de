//! Comments of people on a run.

use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use taco_domain::comment::Comment;

use crate::document::ResourceObject;
use crate::error::ApiError;
use crate::request::{Answer, ApiRequest};
use crate::resource::Resource;
use crate::users;

pub(crate) const KIND: &str = "comments";

#[derive(Serialize)]
#[serde(rename_all = "kebab-case")]
struct Attributes<'a> {
    body: &'a str,
    created_at: Timestamp,
}

impl Resource for Comment {
    const KIND: &'static str = KIND;

    fn object(&self, _: &ApiRequest) -> Result<ResourceObject, ApiError> {
        Ok(ResourceObject::new(KIND, self.id, &Attributes { body: &self.body, created_at: self.created_at })
            .has_optional("created-by", users::user(&self.created_by))
            .link("self", format!("/api/v2/comments/{}", self.id)))
    }
}

/// `GET /api/v2/runs/{run}/comments`
pub(crate) async fn list(request: ApiRequest) -> Answer {
    let run = request.control_plane.run(&request.caller, request.id("run")?).await?;
    request.page_of(run.comments()).await
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct NewComment {
    body: String,
}

/// `POST /api/v2/runs/{run}/comments`
pub(crate) async fn create(request: ApiRequest) -> Answer {
    let run = request.id("run")?;
    let NewComment { body } = request.attributes(KIND).await?;
    request.created(&request.control_plane.create_comment(&request.caller, run, body).await?)
}

/// `GET /api/v2/comments/{comment}`
pub(crate) async fn read(request: ApiRequest) -> Answer {
    request.one(&request.control_plane.comment(&request.caller, request.id("comment")?).await?).await
}
