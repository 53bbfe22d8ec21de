# expect: failed 1
package corpus.cidr_merge

deny contains block if some block in net.cidr_merge(["10.0.0.0/25", "10.0.0.128/25"])
