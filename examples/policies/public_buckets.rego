# Sentinel: require-private-acl-and-kms-for-s3-buckets
package terraform.public_buckets

public_acls := {"public-read", "public-read-write", "authenticated-read"}

switches := {"block_public_acls", "block_public_policy", "ignore_public_acls", "restrict_public_buckets"}

deny contains message if {
	some change in input.plan.resource_changes
	change.type in {"aws_s3_bucket", "aws_s3_bucket_acl"}
	change.change.after.acl in public_acls
	message := sprintf("%s is open to everybody (acl %s)", [change.address, change.change.after.acl])
}

deny contains message if {
	some change in input.plan.resource_changes
	change.type == "aws_s3_bucket_public_access_block"
	some switch in switches
	change.change.after[switch] == false
	message := sprintf("%s turns %s off", [change.address, switch])
}

deny contains message if {
	some change in input.plan.resource_changes
	change.type == "google_storage_bucket_iam_member"
	change.change.after.member in {"allUsers", "allAuthenticatedUsers"}
	message := sprintf("%s gives %s to everybody", [change.address, change.change.after.role])
}
