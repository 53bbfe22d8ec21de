# expect: failed 1
package corpus.base64

deny contains base64.decode("bm8=") if base64.encode("no") == "bm8="
