package evaluate

import (
	"bytes"
	"errors"
	"strings"
	"testing"

	"github.com/kvap/kvap/compile"
	"github.com/kvap/kvap/diag"
	"github.com/kvap/kvap/internal/exit"
	"github.com/kvap/kvap/internal/judge"
	"github.com/kvap/kvap/interp"
	"github.com/kvap/kvap/policy"
	"github.com/kvap/kvap/translate"
	"github.com/kvap/kvap/vap/apiserver"
)

// TestEvalVerdict pins what weighs most among what a run has seen.
func TestEvalVerdict(t *testing.T) {
	rule := &compile.Form{Name: "r", Source: &policy.Rule{}, Rule: &compile.Rule{Policy: &policy.Policy{Name: "p"}, Target: translate.Native}}
	agree := judged{id: "1", opinions: []judge.Opinion{{Rule: rule, Compared: true, Native: apiserver.Deny, Status: interp.Fail, Kyverno: interp.Fail}}}
	disagree := judged{id: "2", opinions: []judge.Opinion{{Rule: rule, Compared: true, Native: apiserver.Allow, Status: interp.Fail, Kyverno: interp.Fail, Message: "bad"}}}
	nobody := judged{id: "3", opinions: []judge.Opinion{{Rule: rule, Compared: true, Native: apiserver.Unknown, NativeMessage: "nobody acts", Status: interp.Error, Kyverno: interp.Error}}}
	unread := judged{unread: true, found: diag.List{diag.Errorf(diag.Pos{}, diag.BadRequest, "unreadable")}}
	for name, c := range map[string]struct {
		judged []judged
		want   int
	}{
		"a violation is no finding": {[]judged{agree}, exit.CodeClean},
		"a disagreement is":         {[]judged{agree, disagree}, exit.CodeFindings},
		"some left out":             {[]judged{agree, disagree, unread}, exit.CodePartly},
		"a rule that is not judged": {[]judged{agree, nobody, nobody}, exit.CodePartly},
		"all left out":              {[]judged{unread}, exit.CodeUsage},
		"nothing":                   {nil, exit.CodeUsage},
	} {
		t.Run(name, func(t *testing.T) {
			var out bytes.Buffer
			e := &Evaluation{
				judges: &judge.Judges{Rules: []*compile.Form{rule}}, out: Options{Stdout: &out}.newOutput(),
				told: map[string]bool{}, missing: map[diag.Pos]judge.Lookup{}, unknown: map[judge.Lookup]bool{},
			}
			for _, j := range c.judged {
				if err := e.note(j); err != nil {
					t.Fatal(err)
				}
			}
			if err := e.out.finish(e.totals); err != nil {
				t.Fatal(err)
			}
			code := exit.CodeClean
			var done *exit.Error
			if errors.As(e.Verdict(), &done) {
				code = done.Code
			}
			if code != c.want {
				t.Errorf("exit code %d, want %d", code, c.want)
			}
			if len(e.Found) > 1 {
				t.Errorf("said more than once: %v", e.Found)
			}
			if c.want == exit.CodeFindings && !strings.Contains(out.String(), "DISAGREE: native: ; interpreter: bad") {
				t.Errorf("the table hides the disagreement:\n%s", out.String())
			}
		})
	}
}
