# expect: failed 3
package corpus.old_public_ingress

deny[msg] {
    r := input.plan.resource_changes[_]
    r.type == "aws_security_group"
    r.change.after.ingress[_].cidr_blocks[_] == "0.0.0.0/0"
    msg := sprintf("%v has 0.0.0.0/0 as allowed ingress", [r.address])
}

deny["a second rule"] { true }

deny["a third rule"] { 1 < 2 }
