# expect: failed 1
package corpus.comprehension

types := {change.type | some change in input.plan.resource_changes}

deny contains sprintf("%d types", [count(types)]) if count(types) > 3
