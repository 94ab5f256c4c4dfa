package report

import (
	"io"
	"time"

	"github.com/kvap/kvap/diag"
)

// alerting is what findings of any verb can be written as alerts of.
type alerting interface{ Alerts() []Alert }

// A By says what made a report: nothing where it is empty.
type By struct {
	Version string // of kvap
	Command string // as it was typed
	Date    time.Time
}

// WriteAlerts writes findings in a form that a code host shows, and what was found
// when the input was read, where the findings do not have it.
func WriteAlerts(w io.Writer, format string, from alerting, found diag.List, by By) error {
	alerts := WithInput(from.Alerts(), found)
	if format == "sarif" {
		return WriteSARIF(w, alerts, by)
	}
	return WriteGitHub(w, alerts)
}
