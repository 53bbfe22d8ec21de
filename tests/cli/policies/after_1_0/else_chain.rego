# expect: failed 1
package corpus.else_chain

level := "large" if count(input.plan.resource_changes) > 100

else := "middle" if count(input.plan.resource_changes) > 5

else := "small"

deny contains level if level != "small"
