package background

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/kvap/kvap/api/v1alpha1"
)

// What is there is looked at page by page, however much it is, as work for it is done;
// and what was made for it goes in the same way.
func TestPages(t *testing.T) {
	var there []string
	for i := range 9 {
		there = append(there, strings.NewReplacer("name: shop", fmt.Sprintf("name: shop-%d", i), "uid: u1", fmt.Sprintf("uid: u%d", i)).Replace(shop))
	}
	b := start(t, copies, append(there, source)...)
	b.options.Kinds = func(_, _, kind string) []v1alpha1.KindReference {
		return []v1alpha1.KindReference{{APIVersion: "v1", Kind: kind}}
	}
	b.room = 3
	b.begin()
	most, from := 0, []scanCursor{{}}
	for range 100 {
		most = max(most, b.queue.Len())
		if b.queue.Len() == 0 {
			next, err := b.doScan(t.Context(), b.rule(ruleID{"kyverno.io/ClusterPolicy//copies", "secret"}), from[len(from)-1])
			if err != nil {
				t.Fatal(err)
			}
			if from = append(from, next); next == (scanCursor{}) {
				break
			}
		}
		b.drain()
	}
	b.drain()
	for i := range 9 {
		if b.stored("v1", "Secret", fmt.Sprintf("shop-%d", i), "s") == nil {
			t.Errorf("nothing for shop-%d: %v", i, b.cluster.log)
		}
	}
	if most > 5 || len(from) < 3 {
		t.Errorf("%d waited at once, in the parts %v", most, from)
	}

	b.cluster.log = nil
	b.Set(PolicySet{})
	b.drain()
	for name := range b.requests {
		b.doRequest(t.Context(), name)
	}
	if gone := len(b.cluster.log); gone != 9 || slices.ContainsFunc(b.cluster.log, func(s string) bool { return !strings.HasPrefix(s, "delete Secret shop-") }) {
		t.Errorf("%v", b.cluster.log)
	}
}

// Of many failures some are told.
func TestJoined(t *testing.T) {
	var all []error
	for i := range mostTold + 7 {
		all = append(all, fmt.Errorf("failure %d", i))
	}
	text := joined(all).Error()
	if got := strings.Count(text, "\n"); got != mostTold || !strings.HasSuffix(text, "and 7 more") || joined(nil) != nil || len(all) != mostTold+7 {
		t.Errorf("%d lines: %s", got, text)
	}
}
