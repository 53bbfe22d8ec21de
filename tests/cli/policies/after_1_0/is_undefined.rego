# expect: errored
package corpus.is_undefined

something_else contains 1 if true
