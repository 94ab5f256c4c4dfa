package interp

// dig is the value at a path of keys, or nil.
func dig(object map[string]any, path ...string) any {
	var v any = object
	for _, key := range path {
		m, ok := v.(map[string]any)
		if !ok {
			return nil
		}
		v = m[key]
	}
	return v
}

// digText is the string at a path of keys, or "".
func digText(object map[string]any, path ...string) string {
	s, _ := dig(object, path...).(string)
	return s
}

// digMap is the map at a path of keys, or nil.
func digMap(object map[string]any, path ...string) map[string]any {
	m, _ := dig(object, path...).(map[string]any)
	return m
}

func metaText(object map[string]any, key string) string {
	return digText(object, "metadata", key)
}

// metaMap is a map of strings of the metadata; entries of other types are left
// out.
func metaMap(object map[string]any, key string) map[string]string {
	m := digMap(object, "metadata", key)
	out := make(map[string]string, len(m))
	for k, v := range m {
		if s, ok := v.(string); ok {
			out[k] = s
		}
	}
	return out
}

// stringsOf are the strings of a list.
func stringsOf(v any) []string {
	list, _ := v.([]any)
	var out []string
	for _, item := range list {
		if s, ok := item.(string); ok {
			out = append(out, s)
		}
	}
	return out
}
