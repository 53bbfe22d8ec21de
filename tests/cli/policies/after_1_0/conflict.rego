# expect: errored
package corpus.conflict

deny := [action] if {
	some change in input.plan.resource_changes
	some action in change.change.actions
}
