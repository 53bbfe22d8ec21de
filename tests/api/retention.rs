//! Data retention: what policies delete, what they never do, and how clients see it.

use std::sync::Arc;

use axum::http::StatusCode;
use harness::api_server::{ApiServer, Client};
use jiff::SignedDuration;
use serde_json::{Value, json};
use taco_domain::history::HistoryRules;
use taco_ledger::{Bucket, LedgerName, ObjectBucket, layout};

use crate::configuration_versions::given_configuration;
use crate::states::{given_member, lock, path_of, push};

const WORKSPACE_POLICY: &str = "relationships/data-retention-policy";

fn delete_older(days: i64) -> Value {
    json!({ "data": {
        "type": "data-retention-policy-delete-olders", "attributes": { "delete-older-than-n-days": days },
    } })
}

fn dont_delete() -> Value {
    json!({ "data": { "type": "data-retention-policy-dont-deletes" } })
}

struct Scene {
    bucket: Arc<dyn Bucket>,
    server: ApiServer,
    admin: Client,
    workspace: String,
    states: Vec<String>,
    configurations: Vec<String>,
}

impl Scene {
    /// A workspace with four states and four configurations, ten days apart.
    async fn new() -> Self {
        Self::with_history(HistoryRules::default()).await
    }

    /// The same, with rules of its own for what leaves memory.
    async fn with_history(rules: HistoryRules) -> Self {
        let bucket: Arc<dyn Bucket> = Arc::new(ObjectBucket::in_memory());
        let server = ApiServer::with_history_on(Arc::clone(&bucket), rules).await;
        let admin = server.admin();
        server.given_organization("acme").await;
        let workspace = server.given_workspace("acme", "web").await;
        let mut scene = Self { bucket, server, admin, workspace, states: Vec::new(), configurations: Vec::new() };
        for round in 1..=4 {
            scene.round(round).await;
            scene.server.pass(days(10));
        }
        scene
    }

    async fn round(&mut self, serial: u64) {
        lock(&self.admin, &self.workspace).await.expect(StatusCode::OK);
        let state = push(&self.admin, &self.workspace, serial, "lineage", &format!("content {serial}")).await;
        self.states.push(state.expect(StatusCode::CREATED).id());
        self.admin.act(&format!("/api/v2/workspaces/{}/actions/unlock", self.workspace)).await.expect(StatusCode::OK);
        self.configurations.push(given_configuration(&self.server, &self.workspace).await);
    }

    fn at(&self, rest: &str) -> String {
        format!("/api/v2/workspaces/{}/{rest}", self.workspace)
    }

    async fn keeps(&self, days: i64) {
        self.admin.post(&self.at(WORKSPACE_POLICY), &delete_older(days)).await.expect(StatusCode::OK);
    }

    async fn sweep(&self) {
        while self.server.control_plane.delete_expired_data().await.expect("a bucket") {}
    }

    async fn statuses(&self, kind: &str, ids: &[String]) -> Vec<Value> {
        let mut statuses = Vec::new();
        for id in ids {
            let read = self.admin.get(&format!("/api/v2/{kind}/{id}")).await.expect(StatusCode::OK);
            statuses.push(read.attribute("status").clone());
        }
        statuses
    }

    async fn states_are(&self, expected: [&str; 4]) {
        assert_eq!(self.statuses("state-versions", &self.states).await, expected);
    }

    async fn configurations_are(&self, expected: [&str; 4]) {
        assert_eq!(self.statuses("configuration-versions", &self.configurations).await, expected);
    }

    async fn archive(&self) -> usize {
        let mut moved = 0;
        loop {
            let archived = self.server.control_plane.archive_finished().await.expect("a bucket");
            moved += archived.bundles;
            if !archived.more {
                return moved;
            }
        }
    }

    /// Number of objects of a kind in the bucket.
    async fn objects(&self, kind: &str) -> usize {
        let organization = self.server.control_plane.all_organizations().await.expect("organizations")[0].id();
        let ledger: LedgerName = organization.to_string().parse().expect("a legal name");
        let keys = self.bucket.list(&layout::blobs(&ledger), None).await.expect("a list");
        keys.iter().filter(|key| key.as_str().contains(&format!("/{kind}/"))).count()
    }
}

fn days(days: i64) -> SignedDuration {
    SignedDuration::from_hours(24 * days)
}

