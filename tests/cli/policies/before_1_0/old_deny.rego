# expect: failed 10
package corpus.old_deny

deny[msg] {
    change := input.plan.resource_changes[_]
    msg := sprintf("%s is touched", [change.address])
}
