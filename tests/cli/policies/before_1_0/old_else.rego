# expect: failed 1
package corpus.old_else

price = 10 { input.plan.errored } else = 20 { true }

deny[msg] {
    price > 15
    msg := "dear"
}
