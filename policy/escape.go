package policy

import (
	"bytes"
	"regexp"
	"strconv"
	"strings"
)

// Who keeps a policy in a template of Helm, or of Red Hat Advanced Cluster Management, writes the
// braces of its variables so that they stay:
//
//	message: "no {{ `{{ request.object.metadata.name }}` }}"
//	message: "no {{ "{{" }} request.object.metadata.name {{ "}}" }}"
//
// A file whose actions are all of this form needs nothing to be rendered.

// escapedAction is an action that writes a text, or a comment. What trims the lines around it is none:
// the lines would be others.
func escapedAction() *regexp.Regexp {
	return regexp.MustCompile("\\{\\{[ \\t]*(?:(`[^`]*`)|(\"(?:[^\"\\\\\\n]|\\\\.)*\")|/\\*(?s:(.*?))\\*/)[ \\t]*\\}\\}")
}

// unescaped is a file with the braces that such actions write; the same where some braces are not
// escaped, or are so by something else. JSON is no template but what a cluster has, where an escape
// that nobody rendered stands for itself.
func unescaped(data []byte) []byte {
	if bytes.HasPrefix(bytes.TrimSpace(data), []byte("{")) && !bytes.HasPrefix(bytes.TrimSpace(data), []byte("{{")) {
		return data
	}
	if !bytes.Contains(data, []byte("{{`")) && !bytes.Contains(data, []byte("{{ `")) && !bytes.Contains(data, []byte(`"{{"`)) {
		return data
	}
	action := escapedAction()
	braces, out := false, []byte(nil)
	for line := range bytes.Lines(data) { // the text of an action may have several, which is no escape
		if bytes.HasPrefix(bytes.TrimLeft(line, " \t"), []byte("#")) {
			out = append(out, line...)
			continue
		}
		if bytes.Contains(action.ReplaceAll(line, nil), []byte("{{")) {
			return data
		}
		out = append(out, action.ReplaceAllFunc(line, func(one []byte) []byte {
			found := action.FindSubmatch(one)
			text := strings.Trim(string(found[1]), "`")
			if quoted := string(found[2]); quoted != "" {
				var err error
				if text, err = strconv.Unquote(quoted); err != nil {
					return one
				}
			}
			braces = braces || strings.Contains(text, "{{")
			return []byte(text)
		})...)
	}
	if !braces { // the texts are JMESPath's
		return data
	}
	return out
}
