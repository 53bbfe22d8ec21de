# expect: failed 3
package corpus.walk_cidrs

deny contains sprintf("%v", [value]) if {
	walk(input.plan.resource_changes, [path, value])
	path[count(path) - 1] == "cidr_blocks"
	count(value) > 0
	_ := path[0]
}

deny contains "a rule has no IPv6" if count(object.get(input, "nothing", [])) > 0

deny contains message if {
	walk(input.plan.resource_changes, [path, value])
	path[count(path) - 1] == "ipv6_cidr_blocks"
	count(value) > 0
	message := concat("/", value)
}

deny contains "and one more" if true