const GONE: &str = "backing_data_permanently_deleted";
const THERE: &str = "finalized";
const UPLOADED: &str = "uploaded";

#[tokio::test]
async fn data_goes_some_days_after_it_was_replaced_and_what_is_current_stays() {
    let scene = Scene::new().await;
    let (states, configurations) = (scene.objects("states").await, scene.objects("configurations").await);
    scene.sweep().await;
    scene.states_are([THERE; 4]).await;

    // The first was replaced 30 days ago, the second 20, the third 10.
    scene.keeps(25).await;
    scene.sweep().await;
    scene.states_are([GONE, THERE, THERE, THERE]).await;
    scene.configurations_are([GONE, UPLOADED, UPLOADED, UPLOADED]).await;
    assert_eq!(scene.objects("states").await, states - 1, "its bytes are not in the bucket any more");
    assert_eq!(scene.objects("configurations").await, configurations - 1);

    scene.server.pass(days(1_000));
    scene.sweep().await;
    scene.states_are([GONE, GONE, GONE, THERE]).await;
    scene.configurations_are([GONE, GONE, GONE, UPLOADED]).await;
    let current = scene.admin.get(&scene.at("current-state-version")).await.expect(StatusCode::OK);
    assert_eq!(current.id(), scene.states[3]);
}

#[tokio::test]
async fn a_sweep_reaches_what_left_memory() {
    let rules = HistoryRules { keep: 0, batch: 3, settled_after: SignedDuration::ZERO };
    let scene = Scene::with_history(rules).await;
    let stored = scene.objects("states").await;
    assert!(scene.archive().await > 0);
    scene.keeps(5).await;
    let preview = scene.admin.get(&scene.at("data-retention-preview")).await.expect(StatusCode::OK);
    assert_eq!(preview.attribute("state-version-count"), 3);
    scene.sweep().await;
    scene.states_are([GONE, GONE, GONE, THERE]).await;
    assert_eq!(scene.objects("states").await, stored - 3);
    // They leave again, and a further sweep finds nothing.
    assert!(scene.archive().await > 0);
    let preview = scene.admin.get(&scene.at("data-retention-preview")).await.expect(StatusCode::OK);
    assert_eq!(preview.attribute("state-version-count"), 0);
    scene.states_are([GONE, GONE, GONE, THERE]).await;
}

#[tokio::test]
async fn a_preview_deletes_nothing() {
    let scene = Scene::new().await;
    let asked = scene.at("data-retention-preview?delete-older-than-n-days=15");
    let preview = scene.admin.get(&asked).await.expect(StatusCode::OK);
    assert_eq!(
        (preview.attribute("state-version-count"), preview.attribute("configuration-version-count")),
        (json!(2), json!(2))
    );
    let listed = &preview.data()["relationships"]["state-versions"]["data"];
    assert_eq!(listed[0]["id"], scene.states[1].as_str(), "newest first");
    let without = scene.admin.get(&scene.at("data-retention-preview")).await.expect(StatusCode::OK);
    assert_eq!(without.attribute("state-version-count"), 0, "no policy holds");
    scene.sweep().await;
    scene.states_are([THERE; 4]).await;
}

#[tokio::test]
async fn the_organization_s_policy_counts_where_a_workspace_has_none() {
    let scene = Scene::new().await;
    let of_organization = "/api/v2/organizations/acme/relationships/data-retention-policy";
    scene.admin.get(of_organization).await.expect(StatusCode::NOT_FOUND);
    scene.admin.post(of_organization, &delete_older(5)).await.expect(StatusCode::OK);
    // A hold is stronger.
    scene.admin.post(&scene.at(WORKSPACE_POLICY), &dont_delete()).await.expect(StatusCode::OK);
    scene.sweep().await;
    scene.states_are([THERE; 4]).await;
    scene.admin.delete(&scene.at(WORKSPACE_POLICY)).await.expect(StatusCode::NO_CONTENT);
    scene.sweep().await;
    scene.states_are([GONE, GONE, GONE, THERE]).await;
    scene.admin.delete(of_organization).await.expect(StatusCode::NO_CONTENT);
    scene.admin.get(of_organization).await.expect(StatusCode::NOT_FOUND);
}

