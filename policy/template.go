package policy

import (
	"bytes"
	"strings"
	"unicode/utf8"

	"github.com/kvap/kvap/diag"
)

// Helm templates and JMESPath variables share their braces. A file is taken for a
// template when an action holds what no JMESPath expression can: a field of the
// root (.Values.x) or of a variable ($x), a keyword with an argument, an escaped
// brace, a comment; or when a document is no YAML and a line starts with {{. The
// templates of Red Hat Advanced Cluster Management, {{hub … hub}}, are such actions
// between braces of their own.

func templateError(pos diag.Pos, action string) diag.Diagnostic {
	if strings.HasPrefix(action, "{{hub ") {
		return diag.Errorf(pos, diag.Template, "this file is a template of Red Hat Advanced Cluster Management, not yet a policy: its hub fills in {{hub … hub}}; give kvap what the hub makes of it")
	}
	if !isAction(strings.TrimPrefix(action, "{{")) {
		return diag.Errorf(pos, diag.Template, "{{ }} stands here without quotes: put a variable of the policy in quotes; if the file is a template, render it first, for instance with helm template CHART | kvap convert -")
	}
	return diag.Errorf(pos, diag.Template, "this file is a template, not yet a policy; render it first, for instance with helm template CHART | kvap convert -")
}

// template is the error of the first action of a chunk that is no YAML, comments aside.
func (c chunk) template(name string) (diag.Diagnostic, bool) {
	number := 0
	for line := range bytes.Lines(c.text) {
		number++
		trimmed := strings.TrimLeft(string(line), " \t")
		at := -1
		switch {
		case strings.HasPrefix(trimmed, "#"):
		case strings.HasPrefix(trimmed, "{{"):
			at = len(line) - len(trimmed)
		default:
			at = templateAction(string(line))
		}
		if at >= 0 {
			return templateError(diag.Pos{File: name, Line: c.line + number, Col: 1 + utf8.RuneCount(line[:at])}, string(line[at:])), true
		}
	}
	return diag.Diagnostic{}, false
}

// templateAction is the offset of the first action in a text that only a template
// can hold, or -1. \{{ is an escape of Kyverno's.
func templateAction(text string) int {
	for at := 0; ; {
		i := strings.Index(text[at:], "{{")
		if i < 0 {
			return -1
		}
		at += i
		if (at == 0 || text[at-1] != '\\') && isAction(text[at+2:]) {
			return at
		}
		at += 2
	}
}

// isAction judges what follows the braces.
func isAction(text string) bool {
	if hub, ok := strings.CutPrefix(text, "hub "); ok {
		hub = strings.TrimLeft(hub, " \t")
		return hub != "" && (isLetter(hub[0]) || strings.IndexByte(`."$(`, hub[0]) >= 0)
	}
	text = strings.TrimLeft(strings.TrimPrefix(text, "-"), " \t")
	for _, escape := range []string{`"{{`, "`{{", "/*"} {
		if strings.HasPrefix(text, escape) {
			return true
		}
	}
	if text == "" {
		return false
	}
	switch text[0] {
	case '.':
		rest := strings.TrimLeft(text[1:], " \t")
		return rest != "" && (isLetter(rest[0]) || rest[0] == '|' || rest[0] == '}')
	case '$':
		return len(text) > 1 && (text[1] == '.' || isLetter(text[1]))
	}
	word := text
	for i := range len(text) {
		if !isLetter(text[i]) {
			word = text[:i]
			break
		}
	}
	argument := strings.TrimLeft(text[len(word):], " \t")
	switch word {
	case "end", "else":
		return strings.HasPrefix(strings.TrimPrefix(argument, "-"), "}}") || strings.HasPrefix(argument, "if ")
	case "if", "range", "with", "include", "template", "define", "block", "tpl", "toYaml",
		"fromYaml", "required", "default", "lookup", "printf", "not", "and", "or", "eq":
		return len(argument) < len(text)-len(word) && argument != "" &&
			(isLetter(argument[0]) || strings.IndexByte(`."$`, argument[0]) >= 0)
	}
	return false
}

func isLetter(c byte) bool {
	return 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z' || c == '_'
}

// findTemplate looks for an action in the strings of a policy. Annotations hold
// descriptions, which may speak of templates.
func findTemplate(n *Node) (d diag.Diagnostic, ok bool) {
	switch n.Kind {
	case String:
		if at := templateAction(n.Str); at >= 0 {
			return templateError(n.Pos, n.Str[at:]), true
		}
	case List:
		for _, item := range n.Items {
			if d, ok := findTemplate(item); ok {
				return d, ok
			}
		}
	case Map:
		for _, f := range n.Fields {
			if f.Key == "annotations" && strings.HasSuffix(f.Pos.Path, "metadata.annotations") {
				continue
			}
			if d, ok := findTemplate(f.Value); ok {
				return d, ok
			}
		}
	}
	return diag.Diagnostic{}, false
}
