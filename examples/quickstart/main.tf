# A first configuration. It needs no provider and no cloud account: terraform_data is built into Terraform and OpenTofu.

variable "greeting" {
  description = "Text that the service says."
  type        = string
  default     = "Hello from taco"
}

variable "regions" {
  description = "One service is created in each."
  type        = set(string)
  default     = ["amsterdam", "berlin", "lisbon"]
}

resource "terraform_data" "network" {
  input = { cidr = "10.0.0.0/16" }
}

resource "terraform_data" "service" {
  for_each = var.regions

  input = {
    region  = each.key
    network = terraform_data.network.output.cidr
    text    = var.greeting
  }
}

output "services" {
  description = "What each service says."
  value       = { for region, service in terraform_data.service : region => service.output.text }
}
