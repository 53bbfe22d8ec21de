# expect: failed 1
package corpus.workspace

deny contains sprintf("%s in %s", [input.run.workspace.name, input.run.organization.name]) if "prod" in input.run.workspace.tags
