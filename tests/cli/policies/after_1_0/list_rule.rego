# expect: failed 2
package corpus.list_rule

deny := ["one", "two"]
