#!/bin/sh
# Two units, a bucket and no server: plan, apply, a change that reaches the second unit, and everything destroyed again.
# It needs `taco`, and terraform on PATH (or the internet, to download it). The bucket is a directory, unless TACO_BUCKET
# names another one; nothing else on this machine is changed.
set -eu

place=$(mktemp -d)
trap 'rm -rf "$place"' EXIT
cd "$place"
export TACO_BUCKET="${TACO_BUCKET:-file://$place/bucket}"

say() {
    printf '\n== %s\n' "$*"
}

# A plan with changes ends with 2, as `terraform plan -detailed-exitcode` does.
plan() {
    say "taco plan $*"
    taco plan "$@" || [ $? -eq 2 ]
}

mkdir network app
cat > network/main.tf <<'END'
variable "name" { default = "blue" }
resource "terraform_data" "network" { input = var.name }
output "name" { value = terraform_data.network.output }
END
cat > app/main.tf <<'END'
data "terraform_remote_state" "network" {
  backend = "remote"
  config = {
    hostname     = "taco.local"
    organization = "main"
    workspaces   = { name = "network" }
  }
}
resource "terraform_data" "app" { input = data.terraform_remote_state.network.outputs.name }
END

plan network
say "taco apply network" && taco apply network --auto-approve
say "taco apply app" && taco apply app --auto-approve
say "taco graph" && taco graph --org main
say "a change of network" && taco apply network --auto-approve --var name=green
say "taco why main/app" && taco why main/app
plan app
say "taco destroy" && taco destroy app --auto-approve && taco destroy network --auto-approve
say "done: no server runs, and none was started"
