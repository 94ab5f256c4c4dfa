package background

import (
	"strings"
	"testing"
	"time"
)

const youngShop = `{apiVersion: v1, kind: Namespace, metadata: {name: shop, uid: u1, creationTimestamp: "2001-09-09T01:46:40Z", labels: {team: a}}}`

// What a review says to be created is believed where the API server has stored just
// that, just now: a review that somebody else wrote makes nothing, and is told.
func TestForgedCreation(t *testing.T) {
	for _, tt := range []struct {
		name, review string
		later        time.Duration // from the creation to the request
		made         bool
	}{
		{"the API server's", youngShop, 0, true},
		{"the API server's, and slow", youngShop, time.Minute, true},
		{"by a clock that is behind", youngShop, -30 * time.Second, true},
		{"of another object of the name", strings.Replace(youngShop, "u1", "u2", 1), 0, false},
		{"of any object of the name", strings.Replace(youngShop, "uid: u1, ", "", 1), 0, false},
		{"of no time", strings.Replace(youngShop, `creationTimestamp: "2001-09-09T01:46:40Z", `, "", 1), 0, false},
		{"of a later time", strings.Replace(youngShop, "46:40Z", "46:41Z", 1), 0, false},
		{"a copy, when the object is there for long", youngShop, 3 * time.Minute, false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			b := start(t, settings, youngShop)
			b.now = b.now.Add(tt.later)
			name := b.asked("CREATE", object(t, tt.review), nil)[0]
			b.doRequest(t.Context(), name)
			b.now = b.now.Add(2 * patience)
			b.doRequest(t.Context(), name)
			if made := b.stored("v1", "ConfigMap", "shop", "defaults") != nil; made != tt.made || len(b.requests) > 0 {
				t.Errorf("made %t; %v", made, b.requests)
			}
			if told := len(b.told) == 1 && b.told[0].Reason == reasonMistrusted; told == tt.made && !strings.Contains(tt.review, "u2") {
				t.Errorf("told %v", b.told)
			}
		})
	}
}

// A review of a change is believed where the object that it tells of is there, and one of a
// deletion unless another one of the name was there before.
func TestForgedChange(t *testing.T) {
	const old = `{apiVersion: v1, kind: Namespace, metadata: {name: shop, uid: u1, resourceVersion: "1", creationTimestamp: "2001-09-09T01:40:00Z", labels: {team: a}}}`
	another, anonymous := strings.Replace(old, "u1", "u2", 1), strings.Replace(old, "uid: u1, ", "", 1)
	changed := func(text string) string {
		return strings.Replace(text, `resourceVersion: "1"`, `resourceVersion: "2"`, 1)
	}
	unlabelled := func(text string) string { return strings.Replace(changed(text), ", labels: {team: a}", "", 1) }
	for _, tt := range []struct {
		name, there, object, old string
		mistrusted               bool
	}{
		{"the API server's", changed(old), changed(old), old, false},
		{"of another object of the name", changed(old), changed(another), another, true},
		{"of any object of the name", changed(old), changed(anonymous), anonymous, true},
		{"of one object that became another", changed(old), changed(old), another, true},
		{"of another object that triggers no longer", changed(old), unlabelled(another), another, true},
		{"of a deletion", "", "", old, false},
		{"of a deletion of another object of the name", old, "", another, true},
		{"of a deletion, where the name was given anew", strings.Replace(another, "01:40:00Z", "01:46:39Z", 1), "", old, false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			b := start(t, settings, old)
			b.now = b.now.Add(-400 * time.Second)
			b.doRequest(t.Context(), b.asked("CREATE", object(t, old), nil)[0])
			b.now = b.now.Add(400 * time.Second)
			made := b.stored("v1", "ConfigMap", "shop", "defaults")
			delete(b.cluster.objects, b.cluster.keyOf(object(t, old)))
			operation, subject := "DELETE", map[string]any(nil)
			if tt.object != "" {
				operation, subject = "UPDATE", object(t, tt.object)
			}
			if tt.there != "" {
				b.cluster.store(object(t, tt.there))
			}
			b.told = nil
			for _, name := range b.asked(operation, subject, object(t, tt.old)) {
				b.doRequest(t.Context(), name)
				b.now = b.now.Add(2 * patience)
				b.doRequest(t.Context(), name)
			}
			mistrusted := len(b.told) == 1 && b.told[0].Reason == reasonMistrusted
			if mistrusted != tt.mistrusted || len(b.requests) > 0 {
				t.Errorf("told %v; %v", b.told, b.requests)
			}
			if kept := b.stored("v1", "ConfigMap", "shop", "defaults"); made == nil || tt.mistrusted && kept == nil {
				t.Errorf("what was made is %v, and was %v", kept, made)
			}
		})
	}
}
