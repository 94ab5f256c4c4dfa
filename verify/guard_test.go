package verify

import (
	"context"
	"strings"
	"testing"

	"github.com/kvap/kvap/policy"
	"github.com/kvap/kvap/translate"
	"github.com/kvap/kvap/vap"
	"github.com/kvap/kvap/vap/apiserver"
)

// Whatever the rule and the request, an object with a guard says of both what it
// says without: the same outcome with the same message, errors included, but that a
// message goes on with what else is violated. So no guard is an error, and none is
// false where a validation is not true.
func TestGuardsKeepEveryVerdict(t *testing.T) {
	l := theLab()
	const rules, perRule, enough = 280, 16, 83
	guards, outcomes := 0, map[apiserver.Outcome]int{}
	for seed := uint64(1); seed <= rules; seed++ {
		source := l.source(choose(seed))
		plain, err := l.guarded(source, seed, translate.GuardNever)
		if err != nil || plain == nil {
			continue
		}
		with, err := l.guarded(source, seed, translate.GuardAuto)
		if err != nil || with == nil {
			t.Fatalf("seed %d: there is no translation with guards: %v\n%s", seed, err, source)
		}
		for _, o := range with.judges.Compiled.Objects {
			if m, _, _ := vap.TranslationOf(o.Policy.Annotations); m.Guard != "" {
				guards++
			}
		}
		otherwise := packedByMatch(seed) || len(with.judges.Compiled.Objects) != len(plain.judges.Compiled.Objects)
		for i := range uint64(perRule) {
			r := plain.generator.request(choose(seed<<8 + i))
			want, err := plain.judges.Judge(context.Background(), r)
			if err != nil {
				t.Fatalf("seed %d: %v", seed, err)
			}
			got, err := with.judges.Judge(context.Background(), r)
			if err != nil {
				t.Fatalf("seed %d: %v", seed, err)
			}
			for k, w := range want {
				outcomes[w.Native]++
				g := got[k]
				if !sameOutcome(g.Native, w.Native, otherwise) || !goesOn(w.Rule.Name, g.NativeMessage, w.NativeMessage) && !packedByMatch(seed) {
					t.Errorf("seed %d: %s is %s (%s) without a guard and %s (%s) with it\n%s\n%s\n%s", seed, w.Rule.Name,
						w.Native, w.NativeMessage, g.Native, g.NativeMessage, source, r, expressions(with.judges))
				}
			}
			if t.Failed() {
				return
			}
		}
	}
	if guards < enough || outcomes[apiserver.Allow] == 0 || outcomes[apiserver.Deny] == 0 || outcomes[apiserver.Error] == 0 {
		t.Errorf("%d guards, outcomes %v: the rules do not try them", guards, outcomes)
	}
}

// sameOutcome: where a guard changes what shares an object, other conditions of the
// rules are that object's.
func sameOutcome(a, b apiserver.Outcome, otherwisePacked bool) bool {
	admits := func(o apiserver.Outcome) bool { return o == apiserver.NoMatch || o == apiserver.Allow }
	return a == b || otherwisePacked && admits(a) && admits(b)
}

// goesOn tells that a message is the other one, with or without the rule's name in
// front of it, and perhaps more.
func goesOn(rule, got, want string) bool {
	bare := func(message string) string { return strings.TrimPrefix(message, "["+rule+"] ") }
	return strings.HasPrefix(bare(got), bare(want))
}

func packedByMatch(seed uint64) bool { return seed%3 == 0 }

// guarded is a trial of a rule with or without guards; the seed says how it is
// packed and what becomes of errors.
func (l *lab) guarded(source []byte, seed uint64, guard translate.Guard) (*trial, error) {
	file, found := policy.Parse("p.yaml", source)
	if found.HasErrors() || len(file.Policies) != 1 {
		return nil, nil
	}
	p := file.Policies[0]
	if seed%2 == 0 {
		p.FailurePolicy = policy.Ignore
	}
	setting := l.setting
	setting.Translate.Exceptions = file.Exceptions
	setting.Translate.Guard = guard
	if packedByMatch(seed) {
		setting.Translate.Pack = translate.PackMatch
	}
	e, err := NewJudges(p, setting)
	if err != nil || len(e.Native()) == 0 {
		return nil, err
	}
	return &trial{source: source, judges: e, generator: newGenerator(about(p, file.Exceptions), setting.Translate.Schemas)}, nil
}
