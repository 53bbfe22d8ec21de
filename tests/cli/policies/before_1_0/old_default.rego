# expect: passed
package corpus.old_default

default allow = true

deny[msg] {
    not allow
    msg := "no"
}
