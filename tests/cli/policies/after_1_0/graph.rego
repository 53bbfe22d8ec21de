# expect: failed 3
package corpus.graph

deny contains node if some node in graph.reachable({"a": ["b"], "b": ["c"], "c": []}, {"a"})
