package record

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"strings"
	"testing"
)

func b64(s string) string { return base64.StdEncoding.EncodeToString([]byte(s)) }

// TestNoSecretIsRecorded puts the values of Secrets everywhere where they may stand,
// and looks for them in what is written.
func TestNoSecretIsRecorded(t *testing.T) {
	secret := func(password, token string, more map[string]any) map[string]any {
		o := map[string]any{
			"apiVersion": "v1", "kind": "Secret", "type": "Opaque", "data": map[string]any{"password": b64(password), "empty": ""},
			"stringData": map[string]any{"token": token},
			"metadata": map[string]any{
				"name": "s", "labels": map[string]any{"hint": password},
				"annotations": map[string]any{
					lastApplied: `{"data":{"password":"` + b64(password) + `"},"stringData":{"token":"` + token + `"}}`,
					"copy":      "password=" + password + ";token=" + b64(token), "harmless": "stays",
				},
				"managedFields": []any{map[string]any{"fieldsV1": map[string]any{"f:data": map[string]any{"f:password": password}}}},
			},
		}
		for k, v := range more {
			o[k] = v
		}
		return o
	}
	for name, request := range map[string]map[string]any{
		"update": {"uid": "1", "kind": map[string]any{"kind": "Secret", "version": "v1", "group": ""},
			"object": secret("hunter2-new", "tok-new-9", nil), "oldObject": secret("hunter2-old", "tok-old-9", nil)},
		"no kind in the object": {"uid": "1", "kind": map[string]any{"kind": "Secret", "version": "v1", "group": ""},
			"oldObject": secret("hunter2-old", "tok-old-9", map[string]any{"kind": nil})},
		"of odd shape": {"uid": "1", "kind": map[string]any{"kind": "Secret", "version": "v1", "group": ""},
			"object": secret("hunter2-new", "tok-new-9", map[string]any{"data": []any{"hunter2-new", map[string]any{"a": "tok-old-9"}}})},
		"a review of a token": {"uid": "1", "kind": map[string]any{"kind": "TokenReview", "version": "v1", "group": "authentication.k8s.io"},
			"object": map[string]any{"kind": "TokenReview", "spec": map[string]any{"token": "tok-new-9"}}},
	} {
		t.Run(name, func(t *testing.T) {
			data, _ := json.Marshal(map[string]any{"request": request})
			r := &Recorder{options: Options{Mask: plain(t), Namespace: func(string) map[string]any { return nil }}}
			line, err := r.line(data)
			if err != nil {
				t.Fatal(err)
			}
			for _, value := range []string{"hunter2-new", "hunter2-old", "tok-new-9", "tok-old-9"} {
				for _, form := range []string{value, b64(value)} {
					if bytes.Contains(line, []byte(form)) {
						t.Errorf("%q is in the line:\n%s", form, line)
					}
				}
			}
			if bytes.Contains(line, []byte("managedFields")) {
				t.Error("managed fields are in the line")
			}
			if name == "update" && !bytes.Contains(line, []byte(`"harmless":"stays"`)) {
				t.Errorf("too much is masked:\n%s", line)
			}
		})
	}
}

// TestMaskKeepsWhatJudgesNeed: the shape, the types, and which values are equal.
func TestMaskKeepsWhatJudgesNeed(t *testing.T) {
	m := plain(t)
	same, other := b64("hunter2"), b64("hunter3")
	request := map[string]any{
		"kind":   map[string]any{"kind": "Secret"},
		"object": map[string]any{"data": map[string]any{"a": same, "b": other}}, "oldObject": map[string]any{"data": map[string]any{"a": same, "b": same}},
	}
	m.Request(request)
	now, before := request["object"].(map[string]any)["data"].(map[string]any), request["oldObject"].(map[string]any)["data"].(map[string]any)
	if now["a"] != before["a"] || now["b"] == before["b"] {
		t.Errorf("now %v, before %v; want a to be the same and b to be another", now, before)
	}
	if _, err := base64.StdEncoding.DecodeString(now["a"].(string)); err != nil {
		t.Errorf("data is no base64 any more: %v", err)
	}
}

// TestChosenFields are masked in the kinds that they are chosen of.
func TestChosenFields(t *testing.T) {
	m, err := NewMasker([]string{"spec.containers.env.value", "ConfigMap/data.*", "metadata.annotations[acme.io/token]", "spec['deep'].count"}, []byte("key"))
	if err != nil {
		t.Fatal(err)
	}
	request := map[string]any{
		"object": map[string]any{
			"kind":     "Pod",
			"metadata": map[string]any{"annotations": map[string]any{"acme.io/token": "abcdef", "acme.io/other": "stays"}},
			"data":     map[string]any{"key": "stays"},
			"spec": map[string]any{
				"containers": []any{map[string]any{"name": "stays", "env": []any{map[string]any{"name": "stays", "value": "topsecret"}}}},
				"deep":       map[string]any{"count": int64(7), "list": []any{int64(7)}},
			},
		},
		"oldObject": map[string]any{"kind": "ConfigMap", "data": map[string]any{"key": "topsecret", "flag": true, "empty": ""}},
	}
	m.Request(request)
	text, _ := json.Marshal(request)
	for _, gone := range []string{"topsecret", "abcdef", `"count":7`, `"flag":true`} {
		if strings.Contains(string(text), gone) {
			t.Errorf("%s is in %s", gone, text)
		}
	}
	if n := strings.Count(string(text), `"stays"`); n != 4 || !strings.Contains(string(text), `"list":[7]`) {
		t.Errorf("too much is masked: %s", text)
	}
	for _, bad := range []string{"", "a..b", "a[b", "Pod/", "."} {
		if _, err := NewMasker([]string{bad}, nil); err == nil {
			t.Errorf("the field %q is taken", bad)
		}
	}
}
