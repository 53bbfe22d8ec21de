# expect: passed
package corpus.old_auto_apply

deny[msg] {
    input.run.workspace.auto_apply != false
    msg := "auto apply"
}
