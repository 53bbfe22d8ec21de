//! One configuration reads the outputs of another.

use harness::installation::SITE_TOKEN;

use crate::scene::{Scene, says, told_by_both};

told_by_both!(outputs_are_read_by_other_configurations(Cloud));

async fn outputs_are_read_by_other_configurations(scene: Scene) {
    let producer = scene.initialized(r#"output "greeting" { value = { words = ["hello", "there"] } }"#).await;
    producer.runs("apply -auto-approve").await;
    let (host, address) = (scene.installation.host(), scene.http_address("web"));
    let consumer = scene.user.directory(
        "consumer",
        &format!(
            r#"
            data "terraform_remote_state" "remote" {{
              backend = "remote"
              config = {{
                hostname     = "{host}"
                organization = "acme"
                workspaces   = {{ name = "web" }}
              }}
            }}
            data "terraform_remote_state" "http" {{
              backend = "http"
              config = {{
                address  = "{address}"
                username = "anyone"
                password = "{SITE_TOKEN}"
              }}
            }}
            output "remote" {{ value = data.terraform_remote_state.remote.outputs.greeting.words[1] }}
            output "http" {{ value = data.terraform_remote_state.http.outputs.greeting.words[0] }}
            "#
        ),
    );
    consumer.runs("init").await;
    consumer.runs("apply -auto-approve").await;
    assert_eq!(consumer.runs("output -raw remote").await, "there");
    assert_eq!(consumer.runs("output -raw http").await, "hello");

    let elsewhere = consumer.read("main.tf").replace(r#"name = "web""#, r#"name = "none""#);
    consumer.write("main.tf", &elsewhere);
    says(&consumer.fails("plan").await, "Unable to find remote state");
}
