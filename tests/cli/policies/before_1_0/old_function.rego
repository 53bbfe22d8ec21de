# expect: failed 1
package corpus.old_function

is_small(size) { size == "t3.micro" }

deny[msg] {
    not is_small(input.plan.resource_changes[0].change.after.instance_type)
    msg := "not small"
}
