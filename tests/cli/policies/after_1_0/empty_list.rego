# expect: passed
package corpus.empty_list

deny := []
