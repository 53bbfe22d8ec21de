# expect: failed 1
package corpus.parameters

deny contains input.parameters.word if input.parameters.word
