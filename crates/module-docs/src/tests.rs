use super::*;

fn docs(files: &[(&str, &str)]) -> ModuleDocs {
    let mut source = SourceFiles::default();
    for (path, text) in files {
        source.add(path, Some(text.as_bytes()));
    }
    source.docs()
}

const VARIABLES: &str = r#"
variable "subnets" {
  description = <<-EOT
    Subnets to create.

      - public ones first
  EOT
  type = map(object({
    cidr = string
    tags = optional(map(string), {})
  }))
  default = {
    a = { cidr = "10.0.0.0/24" }
  }
  nullable = false

  validation {
    condition     = length(var.subnets) > 0
    error_message = "At least one."
  }
}

variable "name" {}
variable "password" {
  type      = "string"
  sensitive = true
  ephemeral = true
  default   = null
}
"#;

#[test]
fn inputs_are_shown_as_they_are_written() {
    let root = docs(&[("variables.tf", VARIABLES)]).root;
    let names: Vec<&str> = root.inputs.iter().map(|input| input.name.as_str()).collect();
    assert_eq!(names, ["name", "password", "subnets"]);
    let [name, password, subnets] = root.inputs.as_slice() else { panic!("{root:?}") };
    assert!(name.is_required() && name.nullable && name.constraint.is_empty());
    assert_eq!((password.constraint.as_str(), password.default.as_deref()), ("string", Some("null")));
    assert!(password.sensitive && password.ephemeral && !password.is_required());
    assert_eq!(
        subnets.constraint, "map(object({\n  cidr = string\n  tags = optional(map(string), {})\n}))",
        "without the indentation of the block"
    );
    assert_eq!(subnets.default.as_deref(), Some("{\n  a = { cidr = \"10.0.0.0/24\" }\n}"));
    assert_eq!(subnets.description, "Subnets to create.\n\n  - public ones first");
    assert_eq!((subnets.nullable, subnets.validations.as_slice()), (false, ["At least one.".to_owned()].as_slice()));
}

#[test]
fn everything_that_a_module_declares_is_listed_once() {
    let main = r#"
        terraform {
          required_version = ">= 1.5"
          required_providers {
            aws = {
              source  = "hashicorp/aws"
              version = "~> 5.0"
            }
            null = "~> 3.0"
          }
        }
        resource "aws_vpc" "this" {}
        resource "random_pet" "name" {}
        resource "terraform_data" "x" {}
        data "aws_region" "current" {}
        output "id" {
          description = "Id of the network"
          value       = aws_vpc.this.id
          sensitive   = true
        }
        module "dns" {
          source  = "app.terraform.io/acme/dns/aws"
          version = "1.2.3"
        }
    "#;
    let root = docs(&[("main.tf", main), ("again.tf", "output \"id\" {\n}\n"), ("README.md", "# Network")]).root;
    assert_eq!(root.required_versions, [">= 1.5"]);
    let providers: Vec<_> =
        root.providers.iter().map(|it| (it.name.as_str(), it.source.as_str(), it.version.as_str())).collect();
    assert_eq!(providers, [("aws", "hashicorp/aws", "~> 5.0"), ("null", "", "~> 3.0"), ("random", "", "")]);
    let resources: Vec<_> = root.resources.iter().map(|it| (it.data, it.kind.as_str(), it.name.as_str())).collect();
    assert_eq!(
        resources,
        [
            (false, "aws_vpc", "this"),
            (false, "random_pet", "name"),
            (false, "terraform_data", "x"),
            (true, "aws_region", "current")
        ]
    );
    assert_eq!(root.outputs.len(), 1);
    let call = &root.module_calls[0];
    assert_eq!((call.source.as_str(), call.version.as_str()), ("app.terraform.io/acme/dns/aws", "1.2.3"));
    assert_eq!(root.readme.as_deref(), Some("# Network"));
}

