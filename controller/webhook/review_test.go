package webhook

import (
	"errors"
	"strings"
	"testing"
)

// FuzzDecode holds the decoder to its promise: whatever comes in, it says what is
// wrong or gives a review that can be described and has what judging needs.
func FuzzDecode(f *testing.F) {
	f.Add(creation(f, plain))
	f.Add(creation(f, plain, `{"operation":"DELETE","object":null,"oldObject":{"metadata":{"name":1}}}`))
	f.Add(creation(f, plain, `{"userInfo":{"groups":[1,"a",null]},"dryRun":"yes","namespace":[]}`))
	f.Add(`{"apiVersion":"admission.k8s.io/v1","kind":"AdmissionReview","request":{"uid":"a","operation":"CREATE","kind":{"kind":"A"},"object":[]}}`)
	f.Add(strings.Repeat(`{"a":`, 5000))
	f.Fuzz(func(t *testing.T, body string) {
		r, err := decode([]byte(body))
		if len(body) > 1<<16 && !errors.Is(err, errTooLarge) {
			t.Errorf("%d bytes: %v", len(body), err)
		}
		if err != nil {
			return
		}
		if r.uid == "" || r.kind() == "" || r.operation == "" || r.request == nil {
			t.Errorf("%s: incomplete: %+v", body, r)
		}
		if r.describe().Resource == "" {
			t.Error("the resource has no name")
		}
		if changed := r.with(map[string]any{}); changed.request["object"] == nil || changed.uid != r.uid {
			t.Errorf("%s: changing the object went wrong", body)
		}
	})
}
