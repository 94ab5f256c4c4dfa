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

// Rules prints how each rule of a file becomes CEL. A rule is gone through for each resource
// and for operations that differ; what is found of the file besides is given back.
func Rules(w io.Writer, name string, text []byte) (diag.List, error) {
	types, err := schema.Builtin(cel.Default.String())
	if err != nil {
		return nil, err
	}
	file, found := policy.Parse(name, text)
	p := &printer{w: w}
	done := compile.Policies(compile.Input{Policies: file.Policies, Exceptions: file.Exceptions, Found: found}, compile.Options{
		Translate: translate.Options{Release: cel.Default, Schemas: types.WithPublished(), Mutations: true, Trace: p.step},
	})
	return append(found, done.Diagnostics...), p.err
}

type printer struct {
	w      io.Writer
	around string          // what the last step was about
	said   map[string]bool // of that; what is lowered again says the same again
	err    error
}

func (p *printer) step(s translate.Step) {
	if around := fmt.Sprintf("rule %s, of %s on %s", s.Rule, s.Target, strings.Join(s.Operations, ", ")); around != p.around {
		p.print("%s\n", around)
		p.around, p.said = around, map[string]bool{}
	}
	step := fmt.Sprintf("  line %d, %s\n      %s\n", s.Pos.Line, s.What, strings.ReplaceAll(s.Is, "\n", "\n      "))
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
