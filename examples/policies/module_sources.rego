# Sentinel: require-modules-from-pmr
package terraform.module_sources

# The host of your taco.
registry := object.get(object.get(input, "parameters", {}), "registry", "taco.example.com")

# Calls of modules, also within modules.
calls contains {"name": name, "call": call} if {
	walk(input.plan.configuration.root_module, [path, value])
	path[count(path) - 1] == "module_calls"
	some name, call in value
}

deny contains message if {
	some found in calls
	not is_local(found.call.source)
	not startswith(found.call.source, sprintf("%s/", [registry]))
	message := sprintf("module %s comes from %s, and not from %s", [found.name, found.call.source, registry])
}

deny contains message if {
	some found in calls
	startswith(found.call.source, sprintf("%s/", [registry]))
	not found.call.version_constraint
	message := sprintf("module %s has no version", [found.name])
}

is_local(source) if startswith(source, "./")

is_local(source) if startswith(source, "../")
