# expect: errored
package corpus.is_object

deny[key] := 1 if some key, _ in input.run
