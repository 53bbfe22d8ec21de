# Sentinel: restrict-aws-regions
package terraform.regions

allowed := {"eu-central-1", "eu-west-1"}

# What the configuration says: a text, or a variable.
region_of(expression) := expression.constant_value

region_of(expression) := input.plan.variables[name].value if {
	some reference in expression.references
	startswith(reference, "var.")
	name := trim_prefix(reference, "var.")
}

deny contains message if {
	some key, provider in input.plan.configuration.provider_config
	provider.name == "aws"
	region := region_of(provider.expressions.region)
	not region in allowed
	message := sprintf("provider %s is in %s; allowed are %s", [key, region, concat(", ", sort(allowed))])
}
