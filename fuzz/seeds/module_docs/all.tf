terraform {
  required_version = ">= 1.5"
  required_providers {
    aws = { source = "hashicorp/aws", version = "~> 5.0" }
    null = "~> 3.0"
  }
}
variable "subnets" {
  description = <<-EOT
    Subnets
  EOT
  type = map(object({ cidr = optional(string, "x") }))
  default = {}
  nullable = false
  sensitive = true
  validation {
    condition = length(var.subnets) > 0
    error_message = "One ${var.subnets}"
  }
}
output "id" {
  value = aws_vpc.this.id
}
resource "aws_vpc" "this" {}
data "aws_region" "current" {}
module "dns" {
  source = "taco.test/acme/dns/aws//modules/x"
  version = "1.2.3"
}
