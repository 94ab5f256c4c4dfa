package translate_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/kvap/kvap/translate"
	"github.com/kvap/kvap/vap"
	"github.com/kvap/kvap/vap/apiserver"
)

// alike are policies whose rules have one name and differ in all that a policy
// object has once, or that guards one rule of several.
func alike() string {
	deny := func(key string) string {
		return fmt.Sprintf(`{message: "%[1]s of {{ request.object.metadata.name }}", deny: {conditions: {all: [{key: "{{ request.object.data.%[1]s || '' }}", operator: Equals, value: bad}]}}}`, key)
	}
	var b strings.Builder
	add := func(name, metadata, spec, match, rest, key string) {
		kind := "ClusterPolicy"
		if metadata != "" {
			kind = "Policy"
		}
		fmt.Fprintf(&b, "---\n"+`{apiVersion: kyverno.io/v1, kind: %s, metadata: {name: %s%s}, spec: {%s rules: [{name: same, match: {any: [{resources: {%s}}]}, %s validate: %s}]}}`+"\n",
			kind, name, metadata, spec, match, rest, deny(key))
	}
	const enforce, maps = "validationFailureAction: Enforce,", "kinds: [ConfigMap]"
	add("variable", "", enforce, maps, `context: [{name: v, variable: {jmesPath: "request.object.data.q || 'x'"}}], preconditions: {all: [{key: "{{ v }}", operator: NotEquals, value: skip}]},`, "a")
	add("variable-too", "", enforce, maps+", names: [x*]", `context: [{name: v, variable: {jmesPath: "request.object.data.p || 'x'"}}], preconditions: {all: [{key: "{{ v }}", operator: NotEquals, value: skip}]},`, "b")
	add("selecting", "", enforce, maps+", namespaceSelector: {matchLabels: {e: f}}", "", "c")
	add("bound", ", namespace: app", enforce, maps, "", "d")
	add("conditional", "", enforce+` webhookConfiguration: {matchConditions: [{name: m, expression: "object.metadata.name != 'no'"}]},`, maps, "", "e")
	add("audit", "", "", maps, "", "f")
	add("audit-too", "", "", maps, "", "b")
	add("ignore", "", enforce+" failurePolicy: Ignore,", maps, "", "g")
	add("erring", "", enforce, maps, `preconditions: {all: [{key: "{{ request.object.data.needed }}", operator: NotEquals, value: skip}]},`, "h")
	add("kinds", "", enforce, "kinds: [ConfigMap, Secret]", "", "a")
	return b.String()
}

// However rules share policy objects, the same of them are violated, and a request
// is refused alike.
func TestPacksSayTheSame(t *testing.T) {
	t.Parallel()
	var packs []translated
	for _, pack := range []translate.Pack{translate.PackRule, translate.PackPolicy, translate.PackMatch} {
		packs = append(packs, translateText(t, alike(), setting{pack: pack, namespaces: map[string]map[string]string{"lab": {"e": "f"}}}))
	}
	if a, b := len(packs[0].result.Objects), len(packs[2].result.Objects); a <= b {
		t.Errorf("%d objects for rules that share none, %d for those that share what they can", a, b)
	}
	refused := 0
	for _, namespace := range []string{"app", "lab", "other"} {
		for _, name := range []string{"xa", "no"} {
			for _, data := range []string{
				`{}`, `{"a":"bad","needed":"1"}`, `{"b":"bad","needed":"1"}`, `{"c":"bad","needed":"1"}`, `{"d":"bad","needed":"1"}`,
				`{"e":"bad","needed":"1"}`, `{"f":"bad","needed":"1"}`, `{"g":"bad","needed":"1"}`, `{"h":"bad","needed":"1"}`, `{"h":"bad","needed":"skip"}`,
				`{"a":"bad","q":"skip","needed":"1"}`, `{"b":"bad","p":"skip","needed":"1"}`, `{"b":"bad","q":"skip","needed":"1"}`,
			} {
				object := fmt.Sprintf(`{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":%q,"namespace":%q},"data":%s}`, name, namespace, data)
				want := packs[0].violated(t, object)
				if strings.Contains(want, "refused") {
					refused++
				}
				if got := packs[1].violated(t, object); got != want {
					t.Errorf("%s\n by policy: %s\n by rule: %s", object, got, want)
				}
				// preconditions that err do so in a match condition, or deny in a validation
				if got := packs[2].violated(t, object); got != strings.Replace(want, "erring error", "erring deny", 1) {
					t.Errorf("%s\n by match: %s\n by rule: %s", object, got, want)
				}
			}
		}
	}
	if refused == 0 {
		t.Error("nothing is refused")
	}
}

// violated are the rules that a new object violates or that err, and whether it is
// refused.
func (p translated) violated(t *testing.T, object string) string {
	t.Helper()
	verdicts, err := p.judge.Review(t.Context(), objectRequest(t, "CREATE", object, ""), nil)
	if err != nil {
		t.Fatal(err)
	}
	var out []string
	add := func(s string) {
		if !slices.Contains(out, s) {
			out = append(out, s)
		}
	}
	for _, v := range verdicts {
		i := slices.IndexFunc(p.result.Objects, func(o vap.Objects) bool { return o.Policy.Name == v.Policy })
		translation, _, err := vap.TranslationOf(p.result.Objects[i].Policy.Annotations)
		if err != nil {
			t.Fatal(err)
		}
		for i, m := range v.Members(translation) {
			if m.Outcome == apiserver.Deny || m.Outcome == apiserver.Error {
				add(fmt.Sprint(translation.Members[i].Policy, " ", m.Outcome))
			}
		}
		if v.Refused {
			add("refused")
		}
	}
	slices.Sort(out)
	return strings.Join(out, ", ")
}
