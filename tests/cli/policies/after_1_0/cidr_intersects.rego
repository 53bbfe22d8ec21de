# expect: passed
package corpus.cidr_intersects

deny contains "overlap" if net.cidr_intersects("10.0.0.0/24", "10.0.1.0/24")
