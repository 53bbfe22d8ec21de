# expect: failed 1
package corpus.strings

deny contains upper(trim_space(replace(" no way ", "way", "go"))) if strings.any_prefix_match("abc", ["a"])
