package controller

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/kvap/kvap/api/v1alpha1"
	"github.com/kvap/kvap/compile"
	"github.com/kvap/kvap/policy"
	"github.com/kvap/kvap/translate"
)

// The copy of a policy stays below what etcd takes, and comes back as it was or not at
// all.
func TestLastGoodFits(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	noise := func(n int) string {
		var out strings.Builder
		for out.Len() < n {
			fmt.Fprintf(&out, "%x", random.Uint64())
		}
		return out.String()
	}
	for name, text := range map[string]string{
		"short": "a policy", "long": strings.Repeat("a policy ", 100_000), "of noise": noise(1 << 20),
	} {
		s := &policySource{text: []byte(text), policy: &policy.Policy{Name: "p"}, mode: v1alpha1.ModeEnforce}
		kept := s.lastGood()
		if size := len(asJSON(kept)); size > maxStatus/2 {
			t.Errorf("%s: %d bytes", name, size)
		}
		got, err := textOf(kept)
		if err != nil || isKept(kept) != (got != nil) || got != nil && string(got) != text || (got == nil) != (name == "of noise") {
			t.Errorf("%s: %d bytes came back: %v", name, len(got), err)
		}
		said := (&passResult{}).statusOf(s, v1alpha1.PolicyTranslationStatus{}).Conditions[0].Message
		if strings.Contains(said, "too large") != (got == nil) {
			t.Errorf("%s: %s", name, said)
		}
	}
}

// A policy of very many rules has a status that the API server takes.
func TestStatusFits(t *testing.T) {
	p := &policy.Policy{Name: "p"}
	o := &passResult{compileResult: compileResult{rules: map[*policy.Policy][]*compile.Rule{}}}
	const rules = 10_000
	for i := range rules {
		o.rules[p] = append(o.rules[p], &compile.Rule{
			Policy: p, Source: &policy.Rule{Name: fmt.Sprint("rule-", i)}, Target: translate.Webhook, Reason: strings.Repeat("a long reason ", 10),
		})
	}
	got := o.statusOf(&policySource{policy: p, mode: v1alpha1.ModeEnforce}, v1alpha1.PolicyTranslationStatus{})
	if size := len(asJSON(got)); size > maxStatus+100 || len(got.Rules) < 1000 || len(got.Rules)+int(got.RulesLeftOut) != rules {
		t.Errorf("%d bytes, %d rows and %d left out", size, len(got.Rules), got.RulesLeftOut)
	}
	if got.Webhook != rules {
		t.Errorf("%d rules are counted", got.Webhook)
	}
}

// A text that is packed takes the place of one that was not, which is not merged into
// it.
func TestLastGoodIsReplaced(t *testing.T) {
	before := v1alpha1.PolicyTranslationStatus{LastGood: &v1alpha1.LastGood{Digest: "a", Policy: "short"}}
	got := nullsFor(before, v1alpha1.PolicyTranslationStatus{LastGood: &v1alpha1.LastGood{Digest: "b", Packed: []byte{1}}})
	if good := got["lastGood"].(map[string]any); good["packed"] == nil || good["policy"] != nil || len(good) != 3 {
		t.Errorf("%v", good)
	}
}
