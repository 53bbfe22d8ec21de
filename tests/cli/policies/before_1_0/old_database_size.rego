# expect: failed 1
package corpus.old_database_size

deny[rule] {
    rule := rego.metadata.rule()
    input.plan.resource_changes[_].type == "aws_db_instance"
}
