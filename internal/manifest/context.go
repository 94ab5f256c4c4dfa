package manifest

// IsContext tells of a Context of the Kyverno command line: objects and answers for rules
// that look something up.
func (o Object) IsContext() bool {
	return o.Kind() == "Context" && o.APIVersion() == "cli.kyverno.io/v1alpha1"
}

// Objects are the objects in a Context; of another object it is itself.
func (o Object) Objects() []map[string]any {
	if !o.IsContext() {
		return []map[string]any{o.Value}
	}
	spec, _ := o.Value["spec"].(map[string]any)
	resources, _ := spec["resources"].([]any)
	var out []map[string]any
	for _, r := range resources {
		if object, ok := r.(map[string]any); ok {
			out = append(out, object)
		}
	}
	return out
}
