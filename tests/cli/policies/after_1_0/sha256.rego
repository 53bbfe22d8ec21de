# expect: failed 1
package corpus.sha256

deny contains substring(crypto.sha256("a"), 0, 8) if true
