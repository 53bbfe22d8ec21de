# expect: errored
package corpus.is_boolean

deny if count(input.plan.resource_changes) > 0
