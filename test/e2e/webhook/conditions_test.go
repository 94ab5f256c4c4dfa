//go:build e2e

package webhook

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kvap/kvap/api/v1alpha1"
	"github.com/kvap/kvap/test/e2e/testcluster"
)

// numbers is a list in CEL of so many.
func numbers(n int) string {
	texts := make([]string, n)
	for i := range texts {
		texts[i] = strconv.Itoa(i)
	}
	return "[" + strings.Join(texts, ",") + "]"
}

// counting is a Policy of a namespace with four match conditions of its own that count.
func counting(namespace, name, condition string) string {
	var conditions strings.Builder
	for i := range 4 {
		fmt.Fprintf(&conditions, "    - {name: counts-%d, expression: \"request.name != '%s' && %s\"}\n", i, name, condition)
	}
	return fmt.Sprintf(`apiVersion: kvap.dev/v1alpha1
kind: Policy
metadata: {name: %[2]s, namespace: %[1]s}
spec:
  webhookConfiguration:
    matchConditions:
%[3]s  rules:
  - name: r
    match: {any: [{resources: {kinds: [Secret]}}]}
    context: [{name: all, apiCall: {urlPath: /api/v1/namespaces/%[1]s/configmaps}}]
    validate: {failureAction: Enforce, message: m, deny: {conditions: {any: [{key: "{{ all.items | length(@) }}", operator: GreaterThan, value: 100}]}}}
`, namespace, name, conditions.String())
}

// apiServerTime is how long the API server has used processors.
func (c *cluster) apiServerTime(t *testing.T) time.Duration {
	t.Helper()
	lines, err := filepath.Glob("/proc/[0-9]*/cmdline")
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range lines {
		line, err := os.ReadFile(file)
		if words := strings.Split(string(line), "\x00"); err != nil || !strings.HasSuffix(words[0], "/kube-apiserver") || !strings.Contains(string(line), c.Plane.Dir()) {
			continue
		}
		stat, err := os.ReadFile(filepath.Join(filepath.Dir(file), "stat"))
		if err != nil {
			t.Fatal(err)
		}
		fields := strings.Fields(string(stat[strings.LastIndexByte(string(stat), ')')+1:])) // from the third on
		var ticks int
		for _, field := range fields[11:13] { // of the program, and of the system for it
			n, err := strconv.Atoi(field)
			if err != nil {
				t.Fatal(err)
			}
			ticks += n
		}
		return time.Duration(ticks) * time.Second / 100
	}
	t.Skip("the API server's processor time cannot be read here")
	return 0
}

// However much the match conditions of a namespace's policies count, and however many policies
// these are, a write in the namespace costs the API server little, and those of others do not wait.
func TestConditionsOfANamespaceCostLittle(t *testing.T) {
	for name, condition := range map[string]string{
		"dear":  strings.NewReplacer("LIST", numbers(37)).Replace("LIST.all(a, LIST.all(b, LIST.all(c, a + b + c >= 0)))"), // counts to 51,000
		"cheap": strings.NewReplacer("LIST", numbers(40)).Replace("LIST.all(a, LIST.all(b, a + b >= 0))"),
	} {
		t.Run(name, func(t *testing.T) {
			const many = 100
			shared.Namespace(t, name, nil)
			shared.Namespace(t, "stream", nil)
			shared.start(t, "")
			shared.Apply(t, guarded)
			shared.denied(t, unowned)
			for i := range many {
				shared.Apply(t, counting(name, fmt.Sprintf("counting-%d", i), condition))
			}
			testcluster.Soon(t, "the policies are registered, or left out", func() bool {
				var list v1alpha1.PolicyTranslationList
				if err := shared.List(t.Context(), &list); err != nil {
					t.Fatal(err)
				}
				known := 0
				for _, one := range list.Items {
					c := meta.FindStatusCondition(one.Status.Conditions, v1alpha1.ConditionFallbackActive)
					if one.Spec.Source.Namespace == name && c != nil && (c.Reason == "Serving" || c.Reason == "LeftOut") {
						known++
					}
				}
				return known == many
			})
			write := func(secret string) {
				o := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: name, Name: secret}}
				// The webhook evaluates conditions and rules until the time of the namespace is over: what
				// it is at then says so.
				err := shared.Create(t.Context(), o)
				if err != nil && !strings.Contains(err.Error(), "failed to evaluate its match conditions") && !strings.Contains(err.Error(), "context deadline exceeded") {
					t.Errorf("a Secret: %v", err)
				}
			}
			const writes = 5
			began, before := time.Now(), shared.apiServerTime(t)
			for i := range writes {
				write(fmt.Sprintf("one-%d", i))
			}
			took, each := time.Since(began)/writes, (shared.apiServerTime(t)-before)/writes // with what else it does meanwhile
			t.Logf("a write took %v, and the API server at most %v of a processor", took, each)
			if each > time.Second {
				t.Errorf("a write costs the API server %v", each)
			}
			shared.beside(t, 3*time.Second, func() { // of the five that one of these takes
				var wg sync.WaitGroup
				for i := range 3 {
					wg.Go(func() { write(fmt.Sprintf("beside-%d", i)) })
				}
				wg.Wait()
			})
		})
	}
}