#[test]
fn submodules_and_examples_are_parts_of_their_own() {
    let docs = docs(&[
        ("main.tf", ""),
        ("modules/subnet/main.tf", "variable \"cidr\" {}\n"),
        ("modules/subnet/README.md", "A subnet"),
        ("modules/subnet/deeper/main.tf", "variable \"hidden\" {}\n"),
        ("examples/simple/main.tofu", "module \"m\" {\n  source = \"../..\"\n}\n"),
        ("elsewhere/x/main.tf", "variable \"hidden\" {}\n"),
    ]);
    assert_eq!(docs.submodules.len(), 1);
    assert_eq!((docs.submodules[0].path.as_str(), docs.submodules[0].inputs.len()), ("modules/subnet", 1));
    assert_eq!(docs.submodules[0].readme.as_deref(), Some("A subnet"));
    assert_eq!((docs.examples.len(), docs.examples[0].module_calls[0].source.as_str()), (1, "../.."));
    assert!(docs.root.inputs.is_empty());
}

#[test]
fn json_says_the_same_as_hcl() {
    let text = r#"{
        "terraform": [{ "required_version": ">= 1.6", "required_providers": { "aws": { "source": "hashicorp/aws" } } }],
        "variable": { "region": { "type": "string", "default": "eu", "nullable": false,
                                  "validation": { "condition": "${true}", "error_message": "No." } }, "size": [{}] },
        "output": { "id": { "value": "${aws_vpc.this.id}", "description": "The id" } },
        "resource": { "aws_vpc": { "this": {} } },
        "data": [{ "aws_region": { "current": {} } }],
        "module": { "dns": { "source": "./dns" } }
    }"#;
    let root = docs(&[("main.tf.json", text)]).root;
    assert_eq!(root.inputs[0].default.as_deref(), Some("\"eu\""));
    assert!(!root.inputs[0].nullable && root.inputs[0].validations == ["No."] && root.inputs[1].is_required());
    assert_eq!((root.outputs[0].description.as_str(), root.resources.len()), ("The id", 2));
    assert_eq!((root.module_calls[0].source.as_str(), root.providers[0].source.as_str()), ("./dns", "hashicorp/aws"));
}

#[test]
fn a_file_that_cannot_be_read_is_named_and_hides_no_other() {
    let root = docs(&[("a.tf", "variable \"a\" {"), ("b.tf", "variable \"b\" {}\n"), ("c.tf.json", "[")]).root;
    assert_eq!(root.inputs.len(), 1);
    let reasons: Vec<_> = root.unreadable.iter().map(|it| format!("{}: {}", it.file, it.reason)).collect();
    assert!(reasons[0].starts_with("a.tf: not valid HCL (line 1"), "{reasons:?}");
    assert!(reasons[1].starts_with("c.tf.json: not valid JSON"), "{reasons:?}");
    let mut source = SourceFiles::default();
    source.add("large.tf", Some(&vec![b' '; MAX_FILE_BYTES + 1]));
    source.add("link.tf", None);
    source.add("binary.tf", Some(&[0xff]));
    assert_eq!(source.docs().root.unreadable.len(), 3);
}

#[test]
fn nesting_without_end_is_refused_and_breaks_nothing() {
    for (open, close) in [("[", "]"), ("(", ")"), ("{a=", "}"), ("!", ""), ("f(", ")"), ("\"${", "}\"")] {
        let text = format!("variable \"x\" {{\n  default = {}1{}\n}}\n", open.repeat(20_000), close.repeat(20_000));
        assert_eq!(docs(&[("main.tf", &text)]).root.unreadable.len(), 1, "{open}");
    }
    assert_eq!(docs(&[("main.tf.json", &"[".repeat(100_000))]).root.unreadable.len(), 1);
}

#[test]
fn calls_of_modules_are_found_in_a_directory() {
    let calls = module_calls([
        ("main.tf", "module \"b\" {\n  source = \"x/y/z\"\n}\nmodule \"a\" {\n  source = \"./a\"\n}\n"),
        ("main_override.tf", "module \"b\" {\n  source = \"other\"\n}\n"),
        ("broken.tf", "module {{{"),
    ]);
    let names: Vec<_> = calls.iter().map(|call| (call.name.as_str(), call.source.as_str())).collect();
    assert_eq!(names, [("a", "./a"), ("b", "x/y/z")]);
}

#[test]
fn what_is_stored_is_read_again() {
    let docs = docs(&[("variables.tf", VARIABLES), ("modules/x/main.tf", "output \"o\" {}\n")]);
    let stored = serde_json::to_string(&docs).expect("JSON");
    assert_eq!(serde_json::from_str::<ModuleDocs>(&stored).expect("docs"), docs);
}
