# expect: failed 10
package corpus.addresses

deny contains change.address if some change in input.plan.resource_changes
