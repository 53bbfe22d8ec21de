# The ten policies that most organizations begin with. Publish them with
#   taco policy create baseline --global --overridable
#   taco policy publish examples/policies --set baseline

policy "tags" {
  query             = "data.terraform.tags.deny"
  enforcement_level = "mandatory"
  description       = "Whatever can be tagged says who owns it and what it costs"
}

policy "instance-types" {
  query             = "data.terraform.instance_types.deny"
  enforcement_level = "mandatory"
  description       = "Instances are of a size that somebody has agreed to"
}

policy "regions" {
  query             = "data.terraform.regions.deny"
  enforcement_level = "mandatory"
  description       = "Everything is in a region that data may be in"
}

policy "public-buckets" {
  query             = "data.terraform.public_buckets.deny"
  enforcement_level = "mandatory"
  description       = "Nobody reads a bucket from the internet"
}

policy "open-ports" {
  query             = "data.terraform.open_ports.deny"
  enforcement_level = "mandatory"
  description       = "Only web servers listen to everybody"
}

policy "destroy-guard" {
  query             = "data.terraform.destroy_guard.deny"
  enforcement_level = "mandatory"
  description       = "Data stores are not deleted or replaced by accident"
}

policy "module-sources" {
  query             = "data.terraform.module_sources.deny"
  enforcement_level = "mandatory"
  description       = "Modules come from the private registry, at a version"
}

policy "provider-versions" {
  query             = "data.terraform.provider_versions.deny"
  enforcement_level = "advisory"
  description       = "Providers have a constraint on their version"
}

policy "cost" {
  query             = "data.terraform.cost.deny"
  enforcement_level = "advisory"
  description       = "A run does not make the bill much larger"
}

policy "friday" {
  query             = "data.terraform.friday.deny"
  enforcement_level = "advisory"
  description       = "Nobody wants to be called on Saturday"
}
