package main

import (
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"strings"

	admissionv1 "k8s.io/api/admission/v1"
)

// report prints the results and tells whether all is well.
func report(w io.Writer, c config, results []result, mutated caseCount) bool {
	passed, failed := mutated.passed, mutated.failed
	generated := result{name: "generated"}
	for _, r := range results {
		passed += r.agree + r.concur
		failed += len(r.refused) + r.cases - r.agree + r.asked - r.concur
		if r.unjudged != nil {
			failed++
		}
		if r.classes != nil || r.unjudged != nil || len(r.refused)+len(r.warned) > 0 {
			summary(w, r)
		} else {
			generated.add(r)
		}
		if c.verbose {
			disagreements(w, r, c.max)
		}
	}
	if len(generated.rules) > 0 {
		summary(w, generated)
	}
	remainder(w, results)
	if c.only == "" {
		failed += thresholds(w, results)
	}
	fmt.Fprintf(w, "conformance: %d passed, %d failed\n", passed, failed)
	return failed == 0
}

func (out *result) add(s result) {
	out.rules = append(out.rules, s.rules...)
	out.cases += s.cases
	out.agree += s.agree
	out.deviant += s.deviant
	out.asked += s.asked
	out.concur += s.concur
	out.wrong = append(out.wrong, s.wrong...)
}

func summary(w io.Writer, r result) {
	fmt.Fprintf(w, "%-60s rules %d/%d  cases %d  agree %d  disagree %d", r.name, r.native(), len(r.rules), r.cases, r.agree, r.cases-r.agree)
	if r.deviant > 0 {
		fmt.Fprintf(w, "  deviate %d", r.deviant)
	}
	if r.asked > 0 {
		fmt.Fprintf(w, "  interp %d/%d", r.concur, r.asked)
	}
	fmt.Fprintln(w)
	if r.unjudged != nil {
		fmt.Fprintf(w, "    not judged: %v\n", r.unjudged)
	}
	for _, text := range r.warned {
		fmt.Fprintf(w, "    type check: %s\n", text)
	}
	for _, text := range r.refused {
		fmt.Fprintf(w, "    refused: %s\n", text)
	}
}

func disagreements(w io.Writer, r result, limit int) {
	printed := map[string]int{}
	for _, d := range r.wrong {
		key := d.engine + "/" + d.mode + "/" + d.rule
		if printed[key]++; limit > 0 && printed[key] > limit {
			continue
		}
		q := d.of.Request
		fmt.Fprintf(w, "    %s %s, %s, %s: want %s, got %s: %s\n", r.name, d.rule, d.engine, d.mode, d.want, d.got, strings.Join(strings.Fields(d.message), " "))
		fmt.Fprintf(w, "      case %s: %s %s/%s by %s\n", d.id, q.Operation, q.Kind.Kind, q.SubResource, user(q))
		if len(q.Object.Raw) > 0 {
			fmt.Fprintf(w, "      object    %s\n", q.Object.Raw)
		}
		if len(q.OldObject.Raw) > 0 {
			fmt.Fprintf(w, "      oldObject %s\n", q.OldObject.Raw)
		}
	}
}

func user(q *admissionv1.AdmissionRequest) string {
	text, err := json.Marshal(q.UserInfo)
	if err != nil {
		return q.UserInfo.Username
	}
	return string(text)
}

// remainder lists the rules that have no native form. The generated ones are
// counted by their codes only.
func remainder(w io.Writer, results []result) {
	counts := map[string]int{}
	for _, r := range results {
		for _, rule := range r.rules {
			if rule.native {
				continue
			}
			codes := strings.Join(rule.codes, " ")
			if r.classes == nil {
				counts[codes]++
				continue
			}
			class := r.classes[rule.name]
			if class == "" {
				class = "no class"
			}
			fmt.Fprintf(w, "not native: %s %s (%s): %s\n", r.name, rule.name, class, codes)
		}
	}
	var keys []string
	for k := range counts {
		keys = append(keys, k)
	}
	slices.Sort(keys)
	for _, k := range keys {
		fmt.Fprintf(w, "not native: %d generated rules: %s\n", counts[k], k)
	}
}

// thresholds prints the share of native rules in each class of the corpus, and
// counts the classes that have too few.
func thresholds(w io.Writer, results []result) (missed int) {
	for _, class := range []struct {
		name string
		want float64
	}{{"direct", 98}, {"effort", 85}, {"no", 0}} {
		native, total := 0, 0
		for _, r := range results {
			for name, c := range r.classes {
				if c != class.name {
					continue
				}
				total++
				if slices.ContainsFunc(r.rules, func(f ruleForm) bool { return f.name == name && f.native }) {
					native++
				}
			}
		}
		if total == 0 {
			continue
		}
		share := 100 * float64(native) / float64(total)
		verdict := "enough"
		if share < class.want {
			verdict = "too few"
			missed++
		}
		fmt.Fprintf(w, "class %s: %d of %d rules native, %.1f %%; want %.0f %%: %s\n", class.name, native, total, share, class.want, verdict)
	}
	return missed
}
