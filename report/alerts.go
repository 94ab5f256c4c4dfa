package report

import (
	"io"

	"github.com/kvap/kvap/diag"
)

// alerting is what findings of any verb can be written as alerts of.
type alerting interface{ Alerts() []Alert }

// WriteAlerts writes findings in a form that a code host shows, and what was found
// when the input was read, where the findings do not have it.
func WriteAlerts(w io.Writer, format string, from alerting, found diag.List) error {
	alerts := WithInput(from.Alerts(), found)
	if format == "sarif" {
		return WriteSARIF(w, alerts)
	}
	return WriteGitHub(w, alerts)
}
