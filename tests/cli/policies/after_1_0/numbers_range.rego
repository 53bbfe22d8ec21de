# expect: failed 3
package corpus.numbers_range

deny contains number if some number in numbers.range(1, 3)
