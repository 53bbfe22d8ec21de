//! Someone who calls the API of a server that is a process.

use reqwest::{Client, Method, StatusCode};
use serde_json::{Value, json};

#[derive(Clone, Debug)]
pub struct ApiClient {
    pub origin: String,
    pub client: Client,
    pub token: String,
}

impl ApiClient {
    /// Status and JSON, if it is any.
    pub async fn send(&self, method: &str, path: &str, body: Option<&Value>) -> (StatusCode, Value) {
        let method = Method::from_bytes(method.as_bytes()).expect("a method");
        let mut request = self.client.request(method, format!("{}{path}", self.origin)).bearer_auth(&self.token);
        if let Some(body) = body {
            request = request.header("content-type", "application/vnd.api+json").body(body.to_string());
        }
        let answer = request.send().await.expect("the server answers");
        let status = answer.status();
        let bytes = answer.bytes().await.expect("a whole body");
        (status, serde_json::from_slice(&bytes).unwrap_or(Value::Null))
    }

    /// Response to a request that must succeed.
    #[track_caller]
    pub fn done(&self, method: &'static str, path: &str, body: Option<Value>) -> impl Future<Output = Value> + Send {
        let (client, path) = (self.clone(), path.to_owned());
        let place = std::panic::Location::caller();
        async move {
            let (status, answer) = client.send(method, &path, body.as_ref()).await;
            assert!(status.is_success(), "{place}: {method} {path} is answered with {status}: {answer}");
            answer
        }
    }

    pub async fn get(&self, path: &str) -> Value {
        self.done("GET", path, None).await
    }

    pub async fn post(&self, path: &str, body: Value) -> Value {
        self.done("POST", path, Some(body)).await
    }

    pub async fn patch(&self, path: &str, body: Value) -> Value {
        self.done("PATCH", path, Some(body)).await
    }

    /// An organization whose workspaces run on the machines of those who use them.
    pub async fn given_organization(&self, name: &str) {
        let attributes = json!({ "name": name, "email": "ops@acme.test", "default-execution-mode": "local" });
        self.post("/api/v2/organizations", json!({ "data": { "type": "organizations", "attributes": attributes } }))
            .await;
    }

    /// A workspace as the API shows it.
    pub async fn workspace(&self, organization: &str, name: &str) -> Value {
        self.get(&format!("/api/v2/organizations/{organization}/workspaces/{name}")).await["data"].clone()
    }

    pub async fn given_workspace(&self, organization: &str, name: &str) -> Value {
        let body = json!({ "data": { "type": "workspaces", "attributes": { "name": name } } });
        self.post(&format!("/api/v2/organizations/{organization}/workspaces"), body).await["data"].clone()
    }

    /// Asks a workspace to do something: `lock`, `unlock`, `force-unlock`.
    pub async fn act(&self, workspace: &Value, action: &str) {
        let id = workspace["id"].as_str().expect("an id");
        self.done("POST", &format!("/api/v2/workspaces/{id}/actions/{action}"), Some(json!({}))).await;
    }
}
