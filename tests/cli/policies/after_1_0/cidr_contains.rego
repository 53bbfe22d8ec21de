# expect: failed 1
package corpus.cidr_contains

deny contains "outside" if not net.cidr_contains("10.0.0.0/8", "192.168.0.0/24")
