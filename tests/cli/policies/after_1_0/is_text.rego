# expect: errored
package corpus.is_text

deny := "no"
