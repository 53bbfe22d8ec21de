# Sentinel: restrict-ingress-sg-rule-cidr-blocks
package terraform.open_ports

everybody := {"0.0.0.0/0", "::/0"}

allowed_ports := {80, 443}

rules contains {"address": change.address, "rule": rule} if {
	some change in input.plan.resource_changes
	change.type == "aws_security_group"
	some rule in change.change.after.ingress
}

rules contains {"address": change.address, "rule": change.change.after} if {
	some change in input.plan.resource_changes
	change.type == "aws_security_group_rule"
	change.change.after.type == "ingress"
}

deny contains message if {
	some found in rules
	blocks := array.concat(list(found.rule, "cidr_blocks"), list(found.rule, "ipv6_cidr_blocks"))
	some block in blocks
	block in everybody
	not is_web(found.rule)
	message := sprintf("%s lets %s reach ports %d to %d", [
		found.address, block, found.rule.from_port, found.rule.to_port,
	])
}

is_web(rule) if {
	rule.from_port == rule.to_port
	rule.from_port in allowed_ports
}

list(rule, name) := rule[name] if is_array(rule[name])

list(rule, name) := [] if not is_array(object.get(rule, name, null))
