# expect: passed
package corpus.default_value

default risky := false

risky if input.plan.errored

deny contains "risky" if risky
