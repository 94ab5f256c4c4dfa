package doc

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"io"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/kvap/kvap/diag"
)

type sarifLog struct {
	Schema  string     `json:"$schema"`
	Version string     `json:"version"`
	Runs    []sarifRun `json:"runs"`
}

type sarifRun struct {
	Tool        sarifTool         `json:"tool"`
	Invocations []sarifInvocation `json:"invocations,omitempty"`
	ColumnKind  string            `json:"columnKind"`
	Results     []sarifResult     `json:"results"`
}

// A sarifInvocation says how the results came to be.
type sarifInvocation struct {
	CommandLine         string `json:"commandLine"`
	EndTimeUTC          string `json:"endTimeUtc"`
	ExecutionSuccessful bool   `json:"executionSuccessful"`
}

type sarifTool struct {
	Driver sarifDriver `json:"driver"`
}

type sarifDriver struct {
	Name           string      `json:"name"`
	Version        string      `json:"version,omitempty"`
	InformationURI string      `json:"informationUri"`
	Rules          []sarifRule `json:"rules"`
}

type sarifRule struct {
	ID               string       `json:"id"`
	Name             string       `json:"name,omitempty"`
	ShortDescription *sarifText   `json:"shortDescription,omitempty"`
	FullDescription  *sarifText   `json:"fullDescription,omitempty"`
	Help             *sarifText   `json:"help,omitempty"`
	HelpURI          string       `json:"helpUri,omitempty"`
	Default          *sarifConfig `json:"defaultConfiguration,omitempty"`
}

type sarifText struct {
	Text string `json:"text"`
}

type sarifConfig struct {
	Level string `json:"level"`
}

type sarifResult struct {
	RuleID       string             `json:"ruleId"`
	RuleIndex    int                `json:"ruleIndex"`
	Level        string             `json:"level"`
	Message      sarifText          `json:"message"`
	Locations    []sarifLocation    `json:"locations,omitempty"`
	Fingerprints map[string]string  `json:"partialFingerprints"`
	Suppressions []sarifSuppression `json:"suppressions,omitempty"`
}

// A sarifSuppression says that somebody accepts a result.
type sarifSuppression struct {
	Kind          string `json:"kind"`
	Justification string `json:"justification"`
}

type sarifLocation struct {
	Physical sarifPhysical `json:"physicalLocation"`
}

type sarifPhysical struct {
	Artifact sarifArtifact `json:"artifactLocation"`
	Region   *sarifRegion  `json:"region,omitempty"`
}

type sarifArtifact struct {
	URI string `json:"uri"`
}

type sarifRegion struct {
	StartLine   int `json:"startLine"`
	StartColumn int `json:"startColumn,omitempty"`
}

const homePage = "https://github.com/kvap/kvap"

// writeSARIF writes alerts as SARIF 2.1.0, which code scanning reads. Its rules are the
// codes that occur.
func writeSARIF(w io.Writer, alerts []Alert, by By) error {
	run := sarifRun{
		Tool:       sarifTool{sarifDriver{Name: "kvap", Version: by.Version, InformationURI: homePage, Rules: []sarifRule{}}},
		ColumnKind: "unicodeCodePoints", Results: []sarifResult{},
	}
	if by.Command != "" {
		run.Invocations = []sarifInvocation{{by.Command, by.Date.UTC().Format(time.RFC3339), true}}
	}
	alerts = sorted(alerts)
	index := map[string]int{}
	for _, name := range rulesOf(alerts) {
		index[name] = len(run.Tool.Driver.Rules)
		run.Tool.Driver.Rules = append(run.Tool.Driver.Rules, sarifRuleOf(name, alerts))
	}
	seen := map[string]int{}
	for _, a := range alerts {
		run.Results = append(run.Results, a.sarif(index[a.Rule], seen))
	}
	return WriteJSON(w, sarifLog{Schema: "https://json.schemastore.org/sarif-2.1.0.json", Version: "2.1.0", Runs: []sarifRun{run}})
}

func rulesOf(alerts []Alert) []string {
	var out []string
	for _, a := range alerts {
		if !slices.Contains(out, a.Rule) {
			out = append(out, a.Rule)
		}
	}
	slices.Sort(out)
	return out
}

// sarifRuleOf takes what is told of a code from its documentation. Its level is that of
// the gravest alert.
func sarifRuleOf(name string, alerts []Alert) sarifRule {
	level := diag.Note
	for _, a := range alerts {
		if a.Rule == name {
			level = min(level, a.Severity)
		}
	}
	rule := sarifRule{ID: name, Default: &sarifConfig{level.String()}}
	code, ok := diag.ParseCode(name)
	if !ok {
		return rule
	}
	title, when := diag.Title(code)
	text, _ := diag.Explain(code)
	rule.Name, rule.HelpURI = title, diag.Docs+"codes.md#"+strings.ToLower(name)
	rule.ShortDescription, rule.FullDescription, rule.Help = &sarifText{when}, &sarifText{"Occurs when " + strings.TrimPrefix(when, "when ")}, &sarifText{text}
	return rule
}

// sarif is the result. seen counts those that are the same but for their place.
func (a Alert) sarif(index int, seen map[string]int) sarifResult {
	r := sarifResult{RuleID: a.Rule, RuleIndex: index, Level: a.Severity.String(), Message: sarifText{a.message()}}
	if a.Pos.File != "" {
		physical := sarifPhysical{Artifact: sarifArtifact{uriOf(a.Pos.File)}}
		if a.Pos.Line > 0 {
			physical.Region = &sarifRegion{StartLine: a.Pos.Line, StartColumn: max(a.Pos.Col, 1)}
		}
		r.Locations = []sarifLocation{{physical}}
	}
	if a.Accepted != "" {
		r.Suppressions = []sarifSuppression{{"external", a.Accepted}}
	}
	key := strings.Join([]string{a.Rule, a.Pos.File, a.Of, a.message()}, "\x00")
	seen[key]++
	sum := sha256.Sum256([]byte(key + "\x00" + strings.Repeat("+", seen[key])))
	r.Fingerprints = map[string]string{"kvap/v1": hex.EncodeToString(sum[:16])}
	return r
}

// uriOf is a path as a relative reference.
func uriOf(file string) string {
	u := url.URL{Path: strings.TrimPrefix(file, "./")}
	return u.String()
}

// message is what is wrong, and for which releases.
func (a Alert) message() string {
	if a.Releases == "" {
		return a.Message
	}
	return a.Message + " (Kubernetes " + a.Releases + ")"
}

// sorted puts the gravest first, and those as grave in the order of their places.
func sorted(list []Alert) []Alert {
	list = slices.Clone(list)
	slices.SortStableFunc(list, func(a, b Alert) int {
		return cmp.Or(cmp.Compare(a.Severity, b.Severity), a.Pos.Compare(b.Pos), cmp.Compare(a.Rule, b.Rule), cmp.Compare(a.Of, b.Of), cmp.Compare(a.Message, b.Message))
	})
	return list
}
