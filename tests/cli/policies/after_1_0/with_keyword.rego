# expect: passed
package corpus.with_keyword

wrong if input.run.is_destroy

deny contains "never" if {
	not wrong with input as {"run": {"is_destroy": true}}
}
