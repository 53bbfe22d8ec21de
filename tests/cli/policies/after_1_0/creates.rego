# expect: failed 9
package corpus.creates

deny contains change.address if {
	some change in input.plan.resource_changes
	"create" in change.change.actions
}
