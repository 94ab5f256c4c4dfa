package doc

import (
	"fmt"
	"strings"

	"github.com/kvap/kvap/diag"
)

// github is alerts as workflow commands, which GitHub shows at the lines of a pull request; of
// accepted ones it shows nothing.
func github(alerts []Alert) string {
	var b strings.Builder
	for _, a := range sorted(alerts) {
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
		fmt.Fprintf(&b, "::%s %s::%s\n", command, strings.Join(properties, ","), githubData(a.message()))
	}
	return b.String()
}
