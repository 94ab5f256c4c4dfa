package jsonpatch

import (
	"encoding/json"
	"fmt"
	"strings"

	kjson "k8s.io/apimachinery/pkg/util/json"
	"sigs.k8s.io/yaml"
)

// An Operation is one step of a patch.
type Operation struct {
	Op    string `json:"op"`
	Path  string `json:"path"`
	From  string `json:"from,omitempty"`
	Value any    `json:"value,omitempty"`

	hasValue bool
}

// MarshalJSON writes a value of null where the operation has one.
func (o Operation) MarshalJSON() ([]byte, error) {
	m := map[string]any{"op": o.Op, "path": o.Path}
	switch o.Op {
	case "move", "copy":
		m["from"] = o.From
	case "add", "replace", "test":
		m["value"] = o.Value
	}
	return json.Marshal(m)
}

// A Patch is a list of operations.
type Patch []Operation

// maxText bounds the text of a patch.
const maxText = 4 << 20

// Parse reads a patch. What begins with a bracket is JSON, all else YAML.
func Parse(text string) (Patch, error) {
	if len(text) > maxText {
		return nil, fmt.Errorf("the patch is longer than %d bytes", maxText)
	}
	data := []byte(text)
	if !strings.HasPrefix(text, "[") {
		var err error
		if data, err = yaml.YAMLToJSON(data); err != nil {
			return nil, fmt.Errorf("the patch is no YAML: %w", err)
		}
	}
	if !strings.HasPrefix(strings.TrimSpace(string(data)), "[") {
		return nil, fmt.Errorf("the patch must be a list of operations")
	}
	var raw []any
	if err := kjson.Unmarshal(data, &raw); err != nil {
		return nil, fmt.Errorf("the patch must be a list of operations: %w", err)
	}
	patch := make(Patch, 0, len(raw))
	for i, item := range raw {
		op, err := operation(item)
		if err != nil {
			return nil, fmt.Errorf("operation %d: %w", i+1, err)
		}
		patch = append(patch, op)
	}
	return patch, nil
}

func operation(item any) (op Operation, err error) {
	m, ok := item.(map[string]any)
	if !ok {
		return op, fmt.Errorf("it must be a map")
	}
	if op.Op, err = textField(m, "op"); err != nil {
		return op, err
	}
	if op.Path, err = textField(m, "path"); err != nil {
		return op, err
	}
	op.Value, op.hasValue = m["value"]
	switch op.Op {
	case "remove":
	case "add", "replace", "test":
		if !op.hasValue {
			return op, fmt.Errorf("%s needs a value", op.Op)
		}
	case "move", "copy":
		op.From, err = textField(m, "from")
	default:
		err = fmt.Errorf("there is no operation %q", op.Op)
	}
	return op, err
}

func textField(m map[string]any, key string) (string, error) {
	s, ok := m[key].(string)
	if !ok {
		return "", fmt.Errorf("it needs a text under %s", key)
	}
	return s, nil
}
