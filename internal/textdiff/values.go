package textdiff

import (
	"encoding/json"
	"fmt"
	"reflect"
)

// Values is how two values differ, line by line in their JSON; empty where they are
// deeply equal. It calls no methods that it finds by reflection, as go-cmp does: where
// anything does that, the linker keeps every method of every type, and a test that
// knows the API server becomes twice as large.
func Values(before, after any) string {
	if reflect.DeepEqual(before, after) {
		return ""
	}
	if d := Diff(written(before), written(after)); d != "" {
		return d
	}
	return fmt.Sprintf("- %#v\n+ %#v\n", before, after) // what JSON leaves out
}

func written(v any) string {
	if text, ok := v.(string); ok {
		return text
	}
	data, err := json.MarshalIndent(v, "", "  ")
	if err != nil {
		return fmt.Sprintf("%#v", v)
	}
	return string(data)
}
