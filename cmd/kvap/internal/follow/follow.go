package follow

import (
	"fmt"
	"io"
	"strings"

	"github.com/kvap/kvap/cel"
	"github.com/kvap/kvap/compile"
	"github.com/kvap/kvap/diag"
	"github.com/kvap/kvap/policy"
	"github.com/kvap/kvap/schema"
	"github.com/kvap/kvap/translate"
)

// Rules prints how each rule of a file becomes CEL, and tells how many policies there are. A rule
// is gone through for each resource and for operations that differ; what is found besides is
// given back.
func Rules(w io.Writer, name string, text []byte) (policies int, found diag.List, err error) {
	types, err := schema.Builtin(cel.Default.String())
	if err != nil {
		return 0, nil, err
	}
	file, found := policy.Parse(name, text)
	p := &printer{w: w}
	for _, one := range file.Policies { // by itself: several are lowered at once
		p.begin(one)
		done := compile.Policies(compile.Input{Policies: []*policy.Policy{one}, Exceptions: file.Exceptions, Found: found}, compile.Options{
			Translate: translate.Options{Release: cel.Default, Schemas: types.WithPublished(), Mutations: true, Trace: p.step},
		})
		found = append(found, done.Diagnostics...)
		p.end()
	}
	return len(file.Policies), found, p.err
}

type printer struct {
	w      io.Writer
	around string          // what the last step was about
	said   map[string]bool // of that; what is lowered again says the same again
	err    error
}

func (p *printer) begin(of *policy.Policy) {
	p.print("policy %s\n", of.Name)
	p.around = ""
}

// end tells of a policy of which no rule was gone through.
func (p *printer) end() {
	if p.around == "" {
		p.print("  nothing to follow: it says in CEL what it asks, or the webhook judges it whole\n")
	}
}

func (p *printer) step(s translate.Step) {
	if around := fmt.Sprintf("rule %s, of %s on %s", s.Rule, s.Target, strings.Join(s.Operations, ", ")); around != p.around {
		p.print("  %s\n", around)
		p.around, p.said = around, map[string]bool{}
	}
	step := fmt.Sprintf("    line %d, %s\n        %s\n", s.Pos.Line, s.What, strings.ReplaceAll(s.Is, "\n", "\n        "))
	if !p.said[step] {
		p.print("%s", step)
	}
	p.said[step] = true
}

func (p *printer) print(format string, args ...any) {
	if p.err == nil {
		_, p.err = fmt.Fprintf(p.w, format, args...)
	}
}
