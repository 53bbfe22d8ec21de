# expect: failed 2
package corpus.old_future

import future.keywords

deny[change.address] {
    some change in input.plan.resource_changes
    change.type == "aws_s3_bucket"
}