#[tokio::test]
async fn a_sweep_that_broke_off_is_taken_up() {
    let scene = Scene::new().await;
    // As if a server had died between the mark and the end.
    for id in &scene.states[..2] {
        let mark = format!("/api/v2/state-versions/{id}/actions/soft_delete_backing_data");
        scene.admin.act(&mark).await.expect(StatusCode::NO_CONTENT);
    }
    scene.keeps(15).await;
    scene.sweep().await;
    scene.states_are([GONE, GONE, THERE, THERE]).await;
}

#[tokio::test]
async fn a_rollback_makes_an_old_state_s_content_current_again() {
    let scene = Scene::new().await;
    lock(&scene.admin, &scene.workspace).await.expect(StatusCode::OK);
    let rollback = json!({ "data": { "type": "state-versions", "relationships": { "rollback-state-version": {
        "data": { "type": "state-versions", "id": scene.states[0] },
    } } } });
    let restored = scene.admin.patch(&scene.at("state-versions"), &rollback).await.expect(StatusCode::CREATED).id();
    scene.keeps(5).await;
    scene.sweep().await;
    scene.states_are([GONE, GONE, GONE, THERE]).await;
    let current = scene.admin.get(&scene.at("current-state-version")).await.expect(StatusCode::OK);
    assert_eq!((current.id(), current.attribute("status")), (restored, json!(THERE)));
    let download = path_of(&current.attribute("hosted-state-download-url"));
    let bytes = scene.admin.get(&download).await.expect(StatusCode::OK).bytes;
    assert!(String::from_utf8_lossy(&bytes).contains("content 1"), "it has bytes of its own");
}

#[tokio::test]
async fn clients_see_the_policy_as_they_know_it() {
    let scene = Scene::new().await;
    let path = scene.at(WORKSPACE_POLICY);
    scene.admin.get(&path).await.expect(StatusCode::NOT_FOUND);
    let set = scene.admin.post(&path, &delete_older(33)).await.expect(StatusCode::OK);
    assert!(set.id().starts_with("drp-"), "{set:?}");
    assert_eq!(set.attribute("delete-older-than-n-days"), 33);
    let workspace = scene.admin.get(&format!("/api/v2/workspaces/{}", scene.workspace)).await.expect(StatusCode::OK);
    let named = &workspace.data()["relationships"]["data-retention-policy"]["data"];
    assert_eq!(*named, json!({ "id": set.id(), "type": "data-retention-policy-delete-olders" }));

    let kept = scene.admin.post(&path, &dont_delete()).await.expect(StatusCode::OK);
    assert_eq!((kept.id(), kept.data()["type"].clone()), (set.id(), json!("data-retention-policy-dont-deletes")));
    // The word of clients from before 2024.
    let legacy =
        json!({ "data": { "type": "data-retention-policies", "attributes": { "delete-older-than-n-days": 7 } } });
    let set = scene.admin.post(&path, &legacy).await.expect(StatusCode::OK);
    assert_eq!(set.attribute("delete-older-than-n-days"), 7);
}

#[tokio::test]
async fn days_that_make_no_sense_are_refused() {
    let scene = Scene::new().await;
    let path = scene.at(WORKSPACE_POLICY);
    for wrong in [json!(0), json!(-3), json!(36_501), json!(i64::MAX), json!("ten"), json!(1.5), json!(null)] {
        let body = json!({ "data": {
            "type": "data-retention-policy-delete-olders", "attributes": { "delete-older-than-n-days": wrong },
        } });
        let refused = scene.admin.post(&path, &body).await.expect(StatusCode::UNPROCESSABLE_ENTITY);
        assert!(refused.error().0.contains("days"), "{wrong}: {refused:?}");
    }
    let other = json!({ "data": { "type": "moons", "attributes": {} } });
    scene.admin.post(&path, &other).await.expect(StatusCode::UNPROCESSABLE_ENTITY);
    let asked = scene.at("data-retention-preview?delete-older-than-n-days=soon");
    scene.admin.get(&asked).await.expect(StatusCode::BAD_REQUEST);
}

#[tokio::test]
async fn who_may_not_delete_states_sets_no_policy() {
    let scene = Scene::new().await;
    let member = given_member(&scene.server, "jane", &scene.workspace, "write").await;
    let refused = member.post(&scene.at(WORKSPACE_POLICY), &delete_older(1)).await.expect(StatusCode::NOT_FOUND);
    assert!(refused.error().0.contains("admin access to the workspace"), "{refused:?}");
    member.delete(&scene.at(WORKSPACE_POLICY)).await.expect(StatusCode::NOT_FOUND);
}
