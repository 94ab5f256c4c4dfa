package report

import (
	"fmt"
	"io"
	"strings"

	"github.com/kvap/kvap/diag"
)

// WriteGitHub writes alerts as workflow commands, which GitHub shows at the lines of a
// pull request; of accepted ones it shows nothing.
func WriteGitHub(w io.Writer, alerts []Alert) error {
	for _, a := range alerts {
		if a.Accepted != "" {
			continue
		}
		command := map[diag.Severity]string{diag.Error: "error", diag.Warning: "warning", diag.Note: "notice"}[a.Severity]
		properties := []string{}
		if a.Pos.File != "" {
			properties = append(properties, "file="+githubProperty(a.Pos.File))
		}
		if a.Pos.Line > 0 {
			properties = append(properties, fmt.Sprintf("line=%d", a.Pos.Line), fmt.Sprintf("col=%d", max(a.Pos.Col, 1)))
		}
		properties = append(properties, "title="+githubProperty(a.Rule))
		if _, err := fmt.Fprintf(w, "::%s %s::%s\n", command, strings.Join(properties, ","), githubData(a.Message)); err != nil {
			return err
		}
	}
	return nil
}
