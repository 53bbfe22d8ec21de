# Sentinel: no applies on Friday. The day is the one on which the run was started, in UTC.
package terraform.friday

deny contains message if {
	not input.run.speculative
	time.weekday(time.parse_rfc3339_ns(input.run.created_at)) == "Friday"
	message := "it is Friday: apply it on Monday, or have it overridden"
}
