# expect: passed
package corpus.nobody_is_root

deny contains "root" if input.run.created_by == "root"
