# expect: failed 1
package corpus.json_marshal

deny contains json.marshal({"a": [1, true, null]}) if true
