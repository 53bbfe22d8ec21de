# expect: failed 2
package corpus.functions

is_bucket(change) if change.type == "aws_s3_bucket"

deny contains change.address if {
	some change in input.plan.resource_changes
	is_bucket(change)
}
