package deviation

// blindDeletion: the rule's check needs an object, which a DELETE has not. To kvap
// such a rule does not match; Kyverno's preconditions and context are looked at,
// and what they err with keeps the object from being deleted.
func blindDeletion(d Difference) bool {
	v := d.Rule.Validate
	if d.Operation != "DELETE" || d.Want != "error" && d.Want != "skip" || v == nil || v.Deny != nil {
		return false
	}
	return d.admits() && (v.Pattern != nil || v.AnyPattern != nil || v.PodSecurity != nil)
}
