# expect: failed 1
package corpus.every_action

deny contains "something is only created" if every action in input.plan.resource_changes[0].change.actions { action == "create" }
