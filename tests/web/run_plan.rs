//! Plans as files.

use axum::http::StatusCode;
use serde_json::json;
use taco_control_plane::PlanForm;

use crate::run_scene::{RunScene, planned};

#[tokio::test]
async fn a_plan_is_downloaded_as_json_and_whole_only_by_who_may_read_it_whole() {
    let scene = RunScene::start().await;
    let run = scene.given_run(json!({})).await;
    let phase = scene.take().await;
    let (whole, redacted) = (json!({ "password": "hunter2" }), json!({ "password": null }));
    scene.plan_as(&phase, PlanForm::Json, &whole).await;
    scene.plan(&phase, &redacted).await;
    let at = |form: &str| format!("{}/plan/{form}", RunScene::address(&run));
    assert!(!scene.look(&run).await.text.contains(&at("redacted")), "it is still being made");
    assert_eq!(scene.admin.get(&at("redacted")).await.status, StatusCode::NOT_FOUND);
    scene.finish(&phase, planned()).await;

    let page = scene.look(&run).await;
    for (form, json) in [("redacted", &redacted), ("whole", &whole)] {
        assert!(page.text.contains(&format!("href=\"{}\"", at(form))), "{form}: {}", page.text);
        let file = scene.admin.get(&at(form)).await;
        assert_eq!((file.status, &file.text), (StatusCode::OK, &json.to_string()));
        assert_eq!((file.header("content-type"), file.header("cache-control")), ("application/json", "no-store"));
        let name = format!("attachment; filename=\"{run}-plan-{form}.json\"");
        assert_eq!(file.header("content-disposition"), name);
    }
    assert_eq!(scene.admin.get(&at("nonsense")).await.status, StatusCode::NOT_FOUND);

    let reader = scene.server.member("rita", "acme", &scene.workspace, "read").await;
    let page = reader.get(&RunScene::address(&run)).await;
    assert!(page.text.contains(&at("redacted")) && !page.text.contains(&at("whole")), "{}", page.text);
    assert_eq!(reader.get(&at("redacted")).await.text, redacted.to_string());
    let refused = reader.get(&at("whole")).await;
    assert_eq!(refused.status, StatusCode::FORBIDDEN, "{}", refused.text);
    assert!(!refused.text.contains("hunter2"));
    let stranger = scene.server.stranger("eve").await;
    assert_eq!(stranger.get(&at("redacted")).await.status, StatusCode::NOT_FOUND);
    let nobody = scene.server.browser().get(&at("whole")).await;
    assert_eq!(nobody.status, StatusCode::SEE_OTHER);
}
