package report

import (
	"fmt"

	"github.com/kvap/kvap/diag"
	"github.com/kvap/kvap/report/doc"
)

// An Upgrade is what is known of the Kyverno of a cluster, for those who will have its
// next versions.
type Upgrade struct {
	// Version is that of Kyverno; empty where nothing tells it. Seen is what told it.
	Version string `json:"version"`
	Seen    string `json:"seen"`
	// Silent is since when Kyverno has not said that it is alive; empty where it does, or
	// that is not known.
	Silent string `json:"silent"`
	// Closed is what the API server says to those who make or change a policy of
	// kyverno.io; empty where it takes that.
	Closed string `json:"closed"`
	// Unknown is what could not be found out, and why.
	Unknown []string `json:"unknown"`
}

// Ahead is what becomes of a policy in the versions of Kyverno that come.
type Ahead struct {
	On120 string `json:"1.20"`
	On121 string `json:"1.21"`
}

// What becomes of a policy.
const (
	AsNow    = "as now"
	NoEffect = "ignored" // Kyverno does nothing by it, and it can only be deleted
	Gone     = "gone"    // with the definition of its kind
)

// legacy is how many policies there are of kinds that Kyverno gives up.
func (p Plan) legacy() (n int) {
	for _, one := range p.Policies {
		if one.Kyverno.On120 == NoEffect {
			n++
		}
	}
	return n
}

// upgradeItems say what comes with Kyverno 1.20 and 1.21.
func (p Plan) upgradeItems() (out []doc.Item) {
	say := func(text string) { out = append(out, doc.Item{Text: text}) }
	if u := p.Upgrade; u != nil {
		switch {
		case u.Version != "":
			line := fmt.Sprintf("Kyverno is %s (%s)", u.Version, u.Seen)
			if u.Silent != "" {
				line += "; " + u.Silent
			}
			say(line)
		default:
			say("Kyverno's version is not known")
		}
		for _, what := range u.Unknown {
			say(what)
		}
		if u.Closed != "" {
			say("the API server takes no new or changed policy of kyverno.io any more: " + u.Closed)
		}
	}
	if p.legacy() == 0 {
		return out
	}
	what := doc.Count(p.legacy(), "policy", "policies")
	if p.LegacyExceptions > 0 {
		what += " and " + doc.Count(p.LegacyExceptions, "PolicyException", "PolicyExceptions")
	}
	say(what + " of kyverno.io: Kyverno 1.20 ignores these and refuses changes to them; Kyverno 1.21 removes their definitions, and them: " + diag.Docs + "upgrade-1.20.md")
	return out
}
