# expect: failed 1
package corpus.regex

deny contains change.address if {
	some change in input.plan.resource_changes
	regex.match(`^google_`, change.type)
}
