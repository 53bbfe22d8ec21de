# expect: failed 1
package corpus.metadata

# METADATA
# title: a title
deny contains rego.metadata.rule().title if true
