package images

import (
	"crypto/x509"
	"encoding/asn1"
	"fmt"
	"maps"
	"slices"
	"strings"
	"unicode/utf8"
)

// fulcio is the number under which Fulcio's extensions are.
const fulcio = "1.3.6.1.4.1.57264.1."

// extensionNames are those of Fulcio's extensions that policies name, and the numbers under which
// one may be. Those up to 7 are plain texts; the others are in DER.
func extensionNames() map[string][]string {
	return map[string][]string{
		"oidcIssuer": {"8", "1"}, "githubWorkflowTrigger": {"2"}, "githubWorkflowSha": {"3"}, "githubWorkflowName": {"4"},
		"githubWorkflowRepository": {"5"}, "githubWorkflowRef": {"6"},
	}
}

// extended is nil if a certificate says what it must. One that says it twice says nothing.
func (i *certificateIdentity) extended(c *x509.Certificate) error {
	for _, name := range slices.Sorted(maps.Keys(i.Extensions)) {
		numbers, ok := extensionNames()[name]
		if !ok {
			number, ok := strings.CutPrefix(name, fulcio)
			if !ok {
				return fmt.Errorf("the extension %q is not known", name)
			}
			numbers = []string{number}
		}
		var found []string
		for _, e := range c.Extensions {
			number, ok := strings.CutPrefix(e.Id.String(), fulcio)
			if !ok || !slices.Contains(numbers, number) {
				continue
			}
			text, err := extensionText(number, e.Value)
			if err != nil {
				return fmt.Errorf("the extension %s of its certificate cannot be read", name)
			}
			found = append(found, text)
		}
		if found = slices.Compact(found); len(found) != 1 || !wild(i.Extensions[name], found[0]) {
			return fmt.Errorf("the extension %s of its certificate is %q", name, strings.Join(found, ", "))
		}
	}
	return nil
}

func extensionText(number string, value []byte) (text string, err error) {
	if len(number) == 1 && number < "8" {
		if !utf8.Valid(value) {
			return "", fmt.Errorf("it is no text")
		}
		return string(value), nil
	}
	rest, err := asn1.Unmarshal(value, &text)
	if err == nil && len(rest) > 0 {
		err = fmt.Errorf("there is more in it")
	}
	return text, err
}
