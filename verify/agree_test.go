package verify

import (
	"bytes"
	"context"
	"flag"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"sigs.k8s.io/yaml"

	"github.com/kvap/kvap/cel"
	"github.com/kvap/kvap/internal/judge"
	"github.com/kvap/kvap/interp"
	"github.com/kvap/kvap/policy"
	"github.com/kvap/kvap/schema"
	"github.com/kvap/kvap/translate"
	"github.com/kvap/kvap/vap/apiserver"
)

var (
	agreeSeed   = flag.Uint64("agree.seed", 1, "the first seed of TestAgree")
	agreeFor    = flag.Duration("agree.for", 0, "how long TestAgree looks; 0 for a fixed number of rules")
	agreeShrink = flag.Duration("agree.shrink", 15*time.Second, "how long to shrink a disagreement")
	agreeKind   = flag.String("agree.kind", "", "the only kind to make rules about")
)

// A lab knows the types that rules and requests are made with.
type lab struct {
	setting Setting
	shapes  map[schema.GVK]*schema.Type
}

var theLab = sync.OnceValue(func() *lab {
	release := cel.Latest
	set, err := schema.Builtin(release.String())
	if err != nil {
		panic(err)
	}
	set, found := set.WithCRDs([]byte(gadgetCRD))
	if found.HasErrors() {
		panic(found)
	}
	return &lab{
		setting: Setting{Translate: translate.Options{Release: release, Schemas: set}},
		shapes:  map[schema.GVK]*schema.Type{{Group: "x.io", Version: "v1", Kind: "Widget"}: widget()},
	}
})

// subjects are the kinds that rules are about.
func subjects() []schema.GVK {
	core := func(kind string) schema.GVK { return schema.GVK{Version: "v1", Kind: kind} }
	return []schema.GVK{
		{Group: "x.io", Version: "v1", Kind: "Widget"}, core("Pod"), {Group: "y.io", Version: "v1", Kind: "Gadget"},
		{Group: "x.io", Version: "v1", Kind: "Widget"}, core("Pod"),
		{Group: "apps", Version: "v1", Kind: "Deployment"}, core("Service"), core("ConfigMap"), core("Namespace"),
		core("PersistentVolumeClaim"), core("Secret"),
		{Group: "networking.k8s.io", Version: "v1", Kind: "Ingress"},
		{Group: "rbac.authorization.k8s.io", Version: "v1", Kind: "ClusterRole"},
		{Group: "batch", Version: "v1", Kind: "CronJob"},
		{Group: "networking.k8s.io", Version: "v1", Kind: "NetworkPolicy"},
	}
}

// source is the policy that a list of decisions makes.
func (l *lab) source(c *choice) []byte {
	kind := one(c, subjects()...)
	if *agreeKind != "" {
		for _, k := range subjects() {
			if k.Kind == *agreeKind {
				kind = k
			}
		}
	}
	typ := l.shapes[kind]
	if typ == nil {
		typ = l.setting.Translate.Schemas.Type(kind)
	}
	var out []byte
	for _, object := range rulesAbout(c, kind.Kind, typ) {
		data, err := yaml.Marshal(object)
		if err != nil {
			panic(err)
		}
		out = append(append(out, "---\n"...), data...)
	}
	return out
}

// A trial is one policy, ready to be asked.
type trial struct {
	source    []byte
	judges    *Judges
	generator *generator
	refused   []string
}

// trial is nil where the source is no valid policy or nothing of it is native.
func (l *lab) trial(source []byte, validate bool) (*trial, error) {
	file, found := policy.Parse("p.yaml", source)
	if found.HasErrors() || len(file.Policies) != 1 {
		return nil, nil
	}
	setting := l.setting
	setting.Translate.Exceptions = file.Exceptions
	e, err := NewJudges(file.Policies[0], setting)
	if err != nil {
		return nil, err
	}
	if len(e.Native()) == 0 {
		return nil, nil
	}
	tr := &trial{source: source, judges: e, generator: newGenerator(about(file.Policies[0], file.Exceptions), setting.Translate.Schemas)}
	if validate {
		tr.refused = e.Refused()
	}
	return tr, nil
}

// disagreement judges the request that decisions make.
func (tr *trial) disagreement(c *choice) (*Request, *judge.Opinion, error) {
	r := tr.generator.request(c)
	opinions, err := tr.judges.Judge(context.Background(), r)
	if err != nil {
		return r, nil, err
	}
	for _, o := range opinions {
		if !o.Agree() {
			return r, &o, nil
		}
	}
	return r, nil, nil
}

// complaint is what is wrong with a policy and a request, or "".
func (l *lab) complaint(rule, request *choice, validate bool) (text, class string) {
	source := l.source(rule)
	tr, err := l.trial(source, validate)
	switch {
	case err != nil:
		return fmt.Sprintf("%v\n%s", err, source), "emit"
	case tr == nil:
		return "", ""
	case len(tr.refused) > 0:
		return fmt.Sprintf("refused: %s\n%s", strings.Join(tr.refused, "\n"), source), "refused"
	}
	r, o, err := tr.disagreement(request)
	switch {
	case err != nil:
		return fmt.Sprintf("%v\n%s\n%s", err, source, r), "unreadable"
	case o == nil:
		return "", ""
	}
	return fmt.Sprintf("rule %s: native %s (%s), interpreter %s (%s)\n%s\n%s\n%s", o.Rule.Name, o.Native, o.NativeMessage, o.Status, o.Message, source, r, expressions(tr.judges)),
		string(o.Native) + "/" + string(o.Status)
}

