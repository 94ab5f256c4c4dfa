package report

import (
	"fmt"
	"io"
)

// WriteTable writes a row for each policy, in the order in which they go; what existing
// objects violate; and what a request costs.
func (p Plan) WriteTable(w io.Writer) error {
	rows := [][]string{{"WAVE", "POLICY", "KIND", "BECOMES", "ACTION", "RULES", "NATIVE OBJECTS", "VIOLATED", "KYVERNO 1.20", "KYVERNO 1.21", "CODES"}}
	titles := p.titles()
	for i, one := range p.Policies {
		rows = append(rows, []string{fmt.Sprint(one.Wave), titles[i], one.Kind, one.Becomes, one.action(),
			fmt.Sprint(len(one.Rules)), fmt.Sprint(len(one.Objects)), one.violated(), orDash(one.Kyverno.On120), orDash(one.Kyverno.On121), codeList(one.codes())})
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
	foot += p.upgradeText() + p.Totals.String() + "\n"
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
