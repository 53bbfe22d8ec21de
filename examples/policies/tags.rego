# Sentinel: enforce-mandatory-tags
package terraform.tags

required := {"owner", "cost-center"}

deny contains message if {
	some change in input.plan.resource_changes
	change.mode == "managed"
	some action in ["create", "update"]
	action in change.change.actions
	"tags" in object.keys(change.change.after)
	tags := object.union({}, object.get(change.change.after, "tags_all", null_as_empty(change.change.after.tags)))
	missing := required - object.keys(tags)
	count(missing) > 0
	message := sprintf("%s has no tag %s", [change.address, concat(", ", sort(missing))])
}

null_as_empty(tags) := tags if is_object(tags)

null_as_empty(null) := {}
