# Sentinel: enforce-provider-version-constraints
package terraform.provider_versions

deny contains message if {
	some key, provider in input.plan.configuration.provider_config
	not provider.module_address
	not is_built_in(provider)
	object.get(provider, "version_constraint", "") == ""
	message := sprintf("provider %s has no constraint on its version", [key])
}

is_built_in(provider) if provider.full_name == "terraform.io/builtin/terraform"
