# expect: passed
package corpus.old_all

deny[msg] {
    all([true, true]) == false
    msg := "not all"
}
