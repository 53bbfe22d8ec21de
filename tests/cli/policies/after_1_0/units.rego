# expect: failed 1
package corpus.units

deny contains units.parse_bytes("1Ki") if true
