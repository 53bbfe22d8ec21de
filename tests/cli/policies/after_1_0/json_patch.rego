# expect: passed
package corpus.json_patch

deny contains "not patched" if json.patch({"a": 1}, [{"op": "add", "path": "b", "value": 2}]).b != 2
