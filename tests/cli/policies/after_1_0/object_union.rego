# expect: failed 2
package corpus.object_union

deny contains key if some key, _ in object.union({"a": 1}, {"b": 2})
