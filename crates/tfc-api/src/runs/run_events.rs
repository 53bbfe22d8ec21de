//! Run events: the history of a run. Clients refuse to go on without the list.

use jiff::Timestamp;
use serde::Serialize;
use taco_control_plane::RunEventView;

use crate::document::{Document, Identifier, ResourceObject};
use crate::error::ApiError;
use crate::request::{Answer, ApiRequest};
use crate::resource::Resource;
use crate::{comments, users};

pub(crate) const KIND: &str = "run-events";

#[derive(Serialize)]
#[serde(rename_all = "kebab-case")]
struct Attributes<'a> {
    action: &'a str,
    created_at: Timestamp,
    description: Option<&'a str>,
}

impl Resource for RunEventView {
    const KIND: &'static str = KIND;
    const INCLUDES: &'static [&'static str] = &["actor", "comment"];

    fn object(&self, _: &ApiRequest) -> Result<ResourceObject, ApiError> {
        let entry = &self.entry;
        let description = entry.description.as_deref();
        let attributes = Attributes { action: &entry.action, created_at: entry.at, description };
        let comment = entry.comment.map(|id| Identifier::new(comments::KIND, id));
        Ok(ResourceObject::new(KIND, self.id, &attributes)
            .has_optional("actor", users::user(&entry.by))
            .has_optional("comment", comment)
            .link("self", format!("/api/v2/run-events/{}", self.id)))
    }

    async fn include(&self, name: &str, request: &ApiRequest, document: &mut Document) -> Result<(), ApiError> {
        match (name, &self.comment) {
            ("actor", _) => users::include(&self.entry.by, request, document).await,
            (_, Some(comment)) => {
                document.include(comment.object(request)?);
                Ok(())
            }
            _ => Ok(()),
        }
    }
}

/// `GET /api/v2/runs/{run}/run-events`
pub(crate) async fn list(request: ApiRequest) -> Answer {
    let run = request.control_plane.run(&request.caller, request.id("run")?).await?;
    request.all(&run.events()).await
}

/// `GET /api/v2/run-events/{run_event}`
pub(crate) async fn read(request: ApiRequest) -> Answer {
    request.one(&request.control_plane.run_event(&request.caller, request.id("run_event")?).await?).await
}
