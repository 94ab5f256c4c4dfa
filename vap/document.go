package vap

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
)

// An orderedObject is JSON in the order of its fields, which is that of the API.
type orderedObject struct {
	kind   byte // '{', '[', 's' for a string, 'x' for any other scalar
	text   string
	keys   []string // of an object
	values []*orderedObject
}

// documentOf is the object without what a server fills in: creationTimestamp, an empty status,
// and of what policies and bindings match, the defaults. apiVersion comes before kind.
func documentOf(object any) (*orderedObject, error) {
	text, err := json.Marshal(object)
	if err != nil {
		return nil, err
	}
	dec := json.NewDecoder(bytes.NewReader(text))
	dec.UseNumber()
	d, err := readDocument(dec)
	if err != nil {
		return nil, err
	}
	if d.kind != '{' {
		return nil, fmt.Errorf("%T is no object", object)
	}
	if len(d.keys) > 1 && d.keys[0] == "kind" && d.keys[1] == "apiVersion" {
		slices.Reverse(d.keys[:2])
		slices.Reverse(d.values[:2])
	}
	d.drop("status", func(v *orderedObject) bool { return v.kind == '{' && len(v.keys) == 0 })
	if i := slices.Index(d.keys, "metadata"); i >= 0 {
		d.values[i].drop("creationTimestamp", func(v *orderedObject) bool { return v.text == "null" })
	}
	if strings.HasPrefix(d.at("apiVersion").text, "admissionregistration.k8s.io/") {
		for _, field := range []string{"matchConstraints", "matchResources"} {
			d.at("spec").at(field).dropDefaults()
		}
	}
	return d, nil
}

// at is the field of an object; an empty document where there is none.
func (d *orderedObject) at(key string) *orderedObject {
	if i := slices.Index(d.keys, key); i >= 0 {
		return d.values[i]
	}
	return &orderedObject{}
}

// dropDefaults leaves out of MatchResources what the API server would write into them.
func (d *orderedObject) dropDefaults() {
	for _, key := range []string{"namespaceSelector", "objectSelector"} {
		d.drop(key, func(v *orderedObject) bool { return len(v.keys) == 0 })
	}
	d.drop("matchPolicy", func(v *orderedObject) bool { return v.text == string(defaultMatchPolicy) })
	for _, key := range []string{"resourceRules", "excludeResourceRules"} {
		for _, rule := range d.at(key).values {
			rule.drop("scope", func(v *orderedObject) bool { return v.text == "*" })
		}
	}
}

func (d *orderedObject) drop(key string, empty func(*orderedObject) bool) {
	if i := slices.Index(d.keys, key); i >= 0 && empty(d.values[i]) {
		d.keys = slices.Delete(d.keys, i, i+1)
		d.values = slices.Delete(d.values, i, i+1)
	}
}

func readDocument(dec *json.Decoder) (*orderedObject, error) {
	token, err := dec.Token()
	if err != nil {
		return nil, err
	}
	switch t := token.(type) {
	case json.Delim:
		d := &orderedObject{kind: byte(t)}
		for dec.More() {
			if d.kind == '{' {
				key, err := dec.Token()
				if err != nil {
					return nil, err
				}
				d.keys = append(d.keys, key.(string)) // a JSON object's keys are strings
			}
			v, err := readDocument(dec)
			if err != nil {
				return nil, err
			}
			d.values = append(d.values, v)
		}
		_, err := dec.Token() // the closing delimiter
		return d, err
	case string:
		return &orderedObject{kind: 's', text: t}, nil
	case nil:
		return &orderedObject{kind: 'x', text: "null"}, nil
	}
	return &orderedObject{kind: 'x', text: fmt.Sprint(token)}, nil
}

// json writes d as JSON, to be indented by a json.Encoder.
func (d *orderedObject) json(w *bytes.Buffer) error {
	switch d.kind {
	case '{', '[':
		w.WriteByte(d.kind)
		for i, v := range d.values {
			if i > 0 {
				w.WriteByte(',')
			}
			if d.kind == '{' {
				if err := jsonString(w, d.keys[i]); err != nil {
					return err
				}
				w.WriteByte(':')
			}
			if err := v.json(w); err != nil {
				return err
			}
		}
		w.WriteByte(d.kind + 2) // the closing one, in ASCII
	case 's':
		return jsonString(w, d.text)
	default:
		w.WriteString(d.text)
	}
	return nil
}

func jsonString(w *bytes.Buffer, s string) error {
	enc := json.NewEncoder(w)
	enc.SetEscapeHTML(false) // CEL is full of < and &
	if err := enc.Encode(s); err != nil {
		return err
	}
	w.Truncate(w.Len() - 1) // Encode ends with a line break
	return nil
}
