# Sentinel: limit-proposed-monthly-cost. A plan has no prices, so the ones that matter stand here, per month.
package terraform.cost

prices := {
	"aws_instance": {"t3.micro": 8, "t3.small": 17, "t3.medium": 33, "m6i.large": 77},
	"aws_nat_gateway": {"": 37},
	"aws_lb": {"": 20},
}

limit := to_number(object.get(object.get(input, "parameters", {}), "monthly-limit", "100"))

price(type, attributes) := prices[type][size] if {
	size := object.get(attributes, "instance_type", "")
}

added := sum([price(change.type, change.change.after) |
	some change in input.plan.resource_changes
	"create" in change.change.actions
])

removed := sum([price(change.type, change.change.before) |
	some change in input.plan.resource_changes
	"delete" in change.change.actions
])

deny contains message if {
	added - removed > limit
	message := sprintf("the run adds %d to the bill of a month; the limit is %d", [added - removed, limit])
}
