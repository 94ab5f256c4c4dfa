package report

import (
	"fmt"
	"io"
)

// WriteTable writes a row for each policy, in the order in which they go; what existing
// objects violate; and what a request costs.
func (p Plan) WriteTable(w io.Writer) error {
	rows := [][]string{{"WAVE", "POLICY", "KIND", "BECOMES", "ACTION", "RULES", "VIOLATED", "KYVERNO 1.20", "KYVERNO 1.21", "CODES"}}
	titles := p.titles()
	for i, one := range p.Policies {
		rows = append(rows, []string{fmt.Sprint(one.Wave), titles[i], one.Kind, one.Becomes, one.action(),
			fmt.Sprint(len(one.Rules)), one.violated(), orDash(one.Kyverno.On120), orDash(one.Kyverno.On121), codeList(one.codes())})
	}
	below := ""
	if p.Looked != nil {
		for _, r := range p.violatedRules() {
			below += fmt.Sprintf("%s / %s: %s\n", r.policy, r.rule, r.Violations)
		}
		below += p.Looked.String() + "\n"
	}
	if err := writeTable(w, rows, below); err != nil {
		return err
	}
	if costs := p.costRows(mostInTable); len(costs) > 1 {
		more := ""
		if n := len(p.Costs) - mostInTable; n > 0 {
			more = fmt.Sprintf("and %s: -o json has all\n", Count(n, "more resource", "more resources"))
		}
		if err := writeTable(w, costs, more); err != nil {
			return err
		}
	}
	foot := ""
	for _, wave := range p.Waves {
		foot += fmt.Sprintf("wave %d, %s: %s. %s\n", wave.Number, Count(len(wave.Policies), "policy", "policies"), wave.Title, wave.Advice)
	}
	foot += p.upgradeText() + p.Totals.String() + "\n" + p.nativeText()
	switch codes := p.allCodes(); len(codes) {
	case 0:
	case 1:
		foot += fmt.Sprintf("what a code means, and the way out: kvap explain %s\n", codes[0].Code)
	default:
		foot += "what the codes mean, and the ways out: kvap explain"
		for _, c := range codes {
			foot += " " + c.Code.String()
		}
		foot += "\n"
	}
	_, err := io.WriteString(w, foot)
	return err
}

// nativeText says how many native policies there will be. One that policies share counts once:
// nine for each of them about Pods and their controllers would be nine in all.
func (p Plan) nativeText() string {
	names := map[string]bool{}
	for _, one := range p.Policies {
		for _, name := range one.Objects {
			names[name] = true
		}
	}
	if len(names) == 0 {
		return ""
	}
	return Count(len(names), "native policy", "native policies") + " will have all native rules; policies about the same resource share one\n"
}
