# expect: failed 1
package corpus.objects_as_findings

deny contains {"address": change.address, "why": "gone"} if {
	some change in input.plan.resource_changes
	change.change.actions == ["delete"]
}
