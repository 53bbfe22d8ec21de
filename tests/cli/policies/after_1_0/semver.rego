# expect: passed
package corpus.semver

deny contains "old" if semver.compare(input.plan.terraform_version, "1.5.0") < 0
