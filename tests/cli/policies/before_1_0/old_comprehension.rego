# expect: failed 1
package corpus.old_comprehension

buckets = {r.address | r := input.plan.resource_changes[_]; r.type == "aws_s3_bucket"}

deny[msg] {
    count(buckets) == 2
    msg := "two"
}
