# expect: failed 1
package corpus.glob

deny contains "a bucket" if glob.match("aws_s3_*", [], "aws_s3_bucket")
