package doc

import (
	"encoding/json"
	"io"
	"reflect"

	"sigs.k8s.io/yaml"
)

// WriteJSON writes a value in the form that programs read: by its own tags, with empty lists
// in the place of null ones.
func WriteJSON(w io.Writer, value any) error {
	e := json.NewEncoder(w)
	e.SetEscapeHTML(false)
	e.SetIndent("", "  ")
	return e.Encode(withLists(value))
}

// writeYAML writes the same as YAML.
func writeYAML(w io.Writer, value any) error {
	text, err := yaml.Marshal(withLists(value))
	if err != nil {
		return err
	}
	_, err = w.Write(text)
	return err
}

// withLists is a copy of a value that has empty lists where there are none.
func withLists(value any) any {
	if value == nil {
		return nil
	}
	return filled(reflect.ValueOf(value)).Interface()
}

func filled(v reflect.Value) reflect.Value {
	switch v.Kind() {
	case reflect.Pointer:
		if v.IsNil() {
			return v
		}
		out := reflect.New(v.Type().Elem())
		out.Elem().Set(filled(v.Elem()))
		return out
	case reflect.Slice:
		if v.Type().Elem().Kind() == reflect.Uint8 { // which is text, or JSON already
			return v
		}
		out := reflect.MakeSlice(v.Type(), v.Len(), v.Len())
		for i := range v.Len() {
			out.Index(i).Set(filled(v.Index(i)))
		}
		return out
	case reflect.Struct:
		out := reflect.New(v.Type()).Elem()
		out.Set(v)
		for i := range v.NumField() {
			if v.Type().Field(i).IsExported() {
				out.Field(i).Set(filled(v.Field(i)))
			}
		}
		return out
	}
	return v
}
