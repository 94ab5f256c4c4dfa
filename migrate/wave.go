package migrate

import (
	"github.com/kvap/kvap/diag"
	"github.com/kvap/kvap/report"
)

// The waves, the safest first.
const (
	auditing  = 1 + iota // native, and nothing is ever denied
	enforcing            // native, some denies, the same on every request
	different            // native, and different in a way to be read first
	remaining            // some rule needs kvap's webhook
	staying              // some rule has no place with kvap
)

// waves are the titles, and what to do.
func waves() []report.Wave {
	return []report.Wave{
		{Number: auditing, Title: "native, audit only",
			Advice: "Nothing can be denied by mistake. Move these first, and compare the reports."},
		{Number: enforcing, Title: "native, enforcing, no known difference",
			Advice: "Run them beside Kyverno (kvap migrate shadow), compare, then enforce."},
		{Number: different, Title: "native, with differences to be read",
			Advice: "Read what kvap explain says of their 3xx codes, and decide whether it matters to you; then shadow, compare and enforce as well."},
		{Number: remaining, Title: "needs kvap's webhook",
			Advice: "Follow the way out that a code names, or install the controller, whose webhook serves these rules."},
		{Number: staying, Title: "stays with Kyverno",
			Advice: "Some rule has no place with kvap. Rewrite it, or keep Kyverno for it."},
	}
}

// waveOf is the wave of a policy.
func waveOf(p report.PlannedPolicy) int {
	switch {
	case p.Becomes == "unsupported":
		return staying
	case p.Becomes != "native":
		return remaining
	case differs(p):
		return different
	case p.Denies:
		return enforcing
	}
	return auditing
}

// differs tells whether a code says that a rule behaves otherwise than with
// Kyverno.
func differs(p report.PlannedPolicy) bool {
	for _, r := range p.Rules {
		for _, c := range r.Codes {
			if isDifference(c.Code) {
				return true
			}
		}
	}
	return false
}

func isDifference(c diag.Code) bool { return c >= 300 && c < 400 }