func expressions(e *Judges) string {
	var b strings.Builder
	for _, o := range e.Compiled.Objects {
		for _, c := range o.Policy.Spec.MatchConditions {
			fmt.Fprintf(&b, "condition %s: %s\n", c.Name, c.Expression)
		}
		for _, v := range o.Policy.Spec.Variables {
			fmt.Fprintf(&b, "variable %s: %s\n", v.Name, v.Expression)
		}
		for _, v := range o.Policy.Spec.Validations {
			fmt.Fprintf(&b, "validation: %s\n", v.Expression)
		}
	}
	return b.String()
}

// shrink finds the smallest decisions for which still gives the same class.
func shrink(lists [][]byte, wrong func([][]byte) bool, until time.Time) [][]byte {
	try := func(i int, shorter []byte) bool {
		if time.Now().After(until) || bytes.Equal(shorter, lists[i]) {
			return false
		}
		candidate := append([][]byte{}, lists...)
		candidate[i] = shorter
		if !wrong(candidate) {
			return false
		}
		lists = candidate
		return true
	}
	for again := true; again && time.Now().Before(until); {
		again = false
		for i := range lists {
			for size := max(len(lists[i])/2, 1); size > 0; size /= 2 {
				for at := 0; at+size <= len(lists[i]); {
					without := append(append([]byte{}, lists[i][:at]...), lists[i][at+size:]...)
					zeroed := append([]byte{}, lists[i]...)
					clear(zeroed[at : at+size])
					switch {
					case try(i, without):
						again = true
					case try(i, zeroed):
						again = true
						at += size
					default:
						at += size
					}
				}
			}
			for at := range lists[i] {
				for at < len(lists[i]) && lists[i][at] > 0 {
					lower := append([]byte{}, lists[i]...)
					lower[at]--
					if !try(i, lower) {
						break
					}
					again = true
				}
			}
		}
	}
	return lists
}

// Wherever a rule has a native form, it gives every request the verdict that the
// interpreter gives. Run with -agree.for to look longer, and further with
// -agree.seed.
func TestAgree(t *testing.T) {
	l := theLab()
	const perRule = 12
	rules, native, pairs, matched, both := 0, 0, 0, 0, 0
	stats := map[string]int{}
	begin := time.Now()
	seen := map[string]bool{}
	for seed := *agreeSeed; ; seed++ {
		if *agreeFor == 0 && rules >= 640 || *agreeFor > 0 && time.Since(begin) > *agreeFor {
			break
		}
		rules++
		rule := choose(seed)
		source := l.source(rule)
		tr, err := l.trial(source, true)
		if err == nil && tr == nil {
			continue
		}
		if err != nil || len(tr.refused) > 0 {
			report(t, l, seed, rule.list, nil, seen)
			continue
		}
		native++
		sides := map[interp.Status]bool{}
		for i := range perRule {
			c := choose(seed<<8 + uint64(i))
			r := tr.generator.request(c)
			opinions, err := tr.judges.Judge(context.Background(), r)
			pairs++
			if err != nil {
				t.Errorf("seed %d: %v\n%s\n%s", seed, err, source, r)
				break
			}
			wrong := false
			for _, o := range opinions {
				stats[string(o.Status)+"/"+string(o.Native)]++
				sides[o.Status] = true
				if o.Native != apiserver.NoMatch {
					matched++
				}
				wrong = wrong || !o.Agree()
			}
			if wrong {
				report(t, l, seed, rule.list, c.list, seen)
				break
			}
		}
		if sides[interp.Fail] && (sides[interp.Pass] || sides[interp.Skip] || sides[interp.None]) {
			both++
		}
	}
	if *agreeFor == 0 && (native < 250 || both < 100 || matched < 1000 || stats["fail/deny"] < 400 || stats["pass/allow"] < 150) {
		t.Errorf("the rules and requests try too little")
	}
	t.Logf("%d rules, %d native, %d with both verdicts; %d requests, %d opinions of matching rules; %v; %v", rules, native, both, pairs, matched, stats, time.Since(begin))
}

// report shrinks what is wrong and tells of it.
func report(t *testing.T, l *lab, seed uint64, rule, request []byte, seen map[string]bool) {
	t.Helper()
	_, class := l.complaint(replay(rule), replay(request), true)
	lists := shrink([][]byte{rule, request}, func(lists [][]byte) bool {
		_, got := l.complaint(replay(lists[0]), replay(lists[1]), class == "refused")
		return got == class
	}, time.Now().Add(*agreeShrink))
	text, _ := l.complaint(replay(lists[0]), replay(lists[1]), class == "refused")
	if seen[text] {
		return
	}
	seen[text] = true
	t.Errorf("seed %d: %s", seed, text)
}

// FuzzAgree is TestAgree on the decisions that a fuzzer makes.
func FuzzAgree(f *testing.F) {
	l := theLab()
	for seed := range uint64(30) {
		rule, request := choose(seed), choose(seed+1000)
		tr, err := l.trial(l.source(rule), false)
		if err != nil || tr == nil {
			continue
		}
		tr.generator.request(request)
		f.Add(rule.list, request.list)
	}
	f.Fuzz(func(t *testing.T, rule, request []byte) {
		if text, _ := l.complaint(replay(rule), replay(request), true); text != "" {
			t.Error(text)
		}
	})
}
