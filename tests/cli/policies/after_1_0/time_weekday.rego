# expect: failed 1
package corpus.time_weekday

deny contains time.weekday(time.parse_rfc3339_ns(input.run.created_at)) if true
