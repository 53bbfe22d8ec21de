use taco_agent_protocol::{Engine, VariableCategory};

use crate::scenario::{Run, Scenario};

const SHOW: &str = r#"
variable "from_default" { default = "default" }
variable "from_tfvars" { default = "default" }
variable "from_auto" { default = "default" }
variable "from_workspace" { default = "default" }
variable "from_environment" { default = "default" }
variable "list" { default = [] }
variable "odd" { default = "" }
variable "TFC_RUN_ID" { default = "" }
output "all" {
  value = [var.from_default, var.from_tfvars, var.from_auto, var.from_workspace, var.from_environment]
}
output "list" { value = var.list }
output "odd" { value = var.odd }
output "run" { value = var.TFC_RUN_ID }
"#;

#[tokio::test]
async fn variables_of_the_workspace_win_over_files_and_files_stay_as_they_are() {
    let scenario = Scenario::begin().await;
    let odd = "a \"quoted\" ${not.code} %{ if }\nsecond line \\ end";
    for engine in Engine::ALL {
        scenario.server.seen().state = None;
        let run = Run::of(
            engine,
            &[
                ("main.tf", SHOW),
                ("terraform.tfvars", "from_tfvars = \"tfvars\"\nfrom_auto = \"tfvars\"\nfrom_workspace = \"tfvars\"\n"),
                ("zzz.auto.tfvars", "from_auto = \"auto\"\nfrom_workspace = \"auto\"\n"),
            ],
        )
        .variable("from_workspace", "workspace", |_| {})
        .variable("list", "[1, \"two\"]", |variable| variable.hcl = true)
        .variable("odd", odd, |_| {})
        .variable("TF_VAR_from_environment", "environment", |variable| variable.category = VariableCategory::Env);
        scenario.apply(&run).await;
        let outputs = scenario.server.state()["outputs"].clone();
        let expected = serde_json::json!(["default", "tfvars", "auto", "workspace", "environment"]);
        assert_eq!(outputs["all"]["value"], expected, "{engine}");
        assert_eq!(outputs["list"]["value"], serde_json::json!([1, "two"]));
        assert_eq!(outputs["odd"]["value"], odd);
        assert_eq!(outputs["run"]["value"], run.id.to_string());
    }
}
