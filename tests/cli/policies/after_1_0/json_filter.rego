# expect: failed 1
package corpus.json_filter

deny contains json.filter({"a": 1, "b": 2}, ["a"]) if true
