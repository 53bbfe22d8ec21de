//! One server on a laptop, with what its quick start prints and nothing in between.

use harness::engine::Engine;
use harness::installation::{Installation, Transport};

use crate::scene::{Backend, Scene, says};

const RESOURCES: &str = r#"resource "terraform_data" "web" { input = "hello" }"#;

async fn works(engine: Engine, transport: Transport) {
    for backend in [Backend::Cloud, Backend::Remote, Backend::Http] {
        let scene = Scene::at(Installation::on_a_laptop(transport), engine, backend).await;
        let here = scene.initialized(RESOURCES).await;
        says(&here.runs("apply -auto-approve").await, "1 added");
        says(&here.runs("plan").await, "No changes.");
        says(&here.runs("destroy -auto-approve").await, "1 destroyed");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn terraform_works_with_the_block_that_the_server_prints() {
    works(Engine::Terraform, Transport::Http).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn tofu_works_with_the_block_that_the_server_prints() {
    works(Engine::Tofu, Transport::Http).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn terraform_trusts_the_certificate_that_the_server_makes() {
    works(Engine::Terraform, Transport::Https).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn tofu_trusts_the_certificate_that_the_server_makes() {
    works(Engine::Tofu, Transport::Https).await;
}
