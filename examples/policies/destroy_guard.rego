# Sentinel: prevent-destruction-of-prohibited-resources
package terraform.destroy_guard

guarded := {
	"aws_db_instance", "aws_dynamodb_table", "aws_efs_file_system", "aws_kms_key", "aws_s3_bucket",
	"azurerm_storage_account", "google_sql_database_instance", "google_storage_bucket",
}

deny contains message if {
	# A run that is meant to destroy everything was asked for as such.
	not input.run.is_destroy
	some change in input.plan.resource_changes
	change.type in guarded
	"delete" in change.change.actions
	message := sprintf("%s would be deleted%s", [change.address, replaced(change.change.actions)])
}

replaced(actions) := " and created again" if "create" in actions

replaced(actions) := "" if not "create" in actions
