# Sentinel: restrict-ec2-instance-type
package terraform.instance_types

allowed := {"t3.micro", "t3.small", "t3.medium", "m6i.large"}

attributes := {
	"aws_instance": "instance_type",
	"aws_launch_template": "instance_type",
	"aws_db_instance": "instance_class",
}

deny contains message if {
	some change in input.plan.resource_changes
	some action in ["create", "update"]
	action in change.change.actions
	type := trim_prefix(change.change.after[attributes[change.type]], "db.")
	not type in allowed
	message := sprintf("%s is a %s; allowed are %s", [change.address, type, concat(", ", sort(allowed))])
}
